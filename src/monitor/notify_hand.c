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
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
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
enum { ORDERS_MIN = 64, DYING_MS = 20 };

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

static bool has_ended(const struct notify *notify, int wait_ms)
{
	struct pollfd ended = { .fd = notify->hand_pidfd, .events = POLLIN };

	return notify->hand_pidfd >= 0 && poll(&ended, 1, wait_ms) > 0;
}

/* Ends it; the next order starts another. si_pid is 0 where it is not over yet. */
static void bury(struct notify *notify, siginfo_t *ret_info)
{
	*ret_info = (siginfo_t){ 0 };
	notify->hand = fd_close(notify->hand);
	if (notify->hand_pidfd < 0)
		return;
	sys_pidfd_signal(notify->hand_pidfd, SIGKILL);
	/* Not waited for: it may be waiting for a file itself. Our own end reaps it then. */
	waitid(P_PIDFD, (id_t)notify->hand_pidfd, ret_info, WEXITED | WNOHANG);
	epoll_ctl(notify->wakes, EPOLL_CTL_DEL, notify->hand_pidfd, NULL);
	notify->hand_pidfd = fd_close(notify->hand_pidfd);
}

static int start(struct notify *notify)
{
	struct epoll_event ended = { .events = EPOLLIN };
	int pair[2], pidfd = -1, r;
	siginfo_t info;
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
	if (epoll_ctl(notify->wakes, EPOLL_CTL_ADD, pidfd, &ended) == 0)
		return 0;
	r = -errno;
	bury(notify, &info);
	return r;
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

	*header = (struct cmsghdr){ .cmsg_len = CMSG_LEN(sizeof fd),
				    .cmsg_level = SOL_SOCKET,
				    .cmsg_type = SCM_RIGHTS };
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

/* False: answered by the hand, or its thread died. */
static bool is_unanswered(const struct notify *notify, uint64_t id)
{
	return ioctl(notify->listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &id) == 0;
}

/* The hand answers by itself, so what is answered is noticed only when there is no room. */
static int make_room(struct notify *notify)
{
	size_t kept = 0, room;
	uint64_t *orders;

	if (notify->order_count < notify->order_room)
		return 0;
	for (size_t i = 0; i < notify->order_count; i++)
		if (is_unanswered(notify, notify->orders[i]))
			notify->orders[kept++] = notify->orders[i];
	notify->order_count = kept;
	if (notify->order_room > 0 && kept <= notify->order_room / 2)
		return 0;
	room = notify->order_room > 0 ? notify->order_room * 2 : ORDERS_MIN;
	orders = reallocarray(notify->orders, room, sizeof *orders);
	if (!orders)
		return -ENOMEM;
	notify->orders = orders;
	notify->order_room = room;
	return 0;
}

static void record_lost(struct notify *notify, const siginfo_t *info, uint64_t count)
{
	struct fact fact;
	char *cause = fact.detail.text;
	size_t size = sizeof fact.detail.text;

	fact_init(&fact, FACT_FILESYSTEM_WRITE, SOURCE_MONITOR);
	fact.count = count;
	fact.detail.path_unknown = true;
	fact.is_certain = false;
	fact.is_expected = true; /* no attempt: the program did nothing that is not permitted */
	if (info->si_pid == 0)
		fact_print(cause, size, "caisson-hand has ended");
	else if (info->si_code == CLD_EXITED)
		fact_print(cause, size, "caisson-hand could not be set up");
	else
		fact_print(cause, size, "caisson-hand was ended by signal %d", info->si_status);
	fact_print(fact.rule, sizeof fact.rule, "none: the call was not refused by us");
	fact_print(fact.say, sizeof fact.say,
		   "A change of rights, owners, times or attributes failed with EIO, not for the "
		   "policy: the process that makes it is gone (%s); try again.",
		   cause);
	violations_add(notify->setup.violations, &fact);
}

/* The hand is gone: nobody else would answer what it was given. */
static void lose(struct notify *notify)
{
	uint64_t lost = 0;
	siginfo_t info;

	/* Its socket closes a moment before its end can be seen. */
	has_ended(notify, DYING_MS);
	bury(notify, &info);
	for (size_t i = 0; i < notify->order_count; i++) {
		struct seccomp_notif_resp answer = { .id = notify->orders[i], .error = -EIO };

		/* ENOENT: it was answered. */
		lost += ioctl(notify->listener, SECCOMP_IOCTL_NOTIF_SEND, &answer) == 0;
	}
	notify->order_count = 0;
	drop_held(notify);
	if (lost > 0)
		record_lost(notify, &info, lost);
}

static bool is_gone(int r)
{
	return r == -EPIPE || r == -ECONNRESET;
}

static int pass_on(struct notify *notify, const struct order *order, int fd, const void *value)
{
	int r = notify->hand < 0 ? start(notify) : 0;

	return r < 0 ? r : send_order(notify, order, fd, value);
}

int hand_order(struct call *call, const struct order *order, int fd, const void *value)
{
	struct notify *notify = call->notify;
	int r = make_room(notify);

	if (r < 0)
		return r;
	r = pass_on(notify, order, fd, value);
	if (is_gone(r)) {
		lose(notify);
		r = pass_on(notify, order, fd, value);
	}
	if (r == -EAGAIN && notify->hand >= 0)
		r = hold(notify, order, fd, value);
	if (r < 0)
		return is_gone(r) ? -EIO : -EAGAIN;
	notify->orders[notify->order_count++] = order->id;
	return 0;
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
	if (is_gone(r)) {
		lose(notify);
		return;
	}
	answer.id = held->order.id;
	answer.error = r;
	if (r < 0)
		ioctl(notify->listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
	drop_held(notify);
}

void hand_look(struct notify *notify)
{
	if (has_ended(notify, 0))
		lose(notify);
}

void hand_done(struct notify *notify)
{
	siginfo_t info;

	drop_held(notify);
	bury(notify, &info);
	free(notify->orders);
}
