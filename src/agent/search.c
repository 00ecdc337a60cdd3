/*
 * One search: started, read, killed, answered; see search.h.
 *
 *   agent ── fork ──► own session, groups, start folder as 0, pipe as 1, Landlock ── execveat
 *     ▲                                                                                 │
 *     └───────────────────────────── records (search/answer.h) ◄────────────────────────┘
 */
#include "agent/search.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/child.h"
#include "agent/files.h"
#include "agent/search_reply.h"
#include "base/clock.h"
#include "base/errno_name.h"
#include "base/fd.h"
#include "base/str.h"
#include "os/agent_fds.h"
#include "os/landlock.h"
#include "search/answer.h"

enum {
	TIMEOUT_MS = 30000,
	READ_SIZE = 64 << 10,
	BACKLOG = 4 << 20, /* queued output above which an answer waits */
	ARGS = 8,
	ARG_BYTES = 4096 + 32, /* "workspace=" and a path */
};

struct search {
	int64_t ref;
	unsigned slot;
	pid_t pid; /* 0: reaped */
	int fd;    /* the answer, -1: ended */
	int status;
	struct buf answer;
	uint64_t kill_at_ms;
	const char *ended_by; /* reason of a failure: "timeout", "cancelled"; NULL: it may finish */
	bool is_grep;
};

bool search_is_lent(void)
{
	struct stat st;

	return fstat(AGENT_FD_SEARCH, &st) == 0 && S_ISREG(st.st_mode) &&
	       fd_set_cloexec(AGENT_FD_SEARCH, 1) == 0;
}

bool search_is_there(const struct agent *agent)
{
	return agent->has_search;
}

struct search *search_find(struct agent *agent, int64_t ref)
{
	for (int i = 0; i < AGENT_SEARCHES; i++)
		if (agent->searches[i] && agent->searches[i]->ref == ref)
			return agent->searches[i];
	return NULL;
}

static void close_answer(struct agent *agent, struct search *search)
{
	agent_unwatch(agent, search->fd);
	fd_cleanup(&search->fd);
}

static void search_free(struct agent *agent, struct search *search)
{
	agent->searches[search->slot] = NULL;
	if (search->fd >= 0)
		close_answer(agent, search);
	buf_done(&search->answer);
	free(search);
}

static struct search *search_new(struct agent *agent, int64_t ref)
{
	for (unsigned slot = 0; slot < AGENT_SEARCHES; slot++) {
		struct search *search;

		if (agent->searches[slot])
			continue;
		search = calloc(1, sizeof *search);
		if (!search)
			return NULL;
		search->ref = ref;
		search->slot = slot;
		search->fd = -1;
		buf_init(&search->answer, ANSWER_BYTES);
		agent->searches[slot] = search;
		return search;
	}
	return NULL;
}

/* ---- starting ------------------------------------------------------------------------------- */

/* Made before the fork: nothing is allocated after it. */
struct start {
	char args[ARGS][ARG_BYTES];
	char *argv[ARGS + 3];
	const char *path; /* where to begin */
	int answer_fd;
	pid_t agent;
};

static void add_arg(struct start *start, size_t *count, const char *key, const char *value)
{
	snprintf(start->args[*count], ARG_BYTES, "%s=%s", key, value);
	start->argv[2 + *count] = start->args[*count];
	++*count;
}

static void add_number(struct start *start, size_t *count, const struct call *call, const char *key)
{
	int64_t value = call_number(call, key, -1);
	char text[32];

	snprintf(text, sizeof text, "%lld", (long long)value);
	if (value >= 0)
		add_arg(start, count, key, text);
}

/* The keys were checked against their tables, so each value fits. */
static void make_args(struct agent *agent, const struct call *call, bool is_grep,
		      struct start *start)
{
	const struct term *case_sensitive = term_get(call->map, "case_sensitive");
	const char *path = call_text(call, is_grep ? "path" : "cwd");
	size_t count = 0;

	start->path = *path ? path : ".";
	start->argv[0] = (char *)"caisson-search";
	start->argv[1] = (char *)call->verb->name;
	add_arg(start, &count, "pattern", call_text(call, "pattern"));
	add_arg(start, &count, "workspace", agent->workspace);
	if (is_grep)
		add_arg(start, &count, "path", start->path);
	if (term_get(call->map, "glob"))
		add_arg(start, &count, "glob", call_text(call, "glob"));
	if (case_sensitive && term_is_atom(case_sensitive, "false"))
		add_arg(start, &count, "case_sensitive", "false");
	add_number(start, &count, call, "limit");
	add_number(start, &count, call, "context");
	start->argv[2 + count] = NULL;
}

/* The child says by itself why it could not begin. */
static _Noreturn void refuse(const struct start *start, const char *reason, const char *detail)
{
	char text[600];
	size_t size = (size_t)snprintf(text, 64, "%s", reason) + 1;
	struct answer_head head = { .kind = ANSWER_REFUSED };

	size += (size_t)snprintf(text + size, sizeof text - size, "%s", detail);
	head.size = (uint32_t)(size < sizeof text ? size : sizeof text - 1);
	if (fd_write_all(start->answer_fd, &head, sizeof head) == 0)
		fd_write_all(start->answer_fd, text, head.size);
	_exit(1);
}

/* As a command's signals: what is ignored stays ignored across exec. */
static void own_process(const struct start *start)
{
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	child_default_signals();
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || setsid() < 0 ||
	    getppid() != start->agent)
		refuse(start, "eio", "the agent ended");
	for (int i = 0; i < AGENT_FD_ENTER_COUNT; i++)
		if (write(AGENT_FD_ENTER + i, "0", 1) != 1)
			refuse(start, errno_name(errno), "cannot enter a control group");
}

static _Noreturn void run_child(struct agent *agent, const struct start *start)
{
	static char *const no_env[] = { NULL };
	struct csn_error err = { 0 };
	int fd, r;

	own_process(start);
	r = resolve_open(&agent->roots, start->path, O_RDONLY | O_NONBLOCK | O_NOCTTY, &fd, &err);
	if (r < 0)
		refuse(start, errno_name(err.code), err.text);
	if (dup2(fd, 0) < 0 || dup2(start->answer_fd, 1) < 0)
		refuse(start, errno_name(errno), "cannot arrange descriptors");
	r = str_is(agent->profile, "none") ? 0 : landlock_scope(agent->landlock_abi);
	if (r < 0)
		refuse(start, errno_name(-r), "cannot enter a domain of its own");
	syscall(SYS_execveat, AGENT_FD_SEARCH, "", start->argv, no_env, AT_EMPTY_PATH);
	refuse(start, errno_name(errno), "cannot execute caisson-search");
}

static int start_process(struct agent *agent, struct search *search, struct start *start)
{
	int pair[2];

	if (pipe2(pair, O_CLOEXEC) < 0)
		return -errno;
	search->fd = pair[0];
	start->answer_fd = pair[1];
	start->agent = getpid();
	search->pid = fork();
	if (search->pid == 0)
		run_child(agent, start);
	close(pair[1]);
	if (search->pid < 0) {
		search->pid = 0;
		return -errno;
	}
	fd_set_nonblock(search->fd, 1);
	agent_watch(agent, search->fd, EPOLLIN,
		    (struct agent_source){ SOURCE_SEARCH, search->slot });
	return 0;
}

static void begin(struct agent *agent, const struct call *call, bool is_grep)
{
	struct search *search = search_new(agent, call->ref);
	struct start *start = search ? malloc(sizeof *start) : NULL;
	int r = start ? 0 : -ENOMEM;

	if (!search) {
		agent_fail(agent, call->ref, "eagain", "too many searches at once");
		return;
	}
	search->is_grep = is_grep;
	search->kill_at_ms = clock_now_ms() + (uint64_t)call_number(call, "timeout_ms", TIMEOUT_MS);
	if (r == 0) {
		make_args(agent, call, is_grep, start);
		r = start_process(agent, search, start);
	}
	free(start);
	if (r < 0) {
		agent_fail(agent, call->ref, errno_name(-r), "cannot start the search");
		search_free(agent, search);
	}
}

void search_glob(struct agent *agent, const struct call *call)
{
	begin(agent, call, false);
}

void search_grep(struct agent *agent, const struct call *call)
{
	begin(agent, call, true);
}

/* ---- life ----------------------------------------------------------------------------------- */

/* Its process is ours until it was reaped, so the number is nobody else's. */
static void end(struct search *search, const char *reason)
{
	if (!search->ended_by)
		search->ended_by = reason;
	if (search->pid > 0)
		kill(search->pid, SIGKILL);
}

void search_cancel(struct search *search)
{
	end(search, "cancelled");
}

void search_ready(struct agent *agent, unsigned slot)
{
	struct search *search = slot < AGENT_SEARCHES ? agent->searches[slot] : NULL;
	uint8_t *at;
	ssize_t n;

	if (!search || search->fd < 0)
		return;
	at = buf_reserve(&search->answer, READ_SIZE < buf_room(&search->answer)
						  ? READ_SIZE
						  : buf_room(&search->answer));
	n = at ? read(search->fd, at, READ_SIZE) : 0;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0) {
		buf_grew(&search->answer, (size_t)n);
		return;
	}
	if (!at)
		end(search, "eio");
	close_answer(agent, search);
}

size_t search_pids(const struct agent *agent, pid_t *ret_pids)
{
	size_t count = 0;

	for (int i = 0; i < AGENT_SEARCHES; i++)
		if (agent->searches[i] && agent->searches[i]->pid > 0)
			ret_pids[count++] = agent->searches[i]->pid;
	return count;
}

void search_reaped(struct agent *agent, pid_t pid, int status)
{
	for (int i = 0; i < AGENT_SEARCHES; i++)
		if (agent->searches[i] && agent->searches[i]->pid == pid) {
			agent->searches[i]->pid = 0;
			agent->searches[i]->status = status;
		}
}

static void answer(struct agent *agent, const struct search *search)
{
	char detail[128] = "it was cancelled";

	if (search->ended_by) {
		if (str_is(search->ended_by, "timeout"))
			snprintf(detail, sizeof detail, "the search took longer than it may");
		agent_fail(agent, search->ref, search->ended_by, detail);
		return;
	}
	if (search_reply(agent, search->ref, search->is_grep, &search->answer) == 0)
		return;
	snprintf(detail, sizeof detail, "the search ended without an answer (%s %d)",
		 WIFSIGNALED(search->status) ? "signal" : "status",
		 WIFSIGNALED(search->status) ? WTERMSIG(search->status)
					     : WEXITSTATUS(search->status));
	agent_fail(agent, search->ref, "eio", detail);
}

/* Ms until it must be killed; -1: it is being killed, or over. */
static int watch_clock(struct search *search, uint64_t now_ms)
{
	if (search->ended_by || search->pid == 0)
		return -1;
	if (now_ms >= search->kill_at_ms) {
		end(search, "timeout");
		return -1;
	}
	return search->kill_at_ms - now_ms < 60000 ? (int)(search->kill_at_ms - now_ms) : 60000;
}

/* One that is killed is not waited for: in a dead file system it does not even die. */
static bool is_over(const struct search *search)
{
	return search->ended_by || (search->fd < 0 && search->pid == 0);
}

int search_finish(struct agent *agent, uint64_t now_ms)
{
	int wait_ms = -1;

	for (int i = 0; i < AGENT_SEARCHES; i++) {
		struct search *search = agent->searches[i];
		int left = search ? watch_clock(search, now_ms) : -1;

		if (left >= 0 && (wait_ms < 0 || left < wait_ms))
			wait_ms = left;
		if (search && is_over(search) && buf_size(&agent->out) < BACKLOG) {
			answer(agent, search);
			search_free(agent, search);
		}
	}
	return wait_ms;
}

void search_done(struct agent *agent)
{
	for (int i = 0; i < AGENT_SEARCHES; i++)
		if (agent->searches[i]) {
			end(agent->searches[i], "cancelled");
			search_free(agent, agent->searches[i]);
		}
}
