/*
 * caisson port: a sandbox on standard input and output
 *
 *   Erlang, or anybody ── pipe ──▶ caisson port ── frames ── agent
 *                      ◀── pipe ──   = its monitor
 *
 * One process is one sandbox: {open, …} makes it the monitor, so that a call takes no step more
 * than one of libcaisson. Who is at the other end may be broken, or may be a program that only
 * relays: each frame is bounded before it is collected, checked before it is believed, and nobody
 * is waited for without a clock, but for the first byte of an {open, …}.
 */
#include "cli/port.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/errno_name.h"
#include "base/fd.h"
#include "base/pool.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/up.h"
#include "cli/walls.h"
#include "wire/emit.h"
#include "wire/frame.h"

enum {
	FRAME_MS = 5000, /* for the rest of a frame, and for what we say to be read */
	OPEN_QUOTA = 64 << 20,
	SAY_MAX = (4 << 20) + 2 * (FRAME_HEAD + FRAME_MAX), /* after what port_join() holds */
	WORDS_MAX = 1024,
};

/* ---- streams --------------------------------------------------------------------------------- */

/*
 * Others may hold the same open file: a shell its terminal, a parent our end of the pipe. It is
 * opened once more, since O_NONBLOCK is the file's and not the descriptor's. A socket cannot be,
 * nor a pipe that another user made: that is given back as it was.
 */
static int take_stream(int fd, int flags, bool *ret_is_shared)
{
	char path[32];
	struct stat st;
	int again = -1;

	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	if (fstat(fd, &st) == 0 && (S_ISFIFO(st.st_mode) || S_ISCHR(st.st_mode)))
		again = open(path, flags | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	if (again >= 0)
		return again;
	*ret_is_shared = !(fcntl(fd, F_GETFL) & O_NONBLOCK);
	again = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	return again < 0 || fd_set_nonblock(again, 1) < 0 ? -errno : again;
}

static int take_streams(struct port *port, struct csn_error *err)
{
	_cleanup_fd_ int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	/* An interrupt at a terminal is for who holds the other ends. */
	if (!isatty(STDIN_FILENO))
		setpgid(0, 0);
	buf_init(&port->say, SAY_MAX);
	port->in = take_stream(STDIN_FILENO, O_RDONLY, &port->is_in_shared);
	port->out = take_stream(STDOUT_FILENO, O_WRONLY, &port->is_out_shared);
	if (port->in < 0 || port->out < 0 || null < 0 || dup2(null, STDIN_FILENO) < 0 ||
	    dup2(null, STDOUT_FILENO) < 0)
		return csn_fail(err, -EBADF, "port",
				"standard input and output must be pipes or a socket: %m");
	return 0;
}

static void give_streams_back(struct port *port)
{
	if (port->is_in_shared)
		fd_set_nonblock(port->in, 0);
	if (port->is_out_shared)
		fd_set_nonblock(port->out, 0);
	fd_close(port->in);
	fd_close(port->out);
	buf_done(&port->say);
}

static int wait_for(int fd, short events, uint64_t end_ms)
{
	struct pollfd ready = { fd, events, 0 };
	uint64_t now_ms = clock_now_ms();
	int wait_ms = end_ms == CLOCK_NEVER ? -1 : now_ms < end_ms ? (int)(end_ms - now_ms) : 0;
	int r = poll(&ready, 1, wait_ms);

	if (r < 0)
		return errno == EINTR ? 0 : -errno;
	return r == 0 ? -ETIMEDOUT : 0;
}

int port_flush(struct port *port)
{
	uint64_t end_ms = clock_now_ms() + FRAME_MS;
	int r = 0;

	while (r == 0 && buf_size(&port->say) > 0) {
		ssize_t n = write(port->out, buf_at(&port->say), buf_size(&port->say));

		if (n > 0)
			buf_consume(&port->say, (size_t)n);
		else if (errno == EAGAIN || errno == EINTR)
			r = wait_for(port->out, POLLOUT, end_ms);
		else
			r = -errno;
	}
	return r;
}

/* ---- what is said ---------------------------------------------------------------------------- */

struct emit port_reply(struct port *port, int64_t ref)
{
	struct emit emit = emit_begin(&port->say);

	emit_tuple(&emit, 3);
	emit_atom(&emit, "reply");
	emit_int(&emit, ref);
	return emit;
}

int port_fail(struct port *port, int64_t ref, const char *reason, const struct csn_error *err)
{
	char text[sizeof err->stage + sizeof err->text + 2];
	struct emit emit = emit_begin(&port->say);

	snprintf(text, sizeof text, "%s: %s", err->stage, err->text);
	emit_failed(&emit, ref, reason, text);
	return emit_end(&emit) < 0 ? -ENOMEM : port_flush(port);
}

/* ---- what is asked --------------------------------------------------------------------------- */

/* Exactly `size` bytes: what follows them stays in the stream, for the monitor. 0; -EPIPE at the
 * end of the stream; -ETIMEDOUT. */
static int collect(int fd, struct buf *in, size_t size, uint64_t end_ms)
{
	int r = 0;

	while (r == 0 && size > 0) {
		uint8_t *at = buf_reserve(in, size);
		ssize_t n = at ? read(fd, at, size) : 0;

		if (!at)
			return -ENOMEM;
		if (n == 0)
			return -EPIPE;
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return -errno;
		if (n < 0) {
			r = wait_for(fd, POLLIN, end_ms);
			continue;
		}
		buf_grew(in, (size_t)n);
		size -= (size_t)n;
	}
	return r;
}

/* 1: a frame's bytes; 0: nothing more is asked; negative with a sentence. */
static int collect_frame(int fd, struct buf *in, struct term_input *ret_payload,
			 struct csn_error *err)
{
	const size_t max = frame_messages[FRAME_OPEN].max_bytes;
	const uint8_t *at;
	size_t size = 0;
	int r = collect(fd, in, 1, CLOCK_NEVER);
	uint64_t end_ms = clock_now_ms() + FRAME_MS;

	if (r == -EPIPE)
		return 0;
	if (r == 0)
		r = collect(fd, in, FRAME_HEAD - 1, end_ms);
	if (r == 0 && frame_peek(in, max, &at, &size, err) < 0)
		return -EMSGSIZE;
	at = buf_at(in);
	if (r == 0)
		r = collect(fd, in, (size_t)at[0] << 24 | at[1] << 16 | at[2] << 8 | at[3], end_ms);
	if (r == -EPIPE || r == -ETIMEDOUT)
		return csn_fail(err, r, "wire", "a frame was begun and not finished%s",
				r == -EPIPE ? "" : " within 5 s");
	if (r < 0)
		return csn_fail(err, r, "wire", "cannot read: %s", strerror(-r));
	frame_peek(in, max, &at, &size, err);
	*ret_payload = (struct term_input){ at, size };
	return 1;
}

struct open_request {
	int64_t ref;
	struct term map;
};

/* As collect_frame(); only an {open, Ref, Map} is in turn. */
static int hear_open(struct port *port, struct buf *in, struct arena *arena,
		     struct open_request *ret_request, struct csn_error *err)
{
	struct term_input payload;
	struct term frame;
	int r = collect_frame(port->in, in, &payload, err);

	if (r <= 0)
		return r;
	r = frame_decode(arena, payload, FROM_PORT_CLIENT, &frame, err);
	if (r < 0)
		return r;
	if (r != FRAME_OPEN)
		return csn_fail(err, -EBADMSG, "wire",
				"%s came before {open, Ref, Map}: no sandbox is open",
				frame_messages[r].shape);
	*ret_request = (struct open_request){ frame.items[1].integer, frame.items[2] };
	return 1;
}

/* ---- a request as flags ---------------------------------------------------------------------- */

static const struct {
	const char *key, *flag;
} flags[] = {
	{ "policy", "policy" },   { "tier", "tier" },
	{ "backend", "backend" }, { "workspace", "workspace" },
	{ "at", "at" },           { "network", "network" },
	{ "allow", "allow" },     { "mounts", "mount" },
	{ "limits", "limit" },    { "env", "env" },
	{ "tags", "tag" },        { "run_dir", "run-dir" },
	{ "gates", "gate" },
};

struct words {
	struct arena *arena;
	char *at[WORDS_MAX + 1];
	size_t count;
};

static void add(struct words *words, const char *flag, const struct term *text)
{
	char *word = arena_printf(words->arena, "--%s=%s", flag, (const char *)text->bytes.data);

	if (words->count < WORDS_MAX)
		words->at[words->count] = word;
	words->count++;
}

static void add_all(struct words *words, const struct term *map)
{
	static char no_record[] = "--no-record";
	const struct term *record = term_get(map, "record");

	for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
		const struct term *value = term_get(map, flags[i].key);

		if (value && value->type == TERM_BINARY)
			add(words, flags[i].flag, value);
		for (size_t n = 0; value && value->type == TERM_LIST && n < value->count; n++)
			add(words, flags[i].flag, &value->items[n]);
	}
	if (record && term_is_atom(record, "false") && words->count < WORDS_MAX)
		words->at[words->count++] = no_record;
}

/* Parsed by the command line's own parser, so that both mean the same. */
static int parse(struct cli *cli, struct words *words, struct csn_error *err)
{
	static char monitor[] = "monitor";
	char *name[] = { monitor };
	int skipped;

	if (words->count > WORDS_MAX)
		return csn_fail(err, -E2BIG, "open", "there are too many options: %zu, at most %d",
				words->count, WORDS_MAX);
	for (size_t i = 0; i < words->count; i++)
		if (!words->at[i])
			return csn_fail(err, -ENOMEM, "open", "out of memory");
	*cli = (struct cli){ .command = cli_command_find(1, name, &skipped) };
	return cli_parse(cli, (int)words->count, words->at, err);
}

/* ---- a sandbox ------------------------------------------------------------------------------- */

/* This process is its monitor. 0: it was asked to end; 1: it ended by itself; negative: there was
 * none. */
static int be_monitor(struct port *port, const struct open_request *request, struct arena *arena,
		      struct csn_error *err)
{
	struct words words = { .arena = arena };
	struct stay_port owner = { .out_fd = port->out, .open_ref = request->ref };
	struct up up = UP_NONE;
	struct cli cli = { 0 };
	sigset_t mask;
	int r;

	add_all(&words, &request->map);
	r = parse(&cli, &words, err);
	if (r == 0) {
		walls_take_variable(&cli);
		up.owner = port->in;
		up.port = &owner;
		sigprocmask(SIG_SETMASK, NULL, &mask);
		r = up_become(&cli, &up, err);
		sigprocmask(SIG_SETMASK, &mask, NULL); /* a monitor takes signals otherwise */
	}
	cli_done(&cli);
	if (r < 0)
		return r;
	*err = up.end;
	return up.end.code != 0;
}

/* As be_monitor(), of a sandbox that a pool prepared; the pool decides as a monitor would. 2: it
 * had none that fits. */
static int take_prepared(struct port *port, const struct open_request *request, const char *pool,
			 struct arena *arena, struct csn_error *err)
{
	struct words words = { .arena = arena };
	struct cli cli = { 0 };
	int fd = -1, r;

	add_all(&words, &request->map);
	r = parse(&cli, &words, err); /* as we say it without a pool */
	cli_done(&cli);
	if (r == 0)
		r = pool_ask(pool, POOL_OPEN, (const char *const *)words.at, &fd, err);
	if (r > 0)
		return port_own(port, request->ref, fd, err);
	if (r < 0)
		return r;
	*err = (struct csn_error){ 0 };
	return 2;
}

static int open_one(struct port *port, const struct open_request *request, struct arena *arena,
		    struct csn_error *err)
{
	const struct term *name = term_get(&request->map, "attach");
	const struct term *pool = term_get(&request->map, "pool");
	int r = frame_check_map(frame_open, &request->map, err);

	if (r >= 0 && pool && !name) {
		r = take_prepared(port, request, (const char *)pool->bytes.data, arena, err);
		if (r != 2)
			return r;
	}
	if (r < 0)
		return r;
	if (!name)
		return be_monitor(port, request, arena, err);
	if (request->map.count != 2)
		return csn_fail(err, -EINVAL, "open",
				"`attach` joins a sandbox as it is: no other key goes with it");
	return port_join(port, request->ref, (const char *)name->bytes.data, err);
}

/* Until one is open and has ended. As cli_port(), or negative with a sentence: nothing was. */
static int serve(struct port *port, const struct cli *cli, struct csn_error *err)
{
	for (int status = CLI_OK;; status = CLI_NOT_STARTED) {
		_cleanup_arena_ struct arena arena;
		_cleanup_buf_ struct buf in;
		struct open_request request;
		int r;

		arena_init(&arena, OPEN_QUOTA);
		buf_init(&in, FRAME_HEAD + FRAME_MAX);
		r = hear_open(port, &in, &arena, &request, err);
		if (r <= 0)
			return r < 0 ? r : status;
		r = open_one(port, &request, &arena, err);
		if (r == 0)
			return CLI_OK;
		if (r > 0)
			return cli_fail(cli, err);
		if (port_fail(port, request.ref, r == -EBADMSG ? "invalid" : error_name(err), err) <
		    0)
			return CLI_NOT_STARTED; /* nobody reads */
		*err = (struct csn_error){ 0 };
	}
}

int cli_port(struct cli *cli)
{
	struct port port = { .in = -1, .out = -1 };
	struct csn_error err = { 0 };
	int r;

	signal(SIGPIPE, SIG_IGN);
	r = take_streams(&port, &err);
	if (r == 0)
		r = serve(&port, cli, &err);
	if (r < 0) {
		if (port.out >= 0)
			port_fail(&port, 0, "invalid", &err);
		r = cli_fail(cli, &err);
	}
	give_streams_back(&port);
	return r;
}
