/*
 * Two calls to the user's message bus: Hello, which every client says first, and
 * StartTransientUnit of his manager, with a scope that is delegated and holds one process.
 *
 * Messages are laid out by hand, little-endian: each value stands at a multiple of its own size.
 * The call has one shape, so it is a list of steps over a small fixed buffer. Of the answers only
 * the kind is read: an error ends the attempt, everything else is skipped by its length.
 */
#include "os/cgroup_manager.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"

enum { CALL = 1, ANSWER = 2, REFUSAL = 3 }; /* kinds of messages */
enum { HEAD = 16, MESSAGE_MAX = 64 << 10, MESSAGES_MAX = 16, LINE = 256 };
enum { PATH = 1, INTERFACE = 2, MEMBER = 3, DESTINATION = 6, SIGNATURE = 8 }; /* header fields */

/* A message under construction. What does not fit sets `is_full`, and the message is not sent. */
struct message {
	uint8_t bytes[CGROUP_MANAGER_CALL];
	size_t size;
	bool is_full;
};

static void put(struct message *m, const void *data, size_t size)
{
	if (m->is_full || size > sizeof m->bytes - m->size) {
		m->is_full = true;
		return;
	}
	memcpy(m->bytes + m->size, data, size);
	m->size += size;
}

static void align(struct message *m, size_t to)
{
	static const uint8_t zeros[8];

	put(m, zeros, (to - m->size % to) % to);
}

static void put_byte(struct message *m, uint8_t value)
{
	put(m, &value, 1);
}

static void put_u32(struct message *m, uint32_t value)
{
	const uint8_t bytes[] = { (uint8_t)value, (uint8_t)(value >> 8), (uint8_t)(value >> 16),
				  (uint8_t)(value >> 24) };

	align(m, 4);
	put(m, bytes, sizeof bytes);
}

/* Strings and paths; signatures have a length of one byte. */
static void put_text(struct message *m, const char *text)
{
	put_u32(m, (uint32_t)strlen(text));
	put(m, text, strlen(text) + 1);
}

static void put_signature(struct message *m, const char *text)
{
	put_byte(m, (uint8_t)strlen(text));
	put(m, text, strlen(text) + 1);
}

/* A length that is known later: begin notes where it stands, end fills it in. */
static size_t begin(struct message *m)
{
	put_u32(m, 0);
	return m->size;
}

static void end(struct message *m, size_t at, size_t first)
{
	size_t size = m->size - first;

	for (size_t i = 0; i < 4 && !m->is_full; i++)
		m->bytes[at - 4 + i] = (uint8_t)(size >> 8 * i);
}

static void put_field(struct message *m, uint8_t field, const char *type, const char *text)
{
	align(m, 8);
	put_byte(m, field);
	put_signature(m, type);
	if (field == SIGNATURE)
		put_signature(m, text);
	else
		put_text(m, text);
}

struct target {
	const char *destination, *path, *interface, *member, *signature;
};

/* Everything before the body. Returns where the body's length stands. */
static size_t put_head(struct message *m, uint32_t serial, const struct target *target)
{
	size_t body, fields;

	put(m, "l", 1);
	put_byte(m, CALL);
	put_byte(m, 0);
	put_byte(m, 1);
	body = begin(m);
	put_u32(m, serial);
	fields = begin(m);
	put_field(m, PATH, "o", target->path);
	put_field(m, INTERFACE, "s", target->interface);
	put_field(m, MEMBER, "s", target->member);
	put_field(m, DESTINATION, "s", target->destination);
	if (target->signature)
		put_field(m, SIGNATURE, "g", target->signature);
	end(m, fields, fields);
	align(m, 8);
	return body;
}

/* One property: a name, and a value behind its type. */
static void put_name(struct message *m, const char *name, const char *type)
{
	align(m, 8);
	put_text(m, name);
	put_signature(m, type);
}

static void put_properties(struct message *m, pid_t pid)
{
	size_t at = begin(m), first, pids;

	align(m, 8);
	first = m->size;
	put_name(m, "Description", "s");
	put_text(m, "Caisson: one run");
	put_name(m, "CollectMode", "s");
	put_text(m, "inactive-or-failed");
	put_name(m, "Delegate", "b");
	put_u32(m, 1);
	put_name(m, "PIDs", "au");
	pids = begin(m);
	put_u32(m, (uint32_t)pid);
	end(m, pids, pids);
	end(m, at, first);
}

static const struct target hello = { "org.freedesktop.DBus", "/org/freedesktop/DBus",
				     "org.freedesktop.DBus", "Hello", NULL };
static const struct target start = { "org.freedesktop.systemd1", "/org/freedesktop/systemd1",
				     "org.freedesktop.systemd1.Manager", "StartTransientUnit",
				     "ssa(sv)a(sa(sv))" };

static void make_start(struct message *m, const char *unit, pid_t pid)
{
	size_t body = put_head(m, 2, &start), first = m->size;

	put_text(m, unit);
	put_text(m, "fail");
	put_properties(m, pid);
	put_u32(m, 0); /* no further units; their array's first element would stand at 8 */
	align(m, 8);
	end(m, body, first);
}

size_t cgroup_manager_call(const char *unit, pid_t pid, uint8_t ret_call[CGROUP_MANAGER_CALL])
{
	struct message m = { .size = 0 };

	make_start(&m, unit, pid);
	memcpy(ret_call, m.bytes, m.size);
	return m.is_full ? 0 : m.size;
}

/* "unix:path=/run/user/1000/bus,guid=..." of the environment, or where systemd has it. */
int cgroup_manager_find(char ret_path[CGROUP_MANAGER_PATH])
{
	static const char prefix[] = "unix:path=";
	const char *address = getenv("DBUS_SESSION_BUS_ADDRESS");
	struct stat st;
	int n;

	if (geteuid() == 0)
		return -ENOENT;
	if (address && str_starts(address, prefix))
		n = snprintf(ret_path, CGROUP_MANAGER_PATH, "%.*s",
			     (int)strcspn(address + strlen(prefix), ",;"),
			     address + strlen(prefix));
	else
		n = snprintf(ret_path, CGROUP_MANAGER_PATH, "/run/user/%d/bus", (int)geteuid());
	if (n >= CGROUP_MANAGER_PATH || stat(ret_path, &st) < 0 || !S_ISSOCK(st.st_mode) ||
	    st.st_uid != geteuid())
		return -ENOENT;
	return 0;
}

static int dial(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	_cleanup_fd_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	memcpy(address.sun_path, path, strlen(path) + 1);
	if (connect(fd, (struct sockaddr *)&address, sizeof address) < 0)
		return -errno;
	return fd_take(&fd);
}

/* All of it or an error: what is sent here fits any socket's buffer. */
static int send_all(int fd, const void *data, size_t size)
{
	ssize_t n = send(fd, data, size, MSG_NOSIGNAL);

	return n < 0 ? -errno : (size_t)n == size ? 0 : -EAGAIN;
}

static int receive(int fd, void *ret_data, size_t size, uint64_t deadline_ms)
{
	uint8_t *at = ret_data;
	uint64_t now_ms;
	ssize_t n;

	while (size > 0) {
		struct pollfd poller = { .fd = fd, .events = POLLIN };

		now_ms = clock_now_ms();
		if (now_ms >= deadline_ms)
			return -ETIMEDOUT;
		if (poll(&poller, 1, (int)(deadline_ms - now_ms)) <= 0)
			continue;
		n = recv(fd, at, size, 0);
		if (n == 0)
			return -EPROTO;
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return -errno;
		at += n > 0 ? n : 0;
		size -= n > 0 ? (size_t)n : 0;
	}
	return 0;
}

/* The bus knows who we are from the kernel; the number is said because the protocol wants it. */
static int introduce(int fd, uint64_t deadline_ms)
{
	char uid[16], line[LINE], answer[LINE];
	size_t n = 0;
	int r;

	snprintf(uid, sizeof uid, "%u", (unsigned)geteuid());
	n += (size_t)snprintf(line, sizeof line, "%cAUTH EXTERNAL ", 0);
	for (const char *digit = uid; *digit; digit++)
		n += (size_t)snprintf(line + n, sizeof line - n, "%02x", (unsigned)*digit);
	n += (size_t)snprintf(line + n, sizeof line - n, "\r\n");
	r = send_all(fd, line, n);
	for (size_t i = 0; r == 0 && i + 1 < sizeof answer; i++) {
		r = receive(fd, answer + i, 1, deadline_ms);
		answer[i + 1] = 0;
		if (answer[i] == '\n')
			break;
	}
	if (r == 0)
		r = str_starts(answer, "OK ") ? send_all(fd, "BEGIN\r\n", 7) : -EPROTO;
	return r;
}

static uint32_t get_u32(const uint8_t *at)
{
	return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 |
	       (uint32_t)at[3] << 24;
}

/* Reads one message and says its kind. The bus answers in our order of bytes. */
static int skip_message(int fd, uint64_t deadline_ms)
{
	uint8_t head[HEAD], waste[LINE];
	size_t rest, here;
	int r = receive(fd, head, sizeof head, deadline_ms);

	if (r < 0)
		return r;
	if (head[0] != 'l' || get_u32(head + 4) > MESSAGE_MAX || get_u32(head + 12) > MESSAGE_MAX)
		return -EPROTO;
	rest = ((size_t)get_u32(head + 12) + 7) / 8 * 8 + get_u32(head + 4);
	for (; rest > 0 && r == 0; rest -= here) {
		here = rest < sizeof waste ? rest : sizeof waste;
		r = receive(fd, waste, here, deadline_ms);
	}
	return r < 0 ? r : head[1];
}

/* One answer to each of the two calls; signals come between them. */
static int await_answers(int fd, uint64_t deadline_ms)
{
	int answers = 0, kind;

	for (int i = 0; i < MESSAGES_MAX; i++) {
		kind = skip_message(fd, deadline_ms);
		if (kind < 0 || kind == REFUSAL)
			return kind < 0 ? kind : -EPROTO;
		if (kind == ANSWER && ++answers == 2)
			return 0;
	}
	return -EPROTO;
}

int cgroup_manager_scope(const char *path, pid_t pid, uint64_t deadline_ms)
{
	struct message first = { .size = 0 }, second = { .size = 0 };
	_cleanup_fd_ int fd = dial(path);
	char unit[64];
	int r;

	if (fd < 0)
		return fd;
	put_head(&first, 1, &hello);
	snprintf(unit, sizeof unit, "caisson-%d-%llx.scope", (int)pid,
		 (unsigned long long)clock_now_us());
	make_start(&second, unit, pid);
	if (first.is_full || second.is_full)
		return -E2BIG;
	r = introduce(fd, deadline_ms);
	if (r == 0)
		r = send_all(fd, first.bytes, first.size);
	if (r == 0)
		r = send_all(fd, second.bytes, second.size);
	return r == 0 ? await_answers(fd, deadline_ms) : r;
}

/* The answer names a job; the process has moved when the job is done. */
int cgroup_ask_manager(struct cgroup_probe *probe)
{
	uint64_t deadline_ms = clock_now_ms() + 1000;
	char path[CGROUP_MANAGER_PATH];
	struct cgroup_probe again;
	int r;

	if (!probe->manager_may_help || cgroup_manager_find(path) < 0)
		return -ENOTSUP;
	r = cgroup_manager_scope(path, getpid(), deadline_ms);
	while (r == 0) {
		cgroup_probe_scope(&again);
		if (again.base[0][0]) {
			*probe = again;
			return 0;
		}
		if (clock_now_ms() >= deadline_ms)
			return -ETIMEDOUT;
		usleep(500);
	}
	return r;
}
