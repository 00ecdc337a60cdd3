/*
 * Connections that go on to the host; see forwards.h. A descriptor with nothing to wait for is not
 * watched at all: the kernel reports the other side's end whether one asks for it or not.
 */
#include "agent/forwards.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "wire/frame.h"

enum { DOORS = 16, LINKS = FRAME_FORWARD_LINKS, WAITING = 128, PLACE_SIZE = 108 };

struct door {
	int fd;
	bool is_watched;
};

/* One connection. It is over when both directions are, or the monitor says so. */
struct link {
	int fd; /* -1: the program left, and the monitor has to hear of it yet */
	unsigned slot;
	int64_t ref;
	uint32_t events; /* what it is watched for */
	size_t window;   /* bytes that may go to the monitor */
	size_t room;     /* bytes that may come */
	struct buf out;  /* for the program */
	bool is_read;    /* to its end, and the monitor was told */
	bool is_ended;   /* nothing follows what is in `out` */
	bool is_shut;    /* and the program was told */
	bool is_over;    /* the monitor forgot it: goes when `out` is delivered */
};

struct forwards {
	struct door doors[DOORS];
	size_t count;
	int64_t last_ref;
	struct link *links[LINKS];
};

/* ---- listeners ------------------------------------------------------------------------------- */

/* The folders above are made: nothing has run yet, and what they are in is scratch. */
static int make_folders(char *path)
{
	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		int r;

		*slash = 0;
		r = mkdir(path, 0755) < 0 && errno != EEXIST ? -errno : 0;
		*slash = '/';
		if (r < 0)
			return r;
	}
	return 0;
}

static int bind_path(const char *place, int *ret_fd)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	_cleanup_fd_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int r;

	snprintf(address.sun_path, sizeof address.sun_path, "%s", place);
	r = fd < 0 ? -errno : make_folders(address.sun_path);
	if (r >= 0 && bind(fd, (struct sockaddr *)&address, sizeof address) < 0)
		r = -errno;
	if (r >= 0)
		*ret_fd = fd_take(&fd);
	return r;
}

static int bind_port(uint16_t port, int *ret_fd)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(port) };
	_cleanup_fd_ int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) < 0)
		return -errno;
	*ret_fd = fd_take(&fd);
	return 0;
}

static int listen_at(const char *place, int *ret_fd)
{
	_cleanup_fd_ int fd = -1;
	uint64_t port;
	int r;

	if (place[0] == '/')
		r = bind_path(place, &fd);
	else if (str_parse_u64(place, UINT16_MAX, &port) == 0 && port > 0)
		r = bind_port((uint16_t)port, &fd);
	else
		return -EINVAL;
	if (r >= 0 && listen(fd, WAITING) < 0)
		r = -errno;
	if (r >= 0)
		*ret_fd = fd_take(&fd);
	return r;
}

static void watch_doors(struct agent *agent, bool is_open)
{
	struct forwards *forwards = agent->forwards;

	for (unsigned i = 0; i < forwards->count; i++) {
		struct door *door = &forwards->doors[i];

		if (is_open && !door->is_watched)
			agent_watch(agent, door->fd, EPOLLIN,
				    (struct agent_source){ SOURCE_FORWARD_DOOR, i });
		else if (!is_open && door->is_watched)
			agent_unwatch(agent, door->fd);
		door->is_watched = is_open;
	}
}

static int open_doors(struct forwards *forwards, const struct term *places,
		      char ret_error[FORWARDS_ERROR])
{
	char place[PLACE_SIZE] = "";
	int r = places->count <= DOORS ? 0 : -E2BIG;

	for (; r >= 0 && forwards->count < places->count; forwards->count += r >= 0) {
		const struct term *text = &places->items[forwards->count];

		if (text->bytes.size >= sizeof place) {
			r = -ENAMETOOLONG;
			break;
		}
		snprintf(place, sizeof place, "%.*s", (int)text->bytes.size,
			 (const char *)text->bytes.data);
		r = listen_at(place, &forwards->doors[forwards->count].fd);
	}
	if (r < 0)
		snprintf(ret_error, FORWARDS_ERROR, "%s: %s", place, strerror(-r));
	return r;
}

void forwards_open(struct agent *agent, const struct term *places, char ret_error[FORWARDS_ERROR])
{
	agent->forwards = calloc(1, sizeof *agent->forwards);
	if (!agent->forwards)
		snprintf(ret_error, FORWARDS_ERROR, "out of memory");
	else if (open_doors(agent->forwards, places, ret_error) < 0)
		forwards_done(agent);
	else
		watch_doors(agent, true);
}

/* ---- connections ----------------------------------------------------------------------------- */

static void say(struct agent *agent, const char *name, int64_t ref)
{
	struct emit emit = agent_frame(agent);

	emit_tuple(&emit, 2);
	emit_atom(&emit, name);
	emit_int(&emit, ref);
	agent_send(agent, &emit);
}

static void say_number(struct agent *agent, const char *name, int64_t ref, int64_t number)
{
	struct emit emit = agent_frame(agent);

	emit_tuple(&emit, 3);
	emit_atom(&emit, name);
	emit_int(&emit, ref);
	emit_int(&emit, number);
	agent_send(agent, &emit);
}

static void hang_up(struct agent *agent, struct link *link)
{
	if (link->fd < 0)
		return;
	agent_unwatch(agent, link->fd);
	/* A keeper that was just forked may hold it open yet: the program hears of the end now. */
	shutdown(link->fd, SHUT_RDWR);
	link->fd = fd_close(link->fd);
	buf_done(&link->out);
}

static void link_free(struct agent *agent, struct link *link)
{
	agent->forwards->links[link->slot] = NULL;
	hang_up(agent, link);
	free(link);
	watch_doors(agent, true);
}

/* The program left, or nothing can be said to it any more. Its place is free when the monitor has
 * heard of it: else whoever comes and goes quickly would have more there than here. */
static void give_up(struct agent *agent, struct link *link, const char *reason)
{
	struct emit emit;

	if (link->is_over) {
		link_free(agent, link);
		return;
	}
	hang_up(agent, link);
	emit = agent_frame(agent);
	emit_tuple(&emit, 3);
	emit_atom(&emit, "forward_close");
	emit_int(&emit, link->ref);
	emit_atom(&emit, reason);
	agent_send(agent, &emit);
}

static void watch(struct agent *agent, struct link *link)
{
	bool reads = !link->is_read && !link->is_over && link->window > 0;
	uint32_t events = (reads ? EPOLLIN : 0) | (buf_size(&link->out) ? EPOLLOUT : 0);

	if (events == link->events)
		return;
	link->events = events;
	if (events)
		agent_watch(agent, link->fd, events,
			    (struct agent_source){ SOURCE_FORWARD, link->slot });
	else
		agent_unwatch(agent, link->fd);
}

/* One piece. 0, or a negative errno: it is over. */
static int read_link(struct agent *agent, struct link *link)
{
	size_t want = link->window < FRAME_PIECE ? link->window : FRAME_PIECE;
	struct emit emit = agent_frame(agent);
	void *space;
	ssize_t n;
	int error;

	emit_tuple(&emit, 3);
	emit_atom(&emit, "forward_data");
	emit_int(&emit, link->ref);
	space = emit_space(&emit, want);
	if (!space)
		return -ENOMEM;
	n = recv(link->fd, space, want, 0);
	error = n < 0 ? errno : 0;
	if (n <= 0) {
		emit_drop(&emit);
		if (n < 0)
			return error == EAGAIN || error == EINTR ? 0 : -error;
		link->is_read = true;
		say(agent, "forward_end", link->ref);
		return 0;
	}
	emit_space_end(&emit, (size_t)n);
	agent_send(agent, &emit);
	link->window -= (size_t)n;
	return 0;
}

static int write_link(struct agent *agent, struct link *link)
{
	ssize_t n;

	if (buf_size(&link->out) == 0)
		return 0;
	n = send(link->fd, buf_at(&link->out), buf_size(&link->out), MSG_NOSIGNAL);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	buf_consume(&link->out, (size_t)n);
	link->room += (size_t)n;
	if (!link->is_over && !link->is_ended)
		say_number(agent, "forward_window", link->ref, n);
	return 0;
}

/* After anything happened to it; it may be gone afterwards. */
static void settle(struct agent *agent, struct link *link, int r)
{
	bool is_delivered = buf_size(&link->out) == 0;

	if (r >= 0 && is_delivered && link->is_ended && !link->is_shut) {
		link->is_shut = true;
		shutdown(link->fd, SHUT_WR); /* where he left: reading tells */
	}
	if (r < 0)
		give_up(agent, link, "reset");
	else if (link->is_over && is_delivered)
		link_free(agent, link);
	else
		watch(agent, link);
}

void forwards_ready(struct agent *agent, unsigned slot, uint32_t events)
{
	struct link *link = agent->forwards && slot < LINKS ? agent->forwards->links[slot] : NULL;
	bool is_left = events & EPOLLHUP;
	int r;

	if (!link || link->fd < 0)
		return;
	r = write_link(agent, link);
	if (r >= 0 && !link->is_read && !link->is_over && link->window > 0 &&
	    events & (EPOLLIN | EPOLLHUP | EPOLLERR))
		r = read_link(agent, link);
	/* Both ends are closed, and all that he sent was read: nobody is there to answer. */
	if (r >= 0 && is_left && link->is_read && !link->is_over)
		give_up(agent, link, "closed");
	else
		settle(agent, link, r);
}

static struct link *take(struct agent *agent, int fd, unsigned slot)
{
	struct link *link = calloc(1, sizeof *link);

	if (!link)
		return NULL;
	*link = (struct link){ .fd = fd,
			       .slot = slot,
			       .ref = ++agent->forwards->last_ref,
			       .window = FRAME_FORWARD_WINDOW,
			       .room = FRAME_FORWARD_WINDOW };
	buf_init(&link->out, FRAME_FORWARD_WINDOW);
	agent->forwards->links[slot] = link;
	return link;
}

void forwards_knock(struct agent *agent, unsigned n)
{
	struct forwards *forwards = agent->forwards;
	unsigned slot = 0;
	struct link *link;
	int fd;

	if (!forwards || n >= forwards->count)
		return;
	while (slot < LINKS && forwards->links[slot])
		slot++;
	if (slot == LINKS) { /* until one is over */
		watch_doors(agent, false);
		return;
	}
	fd = accept4(forwards->doors[n].fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (fd < 0)
		return;
	link = take(agent, fd, slot);
	if (!link) {
		close(fd);
		return;
	}
	say_number(agent, "forward_open", link->ref, n);
	watch(agent, link);
}

/* ---- what the monitor says ------------------------------------------------------------------- */

static struct link *find(const struct agent *agent, int64_t ref)
{
	for (unsigned i = 0; agent->forwards && i < LINKS; i++) {
		struct link *link = agent->forwards->links[i];

		if (link && link->ref == ref && !link->is_over)
			return link;
	}
	return NULL;
}

int forwards_data(struct agent *agent, int64_t ref, const struct term *bytes)
{
	struct link *link = find(agent, ref);

	if (!link || link->fd < 0)
		return 0;
	if (link->is_ended || bytes->bytes.size > link->room)
		return -EBADMSG;
	link->room -= bytes->bytes.size;
	if (buf_add(&link->out, bytes->bytes.data, bytes->bytes.size) < 0)
		return -ENOMEM;
	settle(agent, link, write_link(agent, link));
	return 0;
}

void forwards_end(struct agent *agent, int64_t ref)
{
	struct link *link = find(agent, ref);

	if (!link || link->fd < 0)
		return;
	link->is_ended = true;
	settle(agent, link, 0);
}

void forwards_window(struct agent *agent, int64_t ref, int64_t bytes)
{
	struct link *link = find(agent, ref);

	if (!link || link->fd < 0)
		return;
	link->window += (size_t)bytes;
	if (link->window > FRAME_FORWARD_WINDOW)
		link->window = FRAME_FORWARD_WINDOW;
	watch(agent, link);
}

void forwards_close(struct agent *agent, int64_t ref, bool is_clean)
{
	struct link *link = find(agent, ref);

	if (!link)
		return;
	link->is_over = true;
	link->is_ended |= is_clean;
	if (!is_clean || link->fd < 0)
		link_free(agent, link);
	else
		settle(agent, link, 0);
}

void forwards_done(struct agent *agent)
{
	struct forwards *forwards = agent->forwards;

	if (!forwards)
		return;
	for (unsigned i = 0; i < LINKS; i++)
		if (forwards->links[i])
			link_free(agent, forwards->links[i]);
	for (size_t i = 0; i < forwards->count; i++)
		fd_close(forwards->doors[i].fd);
	free(forwards);
	agent->forwards = NULL;
}
