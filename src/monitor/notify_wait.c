/*
 * Connecting in a program's place without waiting in its place.
 *
 * A blocking connect() waits while the server's backlog is full, and a program inside can
 * fill one on purpose: the monitor would hang. The flags that say "do not wait" belong to the
 * open file, which we share with the program, so they are changed for the few microseconds of
 * the attempt and put back. TCP then goes on by itself and is asked later; a path socket is
 * tried again by a timer. The program stays stopped in its call and sees a blocking connect.
 * (Its alarms do not interrupt it: WAIT_KILLABLE_RECV.)
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/time.h>

#include "base/clock.h"
#include "base/fd.h"
#include "monitor/notify_private.h"

/* Has a started connect ended? 0 or its error; -EINPROGRESS: not yet. */
static int outcome(int socket)
{
	struct pollfd ready = { .fd = socket, .events = POLLOUT };
	int error = 0;
	socklen_t size = sizeof error;

	if (poll(&ready, 1, 0) <= 0)
		return -EINPROGRESS;
	if (getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size) < 0)
		return -errno;
	return -error;
}

static int connect_once(int socket, const struct sockaddr *address, socklen_t length)
{
	return connect(socket, address, length) < 0 ? -errno : 0;
}

int wait_try(int socket, const struct sockaddr *address, socklen_t length, bool *ret_waits)
{
	int type = 0, flags = fcntl(socket, F_GETFL), r;
	socklen_t size = sizeof type;

	*ret_waits = false;
	if (flags < 0)
		return -errno;
	/* First of all: F_SETFL on something that is no socket would change a stranger. */
	if (getsockopt(socket, SOL_SOCKET, SO_TYPE, &type, &size) < 0)
		return -errno;
	if ((flags & O_NONBLOCK) || type == SOCK_DGRAM || type == SOCK_RAW)
		return connect_once(socket, address, length);
	if (fcntl(socket, F_SETFL, flags | O_NONBLOCK) < 0)
		return -errno;
	r = connect_once(socket, address, length);
	fcntl(socket, F_SETFL, flags);
	if (r == -EINPROGRESS || r == -EALREADY)
		r = outcome(socket);
	*ret_waits = r == -EINPROGRESS || r == -EAGAIN;
	return r;
}

static uint64_t deadline_of(int socket)
{
	struct timeval limit = { 0 };
	socklen_t size = sizeof limit;

	if (getsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &limit, &size) < 0 ||
	    (limit.tv_sec == 0 && limit.tv_usec == 0))
		return CLOCK_NEVER;
	return clock_now_ms() + (uint64_t)limit.tv_sec * 1000 + (uint64_t)limit.tv_usec / 1000;
}

static void drop(struct notify *notify, size_t index)
{
	struct waiting *waiting = &notify->waiting[index];

	fd_close(waiting->socket);
	fd_close(waiting->target);
	*waiting = notify->waiting[--notify->waiting_count];
}

int wait_add(struct call *call, const struct waiting *connect)
{
	struct notify *notify = call->notify;

	if (notify->waiting_count == NOTIFY_WAITING_MAX) {
		fd_close(connect->socket);
		fd_close(connect->target);
		return -EAGAIN;
	}
	notify->waiting[notify->waiting_count] = *connect;
	notify->waiting[notify->waiting_count].id = call->request->id;
	notify->waiting[notify->waiting_count].deadline_ms = deadline_of(connect->socket);
	notify->waiting_count++;
	call->answer = ANSWER_LATER;
	return 0;
}

/* 1: still waiting, else 0 or the error to answer. */
static int look(struct waiting *waiting, uint64_t now_ms)
{
	bool waits = true;
	int r;

	if (waiting->is_started)
		r = outcome(waiting->socket);
	else
		r = wait_try(waiting->socket, (struct sockaddr *)&waiting->address, waiting->length,
			     &waits);
	if (r == -EINPROGRESS || (waits && r == -EAGAIN))
		return now_ms < waiting->deadline_ms ? 1 : r;
	return r;
}

void wait_tick(struct notify *notify)
{
	uint64_t now_ms = notify->waiting_count ? clock_now_ms() : 0;

	for (size_t i = 0; i < notify->waiting_count;) {
		struct waiting *waiting = &notify->waiting[i];
		struct seccomp_notif_resp answer = { .id = waiting->id };
		int r;

		/* Its process may be dead: then nothing more happens in its name. */
		if (ioctl(notify->listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &waiting->id) < 0) {
			drop(notify, i);
			continue;
		}
		r = look(waiting, now_ms);
		if (r == 1) {
			i++;
			continue;
		}
		answer.error = r;
		ioctl(notify->listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
		drop(notify, i);
	}
}

void wait_done(struct notify *notify)
{
	while (notify->waiting_count > 0)
		drop(notify, 0);
}
