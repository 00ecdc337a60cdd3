/*
 * The table of commands and flags
 *
 * The only place where a command is named, and a flag but for those that several commands share
 * (shared_flags.c). Help, the manual page, docs/cli.md and
 * the completions are printed from here; tests/cli/test_cli_help.py compares them.
 */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "cli/approve.h"
#include "cli/cli.h"

#define TO(field) offsetof(struct cli_options, field)

static const struct cli_flag help_flag = { "help", 'h', NULL, "this help", CLI_SWITCH, TO(help) };

static const struct cli_flag run_flags[] = {
	{ "command", 'c', "TEXT", "run TEXT with the shell inside instead of COMMAND", CLI_TEXT,
	  TO(text) },
	{ NULL },
};

static const struct cli_flag up_flags[] = {
	{ "pool", 0, "NAME", "take a prepared one from this pool, if it has one that fits",
	  CLI_TEXT, TO(pool) },
	{ NULL },
};

static const struct cli_flag mcp_flags[] = {
	{ "allow-commit", 0, NULL,
	  "the tool Commit exists: a model may write what it changed to the workspace", CLI_SWITCH,
	  TO(allow_commit) },
	{ "tools", 0, "coding|read-only", "which tools there are; default coding", CLI_TEXT,
	  TO(tools) },
	{ NULL },
};

static const struct cli_flag pool_flags[] = {
	{ "size", 0, "N", "how many wait, 1 to 16; default 2", CLI_TEXT, TO(size) },
	{ NULL },
};

static const struct cli_flag monitor_flags[] = {
	{ "fd", 0, "N", "the descriptor of a connected stream socket", CLI_TEXT, TO(fd) },
	{ "gate", 0, "NAME[=SCHEMA]", "a function of the caller's that code inside may ask for",
	  CLI_LIST, TO(gates) },
	{ "wall-fd", 0, "N", "another, on which the caller answers as the wall", CLI_TEXT,
	  TO(wall_fd) },
	{ "enforces", 0, "FEATURE", "what that wall enforces, on its word; may be repeated",
	  CLI_LIST, TO(enforces) },
	{ "observes", 0, "EVENT", "what it tells of attempts, on its word; may be repeated",
	  CLI_LIST, TO(observes) },
	{ "within", 0, "FILE",
	  "refuse what is wider than this policy file, as `policy show --effective` writes one",
	  CLI_TEXT, TO(within), .offer = OFFER_FILE },
	{ NULL },
};

static const struct cli_flag serve_flags[] = {
	{ "listen", 0, "ADDRESS:PORT",
	  "or unix:PATH, which needs no token; default 127.0.0.1:4647, port 0: a free one",
	  CLI_TEXT, TO(listen) },
	{ "token-file", 0, "FILE",
	  "one token a line, readable by you alone; without it one is made and printed", CLI_TEXT,
	  TO(token_file), .offer = OFFER_FILE },
	{ "host-name", 0, "NAME", "a name that clients may call it by; may be repeated", CLI_LIST,
	  TO(host_names) },
	{ "max-sandboxes", 0, "N", "of a token at once; default 16", CLI_TEXT, TO(max_sandboxes) },
	{ "max-calls", 0, "N", "of a token at once; default 64", CLI_TEXT, TO(max_calls) },
	{ "max-body", 0, "SIZE", "of a request; default 8MiB", CLI_TEXT, TO(max_body) },
	{ "max-rate", 0, "N", "requests of a token a second; default 5000", CLI_TEXT,
	  TO(max_rate) },
	{ NULL },
};

static const struct cli_flag eval_flags[] = {
	{ "medium", 0, "lua", "in what the code is written", CLI_TEXT, TO(medium) },
	{ "session", 0, "NAME",
	  "in the sandbox of that name, whose variables stay; it is started "
	  "where there is none",
	  CLI_TEXT, TO(session) },
	{ "sandbox", 0, "port", "how it is restricted; default port", CLI_TEXT, TO(variant) },
	{ "describe", 0, NULL, "print what the code may use, and evaluate nothing", CLI_SWITCH,
	  TO(describe) },
	{ 0 },
};

static const struct cli_flag exec_flags[] = {
	{ "command", 'c', "TEXT", "run TEXT with the shell inside instead of COMMAND", CLI_TEXT,
	  TO(text) },
	{ "cwd", 0, "DIR", "where it starts, inside; default: the workspace", CLI_TEXT, TO(cwd) },
	{ "env", 'e', "NAME[=VALUE]", "pass or set a variable for it; may be repeated", CLI_LIST,
	  TO(env), .offer = OFFER_VARIABLE },
	{ "timeout", 0, "TIME",
	  "less than the policy's limits.command; the only clock of a command on a terminal",
	  CLI_TEXT, TO(call_timeout) },
	{ "tty", 0, "auto|always|never",
	  "a terminal for it; default auto: where stdin, stdout and stderr are one", CLI_TEXT,
	  TO(tty) },
	{ "detach", 0, NULL, "leave it running, and return when it runs", CLI_SWITCH, TO(detach) },
	{ "tag", 0, "TAG",
	  "its name, for logs, wait and kill; a detached one without is told its own", CLI_TEXT,
	  TO(tag) },
	{ NULL },
};

static const struct cli_flag shell_flags[] = {
	{ "cwd", 0, "DIR", "where it starts, inside; default: the workspace", CLI_TEXT, TO(cwd) },
	{ NULL },
};

static const struct cli_flag read_flags[] = {
	{ "offset", 0, "N", "first byte", CLI_TEXT, TO(offset) },
	{ "length", 0, "N", "most bytes", CLI_TEXT, TO(length) },
	{ NULL },
};

static const struct cli_flag write_flags[] = {
	{ "mode", 0, "MODE", "permissions in octal; default: those it had, or 644", CLI_TEXT,
	  TO(mode) },
	{ NULL },
};

static const struct cli_flag edit_flags[] = {
	{ "old", 0, "TEXT", "what must occur exactly once", CLI_TEXT, TO(old_text) },
	{ "new", 0, "TEXT", "what replaces it", CLI_TEXT, TO(new_text) },
	{ NULL },
};

static const struct cli_flag glob_flags[] = {
	{ "cwd", 0, "DIR", "where it looks, inside; default: the workspace", CLI_TEXT, TO(cwd) },
	{ "limit", 0, "N", "most paths; default 1000", CLI_TEXT, TO(most) },
	{ "null", '0', NULL, "end each path with a zero byte, not a newline", CLI_SWITCH,
	  TO(ends_in_nul) },
	{ NULL },
};

static const struct cli_flag grep_flags[] = {
	{ "glob", 0, "PATTERN", "only files whose path matches", CLI_TEXT, TO(glob) },
	{ "ignore-case", 'i', NULL, "letters match their other case", CLI_SWITCH, TO(ignore_case) },
	{ "limit", 0, "N", "most matches; default 1000", CLI_TEXT, TO(most) },
	{ "context", 'C', "N", "lines before and after, at most 100", CLI_TEXT, TO(context) },
	{ NULL },
};

static const struct cli_flag logs_flags[] = {
	{ "follow", 'f', NULL, "until the command has ended", CLI_SWITCH, TO(follow) },
	{ NULL },
};

static const struct cli_flag wait_flags[] = {
	{ "port", 0, "N", "until somebody inside listens on it", CLI_TEXT, TO(port) },
	{ "line", 0, "RE", "until it writes a line that matches, a POSIX extended expression",
	  CLI_TEXT, TO(line) },
	{ "timeout", 0, "TIME", "at most so long", CLI_TEXT, TO(call_timeout) },
	{ NULL },
};

static const struct cli_flag show_flags[] = {
	{ "effective", 0, NULL, "the decided plan as a policy, defaults and flags included",
	  CLI_SWITCH, TO(effective) },
	{ NULL },
};

static const struct cli_flag init_flags[] = {
	{ "force", 0, NULL, "replace a file that exists", CLI_SWITCH, TO(force) },
	{ NULL },
};

static const struct cli_flag trust_flags[] = {
	{ "yes", 'y', NULL, "do not ask", CLI_SWITCH, TO(yes) },
	{ NULL },
};

static const struct cli_flag diff_flags[] = {
	{ "names-only", 0, NULL, "only what was added (A), modified (M), deleted (D)", CLI_SWITCH,
	  TO(names_only) },
	{ NULL },
};

static const struct cli_flag commit_flags[] = {
	{ "dry-run", 0, NULL, "say what would be done", CLI_SWITCH, TO(dry_run) },
	{ "force", 0, NULL, "also replace what changed in the workspace since the run", CLI_SWITCH,
	  TO(force) },
	{ NULL },
};

static const struct cli_flag gc_flags[] = {
	{ "runs", 0, "N", "keep at most N runs; default 200", CLI_TEXT, TO(max_runs) },
	{ "age", 0, "TIME", "keep none older than TIME, as 48h; default 168h", CLI_TEXT,
	  TO(max_age) },
	{ "size", 0, "SIZE", "keep at most SIZE, as 500MiB; default 1GiB", CLI_TEXT, TO(max_size) },
	{ NULL },
};

static const struct cli_flag help_flags[] = {
	{ "man", 0, NULL, "the manual page, for man(1)", CLI_SWITCH, TO(man) },
	{ "markdown", 0, NULL, "all commands and flags as Markdown", CLI_SWITCH, TO(markdown) },
	{ NULL },
};

const struct cli_command cli_commands[] = {
#ifdef CAISSON_HAS_RUN
	{ .name = "run",
	  .usage = "[--] COMMAND [ARG…] | -c TEXT",
	  .summary = "run a command behind the wall that the policy asks for",
	  .text = "The command sees the project here at /workspace, read-only, a scratch /tmp, no "
		  "network and "
		  "none of your files or variables, unless flags or the policy lend them. Its "
		  "output and "
		  "status are its own; ours go to stderr.\n\n"
		  "Tools that you installed yourself (rustup, pyenv, nvm, Go, Java …) are shown "
		  "read-only when COMMAND, the first line of its script, or a word of TEXT names "
		  "one. The rest of your home is not.\n\n"
		  "Where a policy file is in force, flags only narrow what it grants. The file "
		  "leaves more to them where it says so: folders beneath its mount_roots to "
		  "--mount, and with overrides.per_request limits, tier, wall and network. With "
		  "--json "
		  "the result is all of stdout: the command's output is then only in the record, "
		  "see `caisson runs show`.\n\n"
		  "Flags end at the first word that is none. Status 124: a clock ran out. 125: "
		  "nothing was started, or the wall was lost while the command ran; stderr says "
		  "which. 126, 127: the program is not executable, or missing. "
		  "137: a limit "
		  "ended it. 128+N: signal N.",
	  .flags = run_flags,
	  .sets = CLI_SANDBOX_FLAGS | CLI_STREAM_FLAGS | CLI_APPROVAL_FLAGS | CLI_RECORD_FLAGS |
		  CLI_OUTPUT_FLAGS,
	  .takes_argv = true,
	  .starts_sandbox = true,
	  .max_args = -1,
	  .offers = { OFFER_PROGRAM, OFFER_PROGRAM },
	  .run = cli_run },
	{ .name = "up",
	  .usage = "[NAME]",
	  .summary = "start a sandbox that stays, and print its name",
	  .text = "The policy of `run` and its flags, but those of a command's streams: `exec` has "
		  "those. The sandbox ends by `caisson down "
		  "NAME`, after half an hour without a call (limits.idle), or with its wall.",
	  .flags = up_flags,
	  .sets = CLI_SANDBOX_FLAGS | CLI_APPROVAL_FLAGS | CLI_RECORD_FLAGS | CLI_OUTPUT_FLAGS,
	  .starts_sandbox = true,
	  .max_args = 1,
	  .run = cli_up },
	{ .name = "exec",
	  .usage = "NAME [--] COMMAND [ARG…] | NAME -c TEXT",
	  .summary = "run a command in a sandbox that stays",
	  .text = "Each begins anew: `cd`, `export` and variables do not carry over. Its output "
		  "and "
		  "status are its own; what was denied is told on stderr. What it leaves running "
		  "is "
		  "killed when it ends, unless it was detached: then it lives as long as the "
		  "sandbox.\n\n"
		  "Its input is ours, as it comes. The first INT or TERM goes to the command; a "
		  "second later, or at the next one, it ends. On a terminal of its own, keys go to "
		  "it as they are, and no clock ends it but --timeout and the sandbox's silence "
		  "(limits.idle): nothing typed and nothing shown.\n\nWith --json its account is "
		  "all of stdout, what it wrote in it (the first and last 32 MiB of a stream; what "
		  "is no UTF-8 as base64), and it gets no terminal.",
	  .flags = exec_flags,
	  .sets = CLI_OUTPUT_FLAGS,
	  .takes_argv = true,
	  .own_words = 1,
	  .starts_sandbox = true,
	  .min_args = 1,
	  .max_args = -1,
	  .offers = { OFFER_WORDS, OFFER_PROGRAM },
	  .run = cli_exec },
	{ .name = "eval",
	  .usage = "[CODE | -]",
	  .summary = "evaluate a piece of code behind a wall",
	  .text = "What it printed is written, then the value of its last expression: a text as it "
		  "is, anything else as JSON. Code that fails has its reason on stderr, status 1. "
		  "Without CODE, or with -, it is read from stdin. --timeout is its time, 30s "
		  "unless said. The flags of the wall count where the sandbox is started.",
	  .flags = eval_flags,
	  .sets = CLI_SANDBOX_FLAGS | CLI_RECORD_FLAGS | CLI_OUTPUT_FLAGS,
	  .starts_sandbox = true,
	  .max_args = 1,
	  .run = cli_eval },
	{ .name = "shell",
	  .usage = "NAME",
	  .summary = "a shell in a sandbox that stays, on a terminal of its own",
	  .text = "bash where there is one, else sh, in the workspace; its status is the shell's. "
		  "It ends with the sandbox, at the latest after limits.idle with nothing typed "
		  "and nothing shown. Where stdin is no terminal, commands are read from it, under "
		  "limits.command as those of `exec`.",
	  .flags = shell_flags,
	  .sets = CLI_OUTPUT_FLAGS,
	  .starts_sandbox = true,
	  .min_args = 1,
	  .max_args = 1,
	  .run = cli_shell },
	{ .name = "read",
	  .usage = "NAME PATH",
	  .summary = "a file's bytes, on stdout",
	  .text = "Paths are inside the wall, relative to the workspace or absolute.",
	  .flags = read_flags,
	  .sets = CLI_OUTPUT_FLAGS,
	  .min_args = 2,
	  .max_args = 2,
	  .run = cli_read },
	{ .name = "write",
	  .usage = "NAME PATH",
	  .summary = "replace a file by what stdin holds, whole or not at all",
	  .text = "Folders above it are made.",
	  .flags = write_flags,
	  .sets = CLI_OUTPUT_FLAGS,
	  .min_args = 2,
	  .max_args = 2,
	  .run = cli_write },
	{ .name = "edit",
	  .usage = "NAME PATH --old TEXT --new TEXT",
	  .summary = "replace a text that occurs exactly once",
	  .text = "Prints how often it occurs. Status 0 if the file was written, else 1.",
	  .flags = edit_flags,
	  .sets = CLI_OUTPUT_FLAGS,
	  .min_args = 2,
	  .max_args = 2,
	  .run = cli_edit },
	{ .name = "cp",
	  .usage = "NAME:PATH HOST | HOST NAME:PATH",
	  .summary = "copy files and folders between the host and a sandbox that stays",
	  .text = "Onto a folder, it keeps its name; a file replaces a file, whole or not at all; "
		  "folders are joined. Permissions are kept, set-id bits are not. Links are copied "
		  "as links, and none is followed on the host, not even in HOST. A fifo, socket or "
		  "device is skipped. What would run on the host (.git/hooks, .git/config, .envrc, "
		  ".vscode, a policy file) is left out of a folder that comes out of a sandbox, "
		  "and "
		  "copied when it is named itself. Each thing that was left out is named on "
		  "stderr, "
		  "and the status is 1 then. A host's file with a colon in its name is ./NAME.",
	  .sets = CLI_OUTPUT_FLAGS,
	  .min_args = 2,
	  .max_args = 2,
	  .offers = { OFFER_FILE, OFFER_FILE },
	  .run = cli_cp },
	{ .name = "glob",
	  .usage = "NAME PATTERN",
	  .summary = "paths that match, with ** and braces",
	  .text = "",
	  .flags = glob_flags,
	  .sets = CLI_OUTPUT_FLAGS,
	  .min_args = 2,
	  .max_args = 2,
	  .run = cli_glob },
	{ .name = "grep",
	  .usage = "NAME PATTERN [PATH]",
	  .summary = "lines that match, as path:line:text",
	  .text = "Status 0 with a match, 1 without.",
	  .flags = grep_flags,
	  .sets = CLI_OUTPUT_FLAGS,
	  .min_args = 2,
	  .max_args = 3,
	  .run = cli_grep },
	{ .name = "mount",
	  .usage = "NAME HOST:AT[:ro|rw]",
	  .summary = "lend one more file or folder to a sandbox that runs",
	  .text = "HOST lies beneath one of the policy's mount_roots; AT is a place inside. It is "
		  "read-only unless :rw, and writable only beneath /mnt/rw. What is missing of AT "
		  "is "
		  "made beneath /mnt and in scratch, elsewhere it has to be there. Only the "
		  "process "
		  "wall can.",
	  .sets = CLI_OUTPUT_FLAGS,
	  .min_args = 2,
	  .max_args = 2,
	  .run = cli_mount },
	{ .name = "logs",
	  .usage = "NAME TAG",
	  .summary = "what a detached command wrote",
	  .text = "Its last MiB. With --follow also what it writes from now on, until it has "
		  "ended; "
		  "who interrupts that leaves the command alone. With --json at the end, as one "
		  "object.",
	  .flags = logs_flags,
	  .sets = CLI_OUTPUT_FLAGS,
	  .min_args = 2,
	  .max_args = 2,
	  .run = cli_logs },
	{ .name = "wait",
	  .usage = "NAME TAG",
	  .summary = "wait for a detached command: its end, a port, a line",
	  .text = "Without --port and --line the status is the command's own; with one 0 when it "
		  "is "
		  "so, 1 when the time is over or the command ended before.",
	  .flags = wait_flags,
	  .sets = CLI_OUTPUT_FLAGS,
	  .min_args = 2,
	  .max_args = 2,
	  .run = cli_wait },
	{ .name = "kill",
	  .usage = "NAME TAG [SIGNAL]",
	  .summary = "end a detached command and what it started",
	  .text = "TERM, and KILL half a second later; or a signal by its number or its name.",
	  .sets = CLI_OUTPUT_FLAGS,
	  .min_args = 2,
	  .max_args = 3,
	  .run = cli_kill },
	{ .name = "diff",
	  .usage = "NAME [PATH…]",
	  .summary = "what a sandbox with --cow changed in the workspace so far",
	  .text = "NAME is a sandbox, or the id of its run: of one that is over, the last run. Its "
		  "commands may run "
		  "meanwhile. Paths are relative to the workspace, or as they are inside.",
	  .flags = diff_flags,
	  .sets = CLI_RECORD_FLAGS | CLI_OUTPUT_FLAGS,
	  .min_args = 1,
	  .max_args = -1,
	  .offers = { OFFER_RUN, OFFER_FILE },
	  .run = cli_diff },
	{ .name = "commit",
	  .usage = "NAME [PATH…]",
	  .summary = "apply what a sandbox with --cow changed to the workspace",
	  .text = "NAME is a sandbox, or the id of its run: of one that is over, the last run. As "
		  "`runs commit`; the "
		  "sandbox goes on and sees what it saw. Status 1 if anything was left out.",
	  .flags = commit_flags,
	  .sets = CLI_RECORD_FLAGS | CLI_OUTPUT_FLAGS,
	  .min_args = 1,
	  .max_args = -1,
	  .offers = { OFFER_RUN, OFFER_FILE },
	  .run = cli_commit },
	{ .name = "snapshot",
	  .usage = "NAME TAG",
	  .summary = "keep what a sandbox with --cow changed so far, for `fork`",
	  .text = "Copies what changed, not the workspace. Commands go on: each file is that of "
		  "one "
		  "moment, not all of the same one. At most 32; they go with the sandbox's record.",
	  .sets = CLI_OUTPUT_FLAGS,
	  .min_args = 2,
	  .max_args = 2,
	  .run = cli_snapshot },
	{ .name = "fork",
	  .usage = "NAME NEW [TAG]",
	  .summary = "start another sandbox with what one with --cow changed so far",
	  .text = "NEW has the same policy and grants, and files as NAME has them now, or had at "
		  "the snapshot TAG. Processes are not copied. NAME may be one that is over, or a "
		  "run's id; "
		  "then the policy file of its workspace counts as it is now, and no flags of "
		  "then.",
	  .sets = CLI_RECORD_FLAGS | CLI_OUTPUT_FLAGS,
	  .offers = { OFFER_RUN },
	  .min_args = 2,
	  .max_args = 3,
	  .run = cli_fork },
#include "cli/job_commands.inc"
	{ .name = "mcp",
	  .usage = "",
	  .summary = "a sandbox's tools for a model, over the Model Context Protocol on stdio",
	  .text = "Read, Write, Edit, Bash, Glob, Grep and others, for a program that speaks MCP, "
		  "in one sandbox that is made at the first call and ends with its client. The "
		  "policy of `run` and its flags, but the workspace is a copy (cow) unless "
		  "--workspace or --rw says otherwise: changes are shown by the tool Diff and "
		  "applied by `caisson runs commit`, or by the tool Commit with --allow-commit.",
	  .flags = mcp_flags,
	  .sets = CLI_SANDBOX_FLAGS | CLI_RECORD_FLAGS,
	  .starts_sandbox = true,
	  .max_args = 0,
	  .run = cli_mcp },
	{ .name = "ps",
	  .usage = "",
	  .summary = "sandboxes that stay: state, tier, age, memory, processes",
	  .text = "Oldest first. State: starting; busy, while commands run in it; idle; "
		  "ending; silent, when its monitor does not answer within half a second. To look "
		  "keeps no "
		  "sandbox alive. A number after / is the limit. With -q only names.",
	  .sets = CLI_OUTPUT_FLAGS,
	  .run = cli_ps },
	{ .name = "stats",
	  .usage = "NAME",
	  .summary = "what a sandbox is and uses, now",
	  .text = "Memory, processor time and processes are of all its commands together. They "
		  "are "
		  "counted by a control group, or, where there is none, sampled; the answer says "
		  "which.",
	  .sets = CLI_OUTPUT_FLAGS,
	  .min_args = 1,
	  .max_args = 1,
	  .run = cli_stats },
	{ .name = "down",
	  .usage = "NAME…",
	  .summary = "end sandboxes that stay, and everything in them",
	  .text = "Returns when nothing of them is left. Their records stay.",
	  .sets = CLI_OUTPUT_FLAGS,
	  .min_args = 1,
	  .max_args = -1,
	  .run = cli_down },
	{ .name = "gc",
	  .usage = "",
	  .summary = "remove what killed sandboxes and runs left",
	  .text = "Names, control groups with what is still in them, scratch folders, placeholders "
		  "of protected names, half-made and half-removed folders of the run root. Nothing "
		  "of a sandbox that lives is touched. The next start would do the same. Records "
		  "of lost runs stay until runs rm.",
	  .sets = CLI_RECORD_FLAGS | CLI_OUTPUT_FLAGS,
	  .run = cli_gc },
	{ .name = "pool start",
	  .usage = "[NAME]",
	  .summary = "keep prepared sandboxes waiting, for `up --pool` and libcaisson",
	  .text = "NAME is `pool` by default. The policy file and --tier, --backend, --network, "
		  "--limit "
		  "(memory, processes, cpus, scratch), --at and the places of --mount say what is "
		  "prepared; who takes one has to ask for the same. One that does not fit is never "
		  "used, and none is used twice. The workspace and whether it may be written, what "
		  "--mount shows, --env, --tag and times are those of who takes it, under his own "
		  "policy: given here, they do nothing. The pool ends by `pool stop`, or after "
		  "half an hour "
		  "without a request (limits.idle); what was taken goes on.",
	  .flags = pool_flags,
	  .sets = CLI_SANDBOX_FLAGS | CLI_RECORD_FLAGS | CLI_OUTPUT_FLAGS,
	  .starts_sandbox = true,
	  .max_args = 1,
	  .run = cli_pool_start },
	{ .name = "pool status",
	  .usage = "[NAME]",
	  .summary = "how many wait, how many were taken, how many did not fit and why",
	  .text = "",
	  .sets = CLI_OUTPUT_FLAGS,
	  .max_args = 1,
	  .run = cli_pool_status },
	{ .name = "pool stop",
	  .usage = "[NAME]",
	  .summary = "end a pool and the sandboxes that wait in it",
	  .text = "Returns when nothing of them is left. Sandboxes that were taken go on.",
	  .sets = CLI_OUTPUT_FLAGS,
	  .max_args = 1,
	  .run = cli_pool_stop },
	{ .name = "serve",
	  .usage = "",
	  .summary = "sandboxes over HTTP",
	  .text = "Prints where, with a token. The policy and the flags are the "
		  "most that a caller gets: he may ask for a stronger wall, lower limits, less of "
		  "the workspace, never for more. His sandboxes end with the server. "
		  "docs/serve.md walks through it; GET /v1/openapi.json is its reference.",
	  .flags = serve_flags,
	  .sets = CLI_SANDBOX_FLAGS | CLI_RECORD_FLAGS | CLI_OUTPUT_FLAGS,
	  .starts_sandbox = true,
	  .run = cli_serve },
	{ .name = "monitor",
	  .usage = "--fd N",
	  .summary = "be the monitor of a sandbox, for a program that speaks its frames",
	  .text = "What libcaisson starts: the sandbox lives as long as the stream on descriptor "
		  "N. "
		  "docs/protocol.md says what is spoken there. With --wall-fd the caller is "
		  "the wall too: nothing is started, and a plan that needs what --enforces "
		  "does not name is refused.",
	  .flags = monitor_flags,
	  .sets = CLI_SANDBOX_FLAGS | CLI_RECORD_FLAGS | CLI_OUTPUT_FLAGS,
	  .starts_sandbox = true,
	  .run = cli_monitor },
	{ .name = "port",
	  .usage = "",
	  .summary = "be a sandbox on standard input and output, for Erlang and everybody else",
	  .text = "Speaks frames, as docs/protocol.md says: {open, Ref, Map} makes a sandbox, "
		  "calls "
		  "go to it, {close, Ref} ends it, and so does the end of standard input. "
		  "Erlang: Port.open({:spawn_executable, caisson}, [:binary, packet: 4, args: "
		  "[\"port\"]]).",
	  .starts_sandbox = true,
	  .run = cli_port },
#endif
	{ .name = "why",
	  .usage = "[RUN]",
	  .summary = "what the last run was denied, by which rule, and what would permit it",
	  .text = "RUN is a run's id or the end of one; without it the last run.",
	  .sets = CLI_RECORD_FLAGS | CLI_OUTPUT_FLAGS,
	  .max_args = 1,
	  .offers = { OFFER_RUN },
	  .run = cli_why },
	{ .name = "doctor",
	  .usage = "",
	  .summary = "which walls work here, what is missing for the others, what is weaker",
	  .text = "Status 0 if at least one wall that isolates is usable, else 1.",
	  .sets = CLI_OUTPUT_FLAGS,
	  .run = cli_doctor },
	{ .name = "policy init",
	  .usage = "[FILE]",
	  .summary = "write a commented policy file, caisson.yaml by default",
	  .text = "",
	  .flags = init_flags,
	  .sets = CLI_OUTPUT_FLAGS,
	  .max_args = 1,
	  .offers = { OFFER_FILE },
	  .run = cli_policy_init },
	{ .name = "policy set",
	  .usage = "KEY=VALUE…",
	  .summary = "change values in the policy file, as limits.command=10m; comments stay",
	  .text = "",
	  .sets = CLI_PROJECT_FLAGS | CLI_OUTPUT_FLAGS,
	  .min_args = 1,
	  .max_args = -1,
	  .offers = { OFFER_SETTING, OFFER_SETTING },
	  .run = cli_policy_set },
	{ .name = "policy check",
	  .usage = "[FILE]",
	  .summary = "is the policy file good: FILE:LINE:COLUMN for what is not",
	  .text = "",
	  .sets = CLI_PROJECT_FLAGS | CLI_OUTPUT_FLAGS,
	  .max_args = 1,
	  .offers = { OFFER_FILE },
	  .run = cli_policy_check },
	{ .name = "policy show",
	  .usage = "",
	  .summary = "the policy file in force, and whether it is trusted",
	  .text = "",
	  .flags = show_flags,
	  .sets = CLI_SANDBOX_FLAGS | CLI_STREAM_FLAGS | CLI_RECORD_FLAGS | CLI_OUTPUT_FLAGS,
	  .run = cli_policy_show },
	{ .name = "policy explain",
	  .usage = "[--] COMMAND [ARG…]",
	  .summary = "what would hold for a command, rule by rule, without running it",
	  .text = "Where a flag is refused, it says so, and what holds without it.",
	  .sets = CLI_SANDBOX_FLAGS | CLI_STREAM_FLAGS | CLI_RECORD_FLAGS | CLI_OUTPUT_FLAGS,
	  .takes_argv = true,
	  .max_args = -1,
	  .offers = { OFFER_PROGRAM, OFFER_PROGRAM },
	  .run = cli_policy_explain },
	{ .name = "policy trust",
	  .usage = "[FILE]",
	  .summary = "trust the policy file as it is now, after showing what changed",
	  .text = "A file that was found by search may only tighten until it is trusted: it can "
		  "come with a "
		  "stranger's repository. Trust holds for this path and these bytes; another byte, "
		  "and it is "
		  "asked for again.",
	  .flags = trust_flags,
	  .sets = CLI_OUTPUT_FLAGS,
	  .max_args = 1,
	  .offers = { OFFER_FILE },
	  .run = cli_policy_trust },
	{ .name = "approve",
	  .usage = "ID | --list",
	  .summary = "answer a start that waits for a person's yes",
	  .text = approve_text,
	  .flags = approve_flags,
	  .sets = CLI_RECORD_FLAGS | CLI_OUTPUT_FLAGS,
	  .max_args = 1,
	  .run = cli_approve },
	{ .name = "runs ls",
	  .usage = "",
	  .summary = "the recorded runs, newest first",
	  .text = "`cow` marks a run that keeps a copy of the workspace: see `caisson runs diff`. "
		  "On a terminal the end of each id, which every command takes. With --quiet only "
		  "their ids, one a line.",
	  .sets = CLI_RECORD_FLAGS | CLI_OUTPUT_FLAGS,
	  .run = cli_runs_ls },
	{ .name = "runs show",
	  .usage = "[RUN]",
	  .summary = "the result of a run, the last one by default",
	  .text = "",
	  .sets = CLI_RECORD_FLAGS | CLI_OUTPUT_FLAGS,
	  .max_args = 1,
	  .offers = { OFFER_RUN },
	  .run = cli_runs_show },
	{ .name = "runs verify",
	  .usage = "[RUN]",
	  .summary = "is a record as it was written: names the first bad line",
	  .text = "Recomputes the chain of events, the manifest and the head that is kept outside "
		  "the run's "
		  "folder. Status 1 if anything differs.",
	  .sets = CLI_RECORD_FLAGS | CLI_OUTPUT_FLAGS,
	  .max_args = 1,
	  .offers = { OFFER_RUN },
	  .run = cli_runs_verify },
	{ .name = "runs diff",
	  .usage = "[RUN [PATH…]]",
	  .summary = "what a run with --cow changed in the workspace, the last one by default",
	  .text = "",
	  .flags = diff_flags,
	  .sets = CLI_RECORD_FLAGS | CLI_OUTPUT_FLAGS,
	  .max_args = -1,
	  .offers = { OFFER_RUN, OFFER_FILE },
	  .run = cli_runs_diff },
	{ .name = "runs commit",
	  .usage = "[RUN [PATH…]]",
	  .summary =
		  "apply what a run with --cow, the last one by default, changed to the workspace",
	  .text = "Each file is replaced in one step. A policy file is never written; names that "
		  "make other programs run something (.git/hooks, .git/config, .envrc, .vscode), "
		  "and what the "
		  "policy hides or protects, only if PATH names them; links out of the workspace, "
		  "only "
		  "if PATH is the link itself. "
		  "Devices, sockets and pipes are left out, set-user-id bits dropped.",
	  .flags = commit_flags,
	  .sets = CLI_RECORD_FLAGS | CLI_OUTPUT_FLAGS,
	  .max_args = -1,
	  .offers = { OFFER_RUN, OFFER_FILE },
	  .run = cli_runs_commit },
	{ .name = "runs rm",
	  .usage = "RUN…",
	  .summary = "remove the records of finished runs",
	  .text = "",
	  .sets = CLI_RECORD_FLAGS | CLI_OUTPUT_FLAGS,
	  .min_args = 1,
	  .max_args = -1,
	  .offers = { OFFER_RUN, OFFER_RUN },
	  .run = cli_runs_rm },
	{ .name = "runs gc",
	  .usage = "",
	  .summary = "remove the oldest finished runs beyond the bounds; runs do it themselves",
	  .text = "",
	  .flags = gc_flags,
	  .sets = CLI_RECORD_FLAGS | CLI_OUTPUT_FLAGS,
	  .run = cli_runs_gc },
	{ .name = "version",
	  .usage = "",
	  .summary = "the version",
	  .text = "",
	  .sets = CLI_OUTPUT_FLAGS,
	  .run = cli_version },
	{ .name = "help",
	  .usage = "[COMMAND]",
	  .summary = "help, of all or of one command",
	  .text = "",
	  .flags = help_flags,
	  .max_args = 2,
	  .offers = { OFFER_COMMAND },
	  .run = cli_help },
	{ .name = "completion",
	  .usage = "bash|zsh|fish",
	  .summary = "a completion script for a shell, on stdout",
	  .text = "",
	  .min_args = 1,
	  .max_args = 1,
	  .run = cli_completion },
	{ NULL },
};

/* Counts down `*i` through one table. */
static const struct cli_flag *flag_in(const struct cli_flag *table, size_t *i)
{
	for (; table && table->name; table++)
		if ((*i)-- == 0)
			return table;
	return NULL;
}

const struct cli_flag *cli_flag_at(const struct cli_command *command, size_t i)
{
	const struct cli_flag *flag = flag_in(command->flags, &i);

	for (size_t set = 0; !flag && set < CLI_SETS; set++)
		if (command->sets & 1u << set)
			flag = flag_in(cli_shared_flags[set], &i);
	if (!flag && i == 0)
		flag = &help_flag;
	return flag;
}

const struct cli_command *cli_command_find(int argc, char **argv, int *ret_words)
{
	size_t first = strlen(argv[0]);

	for (const struct cli_command *c = cli_commands; c->name; c++) {
		if (str_is(c->name, argv[0])) {
			*ret_words = 1;
			return c;
		}
		if (argc > 1 && strncmp(c->name, argv[0], first) == 0 && c->name[first] == ' ' &&
		    str_is(c->name + first + 1, argv[1])) {
			*ret_words = 2;
			return c;
		}
	}
	return NULL;
}

bool cli_is_group(const char *word)
{
	size_t length = strlen(word);

	for (const struct cli_command *c = cli_commands; c->name; c++)
		if (strncmp(c->name, word, length) == 0 && c->name[length] == ' ')
			return true;
	return false;
}
