/*
 * Flags that several commands share, by set; the rest of the table is commands.c
 */
#include "cli/cli.h"

#define TO(field) offsetof(struct cli_options, field)

static const struct cli_flag sandbox_flags[] = {
	{ "policy", 0, "FILE",
	  "the policy file to use, trusted; without it caisson.yaml is searched here and above",
	  CLI_TEXT, TO(policy), .offer = OFFER_FILE },
	{ "tier", 0, "TIER",
	  "at least this wall: local, auto, balanced, assisted (gvisor); not available yet: "
	  "virtual, strict",
	  CLI_TEXT, TO(tier), .offer = OFFER_TIER },
	{ "backend", 0, "NAME",
	  "exactly this wall, else the variable CAISSON_BACKEND's: process, landlock, local, "
	  "docker, podman, oci (runc or crun), gvisor, command (where a policy file describes it), "
	  "or any; not available yet: virtual, firecracker, qemu, kubernetes",
	  CLI_TEXT, TO(backend), .offer = OFFER_BACKEND },
	{ "workspace", 'w', "PATH[:ro|rw|cow]",
	  "the folder to work in; default: the project here, read-only", CLI_TEXT, TO(workspace),
	  .offer = OFFER_WORKSPACE },
	{ "rw", 0, NULL, "the workspace may be written", CLI_FIXED, TO(workspace_mode), "rw" },
	{ "cow", 0, NULL,
	  "writes to the workspace go to a layer, for `runs diff` and `runs commit`", CLI_FIXED,
	  TO(workspace_mode), "cow" },
	{ "at", 0, "PATH|host",
	  "where the workspace stands inside; host: at its own path; default /workspace", CLI_TEXT,
	  TO(workspace_at) },
	{ "mount", 'm', "HOST:AT[:ro|rw]",
	  "show a host path inside, read-only unless :rw; may be repeated", CLI_LIST, TO(mounts),
	  .offer = OFFER_MOUNT },
	{ "network", 'n', "none|loopback|allow|engine",
	  "default none; loopback has only its own 127.0.0.1; engine is that of docker or podman, "
	  "which a trusted policy must allow; not available yet: allow",
	  CLI_TEXT, TO(network) },
	{ "allow", 0, "HOST[:PORT]",
	  "a destination for --network allow, not available yet; may be repeated", CLI_LIST,
	  TO(allow) },
	{ "forward", 0, "FROM:AT",
	  "let code at AT inside, a socket's path in scratch or a port, reach unix:PATH or "
	  "tcp:127.0.0.1:PORT of the host; may be repeated",
	  CLI_LIST, TO(forwards) },
	{ "limit", 'l', "KEY=VALUE",
	  "a limit as in the policy's limits, or scratch=SIZE; may be repeated", CLI_LIMIT,
	  TO(limits), .offer = OFFER_LIMIT },
	{ "timeout", 0, "TIME", "the command's wall time, as 500ms, 45s, 3m, 2h", CLI_LIMIT,
	  TO(limits), "command" },
	{ "memory", 0, "SIZE", "memory of the whole tree, as 512MiB, 2GiB", CLI_LIMIT, TO(limits),
	  "memory" },
	{ "cpus", 0, "N", "processors", CLI_LIMIT, TO(limits), "cpus" },
	{ "env", 'e', "NAME[=VALUE]", "pass or set a variable; may be repeated", CLI_LIST, TO(env),
	  .offer = OFFER_VARIABLE },
	{ "tag", 0, "TAG",
	  "a word for the record and for the policy's strict_when; may be repeated", CLI_LIST,
	  TO(tags) },
	{ "no-record", 0, NULL, "keep no record of this run", CLI_SWITCH, TO(no_record) },
	{ NULL },
};

/* Of one command's streams; a sandbox that stays has none of its own. */
static const struct cli_flag stream_flags[] = {
	{ "stdin", 0, "FILE", "read the command's standard input from FILE", CLI_TEXT,
	  TO(stdin_file), .offer = OFFER_FILE },
	{ "tty", 0, "auto|always|never", "a terminal inside; default auto", CLI_TEXT, TO(tty) },
	{ "result", 0, "FILE",
	  "write the result as JSON; -: on stdout, the command's output is then only recorded",
	  CLI_TEXT, TO(result), .offer = OFFER_FILE },
	{ NULL },
};

static const struct cli_flag record_flags[] = {
	{ "run-dir", 0, "DIR", "where records are kept; default $XDG_STATE_HOME/caisson/runs",
	  CLI_TEXT, TO(run_dir), .offer = OFFER_FOLDER },
	{ NULL },
};

static const struct cli_flag output_flags[] = {
	{ "quiet", 'q', NULL, "say only what failed", CLI_SWITCH, TO(quiet) },
	{ "verbose", 'v', NULL, "say more", CLI_SWITCH, TO(verbose) },
	{ "no-color", 0, NULL, "no colours; so does the variable NO_COLOR", CLI_SWITCH,
	  TO(no_color) },
	{ "json", 0, NULL, "JSON for programs", CLI_SWITCH, TO(json) },
	{ NULL },
};

static const struct cli_flag project_flags[] = {
	{ "policy", 0, "FILE",
	  "the policy file; without it caisson.yaml is searched here and above", CLI_TEXT,
	  TO(policy), .offer = OFFER_FILE },
	{ NULL },
};

/* Of commands that can ask a person before they start. */
static const struct cli_flag approval_flags[] = {
	{ "approval", 0, "ID", "use this approval and no other; without it any that fits", CLI_TEXT,
	  TO(approval) },
	{ "wait-approval", 0, "TIME",
	  "where a yes is needed, wait so long for it, as 10m; the id is said on stderr", CLI_TEXT,
	  TO(wait_approval) },
	{ NULL },
};

/* In the order of enum cli_set's bits. */
const struct cli_flag *const cli_shared_flags[CLI_SETS] = { sandbox_flags, stream_flags,
							    record_flags,  output_flags,
							    project_flags, approval_flags };
