/*
 * backend - a way to start the agent behind a wall with a byte stream to it
 *
 * One static struct per wall, in one table. A backend says what it can enforce and observe
 * here and now (probe), and starts; everything after that is frames on `stream`, the same
 * for every wall. No verb's code knows which backend it talks to.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "plan/plan.h"

/* What a probe found. Sentences are for `caisson doctor` and refusals. */
struct backend_report {
	bool is_usable;
	uint64_t enforces; /* enum plan_feature bits */
	char cause[256];   /* why not usable: the exact reason, "" if usable */
	char fix[256];     /* what would make it usable: package, kernel switch, command */
	char weaker[512];  /* what this wall does not do, for a usable but weaker one; "" */
	char unheld[64];   /* why it holds not all limits, for one that holds them itself; "" */
};

/* What a container engine runs, for the record. */
struct wall_container {
	char version[32]; /* the engine's; "": the wall is no container */
	char image[512];  /* its name */
	char digest[80];  /* the engine's id of it */
	bool is_rootless; /* no daemon of root's has a part in it */
};

/* A started wall. */
struct wall {
	pid_t pid;     /* its first process in our pid namespace, reaped by the monitor; -1: none */
	int pidfd;     /* of that process, -1: none */
	pid_t helper;  /* a killed helper that nobody waited for yet; wall_done() does; 0: none */
	int stream;    /* frames to and from the agent, non-blocking */
	int terminals; /* terminals for its commands go in here (os/terminal.h); -1: made inside */
	int listeners; /* SOCK_SEQPACKET: a command announces its notify listener here; -1: none */
	int life; /* write end of the life pipe: closing it tells helpers that the monitor is gone
		   */
	int failure;    /* a struct csn_error arrives here when a lockdown step fails, end of file
			   otherwise */
	int complaints; /* a file that takes its program's stderr, up to a bound; -1: none */
	int order; /* one that waits says a byte here when its wall stands, and is let go on; -1 */
	int spaces[2];    /* of one that waits: its user and mount namespaces; the second is held
			     to the end, so that a death need not take the mounts down; -1 */
	int userns;       /* of root's that waits: what is lent is id-mapped through it; -1 */
	int skeleton;     /* holds the lock of what the root is a view of; -1: none */
	uid_t kernel_uid; /* the uid behind the sandbox, as the host sees it */
	uint64_t made_ms; /* of its start, spent on what later starts use: no startup time */
	struct wall_container container;
	uint64_t enforces;
};

/* No wall yet: every descriptor is -1. */
#define WALL_NONE                                                                               \
	(struct wall)                                                                           \
	{                                                                                       \
		.pid = -1, .pidfd = -1, .stream = -1, .listeners = -1, .terminals = -1,         \
		.life = -1, .failure = -1, .complaints = -1, .order = -1, .spaces = { -1, -1 }, \
		.userns = -1, .skeleton = -1                                                    \
	}

struct backend_start {
	const char *sandbox_id;
	const char *const *hidden; /* workspace-relative paths to cover, NULL-terminated */
	const char *const *frozen; /* workspace-relative paths to make read-only, NULL-terminated */
	const char *const
		*toolchains;     /* absolute host folders, shown read-only at their own path */
	const char *scratch_dir; /* host folder for scratch where the wall has no view of its own */
	const char *run_root;    /* absolute; where walls may keep what many runs share, NULL */
	const char *state_root;  /* absolute; the run root, whether the run is recorded or not */
	const char *cow_dir;     /* absolute host folder for upper/ and work/, NULL without cow */
	const char *agent_dir;   /* absolute host folder of the agent's file; NULL: unknown */
	int agent_fd;            /* the agent's executable, opened O_RDONLY|O_CLOEXEC */
	int search_fd;           /* that of its searches; -1: none */
	int wall_fd;             /* the caller's own wall: a stream, which start() takes; 0: none */
	unsigned own_processes;  /* of ours inside, beside the commands: they count too */
	bool has_tty;            /* the command will run on a terminal */
	bool stays;              /* commands to come may ask for one each */
	bool waits;              /* prepared ahead: nothing is lent yet, bind() does it */
	int clone_group;         /* directory for CLONE_INTO_CGROUP (v2), -1: none */
	int agent_enter[3];      /* files to which a process writes "0" to enter the agent's */
	int cmd_enter[3];        /* and the commands' control groups; -1: none */
	uint64_t data_bytes;     /* RLIMIT_DATA of each process where no controller limits memory;
				    PLAN_UNLIMITED */
};

struct launch_step;

struct backend {
	const char *name;
	enum plan_tier tier; /* the strongest tier it satisfies */
	const char *runtime; /* "process": for `balanced/process` */
	const char *profile; /* syscall profile of its commands, "none" for no filter; "-reads" is
				added to trace reads */
	const struct launch_step *steps; /* its lockdown, for the audit log; NULL: none of ours */
	/* May commands read this path of the system? For a wall without a view of its own; NULL:
	 * none of it is known. */
	bool (*shows)(const char *path);
	bool has_view;      /* paths inside are its own; false: they are the host's */
	bool freezes_links; /* `frozen` may name links: they cannot be replaced then */
	bool is_contained;  /* the end of its first process ends every other */
	bool is_program;    /* that process is a program of the host's (piped.h), and what runs is
			     * elsewhere: nothing of it is looked at, limits are the wall's own */
	/* Of such a one: its program was killed, or ended with 125, which is how an engine's says
	 * that it could not start anything; ends what there is of sandbox `id`, and believes
	 * nothing that was kept. Also called by the cleaner of a killed monitor. NULL: nothing to
	 * do. */
	void (*take_down)(const char *id);
	bool runs_images;   /* the plan's image is its root */
	bool has_network;   /* has one to lend: network mode `engine` */
	bool holds_limits;  /* of such a one: no control group is made for that process */
	const char *means;  /* of such a one: who holds the limits that it enforces, for results */
	const char *untold; /* of such a one: why attempts are not seen; NULL: its author decides */
	void (*probe)(struct backend_report *ret_report);
	/* For a wall that the plan itself describes, and `any` never takes: what it enforces is
	 * what the plan says it does. 0, or -ENOTSUP with a sentence; NULL: probe() knows. */
	int (*declare)(const struct plan *plan, struct backend_report *ret_report,
		       struct csn_error *err);
	const char *declared_in; /* where somebody declares it, for messages: "command" */
	bool is_callers; /* whoever opened the sandbox is the agent: no process is started */
	/* Tries what probe() only reads: asked before a weaker wall of the same tier is taken, and
	 * by doctor. 0 or -errno; NULL: nothing to try. */
	int (*attempt)(void);
	int (*start)(const struct plan *plan, const struct backend_start *how,
		     struct wall *ret_wall, struct csn_error *err);
	/*
	 * Lends what this plan lends to a wall that was started to wait, and lets it go on; NULL:
	 * this wall cannot wait. The plan differs from that of the start in nothing else, and a
	 * copy-on-write workspace cannot be lent so. Of `how` only what is lent is used. 0 or
	 * -errno with a sentence: the wall is good for nothing then.
	 */
	int (*bind)(const struct plan *plan, const struct backend_start *how, struct wall *wall,
		    struct csn_error *err);
	/* Of such a plan: is there a place in the waiting wall's root for all it lends? */
	bool (*has_places)(const struct plan *waiting, const struct plan *plan);
	/*
	 * Lends one more path to a started wall, seen by what runs there at once. NULL: this wall
	 * cannot. Called in a process of its own, which is good for nothing else afterwards: it is
	 * left in the sandbox's namespaces. The mount was decided about; `source_fd` is what stood
	 * at its host path then, and nothing else is lent. Something missing at `at` is made only
	 * where that is no folder of the host's. 0 or -errno with a sentence: nothing was lent.
	 */
	int (*mount)(const struct wall *wall, const struct plan_mount *mount, int source_fd,
		     struct csn_error *err);
	/*
	 * Ends and removes what a start of sandbox `id` left beneath the state root: a runtime's
	 * state, the groups it made. For the end of a run, and for the cleaner of a killed monitor;
	 * nothing is told, what stays is for `caisson gc`. NULL: it leaves nothing.
	 */
	void (*remove)(const char *state_root, const char *id);
	bool is_named_only; /* `any` never takes it */
	unsigned own_tasks; /* threads of its helpers, on the commands' account */
	bool is_runtimes; /* `pid` is a container runtime's, outside; commands' calls are not shown
			   */
};

/* All backends of this build, weakest first, NULL-terminated. */
extern const struct backend *const backends[];
/* One of them, or the caller's own, which no flag and no policy file can name. NULL: none. */
const struct backend *backend_find(const char *name);

/* May `any` take this wall for a plan of this tier? Whether it is usable is probe()'s to say. */
bool backend_serves(const struct backend *backend, enum plan_tier tier);

/*
 * Chooses the wall for a plan: the named one, or for "any" the first usable one at or above
 * the tier in the order of CONTRACTS section 3. Refuses (-ENOTSUP) with the exact cause and fix
 * when none will do or when a required feature is missing; never a weaker one.
 */
int backend_choose(const struct plan *plan, const struct backend **ret_backend,
		   struct backend_report *ret_report, struct csn_error *err);

/*
 * The kernel uid and gid of a sandbox that root starts: 1879048192 and up, which no distribution
 * hands out (systemd's UIDS-GIDS document). Neighbours differ by the monitor's pid.
 */
uid_t backend_private_uid(void);
/* A second one, of a range of its own: uid 0 of a user namespace that a runtime needs. */
uid_t backend_private_root(void);
bool backend_is_private_uid(uid_t uid); /* could it be one, of any monitor? */

/* Waits for the killed helper if it is dead by now: a sandbox that stays keeps no dead process. */
void wall_reap(struct wall *wall);
/* Closes a wall's descriptors and kills its first process. Reaping is the caller's. */
void wall_done(struct wall *wall);
