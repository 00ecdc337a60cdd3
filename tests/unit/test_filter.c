/* Filters: loaded for good, only by who may, and a listener answers what it was asked. */
#include "os/filter.h"

#include "os/privs.h"
#include "own_space.h"

#include <linux/seccomp.h>
#include <poll.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

/* One syscall gets `action`, everything else is allowed. */
#define PROGRAM(name, number, action)                                                  \
	static struct sock_filter name##_code[] = {                                    \
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)), \
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),                     \
		BPF_STMT(BPF_RET, action),                                             \
		BPF_STMT(BPF_RET, SECCOMP_RET_ALLOW),                                  \
	};                                                                             \
	static const struct sock_fprog name = { 4, name##_code }
PROGRAM(deny_getppid, SYS_getppid, SECCOMP_RET_ERRNO | EXDEV);
PROGRAM(allow_getppid, SYS_getppid, SECCOMP_RET_ALLOW);
PROGRAM(ask_getppid, SYS_getppid, SECCOMP_RET_USER_NOTIF);

static int error_of_getppid(void)
{
	return syscall(SYS_getppid) < 0 ? errno : 0;
}

static void loads(void)
{
	be_ordinary();
	CHECK(filter_load(&deny_getppid) == -EACCES); /* or it could confuse setuid programs */
	CHECK(error_of_getppid() == 0);
	CHECK(privs_no_new() == 0 && filter_load(&deny_getppid) == 0);
	CHECK(error_of_getppid() == EXDEV);
	/* a later one cannot allow what an earlier one denied; children have it too */
	CHECK(filter_load(&allow_getppid) == 0 && error_of_getppid() == EXDEV);
	pid_t pid = fork();
	if (pid == 0)
		_exit(error_of_getppid());
	int status;
	CHECK(waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == EXDEV);
}

static void refuses(void)
{
	struct sock_filter jump[] = { BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 1, 9, 9),
				      BPF_STMT(BPF_RET, SECCOMP_RET_ALLOW) };
	struct sock_filter no_end[] = { BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0) };
	const struct sock_fprog broken[] = { { 0, jump }, { 2, jump }, { 1, no_end } };

	CHECK(privs_no_new() == 0);
	for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
		CHECK(filter_load(&broken[i]) == -EINVAL);
		CHECK(filter_load_listener(&broken[i]) == -EINVAL);
	}
	CHECK(filter_load(&(struct sock_fprog){ 4, (void *)8 }) == -EFAULT);
	CHECK(error_of_getppid() == 0);
}

/* Answers one call with `error`. */
static void answer(int listener, int error)
{
	struct seccomp_notif asked = { 0 };
	struct seccomp_notif_resp reply = { .error = -error };

	CHECK(poll(&(struct pollfd){ .fd = listener, .events = POLLIN }, 1, 10000) == 1);
	CHECK(ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &asked) == 0);
	CHECK(asked.data.nr == SYS_getppid);
	reply.id = asked.id;
	CHECK(ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &reply) == 0);
}

static void listens(void)
{
	int listener, status;
	pid_t pid;

	be_ordinary();
	CHECK(privs_no_new() == 0);
	listener = filter_load_listener(&ask_getppid);
	CHECK(listener >= 0 && fcntl(listener, F_GETFD) == FD_CLOEXEC);
	CHECK(filter_load_listener(&ask_getppid) == -EBUSY); /* one listener a process */
	pid = fork();
	if (pid == 0)
		_exit(error_of_getppid());
	answer(listener, EDOM);
	CHECK(waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == EDOM);
}

static void on_alarm(int signal)
{
	(void)signal;
}

/* A signal that only interrupts does not take a received call back: see filter.h. */
static void survives_signals(void)
{
	struct seccomp_notif asked = { 0 };
	struct seccomp_notif_resp reply = { .error = -EDOM };
	int listener, status;
	pid_t pid;

	CHECK(privs_no_new() == 0);
	listener = filter_load_listener(&ask_getppid);
	CHECK(listener >= 0);
	pid = fork();
	if (pid == 0) {
		struct sigaction action = { .sa_handler = on_alarm };

		sigaction(SIGUSR1, &action, NULL);
		_exit(error_of_getppid());
	}
	CHECK(ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &asked) == 0);
	CHECK(kill(pid, SIGUSR1) == 0);
	usleep(50000);
	CHECK(ioctl(listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &asked.id) == 0);
	reply.id = asked.id;
	CHECK(ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &reply) == 0);
	CHECK(waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == EDOM);
}

static const struct tap_test tests[] = {
	{ "a filter is for good (ordinary user)", loads },
	{ "a broken program is refused and nothing is loaded", refuses },
	{ "a listener answers (ordinary user)", listens },
	{ "a received call waits through signals", survives_signals },
};

TAP_MAIN(tests)
