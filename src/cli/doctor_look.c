/*
 * Asking the machine
 *
 * User namespaces are tried, not looked up: four different switches, an LSM and a container
 * runtime can forbid them, and only a try counts. The switches are then read to name the one
 * that is to blame.
 */
#include "cli/doctor.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "os/landlock.h"
#include "os/yama.h"

enum { SWITCH_MAX = 64, UNKNOWN = -1 };

const struct doctor_capability doctor_capabilities[] = {
	{ CAP_SYS_ADMIN, "CAP_SYS_ADMIN", "no namespaces and mounts as root" },
	{ CAP_SETUID, "CAP_SETUID", "a sandbox cannot be given a uid of its own" },
	{ CAP_SETGID, "CAP_SETGID", "supplementary groups cannot be dropped" },
	{ CAP_SETPCAP, "CAP_SETPCAP", "the bounding set cannot be emptied" },
	{ CAP_CHOWN, "CAP_CHOWN", "files cannot be given back to their owner" },
	{ CAP_KILL, "CAP_KILL",
	  "processes with another uid are killed through their namespace only" },
	{ CAP_SYS_RESOURCE, "CAP_SYS_RESOURCE",
	  "limits of processes cannot be raised, only lowered" },
	{ CAP_NET_ADMIN, "CAP_NET_ADMIN",
	  "a loopback cannot be brought up outside a user namespace" },
	{ CAP_SYS_PTRACE, "CAP_SYS_PTRACE",
	  "what programs with another uid tried is not observed" },
};

const size_t doctor_capability_count = ARRAY_SIZE(doctor_capabilities);

/* A small number from a file of the kernel's, UNKNOWN if there is none. */
static int read_switch(const char *path)
{
	_cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	char text[SWITCH_MAX];
	uint64_t value;
	ssize_t n;

	if (fd < 0)
		return UNKNOWN;
	n = read(fd, text, sizeof text - 1);
	text[n > 0 ? n : 0] = 0;
	text[strcspn(text, "\n")] = 0;
	return str_parse_u64(text, 1 << 30, &value) < 0 ? UNKNOWN : (int)value;
}

/* In a child: a user namespace, and a capability used in it. The errno is the exit status. */
static int try_user_namespace(void)
{
	int status;
	pid_t pid;

	pid = fork();
	if (pid < 0)
		return errno;
	if (pid == 0) {
		if (unshare(CLONE_NEWUSER) < 0)
			_exit(errno);
		/* AppArmor lets the first call pass and takes the capabilities away. */
		_exit(unshare(CLONE_NEWNS | CLONE_NEWNET) < 0 ? errno : 0);
	}
	if (waitpid(pid, &status, 0) < 0 || !WIFEXITED(status))
		return ECHILD;
	return WEXITSTATUS(status);
}

/* Switches that forbid user namespaces when they have the value, and how to change them. */
static const struct {
	const char *path;
	int value;
	const char *cause;
	const char *fix;
} culprits[] = {
	{ "/proc/sys/user/max_user_namespaces", 0, "user.max_user_namespaces is 0",
	  "sysctl user.max_user_namespaces=10000" },
	{ "/proc/sys/kernel/unprivileged_userns_clone", 0, "kernel.unprivileged_userns_clone is 0",
	  "sysctl kernel.unprivileged_userns_clone=1" },
	{ "/proc/sys/kernel/apparmor_restrict_unprivileged_userns", 1,
	  "AppArmor lets only programs with a profile make user namespaces",
	  "install the AppArmor profile for caisson (it holds one line, `userns,`), or sysctl "
	  "kernel.apparmor_restrict_unprivileged_userns=0" },
};

static void look_at_user_namespaces(struct doctor_facts *facts)
{
	int error = try_user_namespace();

	facts->has_user_namespace = error == 0;
	if (error == 0)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(culprits); i++) {
		if (read_switch(culprits[i].path) != culprits[i].value)
			continue;
		snprintf(facts->userns_cause, sizeof facts->userns_cause, "%s", culprits[i].cause);
		snprintf(facts->userns_fix, sizeof facts->userns_fix, "%s", culprits[i].fix);
		return;
	}
	if (error == EACCES) {
		snprintf(facts->userns_cause, sizeof facts->userns_cause,
			 "the AppArmor profile, or another security module's rule, that we run "
			 "under refuses: %s",
			 strerror(error));
		snprintf(facts->userns_fix, sizeof facts->userns_fix,
			 "add `userns,` to that profile, or give caisson one of its own "
			 "(tools/apparmor; `make install` loads it)");
		return;
	}
	snprintf(facts->userns_cause, sizeof facts->userns_cause,
		 "the kernel, or the container we are in, refuses: %s", strerror(error));
	snprintf(facts->userns_fix, sizeof facts->userns_fix, "%s",
		 error == EPERM
			 ? "start the container with a seccomp profile that allows unshare and "
			   "clone with new namespaces"
			 : "a kernel with CONFIG_USER_NS");
}

static void look_at_groups(struct doctor_facts *facts)
{
	int count;

	/* Root drops them; without privilege only newgidmap could (setgroups is denied). */
	if (facts->uid == 0)
		return;
	count = getgroups(DOCTOR_MAX_GROUPS, facts->groups);
	for (int i = 0; i < count; i++)
		if (facts->groups[i] != getgid())
			facts->groups[facts->group_count++] = facts->groups[i];
}

static void look_at_capabilities(struct doctor_facts *facts)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { 0 };
	int number;

	if (facts->uid != 0 || syscall(SYS_capget, &header, data) < 0)
		return;
	for (size_t i = 0; i < doctor_capability_count; i++) {
		number = doctor_capabilities[i].number;
		if (!(data[number / 32].effective & 1u << number % 32))
			facts->missing_capabilities |= UINT64_C(1) << i;
	}
}

void doctor_look(struct doctor_facts *ret_facts)
{
	struct utsname name = { 0 };

	*ret_facts = (struct doctor_facts){ .uid = geteuid() };
	uname(&name);
	snprintf(ret_facts->kernel, sizeof ret_facts->kernel, "%s", name.release);
	snprintf(ret_facts->machine, sizeof ret_facts->machine, "%.63s", name.machine);
	ret_facts->landlock_abi = landlock_abi();
	cgroup_probe(&ret_facts->cgroup);
	look_at_user_namespaces(ret_facts);
	ret_facts->apparmor_restricts =
		read_switch("/proc/sys/kernel/apparmor_restrict_unprivileged_userns");
	ret_facts->yama_scope = yama_scope();
	look_at_groups(ret_facts);
	look_at_capabilities(ret_facts);
}
