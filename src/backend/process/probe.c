/*
 * Can the process wall be built here? Reads the kernel's switches only: a start pays for
 * this, so nothing is tried but under a foreign AppArmor profile. What the switches do not tell (a
 * container's seccomp filter) shows when the clone fails, with the same sentences.
 */
#include "backend/process/process.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/channels.h"
#include "base/fd.h"
#include "base/str.h"
#include "os/landlock.h"
#include "os/sys.h"

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

/* What AppArmor takes us for: "NAME (unconfined)" is the profile of ours that lifts its
 * restriction, and confines nothing; "NAME (enforce)" a foreign one that confines us; "unconfined"
 * is none. */
static void read_label(char *ret_label, size_t size)
{
	_cleanup_fd_ int fd = open("/proc/self/attr/apparmor/current", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, ret_label, size - 1);

	ret_label[n > 0 ? n : 0] = 0;
	ret_label[strcspn(ret_label, "\n")] = 0;
}

static bool has_mode(const char *label, const char *mode)
{
	const char *at = strrchr(label, ' ');

	return at && str_is(at + 1, mode);
}

/* No switch tells whether a foreign profile permits user namespaces, so there one is tried. */
static bool is_confined(const char *label)
{
	pid_t pid;

	if (!has_mode(label, "(enforce)"))
		return false;
	pid = sys_clone(CLONE_NEWUSER, NULL, -1);
	if (pid == 0)
		_exit(0);
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return pid == -EACCES;
}

static void refuse(struct backend_report *report, const char *cause, const char *fix)
{
	report->is_usable = false;
	report->enforces = 0;
	snprintf(report->cause, sizeof report->cause, "%s", cause);
	snprintf(report->fix, sizeof report->fix, "%s", fix);
}

void process_probe(struct backend_report *ret_report)
{
	bool is_root = geteuid() == 0;
	char label[256];

	*ret_report = (struct backend_report){ .is_usable = true };
	ret_report->enforces = FEATURE_FS_VIEW | FEATURE_FS_WRITE | FEATURE_FS_HIDE |
			       FEATURE_FS_PROTECT | FEATURE_FS_COW | FEATURE_NET_NONE |
			       FEATURE_NET_LOOPBACK | FEATURE_PIDS | FEATURE_SYSCALLS |
			       FEATURE_PRIVILEGE | FEATURE_IDENTITY | FEATURE_TIME |
			       FEATURE_OUTPUT | FEATURE_PROCESSES | FEATURE_SCRATCH;
	read_label(label, sizeof label);
	for (size_t i = 0; i < ARRAY_SIZE(switches); i++) {
		if ((is_root && i > 0) || !is_closed(&switches[i]))
			continue;
		if (strstr(switches[i].path, "apparmor") && *label && !str_is(label, "unconfined"))
			continue; /* a profile decides, ours or a foreign one */
		refuse(ret_report, switches[i].cause, switches[i].fix);
		return;
	}
	if (is_confined(label)) {
		refuse(ret_report, "the AppArmor profile that we run under closes user namespaces",
		       "Add `userns,` to that profile, or give caisson one of its own: "
		       "`make install` and tools/setup load it (tools/apparmor)");
		return;
	}
	if (landlock_abi() < LANDLOCK_ABI_FILES)
		snprintf(ret_report->weaker, sizeof ret_report->weaker,
			 "this kernel has no Landlock: files are guarded by mounts alone");
	channels_weaken(ret_report, true,
			"what programs try is not observed, and connect is refused");
}
