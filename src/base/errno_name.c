/* errno names, as a table both ways; see errno_name.h. */
#include "base/errno_name.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/str.h"

static const struct {
	int code;
	const char *name;
} names[] = {
	{ E2BIG, "e2big" },
	{ EACCES, "eacces" },
	{ EAGAIN, "eagain" },
	{ EBADF, "ebadf" },
	{ EBADMSG, "ebadmsg" },
	{ EBUSY, "ebusy" },
	{ ECHILD, "echild" },
	{ EDQUOT, "edquot" },
	{ EEXIST, "eexist" },
	{ EFBIG, "efbig" },
	{ EINTR, "eintr" },
	{ EINVAL, "einval" },
	{ EIO, "eio" },
	{ EISDIR, "eisdir" },
	{ ELIBBAD, "elibbad" },
	{ ELOOP, "eloop" },
	{ EMFILE, "emfile" },
	{ EMLINK, "emlink" },
	{ EMSGSIZE, "emsgsize" },
	{ ENAMETOOLONG, "enametoolong" },
	{ ENFILE, "enfile" },
	{ ENODEV, "enodev" },
	{ ENOENT, "enoent" },
	{ ENOEXEC, "enoexec" },
	{ ENOMEM, "enomem" },
	{ ENOSPC, "enospc" },
	{ ENOSYS, "enosys" },
	{ ENOTDIR, "enotdir" },
	{ ENOTEMPTY, "enotempty" },
	{ ENOTSUP, "enotsup" },
	{ ENOTTY, "enotty" },
	{ ENXIO, "enxio" },
	{ EOVERFLOW, "eoverflow" },
	{ EPERM, "eperm" },
	{ EPIPE, "epipe" },
	{ EPROTO, "eproto" },
	{ EROFS, "erofs" },
	{ ESPIPE, "espipe" },
	{ ESRCH, "esrch" },
	{ ESTALE, "estale" },
	{ ETIMEDOUT, "etimedout" },
	{ ETXTBSY, "etxtbsy" },
	{ EXDEV, "exdev" },
};

const char *errno_name(int code)
{
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (names[i].code == code)
			return names[i].name;
	return "eio";
}

int errno_number(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (str_is(names[i].name, name))
			return names[i].code;
	return 0;
}

/* What a caller tells apart beyond errno: why there is no wall, or nothing was started behind it.
 */
static const char *const own_names[] = { "TierUnavailable", "StrictModeUnavailable",
					 "StrictModeRequired", "ApprovalRequired",
					 "ApprovalDenied" };

const char *error_name(const struct csn_error *err)
{
	for (size_t i = 0; i < ARRAY_SIZE(own_names); i++)
		if (str_starts(err->text, own_names[i]) && err->text[strlen(own_names[i])] == ':')
			return own_names[i];
	return errno_name(err->code);
}
