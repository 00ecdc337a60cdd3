/* Giving privilege up, and trying to get it back; see privs.h. */
#include "os/privs.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <stddef.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { CAP_LIMIT = 63 };

int privs_set_ids(uid_t uid, gid_t gid)
{
	/* Raw calls: the libc wrappers signal all threads, and this runs between clone and exec.
	 * setgroups() is refused in a user namespace that its owner may not drop groups in. */
	if (syscall(SYS_setgroups, 0, NULL) < 0 && errno != EPERM)
		return -errno;
	if (syscall(SYS_setresgid, gid, gid, gid) < 0 || syscall(SYS_setresuid, uid, uid, uid) < 0)
		return -errno;
	return 0;
}

static int set_caps(const struct __user_cap_data_struct *data)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };

	return syscall(SYS_capset, &header, data) < 0 ? -errno : 0;
}

bool privs_has(int cap)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { 0 };

	if (syscall(SYS_capget, &header, data) < 0)
		return false;
	return data[CAP_TO_INDEX(cap)].effective & CAP_TO_MASK(cap);
}

int privs_drop_bounding(void)
{
	for (unsigned long cap = 0; cap <= CAP_LIMIT; cap++)
		if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0) {
			if (errno == EINVAL && cap > 0)
				break; /* past the last one this kernel has */
			/* An ordinary user without a user namespace may not; no_new_privs makes
			 * his bounding set meaningless. */
			return errno == EPERM && geteuid() != 0 ? 0 : -errno;
		}
	return 0;
}

int privs_drop_caps(void)
{
	static const struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3];

	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	return set_caps(none);
}

int privs_no_new(void)
{
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? -errno : 0;
}

static int try_uid_0(void)
{
	return (int)syscall(SYS_setresuid, 0, 0, 0);
}

static int try_gid_0(void)
{
	/* A caller whose own group is 0 (OpenShift gives its containers that) has nothing to
	 * regain. */
	return getgid() == 0 ? -1 : (int)syscall(SYS_setresgid, 0, 0, 0);
}

static int try_caps(void)
{
	static const struct __user_cap_data_struct all[_LINUX_CAPABILITY_U32S_3] = {
		{ .effective = 1u << CAP_SYS_ADMIN, .permitted = 1u << CAP_SYS_ADMIN }
	};

	return set_caps(all);
}

static int try_mount(void)
{
	return mount("none", "/tmp", "tmpfs", 0, NULL);
}

static int try_namespace(void)
{
	return unshare(CLONE_NEWNS);
}

int privs_cannot_regain(const char **ret_attempt)
{
	static const struct {
		const char *name;
		int (*attempt)(void);
	} attempts[] = { { "setresuid(0)", try_uid_0 },
			 { "setresgid(0)", try_gid_0 },
			 { "capset(CAP_SYS_ADMIN)", try_caps },
			 { "mount", try_mount },
			 { "unshare(CLONE_NEWNS)", try_namespace } };

	for (size_t i = 0; i < sizeof attempts / sizeof *attempts; i++)
		if (attempts[i].attempt() >= 0) {
			*ret_attempt = attempts[i].name;
			return -EPERM;
		}
	return 0;
}
