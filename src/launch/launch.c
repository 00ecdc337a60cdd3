/*
 * The lockdown; see launch.h. Read the tables at the end first: they are the order, and
 * each line says why it stands there.
 */
#include "launch/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "os/filter.h"
#include "os/pass.h"
#include "os/privs.h"
#include "os/profile.h"
#include "os/sys.h"
#include "os/terminal.h"

/* Kept ones wait above all places; no higher, since the caller may have few descriptors. */
enum { ERROR_FD = AGENT_FD_FAILURE, AGENT_FD, KEPT_FDS, HIGH_FD = KEPT_FDS };

static int await_maps(struct launch *launch, struct csn_error *err)
{
	char byte;

	if (read(launch->sync_fd, &byte, 1) != 1)
		return csn_fail(err, -EPIPE, "ids", "the monitor ended before the ids were mapped");
	return 0;
}

static int take_ids(struct launch *launch, struct csn_error *err)
{
	int r = privs_set_ids(LAUNCH_UID, LAUNCH_GID);

	(void)launch;
	if (r < 0)
		return csn_fail(err, r, "ids", "cannot become uid %d: %m", LAUNCH_UID);
	/* Ids inside are what the maps say; that the kernel uid is not 0 is asserted by the
	 * monitor, which wrote the maps. */
	if (getuid() != LAUNCH_UID || geteuid() != LAUNCH_UID || getgid() != LAUNCH_GID)
		return csn_fail(err, -EPERM, "ids", "the ids did not change");
	return 0;
}

/* Started by root without a user namespace: an id that owns nothing. */
static int leave_root(struct launch *launch, struct csn_error *err)
{
	int r;

	if (launch->private_uid == 0)
		return 0;
	r = privs_set_ids(launch->private_uid, launch->private_uid);
	if (r < 0 || getuid() != launch->private_uid || geteuid() != launch->private_uid)
		return csn_fail(err, -EPERM, "ids", "cannot give up uid 0: %m");
	return 0;
}

/* No parent-death signal here: it would kill the agent before it could sweep what it started.
 * The agent ends with its stream, which ends with the monitor. */
static int check_monitor(struct launch *launch, struct csn_error *err)
{
	struct pollfd life = { .fd = launch->life_fd, .events = POLLIN };

	if (poll(&life, 1, 0) > 0)
		return csn_fail(err, -EPIPE, "life", "the monitor ended");
	return 0;
}

/* PDEATHSIG was cleared by the change of ids; and the monitor may have died before this
 * line, which getppid() cannot tell across pid namespaces. tests/faults/test_kill.py */
static int tie_to_monitor(struct launch *launch, struct csn_error *err)
{
	struct pollfd life = { .fd = launch->life_fd, .events = POLLIN };

	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
		return csn_fail(err, -errno, "life", "cannot set the parent-death signal");
	if (poll(&life, 1, 0) > 0)
		return csn_fail(err, -EPIPE, "life", "the monitor ended");
	return 0;
}

static int own_session(struct launch *launch, struct csn_error *err)
{
	(void)launch;
	if (setsid() < 0)
		return csn_fail(err, -errno, "session", "cannot start a session: %m");
	return 0;
}

/* A process may move itself into a group at no cost; moving another waits for the kernel. */
static int enter_groups(struct launch *launch, struct csn_error *err)
{
	for (int i = 0; i < AGENT_FD_ENTER_COUNT; i++)
		if (launch->agent_enter[i] >= 0 && write(launch->agent_enter[i], "0", 1) != 1)
			return csn_fail(err, -errno, "groups", "cannot enter a control group: %m");
	return 0;
}

/* Landlock would refuse to open the terminal's other side later, unless all of the caller's
 * terminals could be opened. tests/escape/other_terminals.py */
static int make_terminal(struct launch *launch, struct csn_error *err)
{
	int r;

	launch->tty_fds[0] = launch->terminals_fd;
	launch->tty_fds[1] = -1;
	if (!launch->has_tty)
		return 0;
	r = terminal_make(&launch->tty_fds[0], &launch->tty_fds[1]);
	return r < 0 ? csn_fail(err, r, "terminal", "cannot make a terminal: %s", strerror(-r)) : 0;
}

/* The agent makes its own, in a terminal file system of the sandbox's. */
static int no_terminal(struct launch *launch, struct csn_error *err)
{
	(void)err;
	launch->tty_fds[0] = launch->tty_fds[1] = -1;
	return 0;
}

static int set_hostname(struct launch *launch, struct csn_error *err)
{
	(void)launch;
	if (sethostname("caisson", 7) < 0)
		return csn_fail(err, -errno, "hostname", "cannot set the host name: %m");
	return 0;
}

/* Joined or not started: every other way through here is a failure. */
static int enter_stage(struct launch *launch, struct csn_error *err)
{
	return stage_enter(&launch->stage, &launch->rootfs, err);
}

static int join_netns(struct launch *launch, struct csn_error *err)
{
	_cleanup_fd_ int fd = -1;
	char told = 0;
	int r = pass_receive(launch->netns_fd, &told, &fd), error = r < 0 ? -r : 0;

	if (fd >= 0) {
		if (setns(fd, CLONE_NEWNET) == 0)
			return 0;
		error = errno;
	} else if (r > 0) {
		error = (unsigned char)told;
	}
	return csn_fail(err, error ? -error : -EPIPE, "network",
			"cannot make a net namespace: %s%s",
			error ? strerror(error) : "its helper ended at once",
			error == ENOSPC ? "; raise the limit: sysctl user.max_net_namespaces" : "");
}

static int raise_loopback(struct launch *launch, struct csn_error *err)
{
	struct ifreq request = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };
	_cleanup_fd_ int fd = -1;

	if (!launch->is_loopback_up)
		return 0;
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &request) < 0)
		return csn_fail(err, -errno, "loopback", "cannot raise the loopback: %m");
	return 0;
}

static int enter_root(struct launch *launch, struct csn_error *err)
{
	return rootfs_enter(&launch->rootfs, err);
}

/* Keeps `cpu_count` of the CPUs that the caller may use, so that nproc tells the truth. Neighbours
 * begin at different ones: if all took the first, they would share it while others idle. */
static int choose_cpus(struct launch *launch, struct csn_error *err)
{
	cpu_set_t allowed, chosen;
	unsigned left = launch->cpu_count, count;

	if (left == 0)
		return 0;
	if (sched_getaffinity(0, sizeof allowed, &allowed) < 0)
		return csn_fail(err, -errno, "cpus", "cannot read the CPU affinity: %m");
	CPU_ZERO(&chosen);
	count = (unsigned)CPU_COUNT(&allowed);
	left = left < count ? left : count;
	for (unsigned nth = 0, cpu = 0; nth < count && cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &allowed) &&
		    (nth++ + count - launch->cpu_first % count) % count < left)
			CPU_SET(cpu, &chosen);
	if (sched_setaffinity(0, sizeof chosen, &chosen) < 0)
		return csn_fail(err, -errno, "cpus", "cannot set the CPU affinity: %m");
	return 0;
}

/* What the caller's processes may take before all others' is not lent: a loop in a real-time class
 * would be the only thing that runs on this machine. tests/cli/test_run_limits.py */
static int usual_priority(struct launch *launch, struct csn_error *err)
{
	const struct sched_param none = { 0 };
	/* Not by libc's names: musl has them and answers ENOSYS. */
	long class = syscall(SYS_sched_getscheduler, 0) & ~(long)SCHED_RESET_ON_FORK;

	(void)launch;
	if (class != SCHED_OTHER && class != SCHED_BATCH && class != SCHED_IDLE &&
	    syscall(SYS_sched_setscheduler, 0, SCHED_OTHER, &none) < 0)
		return csn_fail(err, -errno, "priority", "cannot leave the real-time class: %m");
	if (getpriority(PRIO_PROCESS, 0) < 0 && setpriority(PRIO_PROCESS, 0, 0) < 0)
		return csn_fail(err, -errno, "priority", "cannot give up the priority: %m");
	return 0;
}

static struct rlimit lowered(const struct launch_limit *limit, struct rlimit now)
{
	rlim_t value = limit->value < now.rlim_max ? limit->value : now.rlim_max;

	return (struct rlimit){ value, value };
}

static int set_limits(struct launch *launch, struct csn_error *err)
{
	for (size_t i = 0; i < launch->limit_count; i++) {
		const struct launch_limit *limit = &launch->limits[i];
		struct rlimit now;

		if (getrlimit(limit->resource, &now) < 0)
			return csn_fail(err, -errno, "limits", "cannot read an rlimit");
		now = lowered(limit, now);
		if (setrlimit(limit->resource, &now) < 0)
			return csn_fail(err, -errno, "limits", "cannot set rlimit %d: %m",
					limit->resource);
	}
	return 0;
}

int launch_give_limits(const struct launch *launch, pid_t pid, struct csn_error *err)
{
	for (int resource = 0; resource < (int)RLIM_NLIMITS; resource++) {
		struct rlimit ours;

		if (getrlimit(resource, &ours) < 0)
			return csn_fail(err, -errno, "limits", "cannot read an rlimit");
		for (size_t i = 0; i < launch->limit_count; i++)
			if (launch->limits[i].resource == resource)
				ours = lowered(&launch->limits[i], ours);
		if (prlimit(pid, resource, &ours, NULL) < 0)
			return csn_fail(err, -errno, "limits",
					"cannot give rlimit %d to the prepared sandbox: %m",
					resource);
	}
	return 0;
}

static int drop_bounding(struct launch *launch, struct csn_error *err)
{
	int r = privs_drop_bounding();

	(void)launch;
	return r < 0 ? csn_fail(err, r, "bounding", "cannot empty the bounding set") : 0;
}

static int drop_caps(struct launch *launch, struct csn_error *err)
{
	int r = privs_drop_caps();

	(void)launch;
	return r < 0 ? csn_fail(err, r, "caps", "cannot drop capabilities") : 0;
}

static int no_new_privs(struct launch *launch, struct csn_error *err)
{
	int r = privs_no_new();

	(void)launch;
	return r < 0 ? csn_fail(err, r, "no-new-privs", "cannot set no_new_privs") : 0;
}

static int try_to_regain(struct launch *launch, struct csn_error *err)
{
	const char *attempt = "";
	int r = privs_cannot_regain(&attempt);

	(void)launch;
	return r < 0 ? csn_fail(err, r, "regain", "%s still works after the drop", attempt) : 0;
}

/* Our own files lie outside the new root. */
static int allow_ours(const struct launch *launch, int ruleset_fd, int fd)
{
	int r = landlock_allow(ruleset_fd, launch->landlock_abi, fd, LANDLOCK_READ);

	return r == -EBADFD ? 0 : r; /* a sealed copy in memory: on no mount, so it needs no rule */
}

static int apply_landlock(struct launch *launch, struct csn_error *err)
{
	_cleanup_fd_ int ruleset_fd = -1;
	int r;

	if (launch->landlock_abi < LANDLOCK_ABI_FILES)
		return 0; /* only the process wall comes here without; its report says so */
	if (launch->order_fd >= 0)
		return 0; /* what is lent is mounted later: launch_ahead_step */
	ruleset_fd = landlock_new(launch->landlock_abi, launch->landlock_tcp);
	if (ruleset_fd < 0)
		return csn_fail(err, ruleset_fd, "landlock", "cannot make a ruleset");
	r = allow_ours(launch, ruleset_fd, launch->agent_fd);
	if (r >= 0 && launch->search_fd >= 0)
		r = allow_ours(launch, ruleset_fd, launch->search_fd);
	for (size_t i = 0; r >= 0 && i < launch->rule_count; i++) {
		const struct launch_rule *rule = &launch->rules[i];

		r = (rule->is_plain ? landlock_allow_plain : landlock_allow_path)(
			ruleset_fd, launch->landlock_abi, rule->path, rule->grant);
	}
	if (r >= 0)
		r = landlock_enter(ruleset_fd);
	return r < 0 ? csn_fail(err, r, "landlock", "cannot restrict files") : 0;
}

/* Descriptor `fd`, or /dev/null for none, above everything that will be overwritten. */
static int keep(int fd)
{
	if (fd < 0)
		fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	return fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, HIGH_FD);
}

static bool may_lack(int place)
{
	return place == AGENT_FD_SEARCH || place == AGENT_FD_ORDER;
}

/* Closed by the exec: an agent that has steps before it tells of their failure itself. */
static bool is_ours(const struct launch *launch, int place)
{
	return place == AGENT_FD || (place == ERROR_FD && launch->order_fd < 0);
}

static int arrange_fds(struct launch *launch, struct csn_error *err)
{
	const int *enter = launch->cmd_enter;
	const int from[KEPT_FDS] = { launch->stream_fd,
				     launch->stream_fd,
				     -1,
				     launch->listeners_fd,
				     enter[0],
				     enter[1],
				     enter[2],
				     launch->tty_fds[0],
				     launch->tty_fds[1],
				     launch->search_fd,
				     launch->order_fd,
				     launch->error_fd,
				     launch->agent_fd };
	int kept[KEPT_FDS];

	for (int i = 0; i < KEPT_FDS; i++) {
		kept[i] = may_lack(i) && from[i] < 0 ? -1 : keep(from[i]);
		if (kept[i] < 0 && (!may_lack(i) || from[i] >= 0))
			return csn_fail(err, -errno, "fds", "cannot arrange descriptors: %m");
	}
	close(AGENT_FD_SEARCH); /* not open where there is none */
	close(AGENT_FD_ORDER);
	for (int i = 0; i < KEPT_FDS; i++)
		if (kept[i] >= 0 && dup3(kept[i], i, is_ours(launch, i) ? O_CLOEXEC : 0) < 0)
			return csn_fail(err, -errno, "fds", "cannot arrange descriptors: %m");
	launch->agent_fd = AGENT_FD;
	launch->error_fd = ERROR_FD;
	if (sys_close_from(KEPT_FDS) < 0)
		return csn_fail(err, -EIO, "fds", "cannot close inherited descriptors");
	return 0;
}

/* A program of the host's gets what a program expects: three streams and nothing else. */
static int arrange_streams(struct launch *launch, struct csn_error *err)
{
	enum { FAILURE = STDERR_FILENO + 1, COUNT };
	const int from[COUNT] = { launch->stream_fd, launch->stream_fd, launch->stderr_fd,
				  launch->error_fd };
	int kept[COUNT];

	for (int i = 0; i < COUNT; i++)
		kept[i] = keep(from[i]);
	for (int i = 0; i < COUNT; i++)
		if (kept[i] < 0 || dup3(kept[i], i, i == FAILURE ? O_CLOEXEC : 0) < 0)
			return csn_fail(err, -errno, "fds", "cannot arrange descriptors: %m");
	launch->error_fd = FAILURE;
	if (sys_close_from(COUNT) < 0)
		return csn_fail(err, -EIO, "fds", "cannot close inherited descriptors");
	return 0;
}

/* What the monitor does with signals is not what a program expects. */
static int usual_signals(struct launch *launch, struct csn_error *err)
{
	sigset_t none;

	(void)launch;
	sigemptyset(&none);
	for (int number = 1; number < NSIG; number++)
		signal(number, SIG_DFL);
	if (sigprocmask(SIG_SETMASK, &none, NULL) < 0)
		return csn_fail(err, -errno, "signals", "cannot unblock signals: %m");
	return 0;
}

static int apply_base(struct launch *launch, struct csn_error *err)
{
	const struct sock_fprog *program = profile_program("base");
	int r = program ? filter_load(program) : -ENOENT;

	(void)launch;
	return r < 0 ? csn_fail(err, r, "base-filter", "cannot load the base filter") : 0;
}

static int go_to_workdir(struct launch *launch, struct csn_error *err)
{
	umask(022);
	if (chdir(launch->workdir) < 0)
		return csn_fail(err, -errno, "workdir", "cannot enter %s: %m", launch->workdir);
	return 0;
}

/* clang-format off */
const struct launch_step launch_process_steps[] = {
	{ "maps",	  await_maps,	  "no id is valid before the monitor wrote the maps" },
	{ "ids",	  take_ids,	  "files of the new root must belong to a mapped id; kernel uid is not 0" },
	{ "life",	  tie_to_monitor, "a change of ids clears the parent-death signal" },
	{ "session",	  own_session,	  "no controlling terminal of the caller's is kept" },
	{ "priority",	  usual_priority, "control groups refuse a real-time class" },
	{ "groups",	  enter_groups,	  "before anything is allocated on the sandbox's account" },
	{ "hostname",	  set_hostname,	  "needs CAP_SYS_ADMIN" },
	{ "root",	  enter_root,	  "mounting needs privilege that is about to be dropped" },
	{ "network",	  join_netns,	  "needs CAP_SYS_ADMIN; it was made while the root was built" },
	{ "loopback",	  raise_loopback, "needs CAP_NET_ADMIN, in the namespace joined" },
	{ "cpus",	  choose_cpus,	  "the filters forbid it later" },
	{ "limits",	  set_limits,	  "lowering needs nothing, raising is impossible after caps" },
	{ "bounding",	  drop_bounding,  "needs CAP_SETPCAP, gone after caps" },
	{ "caps",	  drop_caps,	  "nothing below needs privilege" },
	{ "no-new-privs", no_new_privs,	  "landlock and seccomp ask for it" },
	{ "regain",	  try_to_regain,  "a drop that did not work must be seen before anything runs" },
	{ "landlock",	  apply_landlock, "seccomp may forbid its system calls" },
	{ "terminal",	  no_terminal,	  "the agent makes its own" },
	{ "workdir",	  go_to_workdir,  "the old one is gone with the old root" },
	{ "fds",	  arrange_fds,	  "no step below opens one" },
	{ "base-filter",  apply_base,	  "last: only execveat of the agent follows" },
	{ 0 },
};

const struct launch_step launch_ahead_step = {
	"landlock", NULL, "the agent's own, last: it opens what was mounted while it waited"
};

const struct launch_step launch_landlock_steps[] = {
	{ "life",	  check_monitor,  "nothing that follows may outlive the monitor" },
	{ "session",	  own_session,	  "no controlling terminal of the caller's is kept" },
	{ "priority",	  usual_priority, "control groups refuse a real-time class" },
	{ "groups",	  enter_groups,	  "before anything is allocated on the sandbox's account" },
	{ "cpus",	  choose_cpus,	  "the filters forbid it later" },
	{ "limits",	  set_limits,	  "lowering needs nothing" },
	{ "bounding",	  drop_bounding,  "needs CAP_SETPCAP, gone with the ids" },
	{ "ids",	  leave_root,	  "needs CAP_SETUID and CAP_SETGID, gone after caps" },
	{ "terminal",	  make_terminal,  "nobody may open one after landlock" },
	{ "caps",	  drop_caps,	  "nothing below needs privilege" },
	{ "no-new-privs", no_new_privs,	  "landlock and seccomp ask for it" },
	{ "workdir",	  go_to_workdir,  "before files are restricted" },
	{ "landlock",	  apply_landlock, "seccomp may forbid its system calls" },
	{ "regain",	  try_to_regain,  "a drop that did not work must be seen before anything runs" },
	{ "fds",	  arrange_fds,	  "no step below opens one" },
	{ "base-filter",  apply_base,	  "last: only execveat of the agent follows" },
	{ 0 },
};

const struct launch_step launch_local_steps[] = {
	{ "life",	  check_monitor,  "nothing that follows may outlive the monitor" },
	{ "session",	  own_session,	  "signals to the tree do not reach the caller" },
	{ "priority",	  usual_priority, "control groups refuse a real-time class" },
	{ "groups",	  enter_groups,	  "before anything is allocated on the sandbox's account" },
	{ "limits",	  set_limits,	  "core dumps and open files" },
	{ "terminal",	  no_terminal,	  "the agent makes its own" },
	{ "workdir",	  go_to_workdir,  "the agent's own" },
	{ "fds",	  arrange_fds,	  "last: only execveat of the agent follows" },
	{ 0 },
};
/* clang-format on */

/* clang-format off */
const struct launch_step launch_command_steps[] = {
	{ "life",	  check_monitor,   "nothing that follows may outlive the monitor" },
	{ "session",	  own_session,	   "no controlling terminal of the caller's is kept" },
	{ "priority",	  usual_priority,  "control groups refuse a real-time class" },
	{ "groups",	  enter_groups,	   "before anything is allocated on the sandbox's account" },
	{ "limits",	  set_limits,	   "core dumps" },
	{ "workdir",	  go_to_workdir,   "not the caller's" },
	{ "signals",	  usual_signals,   "the program's own from here on" },
	{ "fds",	  arrange_streams, "last: only execve of the program follows" },
	{ 0 },
};

const struct launch_step launch_oci_steps[] = {
	{ "life",	  check_monitor,   "nothing that follows may outlive the monitor" },
	{ "session",	  own_session,	   "no controlling terminal of the caller's is kept" },
	{ "priority",	  usual_priority,  "control groups refuse a real-time class" },
	{ "groups",	  enter_groups,	   "the runtime and all it starts are on the commands' account" },
	{ "stage",	  enter_stage,	   "the runtime finds what is lent in these mounts and nowhere else" },
	{ "cpus",	  choose_cpus,	   "inherited by all that the runtime starts" },
	{ "limits",	  set_limits,	   "core dumps" },
	{ "workdir",	  go_to_workdir,   "not the caller's" },
	{ "signals",	  usual_signals,   "the runtime's own from here on" },
	{ "fds",	  arrange_streams, "last: only execve of the runtime follows; it drops all privilege for the agent" },
	{ 0 },
};
/* clang-format on */

struct launch *launch_new(void)
{
	struct launch *launch = malloc(sizeof *launch);

	if (!launch)
		return NULL;
	memset(launch, 0, offsetof(struct launch, rootfs));
	launch->search_fd = launch->stderr_fd = launch->order_fd = launch->terminals_fd = -1;
	rootfs_init(&launch->rootfs, 0);
	return launch;
}

static int add_rule(struct launch *launch, const struct launch_rule *rule)
{
	if (launch->rule_count == LAUNCH_RULES)
		return -E2BIG;
	launch->rules[launch->rule_count++] = *rule;
	return 0;
}

int launch_allow(struct launch *launch, const char *path, enum landlock_grant grant)
{
	return add_rule(launch, &(struct launch_rule){ path, grant, false });
}

int launch_allow_plain(struct launch *launch, const char *path, enum landlock_grant grant)
{
	return add_rule(launch, &(struct launch_rule){ path, grant, true });
}

int launch_order(int order_fd, const struct launch *launch)
{
	const struct agent_order head = { (uint32_t)launch->landlock_abi,
					  (uint32_t)launch->rule_count };
	struct buf order;
	int r;

	buf_init(&order, LAUNCH_ORDER);
	r = buf_add(&order, &head, sizeof head);
	for (size_t i = 0; r >= 0 && i < launch->rule_count; i++) {
		const struct launch_rule *rule = &launch->rules[i];
		const struct agent_rule it = { (uint32_t)strlen(rule->path) + 1, rule->grant };

		r = rule->is_plain || it.size > AGENT_RULE_PATH ? -E2BIG
								: buf_add(&order, &it, sizeof it);
		if (r >= 0)
			r = buf_add(&order, rule->path, it.size);
	}
	if (r >= 0)
		r = fd_write_all(order_fd, buf_at(&order), buf_size(&order));
	buf_done(&order);
	return r;
}

void launch_limit(struct launch *launch, int resource, uint64_t value)
{
	if (launch->limit_count < sizeof launch->limits / sizeof *launch->limits)
		launch->limits[launch->limit_count++] = (struct launch_limit){ resource, value };
}

_Noreturn void launch_run(struct launch *launch, const struct launch_step *steps)
{
	static char *const no_env[] = { NULL };
	struct csn_error err = { 0 };
	int r = 0;

	for (; r >= 0 && steps->name; steps++)
		r = steps->run(launch, &err);
	if (r >= 0 && launch->program) {
		execve(launch->program, launch->agent_argv, launch->env);
		csn_fail(&err, -errno, "program", "cannot execute %s: %m", launch->program);
	} else if (r >= 0) {
		syscall(SYS_execveat, launch->agent_fd, "", launch->agent_argv, no_env,
			AT_EMPTY_PATH);
		csn_fail(&err, -errno, "agent", "cannot execute the agent: %m");
	}
	/* Best effort: the monitor also sees the stream end. */
	if (write(launch->error_fd, &err, sizeof err) < 0)
		_exit(126);
	_exit(127);
}
