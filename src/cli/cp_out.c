/* Out of a sandbox; see cp.h. A list of names is read before the folder is made here: a copy into a
 * workspace that the sandbox sees does not find itself. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "cli/cp.h"
#include "monitor/copy.h"

/* ---- a file --------------------------------------------------------------------------------- */

enum { TEMPORARY = 32, BLOCK = 4096 };

/* What is written before it has its name. Where the file system can, it has none until then: what
 * ends us leaves nothing. */
struct draft {
	int fd;
	int error;            /* of writing it */
	uint64_t size;        /* so far: its end may be a hole, which has no bytes */
	char name[TEMPORARY]; /* "": none */
};

static int make_name(char *ret_name)
{
	uint64_t number;

	if (getrandom(&number, sizeof number, 0) != sizeof number)
		return -EIO;
	snprintf(ret_name, TEMPORARY, ".caisson-%016llx", (unsigned long long)number);
	return 0;
}

static int draft_open(struct draft *draft, int folder)
{
	*draft =
		(struct draft){ .fd = openat(folder, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600) };
	if (draft->fd >= 0)
		return 0;
	if (errno != EOPNOTSUPP && errno != EISDIR && errno != ENOENT && errno != EINVAL)
		return -errno;
	if (make_name(draft->name) < 0)
		return -EIO;
	draft->fd = openat(folder, draft->name,
			   O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (draft->fd >= 0)
		return 0;
	draft->name[0] = 0;
	return -errno;
}

static int draft_name(struct draft *draft, int folder)
{
	char path[64];

	if (draft->name[0])
		return 0;
	if (make_name(draft->name) < 0)
		return -EIO;
	snprintf(path, sizeof path, "/proc/self/fd/%d", draft->fd);
	if (linkat(AT_FDCWD, path, folder, draft->name, AT_SYMLINK_FOLLOW) == 0)
		return 0;
	draft->name[0] = 0;
	return -errno;
}

/* What a mode of the other side's becomes here: permissions, as far as our umask lets. */
static mode_t permissions(uint16_t mode)
{
	mode_t mask = umask(0);

	umask(mask);
	return mode & 0777 & ~mask;
}

/* A whole file, under its name; what had it is replaced. */
static int draft_publish(struct draft *draft, int folder, const char *name, uint16_t mode)
{
	int r = ftruncate(draft->fd, (off_t)draft->size) < 0 ? -errno : 0;

	if (r == 0 && fchmod(draft->fd, permissions(mode)) < 0)
		r = -errno;
	if (r == 0)
		r = draft_name(draft, folder);
	if (r == 0 && renameat(folder, draft->name, folder, name) < 0)
		r = -errno;
	if (r == 0)
		draft->name[0] = 0;
	return r;
}

static void draft_done(struct draft *draft, int folder)
{
	if (draft->name[0])
		unlinkat(folder, draft->name, 0);
	draft->fd = fd_close(draft->fd);
}

static bool is_zero(const unsigned char *bytes, size_t size)
{
	return bytes[0] == 0 && memcmp(bytes, bytes + 1, size - 1) == 0;
}

/* How many of the bytes belong together: whole blocks of zeros, or what is none. */
static size_t run_length(const unsigned char *bytes, size_t size, uint64_t at, bool *ret_is_hole)
{
	size_t length = 0, step;
	bool is_hole;

	for (; length < size; length += step) {
		step = BLOCK - (size_t)((at + length) % BLOCK);
		if (step > size - length)
			step = size - length;
		is_hole = step == BLOCK && is_zero(bytes + length, step);
		if (length == 0)
			*ret_is_hole = is_hole;
		else if (is_hole != *ret_is_hole)
			break;
	}
	return length;
}

/* Zeros take no room: `truncate -s 1T` inside costs nothing there, and must not fill the disk
 * here. */
static int take(void *data, enum csn_stream stream, const void *bytes, size_t size)
{
	struct draft *draft = data;
	const unsigned char *at = bytes;
	bool is_hole = false;
	size_t length;

	(void)stream;
	for (; size > 0 && draft->error == 0; at += length, size -= length) {
		length = run_length(at, size, draft->size, &is_hole);
		if (!is_hole)
			draft->error = fd_write_all(draft->fd, at, length);
		else if (lseek(draft->fd, (off_t)length, SEEK_CUR) < 0)
			draft->error = -errno;
		draft->size += length;
	}
	return draft->error;
}

/* May a file be put here? What a command inside may have made is not written through. */
static bool is_replaceable(struct cp *cp, int folder, const char *name)
{
	struct stat st;

	if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || S_ISREG(st.st_mode))
		return true;
	if (S_ISDIR(st.st_mode))
		cp_say_host(cp, "is a folder, which no file replaces");
	else if (S_ISLNK(st.st_mode))
		cp_say_host(cp, "is a symbolic link, which is not followed: remove it, or name "
				"what it leads to");
	else
		cp_say_host(cp, "is no regular file, and not replaced");
	return false;
}

static void file_out(struct cp *cp, int folder, const char *name, uint16_t mode)
{
	csn_read_request request = { .path = cp->inside, .on_output = take };
	csn_bytes *bytes = NULL;
	csn_error err = { 0 };
	struct draft draft;
	int r;

	if (!is_replaceable(cp, folder, name))
		return;
	r = draft_open(&draft, folder);
	request.data = &draft;
	if (r < 0) {
		cp_say_host(cp, "%s", strerror(-r));
		return;
	}
	if (csn_read(cp->sandbox, &request, &bytes, &err) < 0 && !draft.error)
		cp_say_error(cp, &err);
	else
		r = draft.error ? draft.error : draft_publish(&draft, folder, name, mode);
	if (r < 0)
		cp_say_host(cp, "%s", strerror(-r));
	csn_free(bytes);
	draft_done(&draft, folder);
}

/* ---- a link --------------------------------------------------------------------------------- */

/* As text. It is not followed here, and neither is what it replaces. */
static void link_out(struct cp *cp, int folder, const char *name, const char *target)
{
	struct stat st;

	if (!target) {
		cp_say_inside(cp, "is a link without a target");
		return;
	}
	if (symlinkat(target, folder, name) == 0)
		return;
	if (errno == EEXIST && fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    (S_ISREG(st.st_mode) || S_ISLNK(st.st_mode)) && unlinkat(folder, name, 0) == 0 &&
	    symlinkat(target, folder, name) == 0)
		return;
	cp_say_host(cp, "%s", strerror(errno));
}

/* ---- a folder ------------------------------------------------------------------------------- */

static void put(struct cp *cp, int folder, const char *name, const csn_stat_result *what);

/* One component, which the kernel takes for nothing else. */
static bool is_name(const char *name)
{
	return *name && !strchr(name, '/') && !str_is(name, ".") && !str_is(name, "..");
}

/* An empty folder: what stands in the place of a protected name that is absent, as a rule. */
static bool is_empty(const struct cp *cp)
{
	csn_path_request request = { .path = cp->inside };
	csn_list_result *list = NULL;
	bool is_so = csn_list(cp->sandbox, &request, &list, NULL) == 0 && list->count == 0;

	csn_free(list);
	return is_so;
}

/* What would run on the host, beneath the folder that was named. By the path inside, which is
 * whole: the names are the same here. Nothing is missing where there was nothing in it. */
static bool is_left_out(struct cp *cp, const csn_stat_result *what)
{
	bool is_folder = what->type && str_is(what->type, "directory");
	const char *path = cp->inside + cp->named;

	if (!copy_guard_name(path + strspn(path, "/"), is_folder))
		return false;
	if (!is_folder || !is_empty(cp))
		cp_leave_out(cp);
	return true;
}

static void entries_out(struct cp *cp, int folder, const csn_list_result *list)
{
	for (size_t i = 0; i < list->count && !cp->is_lost; i++) {
		const char *name = list->entries[i].name;
		struct cp_level level;
		csn_stat_result *what;
		csn_error err = { 0 };

		if (!name || !is_name(name)) {
			cp_say_inside(cp, "holds a name that is none: \"%s\"", name ? name : "");
			continue;
		}
		if (!cp_enter(cp, name, &level))
			return;
		what = cp_stat(cp, &err);
		if (!what)
			cp_say_error(cp, &err);
		else if (!is_left_out(cp, what))
			put(cp, folder, name, what);
		csn_free(what);
		cp_leave(cp, &level);
	}
	if (list->truncated)
		cp_say_inside(cp, "has more entries than are listed: the first %zu were copied",
			      list->count);
}

/* Into a folder that is there. */
static void content_out(struct cp *cp, int folder)
{
	csn_path_request request = { .path = cp->inside };
	csn_list_result *list = NULL;
	csn_error err = { 0 };

	if (csn_list(cp->sandbox, &request, &list, &err) < 0)
		cp_say_error(cp, &err);
	else
		entries_out(cp, folder, list);
	csn_free(list);
}

static void folder_out(struct cp *cp, int parent, const char *name, uint16_t mode)
{
	csn_path_request request = { .path = cp->inside };
	_cleanup_fd_ int folder = -1;
	csn_list_result *list = NULL;
	csn_error err = { 0 };
	bool is_made;

	if (csn_list(cp->sandbox, &request, &list, &err) < 0) {
		cp_say_error(cp, &err);
		return;
	}
	is_made = mkdirat(parent, name, 0700) == 0;
	if (is_made || errno == EEXIST)
		folder = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (folder >= 0)
		entries_out(cp, folder, list);
	else if (errno == ENOTDIR || errno == ELOOP)
		cp_say_host(cp, "is no folder, and not replaced by one");
	else
		cp_say_host(cp, "%s", strerror(errno));
	if (folder >= 0 && is_made && fchmod(folder, permissions(mode)) < 0)
		cp_say_host(cp, "%s", strerror(errno));
	csn_free(list);
}

static void put(struct cp *cp, int folder, const char *name, const csn_stat_result *what)
{
	const char *type = what->type ? what->type : "thing without a type";

	if (str_is(type, "file"))
		file_out(cp, folder, name, what->mode);
	else if (str_is(type, "directory"))
		folder_out(cp, folder, name, what->mode);
	else if (str_is(type, "symlink"))
		link_out(cp, folder, name, what->target);
	else
		cp_say_inside(cp, "is a %s, and skipped", type);
}

/* ---- the first one -------------------------------------------------------------------------- */

/* Into `folder`, under the name it has inside; without one, what it holds. */
static void put_into(struct cp *cp, int folder, const csn_stat_result *what)
{
	char name[CP_PATH];
	size_t length = strlen(cp->host);

	cp_last_name(cp->inside, name, sizeof name);
	if (str_is(name, ".")) {
		content_out(cp, folder);
		return;
	}
	snprintf(cp->host + length, sizeof cp->host - length, "%s%s",
		 cp->host[length - 1] == '/' ? "" : "/", name);
	put(cp, folder, name, what);
}

static void put_first(struct cp *cp, const char *host, const csn_stat_result *what)
{
	char name[CP_PATH];
	_cleanup_fd_ int parent = cp_host_folder(cp, host, name, sizeof name), folder = -1;
	bool is_folder = what->type && str_is(what->type, "directory");
	struct stat st;

	if (parent < 0)
		return;
	folder = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (folder >= 0)
		put_into(cp, folder, what);
	else if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode))
		cp_say_host(cp, "is a symbolic link, which a command inside may have made: name "
				"what it leads to");
	else if (host[strlen(host) - 1] == '/' && !is_folder)
		cp_say_host(cp, "is no folder");
	else
		put(cp, parent, name, what);
}

void cp_out(struct cp *cp, const char *host)
{
	csn_error err = { 0 };
	csn_stat_result *what = cp_stat(cp, &err);

	cp->named = strlen(cp->inside);
	if (what)
		put_first(cp, host, what);
	else
		cp_say_error(cp, &err);
	csn_free(what);
}
