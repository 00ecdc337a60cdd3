/*
 * caisson-gate, as commands execute it; see gate_client.h. It runs with a command's rights, behind
 * a command's filter: what it cannot do, the command could not.
 */
#include "agent/gate_client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/fd.h"
#include "base/str.h"
#include "wire/emit.h"
#include "wire/frame.h"

enum {
	TRIES = 500,
	PAUSE_MS = 20,
	STATUS_FAILED = 1,
	STATUS_NOT_ASKED = 2,
	OUT_MAX = FRAME_GATE_CALL_BYTES + 1024
};

static const char program[] = "caisson-gate";

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

bool gate_client_is_meant(void)
{
	/* NOLINTNEXTLINE(performance-no-int-to-ptr): the kernel's word is a number */
	const char *path = (const char *)getauxval(AT_EXECFN);

	return path && (strstr(path, "/.caisson/bin/") || str_is(last_part(path), program));
}

static int complain(const char *name, const char *what)
{
	fprintf(stderr, "%s: %s%s%s\n", program, name, *name ? ": " : "", what);
	return STATUS_NOT_ASKED;
}

/* Arguments for the call: `text`, or all of standard input. */
static int take_arguments(const char *text, char *ret_text, size_t size, size_t *ret_size)
{
	ssize_t n;

	if (!str_is(text, "-")) {
		*ret_size = strlen(text);
		if (*ret_size > size)
			return -E2BIG;
		memcpy(ret_text, text, *ret_size);
		return 0;
	}
	n = fd_read_all(STDIN_FILENO, ret_text, size);
	if (n < 0)
		return (int)n;
	*ret_size = (size_t)n;
	return 0;
}

/* Where many knock at once the kernel says "later", to whoever judges the address in our place. */
static int connect_patiently(int fd, const struct sockaddr_un *address)
{
	int r;

	for (int i = 0; i < TRIES; i++) {
		r = connect(fd, (const struct sockaddr *)address, sizeof *address);
		if (r == 0 || errno != EAGAIN)
			break;
		nanosleep(&(struct timespec){ .tv_nsec = PAUSE_MS * 1000000L }, NULL);
	}
	return r < 0 ? -errno : 0;
}

static int connect_to(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	_cleanup_fd_ int fd = -1;
	int r;

	if (!path)
		return -ENOENT;
	if (strlen(path) >= sizeof address.sun_path)
		return -ENAMETOOLONG;
	memcpy(address.sun_path, path, strlen(path));
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	r = connect_patiently(fd, &address);
	return r < 0 ? r : fd_take(&fd);
}

static int send_call(int fd, const char *name, const char *args, size_t size)
{
	_cleanup_buf_ struct buf out;
	struct emit emit;
	int r;

	buf_init(&out, OUT_MAX);
	emit = emit_begin(&out);
	emit_tuple(&emit, 4);
	emit_atom(&emit, "gate_call");
	emit_int(&emit, 0);
	emit_text(&emit, name);
	emit_binary(&emit, args, size);
	r = emit_end(&emit);
	return r < 0 ? r : fd_write_all(fd, buf_at(&out), buf_size(&out));
}

/* Until the whole answer is there. */
static int receive(int fd, struct buf *in, const uint8_t **ret_payload, size_t *ret_size)
{
	size_t most = FRAME_GATE_RESULT_BYTES + 512;
	int r;

	while ((r = frame_peek(in, most, ret_payload, ret_size, NULL)) == 0) {
		uint8_t *at = buf_reserve(in, 4096);
		ssize_t n = at ? read(fd, at, 4096) : -1;

		if (n < 0 && at && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 && at ? -errno : -EPIPE;
		buf_grew(in, (size_t)n);
	}
	return r < 0 ? r : 0;
}

static int tell(const char *name, const struct term *map)
{
	const struct term *result = term_get(map, "result");
	bool is_error = term_is_atom(term_get(map, "is_error"), "true");
	int fd = is_error ? STDERR_FILENO : STDOUT_FILENO;

	if (is_error)
		fprintf(stderr, "%s: %s: ", program, name);
	if (fd_write_all(fd, result->bytes.data, result->bytes.size) < 0)
		return complain(name, "cannot write its answer");
	if (is_error)
		fprintf(stderr, "\n");
	return is_error ? STATUS_FAILED : 0;
}

static int ask(int fd, const char *name, const char *args, size_t size)
{
	_cleanup_arena_ struct arena arena;
	_cleanup_buf_ struct buf in;
	const uint8_t *payload;
	struct term frame;
	size_t length;
	int r;

	arena_init(&arena, 8 << 20);
	buf_init(&in, FRAME_GATE_RESULT_BYTES + 8192);
	r = send_call(fd, name, args, size);
	if (r >= 0)
		r = receive(fd, &in, &payload, &length);
	if (r < 0)
		return complain(name, "the sandbox hung up: it is ending, or asked too much of");
	r = frame_decode(&arena, (struct term_input){ payload, length }, FROM_MONITOR, &frame,
			 NULL);
	if (r != FRAME_GATE_RESULT)
		return complain(name, "the answer is none");
	return tell(name, &frame.items[2]);
}

int gate_client_main(int argc, char **argv)
{
	const char *own = argc > 0 ? last_part(argv[0]) : program;
	bool is_link = !str_is(own, program);
	const char *name = is_link ? own : argc > 1 ? argv[1] : "";
	int rest = is_link ? 1 : 2;
	_cleanup_fd_ int fd = -1;
	char *args;
	size_t size = 0;
	int r;

	if (argc > rest + 1 || !*name || *name == '-')
		return complain("", "usage: caisson-gate NAME [JSON | -]; what it may be is in the "
				    "policy's gates, and a link for each beside this program");
	args = malloc(FRAME_GATE_CALL_BYTES);
	r = args ? take_arguments(argc > rest ? argv[rest] : "{}", args, FRAME_GATE_CALL_BYTES,
				  &size)
		 : -ENOMEM;
	if (r < 0)
		return complain(name, r == -E2BIG ? "the arguments are longer than 64 KiB"
						  : "cannot read the arguments");
	fd = connect_to(getenv("CAISSON_GATES"));
	if (fd < 0)
		return complain(name, "this sandbox has no gates, or their socket was removed");
	return ask(fd, name, args, size);
}
