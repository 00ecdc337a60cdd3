/*
 * Can the process wall be built here? Reads the kernel's switches only: a start pays for
 * this, so nothing is tried. What the switches do not tell (a container's seccomp filter)
 * shows when the clone fails, with the same sentences.
 */
#include "backend/process/process.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "os/landlock.h"

struct kernel_switch {
	const char *path;
	const char *closed; /* its contents, without newline, when it closes the way */
	const char *cause;
	const char *fix;
};

static const struct kernel_switch switches[] = {
	{ "/proc/sys/user/max_user_namespaces", "0", "user namespaces are limited to none",
	  "An administrator opens them: sysctl user.max_user_namespaces=10000" },
	{ "/proc/sys/kernel/unprivileged_userns_clone", "0",
	  "user namespaces are closed to ordinary users",
	  "An administrator opens them: sysctl kernel.unprivileged_userns_clone=1" },
	{ "/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1",
	  "AppArmor closes user namespaces to programs without a profile",
	  "`make install` and tools/setup load one for caisson (tools/apparmor)" },
};

static bool is_closed(const struct kernel_switch *sw)
{
	_cleanup_fd_ int fd = open(sw->path, O_RDONLY | O_CLOEXEC);
	char text[16] = "";
	ssize_t n;

	if (fd < 0)
		return false;
	n = read(fd, text, sizeof text - 1);
	if (n <= 0)
		return false;
	text[strcspn(text, "\n")] = 0;
	return str_is(text, sw->closed);
}

/* Under AppArmor's restriction a loaded profile lifts it: our label then is not "unconfined". */
static bool has_own_profile(void)
{
	_cleanup_fd_ int fd = open("/proc/self/attr/apparmor/current", O_RDONLY | O_CLOEXEC);
	char text[128] = "";

	return fd >= 0 && read(fd, text, sizeof text - 1) > 0 && !str_starts(text, "unconfined");
}

void process_probe(struct backend_report *ret_report)
{
	bool is_root = geteuid() == 0;

	*ret_report = (struct backend_report){ .is_usable = true };
	ret_report->enforces = FEATURE_FS_VIEW | FEATURE_FS_WRITE | FEATURE_FS_HIDE |
			       FEATURE_FS_PROTECT | FEATURE_FS_COW | FEATURE_NET_NONE |
			       FEATURE_NET_LOOPBACK | FEATURE_PIDS | FEATURE_SYSCALLS |
			       FEATURE_PRIVILEGE | FEATURE_IDENTITY | FEATURE_TIME |
			       FEATURE_OUTPUT | FEATURE_PROCESSES | FEATURE_SCRATCH;
	for (size_t i = 0; i < ARRAY_SIZE(switches); i++) {
		if ((is_root && i > 0) || !is_closed(&switches[i]))
			continue;
		if (strstr(switches[i].path, "apparmor") && has_own_profile())
			continue;
		ret_report->is_usable = false;
		ret_report->enforces = 0;
		snprintf(ret_report->cause, sizeof ret_report->cause, "%s", switches[i].cause);
		snprintf(ret_report->fix, sizeof ret_report->fix, "%s", switches[i].fix);
		return;
	}
	if (landlock_abi() < LANDLOCK_ABI_FILES)
		snprintf(ret_report->weaker, sizeof ret_report->weaker,
			 "this kernel has no Landlock: files are guarded by mounts alone");
}
