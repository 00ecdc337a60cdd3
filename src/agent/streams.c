/* What a command reads and writes; see streams.h. Our side never blocks. */
#include "agent/streams.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "base/fd.h"
#include "wire/frame.h"

/* What a terminal may hold on its way to us, which no call tells: the kernel's
 * TTYB_DEFAULT_MEM_LIMIT (64 KiB) and its line discipline's 4 KiB. */
enum { TTY_HELD = 68 << 10 };

static const struct {
	enum source_kind kind;
	const char *name; /* in {data, Ref, Name, Bin} */
} outputs[STREAMS_OUTPUTS] = {
	[STREAMS_STDOUT] = { SOURCE_STDOUT, "stdout" },
	[STREAMS_STDERR] = { SOURCE_STDERR, "stderr" },
	[STREAMS_TTY] = { SOURCE_TTY, "tty" },
	[STREAMS_REPORT] = { SOURCE_REPORT, "report" },
};

void streams_init(struct streams *streams, int64_t ref, unsigned slot)
{
	*streams = (struct streams){
		.ref = ref, .slot = slot, .window = AGENT_WINDOW, .stdin_fd = -1
	};
	for (int i = 0; i < STREAMS_OUTPUTS; i++)
		streams->output_fd[i] = -1;
	buf_init(&streams->input, AGENT_WINDOW + FRAME_PIECE);
}

void streams_done(struct streams *streams)
{
	for (int i = 0; i < STREAMS_OUTPUTS; i++)
		fd_cleanup(&streams->output_fd[i]);
	fd_cleanup(&streams->stdin_fd);
	buf_done(&streams->input);
}

static void close_source(struct agent *agent, int *fd)
{
	agent_unwatch(agent, *fd);
	fd_cleanup(fd);
}

/* Is there something to write? The end of a terminal's input is a character. */
static bool has_input(const struct streams *streams)
{
	return buf_size(&streams->input) > 0 || (streams->is_input_over && !streams->is_end_sent);
}

/* Nothing is asked of the kernel that it was asked before. */
static void watch_for(struct agent *agent, int fd, uint32_t events, uint32_t *watched,
		      struct agent_source source)
{
	if (fd < 0 || events == *watched)
		return;
	*watched = events;
	if (events)
		agent_watch(agent, fd, events, source);
	else
		agent_unwatch(agent, fd);
}

static void watch_all(struct agent *agent, struct streams *streams)
{
	uint32_t reads = streams->window > 0 ? EPOLLIN : 0;
	uint32_t writes = has_input(streams) ? EPOLLOUT : 0;

	for (int i = 0; i < STREAMS_OUTPUTS; i++)
		watch_for(agent, streams->output_fd[i], i == STREAMS_TTY ? reads | writes : reads,
			  &streams->output_events[i],
			  (struct agent_source){ outputs[i].kind, streams->slot });
	watch_for(agent, streams->stdin_fd, writes, &streams->stdin_events,
		  (struct agent_source){ SOURCE_STDIN, streams->slot });
}

/* ---- output --------------------------------------------------------------------------------- */

void streams_send(struct agent *agent, int64_t ref, enum streams_output which, const void *data,
		  size_t size)
{
	struct emit emit = agent_frame(agent);

	emit_tuple(&emit, 4);
	emit_atom(&emit, "data");
	emit_int(&emit, ref);
	emit_atom(&emit, outputs[which].name);
	emit_binary(&emit, data, size);
	agent_send(agent, &emit);
}

static void keep(struct agent *agent, struct streams *streams, int which, const char *data,
		 size_t size)
{
	for (size_t at = 0; at < size; at += RING_RECORD)
		ring_add(streams->ring, (unsigned)which, data + at,
			 size - at < RING_RECORD ? size - at : RING_RECORD);
	agent->has_news = true;
}

/* One piece. Afterwards less is owed, or nothing: the descriptor was empty or at its end. */
static void pump_output(struct agent *agent, struct streams *streams, int which)
{
	int *fd = &streams->output_fd[which];
	size_t *owed = &streams->owed[which];
	char data[FRAME_PIECE];
	size_t want = sizeof data;
	ssize_t n;

	if (*fd < 0 || streams->window <= 0)
		return;
	if ((size_t)streams->window < want)
		want = (size_t)streams->window;
	n = read(*fd, data, want);
	if (n < 0 && errno == EINTR)
		return;
	if (n <= 0) {
		*owed = 0;
		if (n == 0 || errno != EAGAIN) /* a pty's other side closed is EIO */
			close_source(agent, fd);
		return;
	}
	*owed -= (size_t)n < *owed ? (size_t)n : *owed;
	if (streams->ring) {
		keep(agent, streams, which, data, (size_t)n);
		return;
	}
	streams_send(agent, streams->ref, (enum streams_output)which, data, (size_t)n);
	streams->window -= n;
	if (streams->window == 0)
		watch_all(agent, streams);
}

void streams_window(struct agent *agent, struct streams *streams, int64_t bytes)
{
	bool was_shut = streams->window == 0;

	streams->window += bytes;
	if (streams->window > AGENT_WINDOW)
		streams->window = AGENT_WINDOW;
	if (was_shut && streams->window > 0)
		watch_all(agent, streams);
}

void streams_drop(struct agent *agent, struct streams *streams)
{
	for (int i = 0; i < STREAMS_OUTPUTS; i++)
		if (streams->output_fd[i] >= 0)
			close_source(agent, &streams->output_fd[i]);
}

/* Others may go on writing, so "until it is empty" could take forever. */
void streams_leader_ended(struct streams *streams)
{
	for (int i = 0; i < STREAMS_OUTPUTS; i++) {
		int held = 0;

		if (streams->output_fd[i] < 0)
			continue;
		if (i == STREAMS_TTY || ioctl(streams->output_fd[i], FIONREAD, &held) < 0)
			held = TTY_HELD;
		streams->owed[i] = (size_t)held;
	}
}

bool streams_are_over(const struct streams *streams)
{
	for (int i = 0; i < STREAMS_OUTPUTS; i++)
		if (streams->output_fd[i] >= 0)
			return false;
	return true;
}

bool streams_drain(struct agent *agent, struct streams *streams)
{
	for (int i = 0; i < STREAMS_OUTPUTS; i++) {
		while (streams->output_fd[i] >= 0 && streams->owed[i] > 0) {
			if (streams->window <= 0)
				return false;
			pump_output(agent, streams, i);
		}
	}
	return true;
}

/* ---- input ---------------------------------------------------------------------------------- */

static void grant_input(struct agent *agent, const struct streams *streams, size_t bytes)
{
	struct emit emit = agent_frame(agent);

	emit_tuple(&emit, 3);
	emit_atom(&emit, "window");
	emit_int(&emit, streams->ref);
	emit_int(&emit, (int64_t)bytes);
	agent_send(agent, &emit);
}

/* Writes to a descriptor; what nobody will read counts as written. */
static size_t write_input(struct agent *agent, struct streams *streams, const void *data,
			  size_t size)
{
	bool has_tty = streams->output_fd[STREAMS_TTY] >= 0;
	int fd = has_tty ? streams->output_fd[STREAMS_TTY] : streams->stdin_fd;
	ssize_t n = fd < 0 ? (ssize_t)size : write(fd, data, size);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n >= 0)
		return (size_t)n;
	if (!has_tty)
		close_source(agent, &streams->stdin_fd);
	return size;
}

/* The end of a terminal's input is its end-of-file character, which ends a line only where one was
 * begun: then it takes two. */
static void end_input(struct agent *agent, struct streams *streams)
{
	static const char twice[] = { 4, 4 }; /* VEOF as every terminal starts */
	size_t size = streams->is_mid_line ? 2 : 1;

	if (streams->output_fd[STREAMS_TTY] >= 0) {
		size_t n = write_input(agent, streams, twice, size);

		streams->is_mid_line &= n == 0;
		if (n < size)
			return;
	} else if (streams->stdin_fd >= 0) {
		close_source(agent, &streams->stdin_fd);
	}
	streams->is_end_sent = true;
}

static void pump_input(struct agent *agent, struct streams *streams)
{
	size_t size = buf_size(&streams->input), n = 0;
	const uint8_t *data = buf_at(&streams->input);

	if (!streams->has_begun)
		return; /* queued: its window bounds what is kept */
	if (size > 0)
		n = write_input(agent, streams, data, size);
	if (n > 0) {
		streams->is_mid_line = data[n - 1] != '\n';
		buf_consume(&streams->input, n);
		grant_input(agent, streams, n);
	}
	if (n == size && streams->is_input_over && !streams->is_end_sent)
		end_input(agent, streams);
	watch_all(agent, streams);
}

void streams_begin(struct agent *agent, struct streams *streams)
{
	for (int i = 0; i < STREAMS_OUTPUTS; i++)
		if (streams->output_fd[i] >= 0)
			fd_set_nonblock(streams->output_fd[i], 1);
	if (streams->stdin_fd >= 0)
		fd_set_nonblock(streams->stdin_fd, 1);
	streams->has_begun = true;
	if (has_input(streams))
		pump_input(agent, streams);
	else
		watch_all(agent, streams);
}

int streams_input(struct agent *agent, struct streams *streams, const void *data, size_t size,
		  bool is_end)
{
	streams->is_input_over |= is_end;
	if (size > 0 && buf_add(&streams->input, data, size) < 0)
		return -EMSGSIZE;
	pump_input(agent, streams);
	return 0;
}

void streams_ready(struct agent *agent, struct streams *streams, enum source_kind kind)
{
	for (int i = 0; i < STREAMS_OUTPUTS; i++)
		if (outputs[i].kind == kind)
			pump_output(agent, streams, i);
	if (kind == SOURCE_STDIN || (kind == SOURCE_TTY && has_input(streams)))
		pump_input(agent, streams);
}

void streams_resize(struct streams *streams, unsigned rows, unsigned cols)
{
	struct winsize size = { .ws_row = (unsigned short)rows, .ws_col = (unsigned short)cols };

	if (streams->output_fd[STREAMS_TTY] >= 0 && rows > 0 && cols > 0)
		ioctl(streams->output_fd[STREAMS_TTY], TIOCSWINSZ, &size);
}
