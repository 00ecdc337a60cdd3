/*
 * The table of keys. A new key is a row here, a sentence in docs/policy.md (a test
 * compares) and, if it goes into the plan, a member of struct plan.
 */
#include "policy/keys.h"

#include <string.h>

#include "base/str.h"

static const char *const approvals[] = { "none", "required", NULL };
static const char *const backends[] = { "any",     "local",       "virtual", "landlock",
					"process", "docker",      "podman",  "oci",
					"gvisor",  "firecracker", "qemu",    "kubernetes",
					"command", NULL };
static const char *const modes[] = { "ro", "rw", "cow", NULL };
static const char *const networks[] = { "none", "loopback", "allow", "engine", NULL };
static const char *const limit_modes[] = { "best", "hard", NULL };
static const char *const toolchains[] = { "none", "auto", NULL };
static const char *const observations[] = { "reads", NULL };
static const char *const reactions[] = { "record", "kill", NULL };
static const char *const rootless[] = { "preferred", "required", NULL };

#define AT(member) \
	.offset = offsetof(struct plan, member), .width = sizeof(((struct plan *)NULL)->member)
#define TIME "a time like 500ms, 45s, 10m or 2h, or none"
#define SIZE "a size like 64KiB, 512MiB or 2GiB, or none"
#define GRANT .is_grant = true

enum { MAX_PROCESSES = 1 << 22, MAX_FILES = 1 << 20, MAX_CPU_MILLI = 4096 * 1000 };

#define YEAR_MS (UINT64_C(365) * 24 * 3600 * 1000)
#define MAX_SIZE (UINT64_C(1) << 53)
#define MIN_MEMORY (UINT64_C(4) << 20)

const struct key policy_keys[KEY_COUNT] = {
	[KEY_VERSION] = { "version", "1", "The format of the file. Required.", KIND_VERSION,
			  .min = 1, .max = 1 },
	[KEY_TIER] = { "tier", "local, virtual, auto, balanced, assisted or strict",
		       "The weakest wall that will do. Planned: virtual, strict.", KIND_TIER,
		       WIDER_LESS, AT(tier) },
	[KEY_APPROVAL] = { "approval", "none or required",
			   "Does a person have to say yes first, to each start?", KIND_CHOICE,
			   WIDER_LESS, AT(needs_approval), .choices = approvals },
	[KEY_BACKEND] = { "backend",
			  "any, local, virtual, landlock, process, docker, podman, oci, gvisor, "
			  "firecracker, qemu, kubernetes or command",
			  "Exactly this wall; any takes the first that meets the tier. "
			  "Planned: virtual, firecracker, qemu and kubernetes.",
			  KIND_TEXT, WIDER_BACKEND, AT(backend), .choices = backends },
	[KEY_WORKSPACE_PATH] = { "workspace.path", "a folder",
				 "The folder lent to the code; relative to the file.", KIND_TEXT,
				 WIDER_OUTSIDE, GRANT, AT(workspace.host),
				 .is_valid = text_is_path },
	[KEY_WORKSPACE_AT] = { "workspace.at",
			       "an absolute path outside /usr, /etc, /proc and the like, or host",
			       "Where it is inside; host means under its own path.", KIND_TEXT,
			       WIDER_NEVER, GRANT, AT(workspace.at), .is_valid = text_is_inside },
	[KEY_WORKSPACE_MODE] = { "workspace.mode", "ro, rw or cow",
				 "Read only, writable, or writable in a copy.", KIND_CHOICE,
				 WIDER_ACCESS, GRANT, AT(workspace.access), .choices = modes },
	[KEY_WORKSPACE_HIDE] = { "workspace.hide", "a pattern without leading / and ..",
				 "Files of the workspace whose contents do not appear inside.",
				 KIND_LIST, WIDER_REMOVED, GRANT, AT(workspace.hide),
				 .is_valid = text_is_pattern },
	[KEY_WORKSPACE_PROTECT] = { "workspace.protect", "a path without leading / and ..",
				    "Names that stay read only in a writable workspace.", KIND_LIST,
				    WIDER_REMOVED, GRANT, AT(workspace.protect),
				    .is_valid = text_is_relative },
	[KEY_MOUNTS] = { "mounts", "a list of {host: PATH, at: PATH, mode: ro | rw}",
			 "More folders or files of the host.", KIND_MOUNTS, WIDER_MOUNTS, GRANT,
			 AT(mounts) },
	[KEY_MOUNT_ROOTS] = { "mount_roots", "a folder",
			      "What --mount and mounts at run time may come from.", KIND_LIST,
			      WIDER_ADDED, GRANT, AT(mount_roots), .is_valid = text_is_path },
	[KEY_SCRATCH_AT] = { "scratch.at",
			     "an absolute path outside /usr, /etc, /proc and the like",
			     "Where the scratch space is inside.", KIND_TEXT, WIDER_CHANGED, GRANT,
			     AT(scratch_at), .is_valid = text_is_inside },
	[KEY_SCRATCH_SIZE] = { "scratch.size", SIZE, "Its size.", KIND_SIZE, WIDER_MORE,
			       AT(limits.scratch_bytes), .min = 1, .max = MAX_SIZE },
	[KEY_NETWORK_MODE] = { "network.mode", "none, loopback, allow or engine",
			       "No network, a loopback of its own, listed hosts, that of docker "
			       "or podman. Planned: allow.",
			       KIND_CHOICE, WIDER_MORE, AT(network), .choices = networks },
	[KEY_NETWORK_ALLOW] = { "network.allow", "HOST or HOST:PORT",
				"What may be reached under mode allow. Planned.", KIND_LIST,
				WIDER_ADDED, AT(allow), .is_valid = text_is_host },
	[KEY_LIMITS_COMMAND] = { "limits.command", TIME, "One command, from start to end.",
				 KIND_TIME, WIDER_MORE, AT(limits.command_ms), .min = 1,
				 .max = YEAR_MS },
	[KEY_LIMITS_BUDGET] = { "limits.budget", TIME, "All commands of a request together.",
				KIND_TIME, WIDER_MORE, AT(limits.budget_ms), .min = 1,
				.max = YEAR_MS },
	[KEY_LIMITS_STARTUP] = { "limits.startup", TIME, "Starting the wall.", KIND_TIME,
				 WIDER_MORE, AT(limits.startup_ms), .min = 1, .max = YEAR_MS },
	[KEY_LIMITS_IDLE] = { "limits.idle", "a time like 45s or 30m, 0 or none",
			      "Silence that ends a sandbox that stays; unset: 30m, 0: never. No "
			      "effect on `run`.",
			      KIND_TIME, WIDER_IDLE, AT(limits.idle_ms), .min = 0, .max = YEAR_MS },
	[KEY_LIMITS_CPUS] = { "limits.cpus", "a number like 2 or 0.5, up to 4096, or none",
			      "CPUs, in steps of a thousandth.", KIND_CPUS, WIDER_MORE,
			      AT(limits.cpu_milli), .min = 1, .max = MAX_CPU_MILLI },
	/* Less, and the wall does not come up: its own processes count until the exec. */
	[KEY_LIMITS_MEMORY] = { "limits.memory", "a size of at least 4MiB, like 512MiB, or none",
				"Memory of the whole tree.", KIND_SIZE, WIDER_MORE,
				AT(limits.mem_bytes), .min = MIN_MEMORY, .max = MAX_SIZE },
	[KEY_LIMITS_PROCESSES] = { "limits.processes", "a number from 1 to 4194304, or none",
				   "Processes and threads at one time.", KIND_COUNT, WIDER_MORE,
				   AT(limits.processes), .min = 1, .max = MAX_PROCESSES },
	[KEY_LIMITS_OUTPUT] = { "limits.output", SIZE, "Output that is kept.", KIND_SIZE,
				WIDER_MORE, AT(limits.output_bytes), .min = 1, .max = MAX_SIZE },
	[KEY_LIMITS_OPEN_FILES] = { "limits.open_files", "a number from 1 to 1048576, or none",
				    "Open files of a process.", KIND_COUNT, WIDER_MORE,
				    AT(limits.open_files), .min = 1, .max = MAX_FILES },
	[KEY_LIMITS_MODE] = { "limits_mode", "best or hard",
			      "The strongest means there is, or refuse what cannot be enforced.",
			      KIND_CHOICE, WIDER_LESS, AT(limits_mode), .choices = limit_modes },
	[KEY_ENV_PASS] = { "env.pass", "a name of letters, digits and _",
			   "Variables of the caller that the code sees.", KIND_LIST, WIDER_ADDED,
			   GRANT, AT(env_pass), .is_valid = text_is_name },
	[KEY_ENV_SET] = { "env.set", "a map of NAME: text", "Variables with a value of the file's.",
			  KIND_ENV, WIDER_ADDED, GRANT, AT(env_set), .is_valid = text_is_name },
	[KEY_ENV_GIT_IDENTITY] = { "env.git_identity", "true or false",
				   "Does git inside know the caller's name and address?", KIND_BOOL,
				   WIDER_MORE, GRANT, AT(git_identity) },
	[KEY_TOOLCHAINS] = { "toolchains", "auto or none",
			     "Show the parts (bin, lib, ...) of the prefix that the command's "
			     "program "
			     "comes from, read only?",
			     KIND_CHOICE, WIDER_MORE, AT(toolchains_auto), .choices = toolchains },
	[KEY_OBSERVE] = { "observe", "reads", "What to trace beyond the usual.", KIND_LIST,
			  WIDER_LESS, AT(observe_reads), .choices = observations },
	[KEY_ON_VIOLATION] = { "on_violation", "record or kill",
			       "Note an attempt and go on, or end the command.", KIND_CHOICE,
			       WIDER_LESS, AT(on_violation), .choices = reactions },
	[KEY_STRICT_WHEN] = { "strict_when",
			      "a list of {tag: NAME}, {command: PATTERN} or {path: PATTERN}",
			      "What makes a request need tier strict.", KIND_RULES },
	[KEY_CONTAINER_IMAGE] = { "container.image", "a name of an image, or null",
				  "The image of the walls docker and podman; null means this "
				  "machine's own "
				  "programs.",
				  KIND_TEXT, WIDER_CHANGED, AT(image), .is_valid = text_is_image },
	[KEY_CONTAINER_ROOTLESS] = { "container.rootless", "preferred or required",
				     "Must the engine of docker and podman run without root?",
				     KIND_CHOICE, WIDER_LESS, AT(rootless_required),
				     .choices = rootless },
	[KEY_COMMAND_ARGV] = { "command.argv", "an argument: text without control characters",
			       "Under backend command: the host's program that ends in "
			       "caisson-agent --stdio, or answers the frames itself.",
			       KIND_LIST, WIDER_ADDED, AT(command_argv), .is_valid = text_is_word,
			       .may_repeat = true },
	[KEY_COMMAND_ENFORCES] = { "command.enforces",
				   "fs-view, fs-write, fs-hide, fs-protect, net-none, "
				   "net-loopback, "
				   "pids, syscalls, privilege, identity, time, output, memory, "
				   "processes, cpu or scratch",
				   "What that program enforces, on its author's word.", KIND_LIST,
				   WIDER_ADDED, AT(command_enforces), .is_valid = text_is_feature },
	[KEY_COMMAND_OBSERVES] = { "command.observes",
				   "NetworkAccessViolation, FilesystemWriteViolation, "
				   "FilesystemReadViolation, SyscallViolation, "
				   "ProcessLimitViolation, MemoryLimitViolation or "
				   "ScratchLimitViolation",
				   "What it tells of attempts, on its author's word.", KIND_LIST,
				   WIDER_ADDED, AT(command_observes),
				   .is_valid = text_is_observation },
	[KEY_OVERRIDES_PER_REQUEST] = { "overrides.per_request", "true or false",
					"May a flag loosen limits, tier, backend and network?",
					KIND_BOOL, WIDER_MORE },
	[KEY_GATES] = { "gates", "a list of NAME or {name: NAME, command: [PROGRAM, ...]}",
			"What code may ask the host for, by name: [gates.md](gates.md).",
			KIND_GATES, WIDER_GATES, AT(gates) },
	[KEY_FORWARDS] = { "forwards", "unix:PATH:AT or tcp:127.0.0.1:PORT:AT, AT a path or a port",
			   "Endpoints of the host that code reaches at AT: "
			   "[forwards.md](forwards.md).",
			   KIND_LIST, WIDER_ADDED, GRANT, AT(forwards),
			   .is_valid = text_is_forward },
};

enum key_id key_find(const char *path)
{
	for (unsigned id = 0; id < KEY_COUNT; id++)
		if (str_is(policy_keys[id].path, path))
			return (enum key_id)id;
	return KEY_COUNT;
}

size_t key_section(const struct key *key)
{
	const char *dot = strchr(key->path, '.');

	return dot ? (size_t)(dot - key->path) : 0;
}

static const void *member(const struct key *key, const struct plan *plan)
{
	return (const char *)plan + key->offset;
}

uint64_t key_number(const struct key *key, const struct plan *plan)
{
	uint64_t wide;
	unsigned choice;
	bool flag;

	if (key->width == sizeof wide)
		return memcpy(&wide, member(key, plan), sizeof wide), wide;
	if (key->width == sizeof choice)
		return memcpy(&choice, member(key, plan), sizeof choice), choice;
	return memcpy(&flag, member(key, plan), sizeof flag), flag;
}

void key_store(const struct key *key, struct plan *plan, uint64_t number)
{
	char *at = (char *)plan + key->offset;
	unsigned choice = (unsigned)number;
	bool flag = number != 0;

	if (key->width == sizeof number)
		memcpy(at, &number, sizeof number);
	else if (key->width == sizeof choice)
		memcpy(at, &choice, sizeof choice);
	else if (key->width == sizeof flag)
		memcpy(at, &flag, sizeof flag);
}

const char **key_list(const struct key *key, const struct plan *plan)
{
	const char **list;

	memcpy(&list, member(key, plan), sizeof list);
	return list;
}

const char *key_text(const struct key *key, const struct plan *plan)
{
	const char *text;

	memcpy(&text, member(key, plan), sizeof text);
	return text;
}
