/*
 * fact - one thing that was tried, limited or decided, as the account tells it
 *
 * A fact comes from the kernel (seccomp, Landlock, a cgroup counter), the proxy, a clock or
 * a counter of our own, never from what a program printed. It has a fixed size and owns no
 * memory, so a flood of them allocates nothing. Its texts are already valid UTF-8 without
 * control characters (fact_text()), so it always becomes JSON; secrets are masked when it does.
 *
 * Life: fact_init(), fill in `detail`, `pid`, `comm`, `rule`; violations_add() puts the time,
 * the sentence and the fold count.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <jansson.h>

#include "audit/audit.h"
#include "plan/plan.h"

/*
 * The one name server in the sandbox's /etc/resolv.conf. It is in a range reserved for
 * documentation (RFC 5737), so it answers nowhere; what is asked of it tells which name
 * a program looked up.
 */
#define FACT_RESOLVER "192.0.2.1"
#define FACT_RESOLVER_PORT 53

/* The closed list; names as in result.json: fact_event_name(). */
enum fact_event {
	FACT_NETWORK_ACCESS,     /* NetworkAccessViolation */
	FACT_FILESYSTEM_WRITE,   /* FilesystemWriteViolation */
	FACT_FILESYSTEM_READ,    /* FilesystemReadViolation */
	FACT_TIMEOUT,            /* TimeoutViolation */
	FACT_PROCESS_LIMIT,      /* ProcessLimitViolation */
	FACT_SYSCALL,            /* SyscallViolation */
	FACT_MEMORY_LIMIT,       /* MemoryLimitViolation */
	FACT_OUTPUT_LIMIT,       /* OutputLimitViolation */
	FACT_SCRATCH_LIMIT,      /* ScratchLimitViolation */
	FACT_STRICT_UNAVAILABLE, /* StrictModeUnavailable */
	FACT_STRICT_REQUIRED,    /* StrictModeRequired */
	FACT_POLICY_OVERRIDE,    /* PolicyOverride */
	FACT_EVENT_COUNT
};

enum fact_source {
	SOURCE_SECCOMP,
	SOURCE_LANDLOCK,
	SOURCE_CGROUP,
	SOURCE_PROXY,
	SOURCE_CLOCK,
	SOURCE_COUNTER,
	SOURCE_MONITOR,
	SOURCE_AGENT,
	SOURCE_GUEST,
	SOURCE_COUNT
};

/* What it was about. Empty texts are left out of the JSON. */
struct fact_detail {
	char syscall[32];  /* name, "syscall_N" for one without a name */
	bool has_args;     /* args go into the record: denied syscalls */
	uint64_t args[6];  /* registers as the kernel had them */
	bool path_unknown; /* the path is null and `text` says why */
	char path[384];    /* inside the sandbox */
	char to[384];      /* the second path of a rename or link */
	char address[160]; /* "198.51.100.7", "unix:/workspace/s", "unix:@name" */
	uint16_t port;     /* 0: none */
	uint64_t limit_ms; /* of a clock that ran out, 0: the plan's */
	char host[256];    /* the name that was looked up or asked of the proxy */
	char text[192];    /* anything else: a clock's name, limit and peak, a reason */
};

struct fact {
	enum fact_event event;
	enum fact_source source;
	int64_t time_ms; /* wall clock, of the first one */
	int64_t last_ms; /* of the last one folded in */
	uint64_t count;
	pid_t pid;       /* as the monitor sees it (host), 0: none */
	char comm[32];   /* the program's short name; it can choose it */
	bool is_certain; /* false: a racing program could have blurred the record, or it was sampled
			  */
	bool is_expected; /* well-known noise: no message, never kills */
	char rule[128];   /* what decided: "profile command: openat", "limits.memory" */
	struct fact_detail detail;
	char say[448]; /* one sentence for a model: what was denied, what is allowed instead */
};

/* All zero but event and source; certain, count 1. */
void fact_init(struct fact *ret_fact, enum fact_event event, enum fact_source source);

/*
 * Copies untrusted bytes into a text field: valid UTF-8 is kept, control characters and
 * invalid bytes become '?', what does not fit ends in "...". Stops at a NUL.
 */
void fact_text(char *ret_text, size_t size, const void *data, size_t length);

/* A clock of that name that ran out; a cap on output that was passed. */
void fact_timeout(struct fact *ret_fact, const char *clock, uint64_t limit_ms);
void fact_output_limit(struct fact *ret_fact, uint64_t limit_bytes);

/* Formats into a text field of a fact; the result passes through fact_text(). */
__attribute__((format(printf, 3, 4))) void fact_print(char *ret_text, size_t size,
						      const char *format, ...);

/* Marks noise that tools make without meaning it (__pycache__, index.lock, .pytest_cache). */
void fact_mark_expected(struct fact *fact);

/*
 * Corrects `rule` of a write in the workspace: of its mode, hide and protect the one that refuses
 * the path. Nothing for other facts.
 */
void fact_judge(struct fact *fact, const struct plan *plan);

/* Writes `say` from the fact and the plan, unless the caller did. */
void fact_say(struct fact *fact, const struct plan *plan);

/* The part of fact_say() for writes. */
void fact_say_write(struct fact *fact, const struct plan *plan);

/* Do the two fold into one: same event, source, detail and comm? */
bool fact_is_same(const struct fact *a, const struct fact *b);

/*
 * {"event","time","source","pid","comm","detail":{…},"rule","certain","count","say"} and, where
 * they apply, "last_time" and "expected". A redactor masks secrets in every text; NULL: none
 * are known. A new object, or NULL when out of memory.
 */
json_t *fact_json(const struct fact *fact, const struct redactor *redactor);

/* Names as in result.json. */
const char *fact_event_name(enum fact_event event);
const char *fact_source_name(enum fact_source source);

/* Does `on_violation: kill` end a run for this event? The others end it by themselves, or never. */
bool fact_event_may_kill(enum fact_event event);
