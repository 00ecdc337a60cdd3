/*
 * audit - the account of a run: a hash chain of events, a manifest, and who checks them
 *
 *   <run root>/heads.jsonl                 one line per finished chain: run, last seq, last hash
 *   <run root>/<run_id>/logs/events.jsonl  {"seq","time","event","payload","prev","hash"}
 *   <run root>/<run_id>/manifest.json      every kept file with size and SHA-256, the head
 *   <run root>/<run_id>/result.json
 *
 * `hash` is the SHA-256 (lower-case hex) of the canonical line without `hash`: JSON with
 * sorted keys, no blanks, as jansson writes it with JSON_SORT_KEYS|JSON_COMPACT, and each number
 * that is no integer as the shortest text that reads back the same. Older lines have them with 17
 * digits; a line is checked in the form that it has. The first line's `prev` is 64 zeros. A write
 * that fails (full disk) never fails the run: the log is marked incomplete, and the result says so.
 *
 * Runs outside the wall, in the monitor, with the caller's rights; reads nothing that
 * untrusted code wrote except texts it is handed, which are redacted and made valid UTF-8.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/removed.h"

/* The closed list of events. Names: audit_event_name(). docs/events.md is made from the table. */
enum audit_event {
	EVENT_RUN_STARTED,
	EVENT_LOCKDOWN_STEP,
	EVENT_GRANT,
	EVENT_POLICY_OVERRIDE,
	EVENT_EXEC_STARTED,
	EVENT_EXEC_ENDED,
	EVENT_GATE_CALLED,
	EVENT_FORWARDED,
	EVENT_APPROVED,
	EVENT_VIOLATION,
	EVENT_WORKER_EVENT,
	EVENT_RUN_EXITED,
	EVENT_COMMITTED,
	EVENT_JOB_STARTED,
	EVENT_JOB_RESUMED,
	EVENT_JOB_EXTENDED,
	EVENT_JOB_CLOCK,
	EVENT_JOB_ENDED,
	EVENT_COUNT
};

const char *audit_event_name(enum audit_event event);
const char *audit_event_what(enum audit_event event); /* one line for the docs */

/* May this event's line wait in memory for the next one? Only the launch's own reports may. */
bool audit_event_may_wait(enum audit_event event);

/* ---- chain ------------------------------------------------------------------------ */

struct redactor;

enum {
	CHAIN_LINE_MAX =
		65536, /* bytes of a line with its newline; bigger payloads are cut, marked */
	CHAIN_WAITING_MAX = 32, /* lines that may wait in memory */
};

struct chain {
	int fd;             /* owned; -1: nothing is written (--no-record) */
	uint64_t seq;       /* of the next line, from 1 */
	char head[65];      /* hash of the last line, 64 zeros at the start */
	bool is_incomplete; /* a write failed: later lines are dropped, the run goes on */
	int error;          /* the first failure, a negative errno */
	bool syncs;         /* write and fdatasync each line (jobs) */
	const struct redactor *redactor; /* borrowed; NULL: payloads are written as they are */

	/* Private: lines that wait, and what is known to be on disk. */
	struct buf pending;
	unsigned waiting;
	uint64_t disk_size, disk_seq;
	char disk_head[65];
};

/* Takes `fd` (may be -1), a new empty file opened O_APPEND. */
void chain_init(struct chain *chain, int fd);

/* Writes what waits, closes the descriptor. */
void chain_done(struct chain *chain);

/*
 * Appends one event. Steals `payload` (an object; NULL, from a failed json_pack(), is written
 * as {"missing":true}). Never fails the caller; see is_incomplete. LockdownStep, Grant and
 * PolicyOverride wait in memory for the next event of another kind, at most 32 lines; all
 * other events are written before this returns.
 */
void chain_add(struct chain *chain, enum audit_event event, json_t *payload);

/* Writes what waits. */
void chain_flush(struct chain *chain);

/* ---- run folder --------------------------------------------------------------------- */

enum { RUN_ID_SIZE = 40 };

struct record {
	int root_fd; /* run root, owned, -1 without a record */
	int dir_fd;  /* <run root>/<run_id>, owned; locked (flock) while the run lives */
	char run_id[RUN_ID_SIZE];
	struct chain chain;
	json_t *kept; /* private: paths from record_keep(), NULL if none */
};

/* Makes a run id: time-sortable and unique, "20260102-030405-abcdef123456"; 12 random hex digits.
 */
int record_make_id(char *ret_id, size_t size);

/* Is this text of that form? Everything else in a run root is none of ours. */
bool record_is_id(const char *text);

/*
 * The name of a job's folder, which its owner chooses: letters, digits, '-', '_' and '.', none of
 * them first but a letter or a digit, shorter than RUN_ID_SIZE, and not of a run's form.
 */
bool record_is_job_id(const char *text);

/*
 * Creates <root>/<run_id> (0700) with logs/ and opens the chain. The root's missing parents are
 * made (0700). The root must belong to the caller or root and be writable by nobody else.
 */
int record_open(struct record *record, const char *root, struct csn_error *err);

/* The same under an id that record_make_id() made; -EEXIST when there is such a run. */
int record_open_as(struct record *record, const char *root, const char *id, struct csn_error *err);

/*
 * The record of a job: the same in a folder called `id`, a job id, that may exist, with files that
 * somebody laid in there for the worker. -EEXIST where it has a chain, -EBUSY where somebody holds
 * it.
 */
int record_open_job(struct record *record, const char *root, const char *id, struct csn_error *err);

/*
 * Makes a run's folder before there is a run: under a name that no reader takes for one, with the
 * files that a run will fill. Locked by who made it; record_sweep() removes what a killed one left.
 */
int record_open_ahead(struct record *record, const char *root, struct csn_error *err);

/* Such a folder becomes the run `id` of `root`, if that is still the folder it was made in: 0, or a
 * negative errno, and the folder is gone then. */
int record_begin(struct record *record, const char *root, const char *id, struct csn_error *err);

/* Removes such a folder; nothing, where there is none. */
void record_drop(struct record *record);

/*
 * Refuses a job's folder, its logs or its chain with -EPERM where somebody else owns one, or may
 * write in it: what they say is not believed then.
 */
int record_check_job(int dir_fd, const char *id, struct csn_error *err);

/* Takes the right to write in a job's folder back, which its worker may have given to others. */
void record_shut_job(int dir_fd);

/*
 * Continues the chain of an existing run or job in the same folder. A line that a
 * crash cut short is removed; a chain that does not verify is refused with -EBADMSG, a run
 * that is still alive with -EBUSY.
 */
int record_reopen(struct record *record, int root_fd, const char *run_id, struct csn_error *err);

/* Opens a run root for the calls below that take `root_fd`; checked as in record_open(), not made.
 */
int record_open_root(const char *root, int *ret_fd, struct csn_error *err);

/* A record that writes nothing (--no-record): every call below is a no-op. */
void record_open_none(struct record *record);

/*
 * state.json, atomically: {"schema_version":1,"run_id","status","pid","pid_start","argv",...}.
 * Borrows `state`; schema_version, run_id, pid and pid_start (the caller's process) are added
 * where absent. Call it right after record_open(), and for the last time before record_close():
 * the manifest covers it.
 */
int record_write_state(struct record *record, json_t *state, struct csn_error *err);

/* Makes the files that record_close() will fill, empty and under names that no reader looks at: on
 * ext4 that is half of what writing them costs. Optional; a failure shows at the close. */
void record_prepare(struct record *record);

/*
 * Registers one more file for the manifest (a checkpoint): relative to the run's folder, or
 * absolute. Files in the folder itself and in logs/ need no registering.
 */
int record_keep(struct record *record, const char *path, struct csn_error *err);

/*
 * Writes result.json atomically, then the manifest, appends the head to heads.jsonl (one write,
 * under flock), closes the chain. Borrows `result`. A failure is reported, the result lost only
 * on disk. The chain's `is_incomplete` is settled before: RunExited is written at once, so a
 * caller adds it, looks at `record->chain.is_incomplete`, and then builds the result.
 */
int record_close(struct record *record, json_t *result, struct csn_error *err);

/* Frees and closes everything; a run without record_close() is then `lost`. */
void record_done(struct record *record);

/* ---- verify -------------------------------------------------------------------------- */

struct verdict {
	bool is_good;
	bool is_open;   /* not good, but only because it did not end, or not yet: lines are good */
	char file[256]; /* relative to the run root: the first bad file */
	uint64_t line;  /* 1-based first bad line, 0 when not about a line */
	char reason[256]; /* "hash does not match", "seq 7 where 6 was expected", "file is missing"
			     … */
};

/* Recomputes chain, manifest and head. 0 with *ret_verdict, or a negative errno (no such run). */
int record_verify(int root_fd, const char *run_id, struct verdict *ret_verdict,
		  struct csn_error *err);

/* ---- list and retention ---------------------------------------------------------------- */

struct run_info {
	char run_id[40];
	char status[16];     /* running finished lost */
	int64_t started_ms;  /* wall clock; 0 if unknown */
	uint64_t size_bytes; /* on disk */
	bool is_kept;
};

/* Calls `each` for every run, newest first; stops when it returns non-zero and returns that. */
int record_list(int root_fd, int (*each)(const struct run_info *info, void *data), void *data,
		struct csn_error *err);

/* Resolves an id or a unique suffix of one; -ENOENT; -ENOTUNIQ with the candidates in `err`. "" is
 * the last run. */
int record_resolve(int root_fd, const char *name, char *ret_id, size_t size, struct csn_error *err);

/* Removes one finished or lost run; -EBUSY if running. */
int record_remove(int root_fd, const char *run_id, struct csn_error *err);

struct retention {
	uint64_t runs;   /* 200 */
	uint64_t age_ms; /* 7 days */
	uint64_t
		bytes; /* 1 GiB; UINT64_MAX: sizes are not added up, which takes most of the time */
};

/* Removes the oldest finished runs beyond any bound; never a running or a kept one. Returns how
 * many. */
int record_retain(int root_fd, const struct retention *bounds, struct csn_error *err);

/* Finishes what was being removed from the run root, or made in it, by somebody who was killed:
 * told as "record" and "skeleton". Part of record_retain(). */
void record_sweep(int root_fd, const struct removed *removed);

/*
 * Is it time for record_retain()? For the end of a run: one fstat() instead of a walk over all
 * runs. True for one run in eight when there are an eighth more runs than bounds allow (then sizes
 * need not be looked at: `bounds->bytes` is raised), and for one run in 64.
 */
bool record_retain_is_due(int root_fd, const char *run_id, struct retention *bounds);

/* ---- redaction --------------------------------------------------------------------------- */

/* Known secrets by name and value ("API_KEY", "s3cr3t"); values shorter than 6 bytes are ignored.
 */
int redactor_new(struct redactor **ret_redactor);
int redactor_add(struct redactor *redactor, const char *name, const char *value);
void redactor_free(struct redactor *redactor);

/* A JSON string of `size` bytes with secrets as "[REDACTED:name]" and invalid UTF-8 as U+FFFD. NULL
 * when out of memory. */
json_t *redact_text(const struct redactor *redactor, const void *data, size_t size);

/* `value` with every text and key gone through redact_text(): a reference to the same value where
 * nothing had to change, else a copy. NULL when out of memory. */
json_t *redact_json(const struct redactor *redactor, json_t *value);
