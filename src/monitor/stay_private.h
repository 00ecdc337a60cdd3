/*
 * stay_private - the state of a sandbox that stays, shared by the files stay*.c and by nobody else
 *
 *   stay.c         its life: start, clocks, end
 *   stay_loop.c    one poll loop: who is ready
 *   stay_client.c  who is connected, frames from and to him
 *   stay_port.c    what an owner is told who speaks through `caisson port`
 *   stay_call.c    the table of calls under way: a client's Ref and ours
 *   stay_log.c     execs in the audit log
 *   stay_exec.c    what an exec needs beyond its frame: environment, listener, deadline, its end
 *   stay_account.c what its client is told of it
 *   stay_text.c    the sentence in that
 *   stay_eval.c    code sessions, and stay_gate.c their gates
 *   stay_verbs.c   the verbs that the monitor answers itself
 *   stay_work.c    their calls, each in a process of its own (worker.h)
 */
#pragma once

#include "monitor/run_private.h"
#include "monitor/stay.h"
#include "wire/frame.h"

enum {
	STAY_PROTOCOL = 1, /* of docs/protocol.md */
	STAY_CALLS = 64,   /* the agent's own bound */
	/* More than have calls: the longest silent one makes room, for who says {stop}. */
	STAY_CLIENTS = 4 * STAY_CALLS,
	STAY_DETACHED = 64,
	STAY_MOUNTS = 64,       /* lent while it runs */
	STAY_CLIENT_CALLS = 32, /* of one client, so that another finds room */
	STAY_VERB_MS = 30000,   /* the deadline of a file verb */
	STAY_EVALS = 8,         /* code sessions */
	STAY_WORK_MS = 600000,  /* of a verb of the monitor's own: it may copy a whole workspace */
	/* What the agent has yet to read, of the 32 MiB that its channel holds: beyond the one no
	 * call is taken, beyond the other who still sends is dropped. The rest is for cancels. */
	STAY_CALLS_QUEUED = 8 << 20,
	STAY_QUEUED = 24 << 20,
};

struct stay_client {
	struct channel channel; /* fd -1: free */
	bool is_owner;
	bool is_gone; /* to be closed at the end of this turn */
	unsigned calls;
	uint64_t heard_ms;
};

/* What only an exec has. */
struct stay_exec {
	struct stay *stay;
	struct stay_call *call; /* NULL: it was detached */
	int64_t ref;            /* of its call, ours */
	struct violations violations;
	struct notify *notify;
	bool has_listener;
	uint64_t started_us;
	uint64_t wall_us;  /* once it is over */
	uint64_t bytes[2]; /* stdout (and a terminal's), stderr */
	uint64_t cut_bytes;
	bool has_tty; /* somebody may sit there: no command clock, and his silence is silence */
	bool is_evaluator; /* no command clock either: each eval has one */
	enum ending ending;
	const char *clock;      /* of a timeout */
	const char *clock_name; /* of the one that would end it */
	uint64_t limit_ms;      /* of that clock */
	uint64_t kill_at_ms;
	char *program, *cwd, *path; /* as the call names them; see stay_text.c */
};

struct stay_call {
	int64_t ref;                /* towards the agent; 0: free */
	int64_t client_ref;         /* as its client knows it */
	struct stay_client *client; /* NULL: he left, or has his answer */
	const struct frame_verb *verb;
	struct stay_exec *exec;      /* NULL for other verbs */
	const struct stay_verb *own; /* that the monitor answers, NULL: the agent does */
	struct work *work;           /* of such a one */
	struct stay_eval *eval;      /* the code session whose call it is, NULL: a client's */
	struct stay_eval *eval_of;   /* the session that a client's eval goes on in */
	bool is_answered;            /* its worker has to end yet */
	bool is_cancelled;
	uint64_t end_at_ms;   /* CLOCK_NEVER */
	int64_t window;       /* bytes of output that the agent may still send */
	int64_t input_window; /* bytes of input that the client may still send */
};

struct stay {
	const struct stay_setup *setup;
	struct run run;
	uint64_t verbs; /* bit i: the agent has frame_verbs[i] */
	bool is_up;
	bool is_over;      /* somebody asked for the end */
	bool is_closed;    /* by {close, Ref}, */
	int64_t close_ref; /* which is answered at the end */
	uint64_t heard_ms; /* from any client */
	int64_t last_ref;
	uint64_t oom_kills; /* seen */
	uint64_t spent_us;  /* by commands that ended, for the budget */
	bool is_sharing;    /* a fact on record already goes from one list to another */
	/* Commands that outlived their call, until the agent says that they ended. */
	struct stay_exec *detached[STAY_DETACHED];
	struct stay_eval *evals[STAY_EVALS];
	struct stay_client clients[STAY_CLIENTS];
	struct stay_call calls[STAY_CALLS];
	/* Behind the last place that was ever taken: most sandboxes have one client and one call.
	 */
	size_t detached_end, clients_end, calls_end;
};

/* ---- stay_loop.c ---- */

/* Until somebody asked for the end, or the wall ended. `clocks` returns ms to wait, -1: no end. */
void stay_loop(struct stay *stay, int (*clocks)(struct stay *stay));

/* ---- stay.c ---- */

/* The agent is ready. */
void stay_up(struct stay *stay);
/* Since somebody asked for something; 0 while he waits for it. */
uint64_t stay_idle_ms(const struct stay *stay);
/* After which it ends, PLAN_UNLIMITED: never. */
uint64_t stay_idle_limit_ms(const struct stay *stay);
/* Memory ran out among the commands. */
void stay_oom(struct stay *stay);

/* ---- stay_client.c ---- */

/* Takes those who knock; others than our own user are hung up on. */
void stay_accept(struct stay *stay);
/* A connected stream, greeted where the sandbox is up; NULL: no room. */
struct stay_client *stay_client_add(struct stay *stay, int fd);
/* He opened it: it ends with him, and he is asked for gates that are functions of his. */
void stay_client_own(struct stay *stay, struct stay_client *client);
void stay_client_ready(struct stay *stay, struct stay_client *client, short events);
/* {failed, Ref, Reason, Detail} */
void stay_refuse(struct stay_client *client, int64_t ref, const char *reason, const char *detail);
/* Flushes; closes those that are gone, and cancels their calls. */
void stay_clients_turn(struct stay *stay);
/* Says goodbye, and why, or what `outcome` is to who closed it. Their streams stay open until this
 * process is over: who waits for their end waits until nothing is left. */
void stay_clients_done(struct stay *stay, const struct run_outcome *outcome);

/* What `ready` says, without its keys' number: two pairs. */
void stay_emit_abilities(struct emit *emit, const struct stay *stay);

/* ---- stay_port.c ---- */

/* The owner, connected, and the answer to his {open, …}. */
void stay_port_open(struct stay *stay);
/* He talks nonsense: the sandbox is lost. */
void stay_port_lose(struct stay *stay, const struct csn_error *err);
/* The answer to {close, Ref}. */
void stay_port_closed(const struct stay *stay, struct stay_client *client,
		      const struct run_outcome *outcome);
/* Waits, for a moment, until he has read what he was told: this process ends then. */
void stay_port_linger(struct stay_client *client);

/* ---- stay_call.c ---- */

/* A frame from a client about a call of his. 0, or a negative errno: he talks nonsense. */
int stay_call_new(struct stay *stay, struct stay_client *client, const struct term *items);
int stay_call_pass(struct stay *stay, struct stay_client *client, int index,
		   const struct term *items);

/* A frame from the agent, for channel_read(). */
int stay_handle_frame(void *data, int index, const struct term *items, struct csn_error *err);

/* By the Ref that the agent knows; NULL: none. */
struct stay_call *stay_call_find(struct stay *stay, int64_t ref);
/* A call of our own to the agent, for a code session; NULL: there are too many. */
struct stay_call *stay_call_open(struct stay *stay, const char *verb, struct stay_eval *eval);
/* Does it only look at the sandbox? */
bool stay_call_is_quiet(const struct stay_call *call);
/* {cancel, Ref} to the agent, or the end of its worker; {signal, Ref, N}. */
void stay_call_cancel(struct stay *stay, struct stay_call *call);
void stay_call_signal(struct stay *stay, const struct stay_call *call, int signal);
/* The call is over for its client; the agent may still have to answer. */
void stay_call_forget(struct stay_call *call);
void stay_call_free(struct stay_call *call);

/* ---- stay_exec.c ---- */

/* Queues the call that a client's exec becomes. 0, or -errno with a sentence. */
int stay_exec_start(struct stay *stay, struct stay_call *call, const struct term *map,
		    struct csn_error *err);
void stay_exec_free(struct stay_exec *exec);
/* How long one more command, or an eval, may take by the plan. -ETIMEDOUT with a sentence: the time
 * of all together is spent. */
int stay_exec_left(const struct stay *stay, uint64_t *ret_ms, struct csn_error *err);
/* Ends it for a reason; the first stays. `is_soft`: TERM first, KILL 500 ms later. */
void stay_exec_end(struct stay *stay, struct stay_call *call, enum ending ending, bool is_soft);
/* Bytes of output came: how many of them are below the cap. */
size_t stay_exec_take(struct stay *stay, struct stay_call *call, int stream, size_t size);
/* Its reply, with the account. 0, or -EBADMSG with a sentence. */
int stay_exec_reply(struct stay *stay, struct stay_call *call, const struct term *map,
		    struct csn_error *err);
/* It is over without an account of the agent's: for that reason, if there was none before. */
void stay_exec_over(struct stay_exec *exec, enum ending ending);
void stay_exec_take_listener(struct stay *stay);
void stay_exec_notified(struct stay *stay, struct stay_call *call);
/* The same of a detached one. */
void stay_detached_notified(struct stay *stay, size_t i);
bool stay_has_detached(const struct stay *stay);
/* {fact, …} of the agent: such a one ended. 0, or -EBADMSG with a sentence. */
int stay_detached_ended(struct stay *stay, const struct term *map, struct csn_error *err);
/* Clocks; returns when to look again, CLOCK_NEVER. */
uint64_t stay_exec_clock(struct stay *stay, struct stay_call *call, uint64_t now_ms);

/* ---- stay_account.c ---- */

/* {reply, …} with the account of its exec; `map` is the agent's reply. */
void stay_tell_account(struct stay_call *call, const struct term *map);
/* {fact, …}, to the client who waits for that command. */
void stay_tell_fact(const struct stay_exec *exec, const struct fact *fact);

/* ---- stay_text.c ---- */

/* Keeps what a sentence needs of a call; what cannot be kept is missing in it. */
void stay_text_keep(struct stay_exec *exec, const struct term *map);
void stay_text_done(struct stay_exec *exec);
/* The sentence on its end, in `text`; "" for an end of its own. `map` is the agent's reply. */
void stay_text(const struct stay_exec *exec, const struct term *map, struct csn_error *ret_text);

/* ---- stay_work.c ---- */

/* In a process of a call's own: what ends with the monitor, for those who wait for it, is not held
 * open there. `data` is the stay. */
void stay_forget(void *data);

/* 0, or -errno with a sentence. */
int stay_work_start(struct stay *stay, struct stay_call *call, const struct term *map,
		    struct csn_error *err);
/* Its worker said something, or ended: the call may be free afterwards. */
void stay_work_ready(struct stay *stay, struct stay_call *call);

/* ---- stay_mount.c ---- */

/* Makes room in the plan for what will be lent. 0 or -ENOMEM. */
int stay_mount_init(struct stay *stay);

/* ---- stay_strict.c ---- */

/* May this command run behind this wall? 0, or -EPERM with a sentence that begins with
 * StrictModeRequired, and the fact is on record. */
int stay_check_strict(struct stay *stay, const struct term *map, struct csn_error *err);

/* ---- stay_log.c ---- */

/* What is lent to it while it runs, or, `is_withdrawn`, could not be after all. */
void stay_log_mount(struct stay *stay, const struct plan_mount *mount, bool is_withdrawn);

/* ExecStarted and ExecEnded; `map` is the client's call, or the agent's account (NULL: none). */
void stay_log_started(struct stay *stay, const struct stay_call *call, const struct term *map);
/* See above. */
void stay_log_ended(const struct stay_exec *exec, const struct term *map);
