/*
 * attach - what it costs to get a process into control groups, by every door there is
 *
 * Run as root on a quiet machine: `attach [ROUNDS]`. Makes groups `caisson/bench...` beneath the
 * caller's own and removes them. Each number is one step, the clock read around it. docs/limits.md
 * has a table of results and what follows from it.
 *
 *	number	a parent writes the child's pid	self	the child writes "0" itself
 *	procs	to cgroup.procs			tasks	to v1's tasks
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "os/cgroup.h"
#include "os/cgroup_file.h"

enum { ROUNDS_MAX = 1000 };

static int rounds = 15;
static uint64_t took[ROUNDS_MAX];

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void pause_ms(int ms)
{
	nanosleep(&(struct timespec){ ms / 1000, ms % 1000 * 1000000L }, NULL);
}

static void report(const char *what)
{
	qsort(took, (size_t)rounds, sizeof *took, compare);
	printf("%-58s min %8.1f  p50 %8.1f  p90 %8.1f us\n", what, (double)took[0] / 1e3,
	       (double)took[rounds / 2] / 1e3, (double)took[rounds * 9 / 10] / 1e3);
	fflush(stdout);
}

/* The doors of `count` groups. */
struct doors {
	int count;
	int fd[CGROUP_CONTROLLERS];
};

static int write_all(const struct doors *doors, const char *text)
{
	for (int i = 0; i < doors->count; i++)
		if (write(doors->fd[i], text, strlen(text)) < 0)
			return -errno;
	return 0;
}

/* A child that writes "0" itself and tells how long it took. */
static uint64_t attach_self(const struct doors *doors)
{
	uint64_t ns = 0;
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return 0;
	if (fork() == 0) {
		ns = now_ns();
		if (write_all(doors, "0") < 0)
			_exit(1);
		ns = now_ns() - ns;
		_exit(fd_write_all(ends[1], &ns, sizeof ns) < 0);
	}
	close(ends[1]);
	if (fd_read_all(ends[0], &ns, sizeof ns) != sizeof ns)
		ns = 0;
	close(ends[0]);
	wait(NULL);
	return ns;
}

static pid_t sleeper(void)
{
	pid_t pid = fork();

	if (pid == 0)
		for (;;)
			pause();
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static uint64_t attach_number(const struct doors *doors)
{
	pid_t pid = sleeper();
	char text[16];
	uint64_t ns;

	snprintf(text, sizeof text, "%d", pid);
	ns = now_ns();
	if (write_all(doors, text) < 0)
		fprintf(stderr, "attach: %s\n", strerror(errno));
	ns = now_ns() - ns;
	end(pid);
	return ns;
}

static void measure(const char *what, uint64_t (*attach)(const struct doors *),
		    const struct doors *doors, int idle_ms)
{
	char text[96];

	for (int i = 0; i < rounds; i++) {
		pause_ms(idle_ms);
		took[i] = attach(doors);
	}
	snprintf(text, sizeof text, "%s, %d group%s, %d ms idle", what, doors->count,
		 doors->count > 1 ? "s" : "", idle_ms);
	report(text);
}

/* Somebody else attaches himself, `lead` ms before we attach a child. */
static void measure_warm(const struct doors *warm, const struct doors *doors, int lead_ms)
{
	char text[96];

	for (int i = 0; i < rounds; i++) {
		pause_ms(200);
		if (fork() == 0)
			_exit(write_all(warm, "0") < 0);
		pause_ms(lead_ms);
		took[i] = attach_number(doors);
		wait(NULL);
	}
	snprintf(text, sizeof text, "number to procs, another attached %d ms before", lead_ms);
	report(text);
}

static void measure_clone(const char *what, int dir_fd, int idle_ms)
{
	char text[96];

	for (int i = 0; i < rounds; i++) {
		struct clone_args args = { .exit_signal = SIGCHLD };
		uint64_t ns;
		pid_t pid;

		if (dir_fd >= 0) {
			args.flags = CLONE_INTO_CGROUP;
			args.cgroup = (uint64_t)dir_fd;
		}
		pause_ms(idle_ms);
		ns = now_ns();
		pid = (pid_t)syscall(SYS_clone3, &args, sizeof args);
		if (pid == 0)
			_exit(0);
		took[i] = now_ns() - ns;
		waitpid(pid, NULL, 0);
	}
	snprintf(text, sizeof text, "%s, %d ms idle", what, idle_ms);
	report(text);
}

/* A whole sandbox's groups: made, entered by a child, removed. */
static void measure_life(const struct cgroup_probe *probe, const struct cgroup_limits *limits,
			 const char *what)
{
	static uint64_t part[4][ROUNDS_MAX];
	static const char *const names[] = { "probe", "create", "enter cmd", "remove" };
	struct cgroup_probe unused;
	struct cgroup cg;
	char text[96];

	for (int i = 0; i < rounds; i++) {
		uint64_t ns;

		pause_ms(150);
		ns = now_ns();
		cgroup_probe(&unused);
		part[0][i] = now_ns() - ns;
		ns = now_ns();
		if (cgroup_create(probe, "bench", limits, &cg, NULL) < 0)
			return;
		part[1][i] = now_ns() - ns;
		struct doors doors = { 0 };
		doors.count = (int)cgroup_enter_fds(&cg, CGROUP_CMD, doors.fd);
		part[2][i] = attach_self(&doors);
		ns = now_ns();
		cgroup_remove(&cg, 1000);
		part[3][i] = now_ns() - ns;
		cgroup_done(&cg);
	}
	for (size_t k = 0; k < ARRAY_SIZE(names); k++) {
		memcpy(took, part[k], sizeof took);
		snprintf(text, sizeof text, "%s: %s", what, names[k]);
		report(text);
	}
}

static int open_door(const char *dir, const char *door)
{
	char path[CGROUP_PATH + 16];

	snprintf(path, sizeof path, "%s/%s", dir, door);
	return open(path, O_WRONLY | O_CLOEXEC);
}

static void measure_v1(const struct cgroup_probe *probe)
{
	const struct cgroup_limits limits = { 256 << 20, 256, 2000 };
	struct doors procs = { 0 }, tasks = { 0 }, one_procs, one_tasks, other;
	struct cgroup cg;

	if (cgroup_create(probe, "bench-doors", &limits, &cg, NULL) < 0)
		return;
	for (int i = 0; i < CGROUP_CONTROLLERS; i++) {
		char dir[64];

		if (!cgroup_has(&cg, (enum cgroup_controller)i))
			continue;
		snprintf(dir, sizeof dir, "/proc/self/fd/%d", cg.side_fd[i][CGROUP_CMD]);
		procs.fd[procs.count++] = open_door(dir, "cgroup.procs");
		tasks.fd[tasks.count++] = open_door(dir, "tasks");
	}
	one_procs = procs;
	one_tasks = tasks;
	one_procs.count = one_tasks.count = 1;
	other = (struct doors){ 1, { procs.fd[procs.count - 1] } };
	for (int idle = 0; idle <= 200; idle += 200) {
		measure("number to procs", attach_number, &one_procs, idle);
		measure("number to procs", attach_number, &procs, idle);
		measure("number to tasks", attach_number, &one_tasks, idle);
		measure("self to procs", attach_self, &one_procs, idle);
		measure("self to tasks", attach_self, &one_tasks, idle);
		measure("self to tasks", attach_self, &tasks, idle);
	}
	for (int lead = 1; lead <= 128; lead *= 2)
		measure_warm(&other, &one_procs, lead);
	cgroup_remove(&cg, 1000);
	cgroup_done(&cg);
	measure_life(probe, &limits, "v1 memory, pids, cpu");
	measure_life(
		probe,
		&(struct cgroup_limits){ limits.mem_bytes, limits.processes, CGROUP_UNLIMITED },
		"v1 memory, pids");
}

static void measure_v2(const char *mount)
{
	struct cgroup_probe probe = { .layout = CGROUP_V2 };
	const struct cgroup_limits none = { CGROUP_UNLIMITED, CGROUP_UNLIMITED, CGROUP_UNLIMITED };
	struct cgroup cg;

	for (int i = 0; i < CGROUP_CONTROLLERS; i++)
		snprintf(probe.base[i], CGROUP_PATH, "%s/caisson", mount);
	if (cgroup_create(&probe, "bench-doors", &none, &cg, NULL) < 0) {
		printf("no v2 mount at %s\n", mount);
		return;
	}
	struct doors procs = { 1, { cg.enter_fd[0][CGROUP_CMD] } };
	for (int idle = 0; idle <= 200; idle += 200) {
		measure_clone("clone3 alone", -1, idle);
		measure_clone("clone3 into a v2 group", cgroup_clone_fd(&cg, CGROUP_CMD), idle);
		measure("v2 self to procs", attach_self, &procs, idle);
	}
	cgroup_remove(&cg, 1000);
	cgroup_done(&cg);
	measure_life(&probe, &none, "v2 without controllers");
}

/* Could one hierarchy carry several controllers here, and does it favour moving? */
static void look(void)
{
	char dir[] = "/tmp/caisson-bench-XXXXXX", text[256];
	FILE *file = fopen("/proc/self/mountinfo", "re");

	while (file && fgets(text, sizeof text, file))
		if (strstr(text, "favordynmods"))
			printf("favordynmods: %s", text);
	if (file)
		fclose(file);
	if (!mkdtemp(dir))
		return;
	if (mount("caisson", dir, "cgroup", 0, "memory,pids,cpu") == 0) {
		printf("memory, pids and cpu can be mounted together here\n");
		umount(dir);
	} else {
		printf("memory, pids and cpu mounted together: %s\n", strerror(errno));
	}
	rmdir(dir);
}

int main(int argc, char **argv)
{
	struct cgroup_probe probe;
	uint64_t value;

	if (argc > 1 && str_parse_u64(argv[1], ROUNDS_MAX, &value) == 0 && value > 0)
		rounds = (int)value;
	look();
	cgroup_probe(&probe);
	if (probe.layout == CGROUP_V1)
		measure_v1(&probe);
	else
		printf("v1: %s\n", probe.reason[CGROUP_MEMORY]);
	measure_v2(probe.layout == CGROUP_V1 ? "/sys/fs/cgroup/unified" : "/sys/fs/cgroup");
	return 0;
}
