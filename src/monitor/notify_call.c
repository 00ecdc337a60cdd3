/*
 * The table of syscalls that name files or addresses; see notify_call.h. Old calls (open,
 * rename …) are absent on newer architectures, hence the #ifdef block.
 */
#include "monitor/notify_call.h"

#include <fcntl.h>
#include <stddef.h>
#include <sys/syscall.h>

#include "base/str.h"

#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452 /* 6.6 */
#endif
#ifndef SYS_setxattrat
#define SYS_setxattrat 463    /* 6.13 */
#define SYS_removexattrat 466 /* 6.13 */
#endif

#define N ARG_NONE
/*	{ class, dir, path, dir2, path2, flags, is_nofollow, open_flags } */
static const struct call_shape shapes[] = {
	[SYS_openat] = { CALL_OPEN, 0, 1, N, N, 2, false, 0 },
	[SYS_openat2] = { CALL_OPEN_HOW, 0, 1, N, N, N, false, 0 },
	[SYS_mkdirat] = { CALL_CREATE, 0, 1, N, N, N, true, 0 },
	[SYS_mknodat] = { CALL_CREATE, 0, 1, N, N, N, true, 0 },
	[SYS_symlinkat] = { CALL_CREATE, 1, 2, N, N, N, true, 0 },
	[SYS_linkat] = { CALL_CREATE, 2, 3, N, N, N, true, 0 },
	[SYS_unlinkat] = { CALL_REMOVE, 0, 1, N, N, N, true, 0 },
	[SYS_renameat2] = { CALL_RENAME, 0, 1, 2, 3, N, true, 0 },
#ifdef SYS_renameat
	[SYS_renameat] = { CALL_RENAME, 0, 1, 2, 3, N, true, 0 },
#endif
	[SYS_truncate] = { CALL_CHANGE, N, 0, N, N, N, false, 0 },
	[SYS_ftruncate] = { CALL_CHANGE, 0, N, N, N, N, false, 0 },
	[SYS_fchmod] = { CALL_META, 0, N, N, N, N, false, 0 },
	[SYS_fchmodat] = { CALL_META, 0, 1, N, N, N, false, 0 },
	[SYS_fchmodat2] = { CALL_META, 0, 1, N, N, 3, false, 0 },
	[SYS_fchown] = { CALL_META, 0, N, N, N, N, false, 0 },
	[SYS_fchownat] = { CALL_META, 0, 1, N, N, 4, false, 0 },
	[SYS_utimensat] = { CALL_META, 0, 1, N, N, 3, false, 0 },
	[SYS_setxattr] = { CALL_META, N, 0, N, N, N, false, 0 },
	[SYS_lsetxattr] = { CALL_META, N, 0, N, N, N, true, 0 },
	[SYS_fsetxattr] = { CALL_META, 0, N, N, N, N, false, 0 },
	[SYS_removexattr] = { CALL_META, N, 0, N, N, N, false, 0 },
	[SYS_lremovexattr] = { CALL_META, N, 0, N, N, N, true, 0 },
	[SYS_fremovexattr] = { CALL_META, 0, N, N, N, N, false, 0 },
	[SYS_setxattrat] = { CALL_META, 0, 1, N, N, 2, false, 0 },
	[SYS_removexattrat] = { CALL_META, 0, 1, N, N, 2, false, 0 },
	[SYS_connect] = { CALL_CONNECT, N, N, N, N, N, false, 0 },
	[SYS_bind] = { CALL_BIND, N, N, N, N, N, false, 0 },
	[SYS_sendto] = { CALL_SENDTO, N, N, N, N, N, false, 0 },
	[SYS_sendmsg] = { CALL_SENDMSG, N, N, N, N, N, false, 0 },
	[SYS_sendmmsg] = { CALL_SENDMMSG, N, N, N, N, N, false, 0 },
#ifdef SYS_open
	[SYS_open] = { CALL_OPEN, N, 0, N, N, 1, false, 0 },
	[SYS_creat] = { CALL_OPEN, N, 0, N, N, N, false, O_CREAT | O_WRONLY | O_TRUNC },
	[SYS_mkdir] = { CALL_CREATE, N, 0, N, N, N, true, 0 },
	[SYS_mknod] = { CALL_CREATE, N, 0, N, N, N, true, 0 },
	[SYS_symlink] = { CALL_CREATE, N, 1, N, N, N, true, 0 },
	[SYS_link] = { CALL_CREATE, N, 1, N, N, N, true, 0 },
	[SYS_unlink] = { CALL_REMOVE, N, 0, N, N, N, true, 0 },
	[SYS_rmdir] = { CALL_REMOVE, N, 0, N, N, N, true, 0 },
	[SYS_rename] = { CALL_RENAME, N, 0, N, 1, N, true, 0 },
	[SYS_chmod] = { CALL_META, N, 0, N, N, N, false, 0 },
	[SYS_chown] = { CALL_META, N, 0, N, N, N, false, 0 },
	[SYS_lchown] = { CALL_META, N, 0, N, N, N, true, 0 },
	[SYS_utime] = { CALL_META, N, 0, N, N, N, false, 0 },
	[SYS_utimes] = { CALL_META, N, 0, N, N, N, false, 0 },
	[SYS_futimesat] = { CALL_META, 0, 1, N, N, N, false, 0 },
#endif
};

static const struct {
	int nr;
	int mode;
} makers[] = {
	{ SYS_openat, 3 }, { SYS_mknodat, 2 },
#ifdef SYS_open
	{ SYS_open, 2 },   { SYS_creat, 1 },   { SYS_mknod, 1 },
#endif
};

int call_mode_of(int nr)
{
	for (size_t i = 0; i < sizeof makers / sizeof *makers; i++)
		if (makers[i].nr == nr)
			return makers[i].mode;
	return ARG_NONE;
}

const struct call_shape *call_shape_of(int nr)
{
	if (nr < 0 || (size_t)nr >= ARRAY_SIZE(shapes) || shapes[nr].class == CALL_NONE)
		return NULL;
	return &shapes[nr];
}
