/*
 * The hand: a process that changes what the monitor has decided about, and answers the call.
 *
 *   monitor                                    hand
 *     order, descriptor ── SEQPACKET ────────►  chmod("/proc/self/fd/3", …)
 *                                               result ── listener ──► the program
 *
 * A process of its own for two reasons. The kernel holds a file's lock for as long as a write to
 * it lasts, seconds for a large one, and nothing can be done to it meanwhile: a program could stop
 * the monitor, and with it its clocks and limits. So the hand waits, and only this command's calls
 * behind it. And it has the command's rights: no capability, the command's ids for files. Its real
 * id stays the monitor's, so that the command may not signal it.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/fd.h"
#include "monitor/notify_private.h"
#include "os/privs.h"
#include "os/sys.h"

enum { SOCKET_FD = 3, LISTENER_FD, KEPT_FDS, HIGH_FD = 16, VALUE_MAX = 65536 };

/* An order that found the socket full: more than a hundred of the command's threads wait. */
struct held {
	struct order order;
	int fd; /* owned */
	unsigned char value[];
};

/* Room for one descriptor beside a message. */
union control {
	char bytes[CMSG_SPACE(sizeof(int))];
	struct cmsghdr align;
};

/* ---- inside the hand ---------------------------------------------------------------------- */

static int change_open(const struct order *order, int fd, const void *value)
{
	switch (order->change) {
	case CHANGE_MODE:
		return fchmod(fd, order->mode);
	case CHANGE_OWNER:
		return fchown(fd, order->uid, order->gid);
	case CHANGE_TIMES:
		return futimens(fd, order->is_now ? NULL : order->times);
	case CHANGE_SET:
		return fsetxattr(fd, order->name, value, order->value_size, order->flags);
	case CHANGE_REMOVE:
		return fremovexattr(fd, order->name);
	case CHANGE_SIZE:
		break; /* ftruncate() is the kernel's: the descriptor was opened for writing */
	}
	return -1;
}

/* The link leads to the very object that was decided about, a symbolic link included. */
static int change_named(const struct order *order, int fd, const void *value)
{
	char link[40];

	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	switch (order->change) {
	case CHANGE_MODE:
		return chmod(link, order->mode);
	case CHANGE_OWNER:
		return chown(link, order->uid, order->gid);
	case CHANGE_TIMES:
		return utimensat(AT_FDCWD, link, order->is_now ? NULL : order->times, 0);
	case CHANGE_SET:
		return setxattr(link, order->name, value, order->value_size, order->flags);
	case CHANGE_REMOVE:
		return removexattr(link, order->name);
	case CHANGE_SIZE:
		return truncate(link, order->size);
	}
	return -1;
}

static void carry_out(const struct order *order, int fd, const void *value)
{
	struct seccomp_notif_resp answer = { .id = order->id };
	uint64_t id = order->id;
	int r;

	/* Whoever asked may be dead: then nothing more happens in its name. */
	if (ioctl(LISTENER_FD, SECCOMP_IOCTL_NOTIF_ID_VALID, &id) < 0)
		return;
	errno = EINVAL;
	r = order->is_open ? change_open(order, fd, value) : change_named(order, fd, value);
	answer.error = r < 0 ? -errno : 0;
	ioctl(LISTENER_FD, SECCOMP_IOCTL_NOTIF_SEND, &answer);
}

/* The next order. False: the monitor closed the socket, or is gone. */
static bool receive(struct order *ret_order, void *ret_value, int *ret_fd)
{
	union control control = { 0 };
	struct iovec parts[] = { { ret_order, sizeof *ret_order }, { ret_value, VALUE_MAX } };
	struct msghdr message = { .msg_iov = parts,
				  .msg_iovlen = 2,
				  .msg_control = &control,
				  .msg_controllen = sizeof control };
	struct cmsghdr *header;
	ssize_t n;

	do
		n = recvmsg(SOCKET_FD, &message, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	header = CMSG_FIRSTHDR(&message);
	if (n < (ssize_t)sizeof *ret_order || !header || header->cmsg_type != SCM_RIGHTS)
		return false;
	memcpy(ret_fd, CMSG_DATA(header), sizeof *ret_fd);
	return true;
}

/* Nothing of the monitor's but the two: a pipe held open here would keep its reader waiting. */
static int keep_two(int socket, int listener)
{
	int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	int from[] = { null_fd, null_fd, null_fd, fcntl(socket, F_DUPFD_CLOEXEC, HIGH_FD),
		       fcntl(listener, F_DUPFD_CLOEXEC, HIGH_FD) };

	for (int fd = 0; fd < KEPT_FDS; fd++)
		if (from[fd] < 0 || (from[fd] != fd && dup3(from[fd], fd, O_CLOEXEC) < 0))
			return -errno;
	return sys_close_from(KEPT_FDS);
}

/* The command's rights over files, and no more. */
static int give_up_rights(uid_t as_uid)
{
	int r = sys_not_dumpable();

	if (r < 0)
		return r;
	if (as_uid) {
		/* Refused where the kernel refused it to the command too. */
		if (setgroups(0, NULL) < 0 && errno != EPERM)
			return -errno;
		setfsgid(as_uid);
		setfsuid(as_uid);
		if ((uid_t)setfsuid((uid_t)-1) != as_uid || (gid_t)setfsgid((gid_t)-1) != as_uid)
			return -EPERM;
	}
	return privs_drop_caps();
}

_Noreturn static void serve(int socket, int listener, uid_t as_uid)
{
	static unsigned char value[VALUE_MAX];
	struct order order;
	sigset_t all;
	int fd;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	prctl(PR_SET_NAME, "caisson-hand", 0, 0, 0);
	setsid();
	if (keep_two(socket, listener) < 0 || give_up_rights(as_uid) < 0)
		_exit(1);
	while (receive(&order, value, &fd)) {
		carry_out(&order, fd, value);
		close(fd);
	}
	_exit(0);
}

/* ---- in the monitor ------------------------------------------------------------------------ */

static int start(struct notify *notify)
{
	int pair[2], pidfd = -1;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	pid = sys_clone(0, &pidfd, -1);
	if (pid == 0) {
		close(pair[0]);
		serve(pair[1], notify->listener, notify->setup.as_uid);
	}
	close(pair[1]);
	if (pid < 0) {
		close(pair[0]);
		return pid;
	}
	notify->hand = pair[0];
	notify->hand_pidfd = pidfd;
	return 0;
}

static int send_order(const struct notify *notify, const struct order *order, int fd,
		      const void *value)
{
	union control control = { 0 };
	struct iovec parts[] = { { (void *)order, sizeof *order },
				 { (void *)value, order->value_size } };
	struct msghdr message = { .msg_iov = parts,
				  .msg_iovlen = 2,
				  .msg_control = &control,
				  .msg_controllen = sizeof control };
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);

	*header = (struct cmsghdr){ CMSG_LEN(sizeof fd), SOL_SOCKET, SCM_RIGHTS };
	memcpy(CMSG_DATA(header), &fd, sizeof fd);
	return sendmsg(notify->hand, &message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

static int hold(struct notify *notify, const struct order *order, int fd, const void *value)
{
	struct held *held = malloc(sizeof *held + order->value_size);

	if (!held)
		return -ENOMEM;
	held->order = *order;
	held->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (held->fd < 0) {
		free(held);
		return -EAGAIN;
	}
	if (order->value_size > 0)
		memcpy(held->value, value, order->value_size);
	notify->held = held;
	return 0;
}

static void drop_held(struct notify *notify)
{
	if (notify->held)
		fd_close(notify->held->fd);
	free(notify->held);
	notify->held = NULL;
}

/* It was killed: what it had is lost, the next order starts another. */
static void bury(struct notify *notify)
{
	siginfo_t info;

	notify->hand = fd_close(notify->hand);
	if (notify->hand_pidfd < 0)
		return;
	sys_pidfd_signal(notify->hand_pidfd, SIGKILL);
	/* Not waited for: it may be waiting for a file itself. Our own end reaps it then. */
	waitid(P_PIDFD, (id_t)notify->hand_pidfd, &info, WEXITED | WNOHANG);
	notify->hand_pidfd = fd_close(notify->hand_pidfd);
}

int hand_order(struct call *call, const struct order *order, int fd, const void *value)
{
	struct notify *notify = call->notify;
	int r = notify->hand < 0 ? start(notify) : 0;

	if (r < 0)
		return r;
	r = send_order(notify, order, fd, value);
	if (r == -EAGAIN)
		return hold(notify, order, fd, value);
	if (r < 0 && r != -ETOOMANYREFS && r != -EMSGSIZE && r != -ENOMEM && r != -ENOBUFS) {
		bury(notify);
		return -EIO;
	}
	return r < 0 ? -EAGAIN : 0;
}

void hand_tick(struct notify *notify)
{
	struct held *held = notify->held;
	struct seccomp_notif_resp answer = { 0 };
	int r;

	if (!held)
		return;
	r = send_order(notify, &held->order, held->fd, held->value);
	if (r == -EAGAIN)
		return;
	answer.id = held->order.id;
	answer.error = r;
	if (r < 0)
		ioctl(notify->listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
	if (r == -EPIPE || r == -ECONNRESET)
		bury(notify);
	drop_held(notify);
}

void hand_done(struct notify *notify)
{
	drop_held(notify);
	bury(notify);
}
