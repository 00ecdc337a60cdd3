/*
 * caisson - run what nobody has read yet behind a wall, from a C or C++ program
 *
 * A sandbox is a handle to a monitor: another process, which holds the policy, the clocks and the
 * wall. This library only talks to it, so a crash, a leak or a fork in the program that links it
 * touches no wall, and nothing here needs a right of its own. docs/api.md walks through it.
 *
 * Results. A function returns 0, or a negative code from enum csn_code with a sentence in `err`
 * (which may be NULL); what it returns through `ret_…` is then untouched. A command that fails, is
 * killed or runs out of time is a result, not an error. Results belong to the caller: csn_free().
 *
 * Requests are structs. Set what you need and leave the rest zero, `reserved` too; the library
 * borrows what they point to until the call returns. Paths are inside the sandbox, relative to its
 * workspace or absolute; texts are UTF-8 or any bytes, ending in a NUL. Times are milliseconds
 * (`_ms`) or microseconds (`_us`), sizes bytes, signals their Linux numbers.
 *
 * Threads. Any number of threads may use one handle at once; a call occupies its own thread only.
 * No thread is hidden but csn_wall's and csn_gate's: whoever waits reads for all. Callbacks run in
 * the thread that made the call, hold no lock, may use the handle, must not throw or longjmp out,
 * and while one works only its own call stands still. No call is a cancellation point. A handle
 * belongs to the process that opened it: after a fork the child may only csn_close() it, which
 * leaves the sandbox alone.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define CSN_API __attribute__((visibility("default")))
#else
#define CSN_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- errors --------------------------------------------------------------------------------- */

/* Why something could not be done. The numbers are this library's, the same on every system. */
enum csn_code {
	CSN_OK = 0,
	CSN_E2BIG = 1,
	CSN_EACCES = 2,
	CSN_EAGAIN = 3,
	CSN_EBADF = 4,
	CSN_EBADMSG = 5,
	CSN_EBUSY = 6,
	CSN_ECHILD = 7,
	CSN_EDQUOT = 8,
	CSN_EEXIST = 9,
	CSN_EFBIG = 10,
	CSN_EINTR = 11,
	CSN_EINVAL = 12,
	CSN_EIO = 13,
	CSN_EISDIR = 14,
	CSN_ELIBBAD = 15,
	CSN_ELOOP = 16,
	CSN_EMFILE = 17,
	CSN_EMLINK = 18,
	CSN_EMSGSIZE = 19,
	CSN_ENAMETOOLONG = 20,
	CSN_ENFILE = 21,
	CSN_ENODEV = 22,
	CSN_ENOENT = 23,
	CSN_ENOEXEC = 24,
	CSN_ENOMEM = 25,
	CSN_ENOSPC = 26,
	CSN_ENOSYS = 27,
	CSN_ENOTDIR = 28,
	CSN_ENOTEMPTY = 29,
	CSN_ENOTSUP = 30,
	CSN_ENOTTY = 31,
	CSN_ENXIO = 32,
	CSN_EOVERFLOW = 33,
	CSN_EPERM = 34,
	CSN_EPIPE = 35,
	CSN_EPROTO = 36,
	CSN_EROFS = 37,
	CSN_ESPIPE = 38,
	CSN_ESRCH = 39,
	CSN_ESTALE = 40,
	CSN_ETIMEDOUT = 41, /* the call's time was over */
	CSN_ETXTBSY = 42,
	CSN_EXDEV = 43,
	CSN_NOT_SUPPORTED = 60, /* this sandbox does not have that verb, or part of it */
	CSN_INVALID = 61,       /* the request is not one; the sentence names the key */
	CSN_CANCELLED = 62,
	CSN_LOST = 63,             /* the sandbox is gone; every later call says so too */
	CSN_INVALID_REGEX = 64,    /* the sentence says where */
	CSN_COMMAND_LOST = 65,     /* what watched this command died; the sandbox goes on */
	CSN_MATCH_LIMIT = 66,      /* the expression takes too long */
	CSN_INVALID_PATTERN = 67,  /* no pattern of csn_glob() */
	CSN_TIER_UNAVAILABLE = 70, /* no wall here is as strong as was asked for */
	CSN_STRICT_UNAVAILABLE = 71,
	CSN_STRICT_REQUIRED = 72,   /* the policy demands a strict wall, and there is none */
	CSN_APPROVAL_REQUIRED = 73, /* a person has to say yes first; 74: he said no */
	CSN_APPROVAL_DENIED = 74
};

/* The caller's; never allocates. */
typedef struct csn_failure {
	int code;       /* enum csn_code, positive; 0: nothing went wrong */
	char stage[32]; /* what was being done: "open", "policy", "wire", "edit" */
	char text[476]; /* one sentence: the cause and, where there is one, a way out */
} csn_error;

/* "enoent", "lost", "TierUnavailable", as in results and frames; of either sign. Never NULL. */
CSN_API const char *csn_code_name(int code);

/* Of a csn_open() that failed: is it not permitted by the policy (CSN_EPERM, CSN_EACCES of stage
 * "policy"), by what this machine has or by a person (codes from 70)? Else it was wrong. */
CSN_API bool csn_is_refusal(const csn_error *error);

/* "0.1.0". Static text. */
CSN_API const char *csn_version(void);

/* Frees any result of this library; NULL is fine. */
CSN_API void csn_free(const void *result);

/* ---- sandboxes ------------------------------------------------------------------------------ */

typedef struct csn_sandbox csn_sandbox;
typedef struct csn_wall csn_wall;
typedef struct csn_gate csn_gate;

/*
 * What a sandbox is made from: the flags of `caisson run`, as texts in the same form. Nothing is
 * read or decided here; the monitor does, and refuses with a sentence. All zero: the project in the
 * current folder, read-only, and its policy file. Lists end with NULL.
 */
typedef struct csn_options {
	const char *program; /* the caisson command; NULL: the one installed with us, or on PATH */
	const char *policy;  /* --policy FILE */
	const char *tier;    /* --tier: "balanced"; at least this wall */
	const char *backend; /* --backend: exactly this one; NULL: what CAISSON_BACKEND names */
	const char *workspace;     /* --workspace: "PATH[:ro|rw|cow]" */
	const char *at;            /* --at: where it appears; "host": under its own path */
	const char *network;       /* --network: "none", "loopback", "allow", "engine" */
	const char *const *allow;  /* --allow: "HOST[:PORT]" */
	const char *const *mounts; /* --mount: "HOST:AT[:ro|rw]" */
	const char *const *limits; /* --limit: "memory=1GiB", "processes=64" */
	const char *const *env;    /* --env: "NAME=VALUE", or "NAME" to pass on ours. Others on this
				    * machine may read a VALUE given here: pass secrets by name */
	const char *const *tags;   /* --tag */
	const char *run_dir;       /* --run-dir: where the record goes */
	bool no_record;            /* --no-record */
	uint32_t start_timeout_ms; /* for the wall to stand; 0: a minute */
	uint32_t call_timeout_ms;  /* for each call that has none of its own; 0: none */
	const char *pool;      /* `caisson pool start`'s name: one that it prepared, if one fits */
	const csn_wall *wall;  /* a wall of your own, at the end of this header; copied */
	const char *within;    /* --within FILE: no wider than this policy file; no pool is asked */
	const csn_gate *gates; /* `gate_count` of them: caisson_gates.h; copied; no pool is asked */
	size_t gate_count;
	const void *reserved[3];
} csn_options;

/*
 * Starts a monitor (posix_spawn; this process never forks) and waits until its wall stands. NULL
 * options are all zero. Returns a handle for csn_close(), or NULL with `err`: CSN_TIER_UNAVAILABLE,
 * CSN_STRICT_…, CSN_ENOENT without the caisson command, CSN_ETIMEDOUT, or what the monitor says.
 * When the process that opened it ends, however it ends, the sandbox does.
 */
CSN_API csn_sandbox *csn_open(const csn_options *options, csn_error *err);

/*
 * Joins a sandbox that `caisson up` made, by its name, or by the path of its socket if there is a
 * '/' in it. The socket must be ours or root's (CSN_EPERM). csn_close() leaves it running.
 */
CSN_API csn_sandbox *csn_attach(const char *name, csn_error *err);

/*
 * The same over a connected stream socket on which a monitor will say `ready`. The descriptor is
 * the library's from here on, even on failure.
 */
CSN_API csn_sandbox *csn_adopt(int fd, csn_error *err);

/*
 * Ends a sandbox of csn_open(), and waits at most 20 s until nothing of it is left; of one from a
 * pool until every process in it is dead and its workspace as it will be: its monitor finishes the
 * record, and removes mounts and groups, right after. Leaves one of csn_attach(). No call may be
 * running. NULL is fine. Frees the handle, not the results.
 */
CSN_API void csn_close(csn_sandbox *sandbox);

/* May `csn_VERB` work ("exec", "commit")? If not, it answers CSN_NOT_SUPPORTED. */
CSN_API bool csn_has_verb(const csn_sandbox *sandbox, const char *verb);

/* Does the wall enforce this ("syscalls", "net-none"; as in result.json)? */
CSN_API bool csn_enforces(const csn_sandbox *sandbox, const char *feature);

/* ---- calls ---------------------------------------------------------------------------------- */

/* What every request begins with. All zero: nobody cancels it, and the handle's time. */
typedef struct csn_call {
	uint64_t id;         /* from csn_call_id(), for one call only */
	uint32_t timeout_ms; /* then CSN_ETIMEDOUT, or a result that says so for exec */
	uint32_t reserved;
} csn_call;

/* A number for csn_cancel(), not 0. The call need not begin. */
CSN_API uint64_t csn_call_id(csn_sandbox *sandbox);

/*
 * Cancels a call, from any thread or a callback; not from a signal handler. It returns
 * CSN_CANCELLED soon, or a result with CSN_REASON_CANCELLED, or what it had reached already. A call
 * that has not begun is cancelled when it begins, unless 64 others were cancelled since. 0;
 * negative only when the sandbox is lost.
 */
CSN_API int csn_cancel(csn_sandbox *sandbox, uint64_t id, csn_error *err);

/* Sends a signal (1 to 64, as on Linux) to a running command; nothing if there is none. */
CSN_API int csn_signal(csn_sandbox *sandbox, uint64_t id, int signal, csn_error *err);

/* The size of a running command's terminal. */
CSN_API int csn_resize(csn_sandbox *sandbox, uint64_t id, uint16_t rows, uint16_t columns,
		       csn_error *err);

enum csn_stream { CSN_STDOUT = 1, CSN_STDERR = 2, CSN_TTY = 3 };

/* Takes output as it comes; `bytes` are borrowed. Not 0: the call is cancelled, and this not called
 * again. */
typedef int (*csn_output_fn)(void *data, enum csn_stream stream, const void *bytes, size_t size);

/* Fills at most `size` bytes. Returns how many, 0 at the end, CSN_INPUT_LATER when there is nothing
 * yet, another negative to cancel the call. While it waits, its call's output waits as well: one
 * that would have to wait says CSN_INPUT_LATER instead. */
typedef ptrdiff_t (*csn_input_fn)(void *data, void *ret_bytes, size_t size);

/* Nothing yet: it is asked again when `input_fd` can be read, or after csn_input_ready(). */
#define CSN_INPUT_LATER PTRDIFF_MIN

/* There is more to ask a call's `on_input` for. From any thread or a callback; one that comes while
 * it is being asked is not lost. */
CSN_API int csn_input_ready(csn_sandbox *sandbox, uint64_t id, csn_error *err);

/* Is told that `ready_fd` can be read, and has to read it, or is told so at once again. Not 0: the
 * call is cancelled, and this not called again. */
typedef int (*csn_ready_fn)(void *data);

/* ---- commands ------------------------------------------------------------------------------- */

/* How a command ended. */
enum csn_reason {
	CSN_REASON_EXITED = 1,
	CSN_REASON_SIGNALED = 2,
	CSN_REASON_TIMEOUT = 3, /* `clock` says which one */
	CSN_REASON_MEMORY = 4,
	CSN_REASON_OUTPUT = 5,
	CSN_REASON_PROCESSES = 6,
	CSN_REASON_SCRATCH = 7,
	CSN_REASON_VIOLATION = 8, /* where the policy kills for one */
	CSN_REASON_CANCELLED = 9, /* of what it wrote last, some is missing */
	CSN_REASON_LOST = 10,
	CSN_REASON_START_FAILED = 11, /* nothing ran; `error` and `text` say why */
	CSN_REASON_DETACHED = 12      /* it goes on */
};

/* Something the sandbox tried that its policy does not permit. Absent texts are NULL. */
typedef struct csn_violation {
	const char *event;  /* "FilesystemWriteViolation" */
	const char *source; /* what saw it: "seccomp", "cgroup", "clock" */
	const char *rule;   /* what decided: "limits.memory" */
	const char *say;    /* a sentence: what was denied, what is allowed instead */
	bool certain;       /* false: a program that races could have blurred the record */
	bool expected;      /* noise that well-known tools make */
	bool others;        /* stands for further different ones of its event */
	uint64_t count;     /* equal ones are one */
	int64_t time_ms;    /* of the first, since 1970, UTC; 0: unknown */
	int64_t last_ms;    /* of the last */
	int64_t pid;        /* on the host; 0: unknown */
	const char *comm;   /* the program's name, which it can choose */
	const char *syscall;
	const char *path; /* inside the sandbox */
	const char *to;   /* the second path of a rename or link */
	const char *address;
	const char *host; /* a name that was looked up */
	const char *text; /* anything else */
	uint16_t port;
} csn_violation;

/* Is told each violation while the command runs; all of it is borrowed. Not 0: cancel. */
typedef int (*csn_violation_fn)(void *data, const csn_violation *violation);

typedef struct csn_exec_request {
	csn_call call;
	const char *const *argv; /* program and arguments, ends with NULL; this or `command` */
	const char *command;     /* text for bash, or sh where there is no bash */
	const char *cwd;         /* NULL: the workspace */
	const char *const *env;  /* "NAME=VALUE", added to the sandbox's own */
	const void *input;       /* standard input, `input_size` bytes; else it is empty */
	size_t input_size;
	csn_input_fn on_input;         /* instead of `input` */
	csn_output_fn on_output;       /* NULL: the result keeps the output */
	csn_violation_fn on_violation; /* may be NULL */
	void *data;                    /* the callbacks' */
	size_t keep_bytes;             /* of each stream in the result; 0: 1 MiB, at most 64 MiB */
	bool has_tty; /* a terminal of its own, for somebody at the other end: no `command` clock of
		       * the policy's ends it, only timeout_ms, its silence and the sandbox's end */
	uint16_t rows, columns;
	bool detach;     /* outlives the call, which returns when the program was executed */
	const char *tag; /* by which it is found: csn_logs(), csn_wait(), csn_kill() */
	int input_fd; /* with has_input_fd: polled with the stream, and only what it has is read, so
		       * that output never waits for input. `on_input` is then asked when it can
		       * be read; without one the call reads it itself, which nobody else may */
	int ready_fd; /* with on_ready: polled as well, from the call's beginning to its end */
	csn_ready_fn on_ready; /* for signals, the size of a terminal, a program's own loop */
	bool has_input_fd;
	const void *reserved[5];
} csn_exec_request;

typedef struct csn_bytes {
	const char *data; /* `size` bytes and a NUL */
	size_t size;
} csn_bytes;

/* Output that was kept: all of it, or its first and its last half. */
typedef struct csn_output {
	const char *data; /* `size` bytes and a NUL */
	size_t size;
	uint64_t total;     /* bytes that came */
	uint64_t cut_bytes; /* bytes that are missing */
	size_t cut_at;      /* where in `data` */
} csn_output;

typedef struct csn_exec_result {
	enum csn_reason reason;
	const char *reason_name; /* "exited"; of a reason that this library does not know too */
	const char *clock;       /* "command", "budget", "idle"; NULL: no timeout */
	int exit_code;           /* -1: it did not exit by itself */
	int signal;              /* that ended it, or 0 */
	int error;               /* enum csn_code, of CSN_REASON_START_FAILED */
	const char *stage;       /* what failed then; NULL: nothing */
	const char *text;        /* a sentence on it, or on the limit that stopped it; NULL */
	uint64_t wall_us;
	uint64_t cpu_us;
	uint64_t mem_peak_bytes;
	const char *scope;         /* what these are of: "command" or "sandbox" */
	uint64_t stdout_bytes;     /* that it wrote */
	uint64_t stderr_bytes;     /* of these */
	uint64_t output_cut_bytes; /* the sandbox's output limit cut */
	csn_output output;         /* stdout, or the terminal; empty with on_output */
	csn_output errors;         /* stderr */
	const csn_violation *violations;
	size_t violation_count;
	bool detached; /* it goes on: all but `pid` says nothing yet */
	int pid;       /* of a detached command, inside */
} csn_exec_result;

/*
 * Runs a command and waits for its end. 0 and a result, whatever its status; negative when nothing
 * can be said of it: CSN_LOST, CSN_INVALID, CSN_NOT_SUPPORTED. A CSN_REASON_START_FAILED is a
 * result, of a program that is not there.
 */
CSN_API int csn_exec(csn_sandbox *sandbox, const csn_exec_request *request,
		     csn_exec_result **ret_result, csn_error *err);

/* ---- detached commands ---------------------------------------------------------------------- */

typedef struct csn_process {
	const char *tag;    /* NULL: it has none */
	const char *state;  /* "starting", "running", "ending", "ended", "lost" */
	bool detached;      /* outlives its call */
	int pid;            /* inside; 0 before it began */
	int exit_code;      /* -1: it has not exited by itself */
	int signal;         /* that ended it, or 0 */
	int64_t started_ms; /* since 1970, UTC */
	uint64_t bytes;     /* output of a detached one so far */
	uint64_t cut_bytes; /* of them, those that csn_logs() no longer has */
} csn_process;

typedef struct csn_ps_result {
	const csn_process *commands; /* ended ones first, the oldest first */
	size_t count;
} csn_ps_result;

/* Lists commands that run, and detached ones that ended. NULL options are all zero. */
CSN_API int csn_ps(csn_sandbox *sandbox, const csn_call *options, csn_ps_result **ret_result,
		   csn_error *err);

typedef struct csn_logs_request {
	csn_call call;
	const char *tag;
	bool follow;             /* until the command has ended */
	csn_output_fn on_output; /* NULL: the result keeps the output */
	void *data;
	size_t keep_bytes; /* of each stream in the result; 0: 1 MiB, at most 64 MiB */
	const void *reserved[4];
} csn_logs_request;

typedef struct csn_logs_result {
	csn_output output;
	csn_output errors;
	uint64_t bytes;     /* that came */
	uint64_t cut_bytes; /* that it wrote and that did not come: the last 1 MiB is remembered */
	bool running;       /* there may be more */
} csn_logs_result;

/* Replays a detached command's output. CSN_ENOENT: nobody has that tag. */
CSN_API int csn_logs(csn_sandbox *sandbox, const csn_logs_request *request,
		     csn_logs_result **ret_result, csn_error *err);

typedef struct csn_wait_request {
	csn_call call; /* its time's end is a result; the command lives on */
	const char *tag;
	uint16_t port;    /* until somebody inside listens on it */
	const char *line; /* until it writes a line that this POSIX extended expression matches */
	const char *text; /* until it writes a line that contains this */
	bool forget;      /* of one that has ended: drops its status and output */
	const void *reserved[4];
} csn_wait_request;

typedef struct csn_wait_result {
	bool reached;   /* it is so; without port, line and text: it has ended */
	bool timed_out; /* the time is over */
	bool running;
	int exit_code;  /* -1: it has not exited by itself */
	int signal;     /* that ended it, or 0 */
	csn_bytes line; /* the one that matched; data NULL: none */
} csn_wait_result;

/* Waits for a detached command. CSN_ENOENT: nobody has that tag. */
CSN_API int csn_wait(csn_sandbox *sandbox, const csn_wait_request *request,
		     csn_wait_result **ret_result, csn_error *err);

typedef struct csn_kill_request {
	csn_call call;
	const char *tag;
	int signal; /* 1 to 64; 0: TERM to its tree, and KILL after 500 ms */
	const void *reserved[4];
} csn_kill_request;

/* Signals a command; returns when the signal was sent. CSN_ENOENT: nobody has that tag;
 * CSN_ESRCH: it has ended. */
CSN_API int csn_kill(csn_sandbox *sandbox, const csn_kill_request *request, csn_error *err);

/* ---- files ---------------------------------------------------------------------------------- */

typedef struct csn_read_request {
	csn_call call;
	const char *path;
	uint64_t offset;
	uint64_t length;         /* most bytes; 0: to the end, and CSN_EFBIG above 64 MiB */
	csn_output_fn on_output; /* takes the content, of any size; the result is then empty */
	void *data;
	const void *reserved[4];
} csn_read_request;

/* Reads a file. CSN_ENOENT, CSN_EISDIR, CSN_EACCES, CSN_EINVAL (no regular file) … */
CSN_API int csn_read(csn_sandbox *sandbox, const csn_read_request *request, csn_bytes **ret_bytes,
		     csn_error *err);

typedef struct csn_write_request {
	csn_call call;
	const char *path; /* parents are made */
	const void *bytes;
	size_t size;
	csn_input_fn on_input; /* instead of `bytes` */
	void *data;
	uint16_t mode; /* permissions; 0: those it had, or 0644 */
	const void *reserved[4];
} csn_write_request;

/* Replaces a file, whole or not at all. CSN_EROFS, CSN_ENOSPC, CSN_EISDIR … */
CSN_API int csn_write(csn_sandbox *sandbox, const csn_write_request *request, csn_error *err);

typedef struct csn_edit_request {
	csn_call call;
	const char *path;
	const void *old_text; /* must occur exactly once; at most 1 MiB */
	size_t old_size;      /* 0: it ends at its NUL */
	const void *new_text; /* what replaces it; at most 1 MiB */
	size_t new_size;      /* 0: it ends at its NUL */
	const void *reserved[4];
} csn_edit_request;

typedef struct csn_edit_result {
	uint64_t occurrences; /* of the old text; the file was written if 1 */
	csn_bytes content;    /* of the file now; data is NULL above 1 MiB */
} csn_edit_result;

/* Replaces a text where it occurs exactly once; else counts it, changes nothing and returns 0. */
CSN_API int csn_edit(csn_sandbox *sandbox, const csn_edit_request *request,
		     csn_edit_result **ret_result, csn_error *err);

typedef struct csn_path_request {
	csn_call call;
	const char *path;
	bool recursive; /* csn_remove: a folder with its content */
	const void *reserved[4];
} csn_path_request;

typedef struct csn_stat_result {
	const char *type; /* "file", "directory", "symlink", "fifo", "socket", "device" */
	uint64_t size;
	uint16_t mode;      /* permissions */
	int64_t mtime_ms;   /* since 1970, UTC */
	const char *target; /* of a symbolic link; NULL */
} csn_stat_result;

/* Describes a path; links are not followed. */
CSN_API int csn_stat(csn_sandbox *sandbox, const csn_path_request *request,
		     csn_stat_result **ret_result, csn_error *err);

typedef struct csn_entry {
	const char *name;
	const char *type; /* as in csn_stat() */
	uint64_t size;
} csn_entry;

typedef struct csn_list_result {
	const csn_entry *entries; /* sorted by name, dot files too */
	size_t count;
	bool truncated; /* there were more */
} csn_list_result;

/* Lists a folder. */
CSN_API int csn_list(csn_sandbox *sandbox, const csn_path_request *request,
		     csn_list_result **ret_result, csn_error *err);

/* Removes a file, a link or a folder. CSN_ENOTEMPTY unless `recursive`. */
CSN_API int csn_remove(csn_sandbox *sandbox, const csn_path_request *request, csn_error *err);

typedef struct csn_move_request {
	csn_call call;
	const char *path;
	const char *to; /* its new path, which is replaced */
	const void *reserved[4];
} csn_move_request;

/* Renames. CSN_EXDEV between mounts. */
CSN_API int csn_move(csn_sandbox *sandbox, const csn_move_request *request, csn_error *err);

/* ---- search --------------------------------------------------------------------------------- */

typedef struct csn_glob_request {
	csn_call call;
	const char *pattern; /* with `**` and braces; matches dot files */
	const char *cwd;     /* NULL: the workspace */
	uint32_t limit;      /* most paths; 0: 1000 */
	const void *reserved[4];
} csn_glob_request;

typedef struct csn_glob_result {
	const char *const *paths; /* `count` of them, relative to cwd, sorted, and a NULL */
	size_t count;
	bool truncated;
	uint64_t skipped; /* folders that could not be read, or are the kernel's */
} csn_glob_result;

/* Lists paths. A pattern that is none is CSN_INVALID_PATTERN, never an empty list. */
CSN_API int csn_glob(csn_sandbox *sandbox, const csn_glob_request *request,
		     csn_glob_result **ret_result, csn_error *err);

typedef struct csn_grep_request {
	csn_call call;
	const char *pattern; /* a regular expression */
	const char *path;    /* file or folder; NULL: the workspace */
	const char *glob;    /* only files whose path matches; NULL: all */
	bool ignore_case;
	uint32_t limit;   /* most matches; 0: the sandbox's default */
	uint32_t context; /* lines before and after, at most 100 */
	const void *reserved[4];
} csn_grep_request;

typedef struct csn_match {
	const char *path; /* relative to the workspace */
	uint64_t line_number;
	csn_bytes line; /* without its newline */
	bool is_context;
} csn_match;

typedef struct csn_grep_result {
	const csn_match *matches; /* in order of path and line */
	size_t count;
	const char *const *binary; /* files that match and are no text, and a NULL */
	size_t binary_count;
	bool truncated;
	uint64_t skipped; /* files and folders that could not be read, or are the kernel's */
} csn_grep_result;

/* Finds lines. CSN_INVALID_REGEX. */
CSN_API int csn_grep(csn_sandbox *sandbox, const csn_grep_request *request,
		     csn_grep_result **ret_result, csn_error *err);

/* ---- the workspace -------------------------------------------------------------------------- */

typedef struct csn_mount_request {
	csn_call call;
	const char *host; /* on the host, beneath one of the policy's mount_roots */
	const char *at;
	bool writable;
	const void *reserved[4];
} csn_mount_request;

/*
 * Lends one more file or folder to a sandbox that runs; seen there at once. `at` is absolute, and
 * writable only beneath /mnt/rw. CSN_EPERM where the policy does not permit it, CSN_EBUSY where
 * something is mounted, CSN_EXDEV where `at` is missing and not ours to make, CSN_NOT_SUPPORTED
 * where the wall shows the host's own tree.
 */
CSN_API int csn_mount(csn_sandbox *sandbox, const csn_mount_request *request, csn_error *err);

typedef struct csn_changes_request {
	csn_call call;
	const char *const *paths; /* only these, ends with NULL; NULL: all */
	size_t keep_bytes;        /* csn_diff: of the text; 0: 1 MiB, at most 64 MiB */
	bool names_only;          /* csn_diff: no changed lines */
	bool force;               /* csn_commit: replaces what somebody else changed meanwhile */
	bool dry_run;             /* csn_commit: only says what it would do */
	csn_output_fn on_output;  /* csn_diff: takes the text instead; NULL: it is kept */
	void *output_data;
	const void *reserved[4];
} csn_changes_request;

typedef struct csn_change {
	const char *path;   /* relative to the workspace */
	const char *change; /* "added", "modified", "deleted" */
	const char *kind;   /* "file", "folder", "link", "other"; NULL */
	uint64_t size;      /* now, or of what was deleted */
	const char *reason; /* why commit left it out; NULL */
	uint32_t mode;      /* permissions, as `size` */
	bool guarded;       /* commit writes it only if it is named */
	const char *other;  /* of a rename: where it was, or where it is; NULL */
} csn_change;

typedef struct csn_diff_result {
	const csn_change *changes; /* sorted by path */
	size_t count;
	bool truncated;
	csn_output text; /* the changed lines, as patch(1) reads them */
	/* Files of the workspace that cannot be changed in the copy: their owner or group has no
	 * number inside. Of its first 20,000; and ten names with a NULL after them, or NULL. */
	uint64_t foreign;
	const char *const *foreign_names;
} csn_diff_result;

/* Lists what a copy-on-write workspace changed; its commands may run meanwhile. */
CSN_API int csn_diff(csn_sandbox *sandbox, const csn_changes_request *request,
		     csn_diff_result **ret_result, csn_error *err);

typedef struct csn_commit_result {
	const csn_change *applied;
	size_t applied_count;
	const csn_change *left; /* each with a reason */
	size_t left_count;
	bool truncated; /* there were more of either than are listed */
} csn_commit_result;

/*
 * Writes those changes to the workspace itself, each file in one step, except what changed there
 * meanwhile or is guarded; the sandbox goes on and sees what it saw.
 */
CSN_API int csn_commit(csn_sandbox *sandbox, const csn_changes_request *request,
		       csn_commit_result **ret_result, csn_error *err);

/* ---- what it is and uses -------------------------------------------------------------------- */

/* A number that nobody knows, a limit that there is not. */
#define CSN_NONE UINT64_MAX

typedef struct csn_stats_result {
	const char *sandbox_id; /* of its record, as `caisson runs show` takes it */
	const char *tier;       /* that was asked for */
	const char *backend;    /* the wall that was chosen */
	const char *workspace;  /* on the host; NULL: none */
	const char *mode;       /* of the workspace: "ro", "rw", "cow" */
	int64_t started_ms;     /* since 1970, UTC */
	uint64_t commands;      /* that run, detached ones too */
	uint64_t idle_ms;       /* since anything was asked but this; 0: somebody waits */
	uint64_t idle_limit_ms; /* after which it ends, or CSN_NONE */
	const char *means;  /* how what follows is known: "cgroup", "sampled"; "none": not at all */
	uint64_t mem_bytes; /* of all its commands together; this and what follows: or CSN_NONE */
	uint64_t mem_limit;
	uint64_t processes; /* and threads */
	uint64_t processes_limit;
	uint64_t cpu_us; /* of processor time, since it began */
	uint64_t scratch_bytes;
	uint64_t scratch_limit;
} csn_stats_result;

/* Says what a sandbox is and uses, now. It is no sign of life: a sandbox that is only looked at
 * ends after limits.idle all the same. NULL options are all zero. */
CSN_API int csn_stats(csn_sandbox *sandbox, const csn_call *options, csn_stats_result **ret_result,
		      csn_error *err);

typedef struct csn_snapshot_request {
	csn_call call;
	const char *tag; /* letters, digits, '-', '_', '.' */
	const void *reserved[4];
} csn_snapshot_request;

typedef struct csn_fork_request {
	csn_call call;
	const char *name; /* of the new sandbox */
	const char *tag;  /* of a snapshot that it begins with; NULL: with what there is now */
	const void *reserved[4];
} csn_fork_request;

typedef struct csn_copied {
	uint64_t entries;      /* files and folders that were copied: those that changed */
	uint64_t bytes;        /* of files, as long as they are */
	uint64_t torn;         /* files that changed all the time and may be of several moments */
	const char *torn_name; /* the first of them, without its folder */
} csn_copied;

/* Keeps what a copy-on-write workspace changed so far, in the sandbox's record. Commands go on. */
CSN_API int csn_snapshot(csn_sandbox *sandbox, const csn_snapshot_request *request,
			 csn_copied **ret_copied, csn_error *err);

/*
 * Starts another sandbox with those changes, under the same policy; csn_attach() joins it by its
 * name. It has no owner and lives on, until `caisson down` or its idle clock.
 */
CSN_API int csn_fork(csn_sandbox *sandbox, const csn_fork_request *request, csn_copied **ret_copied,
		     csn_error *err);

/* ---- a wall of your own --------------------------------------------------------------------- */

/*
 * Functions of yours as what stands behind csn_open(): a store, another machine, a simulation. The
 * calls of this sandbox arrive in them by way of the monitor, with the policy, the clocks, the
 * output cap and the record of any other. You declare what the wall enforces and observes; a plan
 * that needs more is refused, and so is a tier above "auto", which no program reaches on its own
 * word. A policy file, a flag or CAISSON_BACKEND that names another wall refuses it too.
 *
 * The library serves the wall in one thread of its own, which blocks all signals, from within
 * csn_open() until within csn_close(). One function runs at a time; other calls wait for it, 64 at
 * most. A function may not use this sandbox (CSN_INVALID) or close it, and csn_close() waits for
 * one that runs: one that takes long asks csn_answer_wait() now and then, also to hear of a cancel
 * within the 30 s in which callers expect it to be answered.
 *
 * A function is given the request of the csn_ function of its name, borrowed until it returns;
 * `call`, callbacks and what is for the library are zero in it. It gives one answer, or returns a
 * negative csn_code, for which 0 and no answer is enough where there is nothing to say (write,
 * remove, move) and the end of the data (read). What its answers must be is what csn_read() and so
 * on say of results: paths relative, lists sorted, bounds. An answer that is none fails with
 * CSN_EIO.
 */
typedef struct csn_answer csn_answer;
struct csn_wall {
	const char *const *enforces; /* "fs-write", "net-none"; ends with NULL; NULL: nothing */
	const char *const *observes; /* "FilesystemWriteViolation", the same */
	void *data;                  /* given to each function; must live until csn_close() */
	/* NULL: CSN_NOT_SUPPORTED. read's `length` is never 0: the most bytes, or UINT64_MAX. */
	int (*read)(void *data, const csn_read_request *request, csn_answer *answer);
	int (*write)(void *data, const csn_write_request *request, csn_answer *answer);
	int (*edit)(void *data, const csn_edit_request *request, csn_answer *answer);
	/* `env` is the whole environment. `detach` is never asked for. */
	int (*exec)(void *data, const csn_exec_request *request, csn_answer *answer);
	int (*stat)(void *data, const csn_path_request *request, csn_answer *answer);
	int (*list)(void *data, const csn_path_request *request, csn_answer *answer);
	int (*remove)(void *data, const csn_path_request *request, csn_answer *answer);
	int (*move)(void *data, const csn_move_request *request, csn_answer *answer);
	int (*glob)(void *data, const csn_glob_request *request, csn_answer *answer);
	int (*grep)(void *data, const csn_grep_request *request, csn_answer *answer);
	const void *reserved[8];
};

/* All of these are for the thread that runs the function, until it returns. */
/* Answers that it could not be done. Returns -code. */
CSN_API int csn_answer_fail(csn_answer *answer, int code, const char *sentence);

/* The content of read, from `offset` (CSN_STDOUT), or output of exec; any number of times, of any
 * size. Waits while the other side has 256 KiB to take. 0, -CSN_CANCELLED, -CSN_LOST, -CSN_INVALID.
 */
CSN_API int csn_answer_data(csn_answer *answer, enum csn_stream stream, const void *bytes,
			    size_t size);

/* The content for write, or the input of exec: at most `size` bytes, waiting for the first. How
 * many; 0 at the end; -CSN_CANCELLED, -CSN_LOST, -CSN_INVALID. */
CSN_API ptrdiff_t csn_answer_input(csn_answer *answer, void *ret_bytes, size_t size);

/* Waits, -1: for ever, or only looks, 0. 0: go on; a signal that was sent to the command (1 to 64),
 * told once; -CSN_CANCELLED: nobody waits for the answer, or its time was over; -CSN_LOST. */
CSN_API int csn_answer_wait(csn_answer *answer, int wait_ms);

/* How the command of exec ended: its status (0 to 255), or the signal that ended it. 0, or
 * -CSN_INVALID: this call takes no such answer, has one, or may not have this one. */
CSN_API int csn_answer_exit(csn_answer *answer, int exit_code, int signal);

/* The result of edit, stat and so on, borrowed. Of as many entries, paths or matches as are allowed
 * the first ones are told. As csn_answer_exit(). */
CSN_API int csn_answer_edit(csn_answer *answer, const csn_edit_result *result);
CSN_API int csn_answer_stat(csn_answer *answer, const csn_stat_result *result);
CSN_API int csn_answer_list(csn_answer *answer, const csn_list_result *result);
CSN_API int csn_answer_glob(csn_answer *answer, const csn_glob_result *result);
CSN_API int csn_answer_grep(csn_answer *answer, const csn_grep_result *result);

/* Something that was tried and denied: `event`, which must be declared, and where they are there
 * `path`, `address`, `host` and `text`. Recorded as your word. 0, -CSN_CANCELLED, -CSN_LOST,
 * -CSN_INVALID. */
CSN_API int csn_answer_violation(csn_answer *answer, const csn_violation *violation);

#ifdef __cplusplus
}
#endif
#include "caisson_gates.h"
