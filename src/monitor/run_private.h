/*
 * run_private - the state of one run, shared by the files run*.c and by nobody else
 *
 *   run.c         prepare, start, end, account: the order of things
 *   run_loop.c    one poll loop: who is ready, which clock is next
 *   run_frames.c  what the agent says, what we say to it
 *   exec_failure.c  why a command could not be executed
 *   run_gates.c   what code may ask the host for: is it there
 *   run_end.c     ending a run: reasons, signals, deadlines
 *   run_result.c  result.json and the events of the audit log
 *   run_keep.c    what stays of it on the disk
 *   run_owner.c   a long run, and who keeps its books
 *   run_gaps.c    what the run did not do and could not see
 */
#pragma once

#include <poll.h>
#include <sys/resource.h>
#include <termios.h>

#include "audit/audit.h"
#include "backend/backend.h"
#include "base/arena.h"
#include "monitor/channel.h"
#include "monitor/cleaner.h"
#include "monitor/ending.h"
#include "monitor/forwards.h"
#include "monitor/gates.h"
#include "monitor/limits.h"
#include "monitor/notify.h"
#include "monitor/pending.h"
#include "monitor/protect.h"
#include "monitor/run.h"
#include "monitor/scratch.h"
#include "monitor/sink.h"
#include "monitor/violations.h"

enum { RUN_REF = 1, RUN_WINDOW = 256 << 10, KILL_AFTER_MS = 500, INTERRUPT_MS = 1000 };

/* Phases of a run, in microseconds since its start; 0: not reached. For `timings`. */
enum run_phase {
	PHASE_PREPARED,
	PHASE_CLONED,
	PHASE_READY,
	PHASE_EXEC,
	PHASE_END, /* of the command, or of what was left of it */
	PHASE_COUNT
};

struct run {
	const struct run_setup *setup;
	const struct plan *plan; /* as shown: paths are the wall's */
	struct plan shown; /* where the wall has no view of its own; borrows from the caller's */
	const char *cwd;   /* inside */
	char scratch_dir[SCRATCH_PATH]; /* of a wall without a view of its own, "" */
	int scratch_fd;                 /* its lock */
	struct arena arena;
	struct csn_error error; /* our own failure, code 0: none */

	const struct backend *backend;
	struct backend_report report;
	struct wall wall;
	struct channel channel;
	struct limits limits;
	struct violations violations;
	struct notify *notify;
	struct record record;
	struct record ahead;       /* made with the wall, becomes `record` */
	struct gates *gates;       /* what code may ask the host for; NULL: nothing */
	const char *gates_at;      /* where they are inside */
	struct forwards *forwards; /* endpoints of the host's; NULL: none */
	struct redactor *redactor; /* known secrets; patterns are always looked for */
	int signal_fd;
	struct cleaner_work work;
	struct cleaner cleaner;
	struct protect protect;
	struct pending pending;

	char sandbox_id[RUN_ID_SIZE];
	int64_t started_wall_ms;
	uint64_t started_us;
	uint64_t phase_us[PHASE_COUNT];

	char **env;
	const char *const *passed; /* names */
	const char *const *hidden;
	const char *const *toolchains;
	char cow_dir[4096];

	struct sink out, err;
	size_t report_owed; /* bytes of reports for which the window was not given back */
	bool is_input_open;
	int64_t input_window;
	bool is_raw;
	struct termios saved_tty;

	bool is_ahead;     /* its wall was prepared before anybody asked */
	bool is_ready;     /* the agent answered init */
	bool is_held;      /* the call is sent then, after the last look at what was approved */
	bool is_stated;    /* state.json is written */
	bool is_told;      /* its start is in the audit log, */
	bool is_exec_told; /* and that of the command */
	bool is_watched;   /* scratch is looked at, the lockdown is on record */
	bool is_executing; /* the program's exec is allowed */
	bool has_commands; /* a sandbox that stays had any */
	bool has_listener; /* and its calls are shown to us */
	bool is_replied;   /* the agent told the end of the command */
	bool is_wall_over; /* the wall's first process ended */

	enum ending ending;
	const char *clock;   /* of a timeout */
	int end_signal;      /* of cancelled: the signal we got */
	uint64_t kill_at_ms; /* CLOCK_NEVER: not asked to */
	bool is_killed;
	bool is_over;  /* run_over() */
	int mounts_fd; /* holds the mount namespace of a wall that is dead, -1 */

	int exit_code; /* -1: null */
	int signal;    /* 0: null */
	char exec_error[32];
	char exec_stage[32];
	char complaint[200]; /* the last line of a `command` wall's stderr */
	uint64_t cpu_us;
	uint64_t max_rss;
};

/* ---- run.c ---- */

/* For a sandbox that stays (stay.h): an empty run; everything up to {init, …} to the agent; and the
 * end, which gives everything back whatever state it is in. */
void run_init(struct run *run, const struct run_setup *setup);
int run_begin(struct run *run);
int run_account(struct run *run, struct run_outcome *ret_outcome);
/* Why the wall did not come up, where a step of its lockdown said so: into `run->error`. */
void run_read_failure(struct run *run);
/* The first part of run_account(), which may be called before: its ending and its counters are
 * known. Of a sandbox that stays every process is gone then, by the kernel's word. */
void run_over(struct run *run);

/*
 * The same in two parts. Ahead: groups, and a wall that waits for its order; nothing of the
 * caller's is looked at but his plan. Then, with the setup that came: what is lent, the record,
 * {init, …}.
 */
int run_prepare_ahead(struct run *run);
/* Gives back what was prepared, and not used. */
void run_discard(struct run *run);
/* See above. */
int run_begin_ahead(struct run *run, const struct run_setup *setup);

/* What is on record of a sandbox that stays before a call of a client is looked at. */
void run_log_up(struct run *run);

/* Writes state.json, once: what a run that is lost was doing. Without hurry: that it runs is told
 * by the lock on its folder. */
void run_write_state(struct run *run);

/* ---- run_gates.c ---- */

/* The table of gates, where the plan has any: 0, or a negative errno with a sentence in
 * run->error. The second one, when the wall stands: may its commands connect? */
int run_open_gates(struct run *run);
int run_check_gates(struct run *run);

/* Where they are inside, for the environment; NULL where there are none. */
const char *run_place_gates(struct run *run);

/* Two pairs of {init, …}: "gates" and "gates_at". */
void run_emit_gates(struct emit *emit, const struct run *run);

/* The agent is ready: has it the gates that it was asked for? 0, or -ENOTSUP with a sentence. */
int run_check_ready(const struct run *run, const struct term *map, struct csn_error *err);

/* ---- run_forwards.c ---- */

/* The endpoints that the plan names: are they there, and can commands of this wall reach them? 0,
 * or a negative errno with a sentence in run->error. */
int run_open_forwards(struct run *run);
/* The second part, when the wall stands: may its commands connect? */
int run_check_forwards(struct run *run);

/* A pair of {init, …}: "forwards". */
void run_emit_forwards(struct emit *emit, const struct run *run);

/* The agent is ready: does it listen on all? 0, or -ENOTSUP with a sentence. */
int run_check_listening(const struct run *run, const struct term *map, struct csn_error *err);

/* ---- run_end.c ---- */

/* Ends the run for a reason; the first reason stays. `is_soft`: TERM first, KILL after 500 ms. */
void run_end(struct run *run, enum ending ending, bool is_soft);

/* Ends it as lost or start_failed, with what `run->error` says. */
void run_lose(struct run *run);

/* The CLI's status for how it ended. */
int run_status(const struct run *run);

/* A signal that caisson got. */
void run_interrupt(struct run *run, int signal);

/* Looks at all clocks; returns ms until the next one, -1: none. */
int run_clocks(struct run *run, uint64_t now_ms);

/* Kills the wall; no fact comes any more. Waits until nothing is left; whatever state it is in, and
 * more than once. */
void run_destroy(struct run *run);

/* ---- run_frames.c ---- */

/* Queues {init, …}. 0 or a negative errno. */
int run_send_init(struct run *run);

/* A pair of a call's map: "limits" and those of one command. */
void run_emit_limits(struct emit *emit, const struct plan_limits *limits);

/* The syscall profile of this wall's commands, as the agent knows it. */
const char *run_profile(const struct run *run);

/* Takes the listener that a command announced: 0, a descriptor and its call; -EPIPE: the wall
 * ended; else with a sentence in run->error. */
int run_fetch_listener(struct run *run, int *ret_listener, int64_t *ret_ref);

/* What the notifier needs for a command of this run. */
struct notify_setup run_notify_setup(struct run *run, struct violations *violations);

/* Queues {call, …}. 0 or a negative errno with a sentence in run->error. */
int run_send_call(struct run *run);
void run_send_signal(struct run *run, int signal);
void run_send_resize(struct run *run);
void run_send_window(struct run *run, size_t bytes);

/* Reads the caller's stdin once and passes it on. */
void run_pump_input(struct run *run);

/* For channel_read(). */
int run_handle_frame(void *data, int index, const struct term *items, struct csn_error *err);

/* A command announced its listener. */
void run_take_listener(struct run *run);

/* ---- exec_failure.c ---- */

/* A program that was to be executed. All is borrowed. */
struct attempt {
	const struct plan *plan; /* as shown */
	const char *cwd;         /* inside, absolute */
	const char *program;     /* as it was typed; NULL: the shell */
	const char *path;        /* PATH of this call alone, NULL: the sandbox's */
	bool stays;              /* in a sandbox that stays */
};

/* Says in `err` why it could not be: `error` is a positive errno or 0. */
void attempt_say_failure(const struct attempt *attempt, int error, struct csn_error *err);

/* Says in run->error why the command could not be executed: `error` is a positive errno or 0. */
void run_say_exec_failure(struct run *run, int error);

/* ---- run_loop.c ---- */

/* Until the command is over and its output written. */
void run_loop(struct run *run);

/* ---- run_keep.c ---- */

/* The first and the last part of its output into the record. */
void run_save_output(struct run *run);

/* Removes the oldest finished records of its run root beyond the bounds. */
void run_retain(const struct run *run);

/* ---- run_owner.c: of a run that has an owner ---- */

/* His record becomes the run's: 0. And back, when nothing is left inside. */
int run_take_owners(struct run *run);
void run_give_back(struct run *run);

/* The folder of his tools as a list, in the run's arena; NULL: none. */
const char *const *run_owner_tools(struct run *run);

/* {data, …} of his worker: 0, or -EBADMSG with a sentence. */
int run_owner_data(struct run *run, const struct term *items, struct csn_error *err);

/* Does what he wants now; returns when he must be asked again, CLOCK_NEVER. */
uint64_t run_ask_owner(struct run *run, uint64_t now_ms);

/* ---- run_result.c ---- */

/* Events of the audit log: grants and start, lockdown and exec, one violation, the end. */
void run_log_start(struct run *run);
void run_log_lockdown(struct run *run); /* when the agent is ready: all steps were carried out */
void run_log_exec(struct run *run);
void run_log_violation(const struct fact *fact, void *data);
/* Into state.json, of a copy-on-write workspace: what a commit after a kill has to know. */
void run_state_layer(const struct run *run, json_t *state);
/* caisson.result/1, a new object; NULL when out of memory. */
json_t *run_result(struct run *run);
void run_log_end(struct run *run);

/* ---- run_gaps.c ---- */

/* Adds observed, not_observed, not_observed_why, no_effect and protect_not_enforced to a result
 * that has its `limits` and `hidden`, and corrects there what nothing holds. */
void run_gaps(const struct run *run, json_t *result);

/* What is known of that when the wall stands: a list of {key, why}, and one of names. */
json_t *run_no_effect(const struct run *run);
json_t *run_not_protected(const struct run *run);

/* No wall could be chosen, or a call is none for this one, as `err` says: where strict was asked
 * for that is a fact. */
void run_note_strict(struct run *run, const struct csn_error *err);

/* Is it a sandbox that stays, whose commands come later? */
static inline bool run_stays(const struct run *run)
{
	return !run->setup->argv && !run->setup->text;
}

/* Is the wall a program of somebody's, which does what its author says and shows us nothing? */
static inline bool run_is_declared(const struct run *run)
{
	return run->backend && run->backend->declare;
}

/* Does what runs do so where we cannot look: behind a program of the host's, or of the caller's? */
static inline bool run_is_apart(const struct run *run)
{
	return run->backend && (run->backend->declare || run->backend->is_program);
}

/* What holds this run: the wall's own bits, and those of controllers where they hold what runs. */
static inline uint64_t run_enforces(const struct run *run)
{
	uint64_t lent = run->plan->network == NETWORK_ENGINE ? FEATURE_NET_NONE : 0;

	return (run->report.enforces & ~lent) |
	       (run_is_apart(run) ? 0 : limits_enforces(&run->limits));
}

static inline uint64_t run_elapsed_us(const struct run *run, uint64_t now_us)
{
	return now_us - run->started_us;
}
