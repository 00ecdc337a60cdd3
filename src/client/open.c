/* Handles: opened, joined, asked, cancelled, closed. */
#include <sys/wait.h>
#include <signal.h>
#include <poll.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/place.h"
#include "client/call.h"
#include "client/gates.h"
#include "client/starter.h"
#include "client/wall.h"

enum { START_MS = 60000, STOP_MS = 10000, REAP_MS = 10000, UNREADY_MS = 2000, READY_MS = 10000 };

/* Reads until the wall stands, or it is over, or the time is. */
static int wait_ready(struct csn_sandbox *link, int wait_ms, csn_error *err)
{
	uint64_t end_ms = clock_now_ms() + (uint64_t)wait_ms, now_ms;

	pthread_mutex_lock(&link->lock);
	while (!link->is_ready && !link->is_lost && (now_ms = clock_now_ms()) < end_ms)
		link_pump(link, (int)(end_ms - now_ms));
	pthread_mutex_unlock(&link->lock);
	if (link->is_lost)
		return code_fail(err, (enum csn_code)link->lost.code, link->lost.stage, "%s",
				 link->lost.text);
	if (link->is_ready)
		return 0;
	return code_fail(err, CSN_ETIMEDOUT, "open",
			 "the wall did not stand within %d ms: give start_timeout_ms more, or see "
			 "`caisson doctor`",
			 wait_ms);
}

/* A descriptor that is taken, even on failure. */
static csn_sandbox *make_handle(int fd, csn_error *err)
{
	csn_sandbox *link = malloc(sizeof *link);

	if (!link) {
		fd_close(fd);
		code_fail(err, CSN_ENOMEM, "open", "there is no memory for a handle");
		return NULL;
	}
	if (link_init(link, fd, err) == 0)
		return link;
	csn_close(link);
	return NULL;
}

CSN_API csn_sandbox *csn_adopt(int fd, csn_error *err)
{
	csn_sandbox *link = make_handle(fd, err);

	if (link && wait_ready(link, READY_MS, err) == 0)
		return link;
	csn_close(link);
	return NULL;
}

/* With the host's own wall, which serves before anybody asks, and his gates. */
static csn_sandbox *start(const csn_options *options, struct spawned *spawned, csn_error *err)
{
	_cleanup_fd_ int theirs = -1;
	struct wall *wall = NULL;
	struct gates *gates;
	csn_sandbox *link = NULL;

	if (client_gates_new(options, &gates, err) < 0)
		return NULL;
	if (options->wall && wall_start(options->wall, &wall, &theirs, err) < 0) {
		client_gates_free(gates);
		return NULL;
	}
	if (starter_spawn(options, &(struct lent_host){ theirs, client_gates_words(gates) },
			  spawned, err) == 0)
		link = make_handle(spawned->fd, err);
	if (!link) {
		wall_end(wall);
		client_gates_free(gates);
		return NULL;
	}
	client_gates_lend(gates, link);
	link->wall = wall;
	link->end_wall = wall_end;
	return link;
}

CSN_API csn_sandbox *csn_open(const csn_options *options, csn_error *err)
{
	static const csn_options none = { 0 };
	struct spawned spawned = { .fd = -1, .said_fd = -1 };
	csn_sandbox *link;
	uint32_t wait_ms;

	options = options ? options : &none;
	link = start(options, &spawned, err);
	if (!link) { /* its stream has ended, and so will it */
		fd_close(spawned.said_fd);
		return NULL;
	}
	link->is_ours = true;
	link->monitor = spawned.pid;
	if (spawned.pid > 0)
		link->monitor_fd = (int)syscall(SYS_pidfd_open, spawned.pid, 0);
	link->said_fd = spawned.said_fd;
	link->timeout_ms = options->call_timeout_ms;
	wait_ms = options->start_timeout_ms ? options->start_timeout_ms : START_MS;
	if (wait_ready(link, wait_ms < INT_MAX ? (int)wait_ms : INT_MAX, err) == 0 &&
	    client_gates_start(link, err) == 0)
		return link;
	csn_close(link);
	return NULL;
}

/* ---- joining -------------------------------------------------------------------------------- */

/* Who listens there could be anybody, where the folder is everybody's. */
static int check_peer(int fd, const char *path, csn_error *err)
{
	struct ucred peer;
	socklen_t size = sizeof peer;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
		return code_fail(err, code_of_errno(errno), "attach", "cannot ask who %s is: %m",
				 path);
	if (peer.uid == geteuid() || peer.uid == 0)
		return 0;
	return code_fail(err, CSN_EPERM, "attach", "%s is user %u's, neither yours nor root's",
			 path, (unsigned)peer.uid);
}

/* 0 and a descriptor, or -code. */
static int join_path(const char *path, int *ret_fd, csn_error *err)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	_cleanup_fd_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	size_t size = strlen(path);

	if (size >= sizeof address.sun_path)
		return code_fail(err, CSN_ENAMETOOLONG, "attach",
				 "the path of a socket is at most %zu bytes",
				 sizeof address.sun_path - 1);
	memcpy(address.sun_path, path, size);
	if (fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof address) < 0)
		return code_fail(err, code_of_errno(errno), "attach", "cannot join %s: %m", path);
	*ret_fd = fd_take(&fd);
	return 0;
}

static int join_name(const char *name, int *ret_fd, csn_error *err)
{
	struct csn_error why = { 0 };
	_cleanup_fd_ int place = -1;
	int fd;

	if (!place_is_name(name))
		return code_fail(err, CSN_INVALID, "attach", "\"%.80s\" is no name of a sandbox",
				 name);
	place = place_open(&why);
	fd = place < 0 ? place : place_connect(place, name, &why);
	if (fd < 0)
		return code_pass(err, code_of_errno(-fd), &why);
	*ret_fd = fd;
	return 0;
}

CSN_API csn_sandbox *csn_attach(const char *name, csn_error *err)
{
	_cleanup_fd_ int fd = -1;
	int r = strchr(name, '/') ? join_path(name, &fd, err) : join_name(name, &fd, err);

	if (r < 0 || check_peer(fd, name, err) < 0)
		return NULL;
	return csn_adopt(fd_take(&fd), err);
}

/* ---- asking --------------------------------------------------------------------------------- */

CSN_API const char *csn_version(void)
{
	return CAISSON_VERSION;
}

static bool is_listed(const struct csn_sandbox *link, const char *key, const char *name)
{
	const struct term *list = term_get(&link->ready, key);

	for (size_t i = 0; list && i < list->count; i++)
		if (term_is_atom(&list->items[i], name))
			return true;
	return false;
}

CSN_API bool csn_has_verb(const csn_sandbox *sandbox, const char *verb)
{
	return is_listed(sandbox, "verbs", verb);
}

CSN_API bool csn_enforces(const csn_sandbox *sandbox, const char *feature)
{
	return is_listed(sandbox, "enforces", feature);
}

CSN_API uint64_t csn_call_id(csn_sandbox *sandbox)
{
	uint64_t id;

	pthread_mutex_lock(&sandbox->lock);
	id = ++sandbox->last_id;
	pthread_mutex_unlock(&sandbox->lock);
	return id;
}

static int unlock(struct csn_sandbox *link, csn_error *err)
{
	int r = 0;

	if (link->is_lost)
		r = code_fail(err, CSN_LOST, link->lost.stage, "%s", link->lost.text);
	pthread_mutex_unlock(&link->lock);
	return r;
}

CSN_API int csn_cancel(csn_sandbox *sandbox, uint64_t id, csn_error *err)
{
	struct call *call;

	pthread_mutex_lock(&sandbox->lock);
	call = id > 0 && id <= sandbox->last_id ? call_find(sandbox, (int64_t)id) : NULL;
	if (call)
		call_cancel(call);
	else if (id > 0 && id <= sandbox->last_id)
		sandbox->cancelled[sandbox->cancelled_at++ % LINK_CANCELLED] = id;
	return unlock(sandbox, err);
}

/* To a command that runs; what is too late or too early says nothing. */
static int tell(csn_sandbox *sandbox, const char *what, const int64_t *numbers, uint32_t count,
		csn_error *err)
{
	struct call *call;

	pthread_mutex_lock(&sandbox->lock);
	call = call_find(sandbox, numbers[0]);
	if (call && call->is_sent && !call->is_over && !sandbox->is_lost)
		link_send_numbers(sandbox, what, numbers, count);
	return unlock(sandbox, err);
}

CSN_API int csn_signal(csn_sandbox *sandbox, uint64_t id, int signal, csn_error *err)
{
	const int64_t numbers[] = { (int64_t)(id & INT64_MAX), signal };

	if (signal < 1 || signal > 64)
		return code_fail(err, CSN_INVALID, "signal", "%d is no signal: 1 to 64", signal);
	return tell(sandbox, "signal", numbers, 2, err);
}

CSN_API int csn_resize(csn_sandbox *sandbox, uint64_t id, uint16_t rows, uint16_t columns,
		       csn_error *err)
{
	const int64_t numbers[] = { (int64_t)(id & INT64_MAX), rows, columns };

	return tell(sandbox, "resize", numbers, 3, err);
}

CSN_API int csn_input_ready(csn_sandbox *sandbox, uint64_t id, csn_error *err)
{
	struct call *call;

	pthread_mutex_lock(&sandbox->lock);
	call = call_find(sandbox, (int64_t)(id & INT64_MAX));
	if (call)
		call_is_due(call, CALL_WATCH_INPUT);
	link_poke(sandbox); /* it may be the one that reads for all */
	return unlock(sandbox, err);
}

/* ---- closing -------------------------------------------------------------------------------- */

static void ask_stop(struct csn_sandbox *link)
{
	struct emit emit;

	pthread_mutex_lock(&link->lock);
	emit = link_frame(link, "stop", 1, -1);
	link_send(link, &emit);
	pthread_mutex_unlock(&link->lock);
}

/* Reads until the end comes: nothing is left then. */
static void wait_stopped(struct csn_sandbox *link)
{
	uint64_t end_ms = clock_now_ms() + STOP_MS, now_ms;

	pthread_mutex_lock(&link->lock);
	while (!link->is_lost && (now_ms = clock_now_ms()) < end_ms)
		link_pump(link, (int)(end_ms - now_ms));
	pthread_mutex_unlock(&link->lock);
}

/* Waits for a monitor's end, at most so long, kills it then, and reaps it. */
static void reap(pid_t pid, int pid_fd, int wait_ms)
{
	struct pollfd ended = { .fd = pid_fd, .events = POLLIN };

	while (poll(&ended, 1, wait_ms) < 0 && errno == EINTR)
		;
	/* By the descriptor: the number may be another's, if the host reaped it. */
	if (!(ended.revents & POLLIN))
		syscall(SYS_pidfd_send_signal, pid_fd, SIGKILL, NULL, 0);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

CSN_API void csn_close(csn_sandbox *sandbox)
{
	if (!sandbox)
		return;
	if (getpid() == sandbox->owner && sandbox->is_ours) {
		if (sandbox->is_ready)
			ask_stop(sandbox);
		if (sandbox->gates) /* a function that waits for a call hears of the end */
			sandbox->gates->end(sandbox);
		if (sandbox->is_ready)
			wait_stopped(sandbox);
		sandbox->fd = fd_close(sandbox->fd);
	}
	if (getpid() == sandbox->owner && sandbox->monitor > 0) {
		reap(sandbox->monitor, sandbox->monitor_fd,
		     sandbox->is_ready ? REAP_MS : UNREADY_MS);
	}
	if (sandbox->wall)
		sandbox->end_wall(sandbox->wall);
	link_done(sandbox);
	free(sandbox);
}
