/*
 * What a notified open for writing costs: open+close of an existing file on scratch, without a
 * filter and with one whose listener resolves the path and continues. One line each, the best
 * and the middle of 15 rounds; the difference must stay below 12 microseconds.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "monitor/notify.h"
#include "os/profile.h"
#include "os/sys.h"

enum { ROUNDS = 15, CALLS = 2000, PATHS = 3 };

struct times {
	double round[PATHS][ROUNDS];
};

static const char *const paths[PATHS] = { "/dev/shm/notify-open.file", "notify-open.file",
					  "/dev/shm/../../dev/shm/notify-open.file" };

static const struct profile_rule *watch_all(const char *profile, const struct seccomp_data *data)
{
	static const struct profile_rule watch = { .verdict = PROFILE_WATCH };

	(void)profile;
	(void)data;
	return &watch;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void measure(struct times *times)
{
	for (int p = 0; p < PATHS; p++) {
		for (int r = 0; r < ROUNDS; r++) {
			uint64_t begin = clock_now_us();

			for (int i = 0; i < CALLS; i++)
				close(openat(AT_FDCWD, paths[p], O_WRONLY | O_CLOEXEC));
			times->round[p][r] = (double)(clock_now_us() - begin) / CALLS;
			usleep(100 * 1000); /* the bucket fills again */
		}
		qsort(times->round[p], ROUNDS, sizeof(double), compare);
	}
}

static int load_filter(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, O_WRONLY | O_RDWR, 0, 1),
		BPF_STMT(BPF_RET, SECCOMP_RET_USER_NOTIF),
		BPF_STMT(BPF_RET, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof code / sizeof *code, code };

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
			    SECCOMP_FILTER_FLAG_NEW_LISTENER | (1UL << 5), &program);
}

static void serve(int listener, int pidfd)
{
	struct plan plan = { .scratch_at = "/dev/shm" };
	struct violations list;
	struct notify_setup setup = { .plan = &plan,
				      .profile = "command",
				      .violations = &list,
				      .scratch_fd = -1,
				      .decide = watch_all,
				      .has_own_view = true };
	struct notify_stats stats;
	struct notify *notify;

	violations_init(&list, &plan, NULL, NULL);
	if (notify_new(listener, &setup, &notify, NULL) < 0)
		exit(1);
	for (;;) {
		struct pollfd ready[] = { { notify_fd(notify), POLLIN, 0 },
					  { pidfd, POLLIN, 0 },
					  { notify_timer_fd(notify), POLLIN, 0 } };

		if (poll(ready, 3, -1) > 0 && ready[1].revents)
			break;
		notify_handle(notify);
	}
	notify_stats(notify, &stats);
	printf("# %llu notifications, %llu delays, %zu facts\n", (unsigned long long)stats.handled,
	       (unsigned long long)stats.delayed, list.count);
	notify_free(notify);
	violations_done(&list);
}

static void run(struct times *times, bool has_filter)
{
	int pidfd, *listener = mmap(NULL, sizeof *listener, PROT_READ | PROT_WRITE,
				    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pid;

	*listener = 0;
	pid = sys_clone(0, &pidfd, -1);
	if (pid == 0) {
		if (chdir("/dev/shm") < 0)
			_exit(1);
		if (has_filter)
			*listener = load_filter();
		measure(times);
		_exit(0);
	}
	while (has_filter && *(volatile int *)listener == 0)
		usleep(100);
	if (has_filter)
		serve(sys_pidfd_getfd(pidfd, *listener), pidfd);
	waitpid(pid, NULL, 0);
}

int main(void)
{
	struct times *plain = mmap(NULL, 2 * sizeof *plain, PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct times *noted = plain + 1;

	fd_close(open(paths[0], O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	run(plain, false);
	run(noted, true);
	for (int p = 0; p < PATHS; p++)
		printf("%-42s min %.2f -> %.2f us, p50 %.2f -> %.2f us: +%.2f, +%.2f\n", paths[p],
		       plain->round[p][0], noted->round[p][0], plain->round[p][ROUNDS / 2],
		       noted->round[p][ROUNDS / 2], noted->round[p][0] - plain->round[p][0],
		       noted->round[p][ROUNDS / 2] - plain->round[p][ROUNDS / 2]);
	unlink(paths[0]);
	return 0;
}
