/*
 * notify - one command's seccomp listener: explains, and connects in the program's place
 *
 *   program in the sandbox                        monitor
 *     openat("a.txt", O_WRONLY) ── stopped ──►  reads and resolves the path in the sandbox's
 *        ◄── CONTINUE: the kernel decides ────  view; outside the plan → a fact
 *     ptrace(…)                 ── stopped ──►  a fact
 *        ◄── the profile's errno ─────────────
 *     connect(fd, address)      ── stopped ──►  copies address and socket, decides, connects
 *        ◄── result, never CONTINUE ──────────  its own copy
 *     chmod("a.txt", 0600)      ── stopped ──►  landlock wall: resolves, decides on what it
 *        ◄── result, never CONTINUE ──────────  found, and has that changed by the hand
 *
 * Walls never depend on it, with two exceptions: `connect`, and where there are no mounts of its
 * own the calls that change mode, owner, times and attributes, which Landlock does not know. With
 * CONTINUE a second thread could swap what we looked at before the kernel reads it, so these are
 * done here.
 *
 * Nothing here blocks: the listener is polled before it is read, connects that would wait are
 * kept and retried, floods are answered late. The caller polls one descriptor, notify_fd().
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "monitor/violations.h"
#include "plan/plan.h"

struct notify;
struct profile_rule;
struct seccomp_data;

/* notify_handle(): what the caller should do next. */
enum notify_state {
	NOTIFY_MORE,   /* poll notify_fd() again */
	NOTIFY_CLOSED, /* no process of the command is left: stop polling, notify_free() */
	NOTIFY_END     /* on_violation: kill. The call stays unanswered: kill the tree, then
			  notify_free() */
};

struct notify_setup {
	const struct plan *plan;       /* borrowed */
	const char *profile;           /* as for profile_rules(): "command", "command-reads" … */
	struct violations *violations; /* borrowed: where facts go */
	/* Workspace-relative, NULL-terminated, borrowed; NULL: none. The landlock wall's only. */
	const char *const *hidden;
	/* Of a wall without a view of its own: does it let this path of the system be read? NULL:
	 * no path. And host folders that it shows besides, as `hidden`. */
	bool (*shows)(const char *path);
	const char *const *toolchains;
	uid_t as_uid;   /* the command's uid and gid where they are not ours; 0: ours */
	int scratch_fd; /* O_PATH of the scratch mount or folder, borrowed; -1: looked up inside */
	/* The rule that decides a call; NULL stands for profile_decide(). For tests. */
	const struct profile_rule *(*decide)(const char *profile, const struct seccomp_data *data);
	bool does_truncate; /* truncate() is made here too: as with a Landlock that does not know
			     * it, whatever this kernel's is. For tests */
	bool has_own_view;  /* process wall: mount flags decide, network namespace of its own;
			     * false (landlock wall): the plan's paths decide */
};

/* Numbers for tests, benchmarks and the result's usage. */
struct notify_stats {
	uint64_t handled;
	uint64_t unreadable; /* the kernel forbade a look: not observed */
	uint64_t delayed;    /* how often answering was put off by the token bucket */
	uint64_t waiting;    /* connects that wait right now */
};

/*
 * Takes `listener` (closed on failure too). 0, -ENOMEM or the errno of epoll and timer. `setup`
 * is copied.
 */
int notify_new(int listener, const struct notify_setup *setup, struct notify **ret_notify,
	       struct csn_error *err);

/*
 * Records what is still open (so: before the result is made), then closes the listener: calls
 * that are still waiting get ENOSYS. NULL is fine.
 */
void notify_free(struct notify *notify);

/*
 * The descriptor to poll for input, -1 while answering is put off, and that of the timer and the
 * hand, which is polled always. Not one epoll over both: a wake-up through an epoll loses the hint
 * that the program waits and its processor is free (SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP), and where
 * all processors are busy the monitor would then wait for one, milliseconds.
 */
int notify_fd(const struct notify *notify);
int notify_timer_fd(const struct notify *notify);

/* Handles a bounded number of notifications; never blocks, cheap when there is nothing. */
enum notify_state notify_handle(struct notify *notify);

/* Copies the numbers as they are now; after notify_free() there are none. */
void notify_stats(const struct notify *notify, struct notify_stats *ret_stats);
