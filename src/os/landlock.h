/*
 * landlock - rules on files, TCP and scopes that a process takes on for good
 *
 * The kernel's ABI number says what it knows (documented in landlock(7)): 1 files, 2 refer,
 * 3 truncate, 4 TCP, 5 ioctl on devices, 6 scopes, 7 audit flags. A ruleset handles all
 * rights that the kernel knows, so everything not granted is denied.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum {
	LANDLOCK_ABI_FILES = 1,
	LANDLOCK_ABI_NET = 4,
	LANDLOCK_ABI_IOCTL = 5,
	LANDLOCK_ABI_SCOPE = 6,
	LANDLOCK_ABI_LOG = 7,
};

/* What a path is granted. */
enum landlock_grant {
	LANDLOCK_LIST,   /* list folders */
	LANDLOCK_READ,   /* read files and folders, execute */
	LANDLOCK_DEVICE, /* read and write existing nodes, ioctl */
	LANDLOCK_WRITE,  /* also create, remove, rename and truncate files and folders */
	/* The same where no mount lies between it and scratch: no file of it can be moved or linked
	 * to there, where sockets may be connected to. Before ABI 5 none is moved from folder to
	 * folder in it either. */
	LANDLOCK_KEEP,
	LANDLOCK_SCRATCH /* as LANDLOCK_WRITE; also create sockets and FIFOs */
};

/* The kernel's ABI, 0 where there is no Landlock. */
int landlock_abi(void);

/* A ruleset that handles everything this kernel knows. `tcp`: TCP as well. Descriptor or -errno. */
int landlock_new(int abi, bool tcp);

/* Grants `grant` on the file or folder behind `fd` (O_PATH will do). */
int landlock_allow(int ruleset_fd, int abi, int fd, enum landlock_grant grant);

/* Opens `path` and grants; a path that does not exist, or that we may not reach anyway, is skipped
 * (returns 0). */
int landlock_allow_path(int ruleset_fd, int abi, const char *path, enum landlock_grant grant);

/*
 * The same for a name that untrusted code may have made: one that is a symbolic link, or leads
 * through one, is skipped. A rule on a link is a rule on whatever it points to.
 */
int landlock_allow_plain(int ruleset_fd, int abi, const char *path, enum landlock_grant grant);

/* The calling process takes the rules on. Needs no_new_privs. Where the kernel can (ABI 7), neither
 * its denials nor those of domains made inside reach the audit log, which a program could fill:
 * docs/decisions/landlock-audit.md. */
int landlock_enter(int ruleset_fd);

/*
 * One more domain that denies no file but cuts signals and abstract sockets towards
 * everything outside it (ABI 6; a no-op before): each command has one, so it cannot reach
 * the agent.
 */
int landlock_scope(int abi);
