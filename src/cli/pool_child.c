/*
 * One prepared sandbox of a pool: a monitor whose wall waits. See pool.c.
 *
 * A request comes from a process of our own user and group; it may ask for what `caisson up` would
 * give it. It is bounded and read with a clock, since others wait behind it.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/place.h"
#include "base/str.h"
#include "cli/pool.h"
#include "cli/walls.h"

extern char **environ;

#ifndef SO_PEERGROUPS
#define SO_PEERGROUPS 59 /* 4.13 */
#endif

enum { REQUEST_MS = 2000, GROUPS_MAX = 1024 };

struct request {
	struct pool_head head;
	char *bytes; /* owned */
	struct pool_texts texts;
};

static void note(const struct pool_child *child, enum pool_note_what what,
		 const struct csn_error *err)
{
	struct pool_note note = { .what = what };

	if (err)
		note.err = *err;
	if (write(child->notes, &note, sizeof note) < 0)
		return; /* the pool is gone */
}

/* ---- the request -------------------------------------------------------------------------- */

/* Has he the groups that we have? What he may not read we would lend him. */
static bool has_our_groups(int fd)
{
	gid_t ours[GROUPS_MAX], his[GROUPS_MAX];
	socklen_t size = sizeof his;
	int count = getgroups(GROUPS_MAX, ours);

	/* The kernel keeps both in order. */
	return count >= 0 && getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, his, &size) == 0 &&
	       size == (socklen_t)count * sizeof *his && memcmp(ours, his, size) == 0;
}

static bool is_ours(int fd)
{
	struct ucred peer;
	socklen_t size = sizeof peer;

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
	       peer.uid == geteuid() && peer.gid == getegid() && has_our_groups(fd);
}

static int read_some(int fd, void *data, size_t size, uint64_t end_ms)
{
	for (char *at = data; size > 0;) {
		struct pollfd ready = { .fd = fd, .events = POLLIN };
		uint64_t now_ms = clock_now_ms();
		ssize_t n;

		if (now_ms >= end_ms || poll(&ready, 1, (int)(end_ms - now_ms)) <= 0)
			return -ETIMEDOUT;
		n = read(fd, at, size);
		if (n <= 0)
			return -EPIPE;
		at += n;
		size -= (size_t)n;
	}
	return 0;
}

static int read_request(int fd, struct request *ret_request)
{
	uint64_t end_ms = clock_now_ms() + REQUEST_MS;
	struct pool_head *head = &ret_request->head;
	int r = read_some(fd, head, sizeof *head, end_ms);

	if (r < 0 || !pool_is_head(head))
		return r < 0 ? r : -EBADMSG;
	ret_request->bytes = calloc(1, (size_t)head->size + 1);
	if (!ret_request->bytes)
		return -ENOMEM;
	r = read_some(fd, ret_request->bytes, head->size, end_ms);
	return r < 0 ? r : pool_parse(head, ret_request->bytes, &ret_request->texts);
}

static void request_done(struct request *request)
{
	pool_texts_done(&request->texts);
	free(request->bytes);
	*request = (struct request){ 0 };
}

/* ---- taken --------------------------------------------------------------------------------- */

/* Who asked, and what he is to become. */
struct taking {
	struct pool_child *child;
	struct stay *stay;
	struct request *request;
	int fd;
};

static void say(int fd, enum pool_answer answer, const struct csn_error *err)
{
	char byte = (char)answer;

	if (send(fd, &byte, 1, MSG_NOSIGNAL) == 1 && answer != POOL_TAKEN)
		send(fd, err, sizeof *err, MSG_NOSIGNAL);
	if (answer != POOL_TAKEN)
		shutdown(fd, SHUT_WR);
}

static _Noreturn void miss(struct taking *taking, enum pool_answer answer,
			   const struct csn_error *err)
{
	say(taking->fd, answer, err);
	note(taking->child, POOL_NOTE_MISSED, err);
	close(taking->fd);
	stay_discard(taking->stay);
	_exit(0);
}

/* A stream, or somebody who waits for a name to be up. */
struct taken {
	struct up up;
	struct pool_child *child;
	int fd;
};

/* The pool hears of it last: it would make another one, and somebody waits for us. */
static void answer(struct up *up, const struct csn_error *err)
{
	struct taken *taken = (struct taken *)(void *)up;

	_Static_assert(offsetof(struct taken, up) == 0, "the one is found by the other");
	say(taken->fd, err->code ? POOL_FAILED : POOL_TAKEN, err);
	if (up->owner < 0)
		taken->fd = fd_close(taken->fd);
	note(taken->child, POOL_NOTE_TAKEN, NULL);
	taken->child->notes = fd_close(taken->child->notes);
}

/* What a process that he had started would have from him. Of what a hard limit took from the pool
 * only root can give back. */
static bool inherit(const struct pool_head *head)
{
	bool is_his = true;

	for (int i = 0; is_his && i < POOL_LIMITS; i++) {
		const struct rlimit his = { head->limits[i].soft, head->limits[i].hard };
		struct rlimit ours;

		is_his = getrlimit(i, &ours) == 0 &&
			 ((ours.rlim_cur == his.rlim_cur && ours.rlim_max == his.rlim_max) ||
			  setrlimit(i, &his) == 0);
	}
	if (head->umask != POOL_NO_UMASK)
		umask((mode_t)head->umask);
	return is_his;
}

static void listen_as(struct taking *taking, struct up *up, const char *name)
{
	struct csn_error err = { 0 };

	up->name = name;
	up->place = place_open(&err);
	if (up->place < 0 || place_listen(up->place, up->name, &up->lock, &up->listener, &err) < 0)
		miss(taking, POOL_FAILED, &err);
}

static _Noreturn void become(struct taking *taking, const struct up_wish *wish, const char *name)
{
	struct taken taken = { .up = UP_NONE, .child = taking->child, .fd = taking->fd };
	struct run_outcome outcome = { 0 };
	struct csn_error err = { 0 };
	struct stay_setup setup;
	const char *other;

	up_setup(&taken.up, wish, &setup);
	other = stay_differs(taking->stay, &setup);
	if (!other && !inherit(&taking->request->head))
		other = "resource limits";
	if (other)
		csn_fail(&err, -ESTALE, "pool", "%s", other);
	if (other)
		miss(taking, POOL_DIFFERS, &err);
	if (name)
		listen_as(taking, &taken.up, name);
	else
		taken.up.owner = taking->fd;
	close(taking->child->listener);
	close(taking->child->life);
	fd_set_nonblock(taking->fd, 1);
	taken.up.answer = answer;
	up_setup(&taken.up, wish, &setup);
	up_raise_files();
	stay_take(taking->stay, &setup, &outcome);
	if (name)
		place_leave(taken.up.place, name);
	_exit(0);
}

/* Everything is decided as if his own process did it: his flags, his folder, his variables. */
static _Noreturn void take(struct taking *taking)
{
	static char up_word[] = "up", monitor_word[] = "monitor";
	struct request *request = taking->request;
	bool is_up = request->head.wish == POOL_UP;
	char *word[] = { is_up ? up_word : monitor_word };
	int words;
	struct cli cli = { .command = cli_command_find(1, word, &words) };
	struct csn_error err = { 0 };
	struct cli_policy policy;
	struct plan plan;
	int r;

	environ = request->texts.variables;
	r = chdir(request->texts.cwd) < 0
		    ? csn_fail(&err, -errno, "pool", "cannot go to %.100s: %m", request->texts.cwd)
		    : 0;
	if (r >= 0)
		r = cli_parse(&cli, (int)request->head.words, request->texts.words, &err);
	if (r >= 0)
		walls_take_variable(&cli);
	if (r >= 0)
		r = walls_check_built(&cli.options, &err);
	cli.options.stays = true;
	if (r >= 0)
		r = cli_load_policy(&cli.options, &policy, &err);
	if (r >= 0)
		r = cli_decide(&cli.options, &policy, NULL, &plan, &err);
	if (r < 0)
		miss(taking, POOL_FAILED, &err);
	become(taking, &(struct up_wish){ &plan, &policy, &cli.options },
	       is_up ? cli.args[0] : NULL);
}

/* ---- waiting ------------------------------------------------------------------------------- */

/* Nonsense is hung up on. */
static void hear(struct pool_child *child, struct stay *stay)
{
	_cleanup_fd_ int fd = accept4(child->listener, NULL, NULL, SOCK_CLOEXEC);
	struct request request = { 0 };
	struct taking taking = { child, stay, &request, fd };

	if (fd < 0 || !is_ours(fd))
		return;
	if (read_request(fd, &request) >= 0) {
		if (request.head.wish == POOL_OPEN || request.head.wish == POOL_UP)
			take(&taking);
		if (request.head.wish == POOL_STOP) {
			note(child, POOL_NOTE_STOP, NULL);
			fd_take(&fd); /* open until we are over */
		}
	}
	request_done(&request);
}

_Noreturn void pool_child_be(struct pool_child *child)
{
	struct up up = UP_NONE;
	struct stay_setup setup;
	struct csn_error err = { 0 };
	struct stay *stay;

	setsid();
	up_setup(&up, &child->wish, &setup);
	stay = stay_prepare(&setup, &err);
	if (!stay) {
		note(child, POOL_NOTE_FAILED, &err);
		_exit(1);
	}
	note(child, POOL_NOTE_READY, NULL);
	for (;;) {
		struct pollfd fds[] = { { child->listener, POLLIN, 0 },
					{ child->life, POLLIN, 0 },
					{ stay_prepared_fd(stay), POLLIN, 0 } };

		if (poll(fds, 3, -1) < 0 && errno != EINTR)
			break;
		if (fds[1].revents || fds[2].revents)
			break;
		if (fds[0].revents)
			hear(child, stay);
	}
	stay_discard(stay);
	_exit(0);
}
