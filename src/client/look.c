/*
 * Many monitors, one poll loop; see look.h. What they say is as hostile here as in link.c: bounded
 * before it is kept, checked against the table before it is read. A lie ends that one's turn.
 */
#include "client/look.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "client/stats.h"
#include "wire/emit.h"
#include "wire/frame.h"

enum {
	AT_ONCE = 1024, /* streams; fewer where fewer descriptors are */
	SPARE_FDS = 32,
	IN_MAX = 64 << 10, /* `ready` and the answer */
	READ_SIZE = 4096,
	QUOTA = 256 << 10,
	REF = 1,
};

/* One that is asked. */
struct asking {
	struct look *look;
	int fd;
	bool is_heard; /* it said something, if not all */
	struct buf in;
};

struct round {
	int place_fd;
	struct look *looks;
	size_t count, next; /* of looks; the first that was not begun */
	struct asking *asking;
	struct pollfd *fds; /* of those, in their order */
	size_t running, most;
};

/* ---- one answer ----------------------------------------------------------------------------- */

static const struct frame_verb *stats_verb(void)
{
	static const struct term atom = { .type = TERM_ATOM,
					  .bytes = { (const uint8_t *)"stats", 5 } };

	return frame_find_client_verb(&atom);
}

/* Takes the arena with the reply. */
static void keep_stats(struct look *look, const struct term *map, struct arena *arena)
{
	struct call call = { .arena = *arena, .reply = *map };

	look->stats = stats_result(&call);
	look->state = look->stats ? LOOK_ANSWERED : LOOK_REFUSED;
	*arena = call.arena;
}

/* True: that was its answer, or nonsense. */
static bool take_frame(struct look *look, struct term_input payload)
{
	_cleanup_arena_ struct arena arena;
	struct csn_error why;
	struct term frame;
	int index;

	arena_init(&arena, QUOTA);
	index = frame_decode(&arena, payload, FROM_AGENT, &frame, &why);
	if (index == FRAME_FAILED || index == FRAME_BYE)
		look->state = index == FRAME_BYE ? LOOK_GONE : LOOK_REFUSED;
	else if (index == FRAME_REPLY && frame.items[1].integer == REF &&
		 frame_check_map(stats_verb()->result, &frame.items[2], &why) == 0)
		keep_stats(look, &frame.items[2], &arena);
	return index != FRAME_READY && index != FRAME_FACT;
}

static bool take_frames(struct asking *asking)
{
	struct csn_error why;
	const uint8_t *payload;
	size_t size;
	int r;

	while ((r = frame_peek(&asking->in, IN_MAX / 2, &payload, &size, &why)) > 0) {
		if (take_frame(asking->look, (struct term_input){ .data = payload, .size = size }))
			return true;
		buf_consume(&asking->in, FRAME_HEAD + size);
	}
	return r < 0;
}

/* Reads once. True: it is done. */
static bool hear(struct asking *asking)
{
	uint8_t *at = buf_reserve(&asking->in, READ_SIZE);
	ssize_t n = at ? read(asking->fd, at, READ_SIZE) : 0;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n <= 0) {
		asking->look->state = LOOK_GONE;
		return true;
	}
	buf_grew(&asking->in, (size_t)n);
	return take_frames(asking);
}

/* ---- all of them ---------------------------------------------------------------------------- */

/* A fresh stream takes so little at once; the monitor reads it after it said `ready`. */
static bool send_question(int fd)
{
	_cleanup_buf_ struct buf out;
	struct emit emit;

	buf_init(&out, READ_SIZE);
	emit = emit_begin(&out);
	emit_tuple(&emit, 4);
	emit_atom(&emit, "call");
	emit_int(&emit, REF);
	emit_atom(&emit, "stats");
	emit_map(&emit, 0);
	return emit_end(&emit) == 0 &&
	       send(fd, buf_at(&out), buf_size(&out), MSG_NOSIGNAL) == (ssize_t)buf_size(&out);
}

static pid_t peer_of(int fd)
{
	struct ucred peer;
	socklen_t size = sizeof peer;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
		return 0;
	return peer.uid == geteuid() ? peer.pid : 0;
}

/* -EMFILE: later. */
static int begin(struct round *round, struct look *look)
{
	_cleanup_fd_ int fd = place_connect_now(round->place_fd, look->name);
	struct asking *asking = &round->asking[round->running];

	if (fd == -EMFILE)
		return fd;
	if (fd == -ENOENT)
		look->state = LOOK_GONE;
	if (fd < 0)
		return 0;
	look->pid = peer_of(fd);
	if (!look->pid || look->is_skipped || !send_question(fd))
		return 0;
	round->fds[round->running] = (struct pollfd){ .fd = fd, .events = POLLIN };
	*asking = (struct asking){ .look = look, .fd = fd_take(&fd) };
	buf_init(&asking->in, IN_MAX);
	round->running++;
	return 0;
}

static void begin_more(struct round *round)
{
	while (round->next < round->count && round->running < round->most) {
		if (begin(round, &round->looks[round->next]) < 0) {
			round->most = round->running; /* so many descriptors there are */
			return;
		}
		round->next++;
	}
}

/* The last one takes its place. */
static void end(struct round *round, size_t i)
{
	fd_close(round->asking[i].fd);
	buf_done(&round->asking[i].in);
	round->running--;
	round->asking[i] = round->asking[round->running];
	round->fds[i] = round->fds[round->running];
}

/* True: somebody said his first or his last word. So who trickles holds up nobody. */
static bool hear_all(struct round *round)
{
	bool is_news = false;

	for (size_t i = round->running; i-- > 0;) {
		if (!round->fds[i].revents)
			continue;
		is_news |= !round->asking[i].is_heard;
		round->asking[i].is_heard = true;
		if (!hear(&round->asking[i]))
			continue;
		is_news = true;
		end(round, i);
	}
	return is_news;
}

static void ask(struct round *round, uint64_t patience_ms)
{
	uint64_t until_ms = clock_now_ms() + patience_ms, now_ms;

	begin_more(round);
	while (round->running > 0 && (now_ms = clock_now_ms()) < until_ms) {
		poll(round->fds, round->running, (int)(until_ms - now_ms));
		if (!hear_all(round))
			continue;
		until_ms = clock_now_ms() + patience_ms;
		begin_more(round);
	}
	while (round->running > 0)
		end(round, round->running - 1);
}

static size_t most_streams(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) < 0 || files.rlim_cur <= 2 * SPARE_FDS)
		return SPARE_FDS;
	return files.rlim_cur - SPARE_FDS < AT_ONCE ? files.rlim_cur - SPARE_FDS : AT_ONCE;
}

int look_all(int place_fd, struct look *looks, size_t count, uint64_t patience_ms)
{
	struct round round = {
		.place_fd = place_fd, .looks = looks, .count = count, .most = most_streams()
	};

	round.asking = calloc(round.most, sizeof *round.asking);
	round.fds = calloc(round.most, sizeof *round.fds);
	if (round.asking && round.fds)
		ask(&round, patience_ms);
	else
		count = SIZE_MAX;
	free(round.asking);
	free(round.fds);
	return count == SIZE_MAX ? -ENOMEM : 0;
}
