/*
 * Ending a run. The first reason stays; what follows is only how fast. A soft end asks the tree
 * to terminate and kills it 500 ms later; a hard end kills the wall's first process at once,
 * and the kernel takes everything in its pid namespace with it.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "monitor/run_private.h"
#include "os/sweep.h"
#include "os/sys.h"

enum { SWEEP_MS = 1000 };

/* What docker and podman end with when the fault is theirs. */
enum { CLIENT_FAILED = 125 };

/* Where no namespace dies with it, the agent must sweep first: the end of its stream asks it
 * to. Whatever outlives it becomes our child, and we sweep too. */
static void sweep_wall(struct run *run)
{
	struct pollfd end = { .fd = run->wall.pidfd, .events = POLLIN };
	const pid_t spared[] = { run->wall.pid, run->cleaner.pid > 0 ? run->cleaner.pid : 0, 0 };

	shutdown(run->wall.stream, SHUT_RDWR);
	if (poll(&end, 1, SWEEP_MS) == 0) {
		sys_pidfd_signal(run->wall.pidfd, SIGKILL);
		/* Its children are ours only when it is gone; until then the sweep spares them. */
		poll(&end, 1, SWEEP_MS);
	}
	sweep_kill(spared);
}

static void kill_wall(struct run *run)
{
	if (run->is_killed)
		return;
	run->is_killed = true;
	run->kill_at_ms = CLOCK_NEVER;
	if (run->wall.pidfd >= 0 && !run->backend->is_contained)
		sweep_wall(run);
	if (run->wall.pidfd >= 0)
		sys_pidfd_signal(run->wall.pidfd, SIGKILL);
	/* Behind a wall that ends with its first process nobody else is in the groups. */
	if (run->limits.has_group && !(run->backend->is_contained && run->wall.pidfd >= 0))
		cgroup_kill(&run->limits.group, 0);
}

static uint64_t grace_ms(const struct run *run, uint64_t usual_ms)
{
	return run->setup->owner ? run->setup->owner->grace_ms : usual_ms;
}

void run_end(struct run *run, enum ending ending, bool is_soft)
{
	if (run->ending == END_NONE)
		run->ending = ending;
	if (!is_soft) {
		kill_wall(run);
		return;
	}
	if (run->kill_at_ms == CLOCK_NEVER && !run->is_killed) {
		run_send_signal(run, SIGTERM);
		run->kill_at_ms = clock_now_ms() + grace_ms(run, KILL_AFTER_MS);
	}
}

void run_lose(struct run *run)
{
	run_end(run, run->is_executing ? END_LOST : END_START_FAILED, false);
	if (run->ending == END_START_FAILED)
		run->exit_code = -1;
}

void run_interrupt(struct run *run, int signal)
{
	bool is_first = run->end_signal == 0;

	if (is_first)
		run->end_signal = signal;
	if (run->ending == END_NONE)
		run->ending = END_CANCELLED;
	if (!is_first || !run->is_executing) {
		kill_wall(run);
		return;
	}
	run_send_signal(run, signal);
	run->kill_at_ms = clock_now_ms() + grace_ms(run, INTERRUPT_MS);
}

struct deadline {
	const char *clock;
	uint64_t limit_ms;
	uint64_t at_ms;
};

/* The clock that runs out first: startup until the program is executed, then command and budget. */
static struct deadline next_deadline(const struct run *run)
{
	const struct plan_limits *limits = &run->plan->limits;
	struct deadline next = { "startup", limits->startup_ms, CLOCK_NEVER };
	uint64_t from_ms = run->started_us / 1000 + run->wall.made_ms;

	if (run->is_executing) {
		bool is_budget = limits->budget_ms < limits->command_ms;

		next.clock = is_budget ? "budget" : "command";
		next.limit_ms = is_budget ? limits->budget_ms : limits->command_ms;
		from_ms = (run->started_us + run->phase_us[PHASE_EXEC]) / 1000;
	}
	if (next.limit_ms != PLAN_UNLIMITED)
		next.at_ms = from_ms + next.limit_ms;
	return next;
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

int run_status(const struct run *run)
{
	int signal = run->signal ? run->signal : run->end_signal;

	if (run->ending == END_CANCELLED)
		signal = run->end_signal;
	return ending_status(run->ending, run->exit_code, signal);
}

/* What only `on_violation: kill` makes an end of. */
static void end_for_limits(struct run *run)
{
	if (run->plan->on_violation != REACT_KILL)
		return;
	if (violations_count(&run->violations, FACT_PROCESS_LIMIT) > 0)
		run_end(run, END_PROCESSES, false);
	else if (violations_count(&run->violations, FACT_SCRATCH_LIMIT) > 0)
		run_end(run, END_SCRATCH, false);
}

static void check_deadline(struct run *run, const struct deadline *deadline, uint64_t now_ms)
{
	struct fact fact;

	if (run->ending != END_NONE || deadline->at_ms > now_ms)
		return;
	run->clock = deadline->clock;
	fact_timeout(&fact, deadline->clock, deadline->limit_ms);
	violations_add(&run->violations, &fact);
	run_end(run, END_TIMEOUT, run->is_executing);
}

/* Counters and facts of a command that runs. */
static void check_limits(struct run *run, uint64_t now_ms)
{
	if (run->ending != END_NONE || !run->is_executing)
		return;
	if (limits_tick(&run->limits, run->wall.pid, now_ms, &run->violations) == LIMITS_MEMORY)
		run_end(run, END_MEMORY, false);
	else
		end_for_limits(run);
	if (run->violations.wants_end && run->ending == END_NONE)
		run_end(run, END_VIOLATION, false);
}

int run_clocks(struct run *run, uint64_t now_ms)
{
	struct deadline deadline = next_deadline(run);
	uint64_t next, owners;

	if (run->kill_at_ms <= now_ms)
		kill_wall(run);
	check_deadline(run, &deadline, now_ms);
	check_limits(run, now_ms);
	owners = run_ask_owner(run, now_ms);
	next = earlier(run->kill_at_ms, run->ending == END_NONE ? deadline.at_ms : CLOCK_NEVER);
	if (run->is_executing && run->ending == END_NONE)
		next = earlier(next, run->limits.next_tick_ms);
	next = earlier(next, owners);
	if (next == CLOCK_NEVER)
		return -1;
	return next <= now_ms ? 0 : next - now_ms > 60000 ? 60000 : (int)(next - now_ms);
}

/* Kills the wall; no fact comes any more. */
static void let_go(struct run *run)
{
	if (run->wall.pid > 0)
		kill_wall(run);
	notify_free(run->notify);
	run->notify = NULL;
}

/* Of all that the wall's first process waited for: what is known of a command without a reply. */
static void take_usage(struct run *run, const struct rusage *usage)
{
	run->cpu_us = (uint64_t)(usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) * 1000000u +
		      (uint64_t)(usage->ru_utime.tv_usec + usage->ru_stime.tv_usec);
	run->max_rss = (uint64_t)usage->ru_maxrss * 1024u;
	run->phase_us[PHASE_END] = run_elapsed_us(run, clock_now_us());
}

/* Anybody's text: fact_text() takes its control characters, and what is too long goes. */
static void take_complaint(struct run *run)
{
	char last[4096];
	bool is_hint;
	off_t end = run->wall.complaints < 0 ? 0 : lseek(run->wall.complaints, 0, SEEK_CUR);
	off_t from = end > (off_t)sizeof last ? end - (off_t)sizeof last : 0;
	ssize_t size = end > 0 ? pread(run->wall.complaints, last, (size_t)(end - from), from) : 0;
	ssize_t start;

	do {
		while (size > 0 && strchr("\n\r ", last[size - 1]))
			size--;
		for (start = size; start > 0 && last[start - 1] != '\n';)
			start--;
		/* An engine's client says the cause, and then where its usage is explained. */
		is_hint = size > start && memmem(last + start, (size_t)(size - start), "--help", 6);
	} while (is_hint && start > 0 && (size = start) > 0);
	if (size > start)
		fact_text(run->complaint, sizeof run->complaint, last + start,
			  (size_t)(size - start));
}

void run_destroy(struct run *run)
{
	let_go(run);
	if (run->wall.pid > 0) {
		struct rusage usage = { 0 };
		int status;

		while (wait4(run->wall.pid, &status, __WALL, &usage) < 0 && errno == EINTR)
			;
		if (run->backend->take_down &&
		    (WIFSIGNALED(status) || WEXITSTATUS(status) == CLIENT_FAILED))
			run->backend->take_down(run->sandbox_id);
		if (!run->is_replied)
			take_usage(run, &usage);
		run->wall.pid = -1;
		run->wall.pidfd = fd_close(run->wall.pidfd);
	}
	take_complaint(run);
	/* The kernel takes the mounts down when we let go, not while somebody waits. */
	if (run->mounts_fd < 0)
		run->mounts_fd = fd_take(&run->wall.spaces[1]);
	wall_done(&run->wall);
}

/* A step of the lockdown that failed left its sentence in the pipe. */
void run_read_failure(struct run *run)
{
	struct csn_error err;

	if (run->error.code || run->wall.failure < 0 || fd_set_nonblock(run->wall.failure, 1) < 0 ||
	    read(run->wall.failure, &err, sizeof err) != sizeof err)
		return;
	err.stage[sizeof err.stage - 1] = err.text[sizeof err.text - 1] = 0;
	run->error = err;
}

static void settle_ending(struct run *run)
{
	if (run->ending == END_NONE && run->is_replied)
		run->ending = run->signal ? END_SIGNALED : END_EXITED;
	if (run->ending == END_NONE) {
		run_read_failure(run);
		run->ending = run->is_executing ? END_LOST : END_START_FAILED;
	}
	if (!run->error.code && (run->ending == END_LOST || run->ending == END_START_FAILED))
		csn_fail(&run->error, -EPIPE, "sandbox", "the sandbox ended without a word");
	if (run->complaint[0] && (run->ending == END_LOST || run->ending == END_START_FAILED)) {
		size_t n = strlen(run->error.text);

		snprintf(run->error.text + n, sizeof run->error.text - n, "; it said: %s",
			 run->complaint);
	}
	if (run->ending == END_START_FAILED && !run->exec_error[0])
		run->exit_code = 125;
}

/*
 * A wall whose own kernel lives within the limits may be what is refused a thread, and dies of it:
 * gVisor's does. Such an end is the limit's, as that of the OOM killer's victim is.
 */
static bool died_of_processes(const struct run *run)
{
	bool is_silent = run->ending == END_NONE && run->is_executing && !run->is_replied;

	return is_silent && violations_count(&run->violations, FACT_PROCESS_LIMIT) > 0;
}

/* In a group that a runtime made, and takes away as soon as its program ends. */
static bool was_killed_elsewhere(const struct run *run)
{
	bool is_killed = run->signal == SIGKILL || run->exit_code == 128 + SIGKILL;

	return is_killed && run->backend && run->backend->is_runtimes;
}

/*
 * The account. A command that told its end is killed with its wall, and accounted for while the
 * kernel takes the wall down; one that did not is waited for first: what it used is known then.
 * The OOM killer may have taken the agent too: the reason stays memory.
 */
void run_over(struct run *run)
{
	if (run->is_over)
		return;
	run->is_over = true;
	run_read_failure(run);
	if (run->is_replied)
		let_go(run);
	else
		run_destroy(run);
	gates_free(run->gates); /* what is under way is on record as not done */
	run->gates = NULL;
	if (was_killed_elsewhere(run))
		limits_judge_kill(&run->limits);
	if (limits_finish(&run->limits, run->max_rss, &run->violations) == LIMITS_MEMORY &&
	    (run->ending == END_NONE || run->ending == END_LOST))
		run->ending = END_MEMORY;
	if (died_of_processes(run))
		run->ending = END_PROCESSES;
	settle_ending(run);
	protect_recheck(&run->protect);
}
