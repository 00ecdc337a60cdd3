/* Calls of gates by commands: a socket, and what was asked for; see gates.h. */
#include "agent/gates.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/fd.h"
#include "wire/frame.h"

enum {
	PEERS = 32,
	WAITING = 128,                                     /* that knock */
	IN_MAX = FRAME_HEAD + FRAME_GATE_CALL_BYTES + 512, /* one call, and no more */
	OUT_MAX = FRAME_HEAD + FRAME_GATE_RESULT_BYTES + 512,
	COPY_SIZE = 64 << 10,
	NAME_SIZE = 256,
};

struct peer {
	int fd;
	unsigned slot;
	uint64_t order;   /* of its connection: the lowest came first */
	int64_t ref;      /* towards the monitor, of what it asked for; 0: nothing */
	int64_t peer_ref; /* as it knows that */
	struct buf in, out;
};

struct gates {
	int door;
	bool is_door_watched;
	int64_t last_ref;
	uint64_t last_order;
	struct peer *peers[PEERS];
};

/* ---- the folder ------------------------------------------------------------------------------ */

static int copy_self(int folder)
{
	_cleanup_fd_ int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	_cleanup_fd_ int to = -1;
	char *data = NULL;
	ssize_t n = 0;
	int r = 0;

	if (from < 0)
		return -errno;
	to = openat(folder, "caisson-gate", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
	if (to < 0)
		return -errno;
	data = malloc(COPY_SIZE);
	while (data && r >= 0 && (n = read(from, data, COPY_SIZE)) > 0)
		r = fd_write_all(to, data, (size_t)n);
	if (!data)
		r = -ENOMEM;
	else if (n < 0)
		r = -errno;
	free(data);
	return r;
}

static int make_bin(int folder, const struct term *names)
{
	_cleanup_fd_ int bin = -1;
	char name[NAME_SIZE];
	int r;

	if (mkdirat(folder, "bin", 0755) < 0)
		return -errno;
	bin = openat(folder, "bin", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (bin < 0)
		return -errno;
	r = copy_self(bin);
	for (size_t i = 0; r >= 0 && i < names->count; i++) {
		const struct term *text = &names->items[i];

		if (text->bytes.size >= sizeof name)
			return -ENAMETOOLONG;
		snprintf(name, sizeof name, "%.*s", (int)text->bytes.size,
			 (const char *)text->bytes.data);
		/* Of a name that is a path the kernel makes none. */
		r = symlinkat("caisson-gate", bin, name) < 0 ? -errno : 0;
	}
	return r;
}

static int listen_at(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	_cleanup_fd_ int fd = -1;
	int n = snprintf(address.sun_path, sizeof address.sun_path, "%s/gates", path);

	if (n < 0 || (size_t)n >= sizeof address.sun_path)
		return -ENAMETOOLONG;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) < 0 ||
	    listen(fd, WAITING) < 0)
		return -errno;
	return fd_take(&fd);
}

static int make_folder(const char *path, const struct term *names)
{
	_cleanup_fd_ int folder = -1;

	if (mkdir(path, 0755) < 0)
		return -errno;
	folder = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return folder < 0 ? -errno : make_bin(folder, names);
}

static void watch_door(struct agent *agent, bool is_open)
{
	struct gates *gates = agent->gates;

	if (is_open && !gates->is_door_watched)
		agent_watch(agent, gates->door, EPOLLIN,
			    (struct agent_source){ SOURCE_GATE_DOOR, 0 });
	else if (!is_open && gates->is_door_watched)
		agent_unwatch(agent, gates->door);
	gates->is_door_watched = is_open;
}

int gates_open(struct agent *agent, const struct term *names, const struct term *at)
{
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
	struct gates *gates;
	int r, door;

	if (at->bytes.size >= sizeof path)
		return -ENAMETOOLONG;
	snprintf(path, sizeof path, "%.*s", (int)at->bytes.size, (const char *)at->bytes.data);
	r = make_folder(path, names);
	if (r < 0)
		return r;
	door = listen_at(path);
	if (door < 0)
		return door;
	gates = calloc(1, sizeof *gates);
	if (!gates) {
		close(door);
		return -ENOMEM;
	}
	gates->door = door;
	agent->gates = gates;
	watch_door(agent, true);
	return 0;
}

/* ---- connections ----------------------------------------------------------------------------- */

static void peer_free(struct agent *agent, struct peer *peer)
{
	agent->gates->peers[peer->slot] = NULL;
	/* A keeper that was just forked may hold it open yet, and the watch with it: what is told
	 * of the old one would be taken for the slot's next. */
	agent_unwatch(agent, peer->fd);
	fd_close(peer->fd);
	buf_done(&peer->in);
	buf_done(&peer->out);
	free(peer);
	watch_door(agent, true);
}

static struct peer *oldest_silent(const struct gates *gates)
{
	struct peer *oldest = NULL;

	for (unsigned i = 0; i < PEERS; i++) {
		struct peer *peer = gates->peers[i];

		if (peer && !peer->ref && (!oldest || peer->order < oldest->order))
			oldest = peer;
	}
	return oldest;
}

/* A free slot, PEERS: none. */
static unsigned find_slot(struct agent *agent)
{
	struct gates *gates = agent->gates;
	struct peer *oldest;
	unsigned slot = 0;

	while (slot < PEERS && gates->peers[slot])
		slot++;
	if (slot < PEERS)
		return slot;
	oldest = oldest_silent(gates);
	if (!oldest)
		return PEERS;
	slot = oldest->slot;
	peer_free(agent, oldest);
	return slot;
}

static void watch(struct agent *agent, const struct peer *peer)
{
	/* While its call is under way it is not read: only its end is news then. */
	uint32_t events = peer->ref ? 0 : buf_size(&peer->out) ? EPOLLOUT : EPOLLIN;

	agent_watch(agent, peer->fd, events, (struct agent_source){ SOURCE_GATE, peer->slot });
}

static bool take_peer(struct agent *agent, int fd, unsigned slot)
{
	struct peer *peer = calloc(1, sizeof *peer);

	if (!peer)
		return false;
	*peer = (struct peer){ .fd = fd, .slot = slot, .order = ++agent->gates->last_order };
	buf_init(&peer->in, IN_MAX);
	buf_init(&peer->out, OUT_MAX);
	agent->gates->peers[slot] = peer;
	watch(agent, peer);
	return true;
}

/* One at a time: whoever else knocks is told of at once. */
void gates_knock(struct agent *agent)
{
	unsigned slot = find_slot(agent);
	int fd;

	if (slot == PEERS) { /* all wait for an answer: until one has it */
		watch_door(agent, false);
		return;
	}
	fd = accept4(agent->gates->door, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (fd >= 0 && !take_peer(agent, fd, slot))
		close(fd);
}

/* ---- calls ----------------------------------------------------------------------------------- */

static void ask(struct agent *agent, struct peer *peer, const struct term *items)
{
	struct emit emit = agent_frame(agent);

	peer->ref = ++agent->gates->last_ref;
	peer->peer_ref = items[1].integer;
	emit_tuple(&emit, 4);
	emit_atom(&emit, "gate_call");
	emit_int(&emit, peer->ref);
	emit_term(&emit, &items[2]);
	emit_term(&emit, &items[3]);
	agent_send(agent, &emit);
}

/* 1: a call was taken; 0: more has to come; -EBADMSG. */
static int take_call(struct agent *agent, struct peer *peer)
{
	_cleanup_arena_ struct arena arena;
	const uint8_t *payload;
	struct term frame;
	size_t size;
	int r;

	arena_init(&arena, 4 * IN_MAX);
	r = frame_peek(&peer->in, IN_MAX - FRAME_HEAD, &payload, &size, NULL);
	if (r <= 0)
		return r;
	r = frame_decode(&arena, (struct term_input){ payload, size }, FROM_AGENT, &frame, NULL);
	if (r != FRAME_GATE_CALL)
		return -EBADMSG;
	ask(agent, peer, frame.items);
	buf_consume(&peer->in, FRAME_HEAD + size);
	return 1;
}

/* Reads once. 0, or a negative errno: it is over. */
static int read_peer(struct peer *peer)
{
	size_t room = buf_room(&peer->in);
	uint8_t *at = room ? buf_reserve(&peer->in, room < 4096 ? room : 4096) : NULL;
	ssize_t n;

	if (!at)
		return -EMSGSIZE;
	n = read(peer->fd, at, room < 4096 ? room : 4096);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	if (n == 0)
		return -EPIPE;
	buf_grew(&peer->in, (size_t)n);
	return 0;
}

static int write_peer(struct peer *peer)
{
	ssize_t n = send(peer->fd, buf_at(&peer->out), buf_size(&peer->out), MSG_NOSIGNAL);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	buf_consume(&peer->out, (size_t)n);
	return 0;
}

void gates_ready(struct agent *agent, unsigned slot, uint32_t events)
{
	struct peer *peer = agent->gates && slot < PEERS ? agent->gates->peers[slot] : NULL;
	int r = 0;

	if (!peer)
		return;
	if (peer->ref) /* it asked for no events: both ends are closed */
		r = -EPIPE;
	else if (buf_size(&peer->out) > 0)
		r = write_peer(peer);
	else if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
		r = read_peer(peer);
	if (r >= 0 && buf_size(&peer->out) == 0)
		r = take_call(agent, peer);
	if (r < 0)
		peer_free(agent, peer);
	else
		watch(agent, peer);
}

static struct peer *asker_of(const struct gates *gates, int64_t ref)
{
	for (unsigned i = 0; gates && i < PEERS; i++)
		if (gates->peers[i] && gates->peers[i]->ref == ref)
			return gates->peers[i];
	return NULL;
}

void gates_answer(struct agent *agent, const struct term *items)
{
	struct peer *peer = items[1].integer ? asker_of(agent->gates, items[1].integer) : NULL;
	struct emit emit;

	if (!peer)
		return;
	emit = emit_begin(&peer->out);
	emit_tuple(&emit, 3);
	emit_atom(&emit, "gate_result");
	emit_int(&emit, peer->peer_ref);
	emit_term(&emit, &items[2]);
	peer->ref = 0;
	if (emit_end(&emit) < 0)
		peer_free(agent, peer);
	else
		gates_ready(agent, peer->slot, 0);
	watch_door(agent, true);
}

void gates_done(struct agent *agent)
{
	struct gates *gates = agent->gates;

	if (!gates)
		return;
	for (unsigned i = 0; i < PEERS; i++)
		if (gates->peers[i])
			peer_free(agent, gates->peers[i]);
	fd_close(gates->door);
	free(gates);
	agent->gates = NULL;
}
