/* The table of tools: the only place where one, an argument of one or a text for a model is named.
 */
#include "serve/mcp_tool.h"

#define NOTE                                                             \
	{                                                                \
		"note", MCP_STRING, .what = "what else there is to know" \
	}
#define NEEDED .is_required = true
#define INSIDE "; relative to the workspace, or absolute inside the sandbox"

/* ---- Read, Write, Edit ---------------------------------------------------------------------- */

static const struct mcp_field read_takes[] = {
	{ "path", MCP_STRING, NEEDED, .what = "the file" INSIDE },
	{ "offset", MCP_INTEGER, .min = 1, .max = INT32_MAX, .what = "first line, counted from 1" },
	{ "limit", MCP_INTEGER, .min = 1, .max = MCP_LINES, .what = "most lines; default 2000" },
	{ NULL },
};
static const struct mcp_field read_gives[] = {
	{ "text", MCP_STRING, NEEDED, .what = "the lines" },
	{ "first_line", MCP_INTEGER },
	{ "last_line", MCP_INTEGER },
	{ "total_lines", MCP_INTEGER, .what = "of the file" },
	{ "image", MCP_STRING, .what = "the type of an image, which is given as content" },
	{ "binary", MCP_BOOLEAN },
	{ "bytes", MCP_INTEGER, .what = "of a file that is no text" },
	NOTE,
	{ NULL },
};

static const struct mcp_field write_takes[] = {
	{ "path", MCP_STRING, NEEDED, .what = "the file" INSIDE },
	{ "content", MCP_STRING, NEEDED, .max = MCP_LINE_BYTES, .what = "all that it shall hold" },
	{ NULL },
};
static const struct mcp_field write_gives[] = {
	{ "path", MCP_STRING, NEEDED },
	{ "bytes", MCP_INTEGER, NEEDED, .what = "that were written" },
	NOTE,
	{ NULL },
};

static const struct mcp_field edit_takes[] = {
	{ "path", MCP_STRING, NEEDED, .what = "the file" INSIDE },
	{ "old_text", MCP_STRING, NEEDED, .max = 1 << 20,
	  .what = "what is there now, exactly; must occur once" },
	{ "new_text", MCP_STRING, NEEDED, .max = 1 << 20, .what = "what replaces it" },
	{ NULL },
};
static const struct mcp_field edit_gives[] = {
	{ "path", MCP_STRING, NEEDED },
	{ "occurrences", MCP_INTEGER, NEEDED, .what = "of old_text; it was replaced if 1" },
	{ "changed", MCP_BOOLEAN, NEEDED },
	NOTE,
	{ NULL },
};

/* ---- Bash, Logs, Kill ----------------------------------------------------------------------- */

static const struct mcp_field bash_takes[] = {
	{ "command", MCP_STRING, NEEDED, .what = "the command, for bash" },
	{ "cwd", MCP_STRING, .what = "where it starts" INSIDE "; default: the workspace" },
	{ "timeout", MCP_INTEGER, .min = 1, .max = 86400,
	  .what = "seconds, after which it is killed; the sandbox's own limit holds too" },
	{ "run_in_background", MCP_BOOLEAN,
	  .what = "return at once and leave it running: for servers and watchers" },
	{ "tag", MCP_STRING, .what = "its name in the background, for Logs and Kill" },
	{ NULL },
};
static const struct mcp_field bash_gives[] = {
	{ "output", MCP_STRING, NEEDED, .what = "stdout and stderr as they came" },
	{ "reason", MCP_STRING, NEEDED,
	  .what = "why it ended: exited, signaled, timeout, memory, …" },
	{ "violations", MCP_STRINGS, NEEDED,
	  .what = "what it tried and was denied, and what is allowed instead" },
	{ "exit_code", MCP_INTEGER },
	{ "signal", MCP_INTEGER },
	{ "why", MCP_STRING, .what = "a sentence on the limit that ended it" },
	{ "wall_ms", MCP_INTEGER, .what = "how long it took" },
	{ "omitted_bytes", MCP_INTEGER, .what = "of the output's middle" },
	{ "tag", MCP_STRING, .what = "of a command in the background" },
	NOTE,
	{ NULL },
};

static const struct mcp_field logs_takes[] = {
	{ "tag", MCP_STRING, NEEDED, .what = "that Bash was given or answered" },
	{ "timeout", MCP_INTEGER, .min = 1, .max = 3600,
	  .what = "wait for its end, a port or a text for at most so many seconds" },
	{ "wait_for_port", MCP_INTEGER, .min = 1, .max = UINT16_MAX,
	  .what = "wait until something inside listens on it" },
	{ "wait_for_text", MCP_STRING, .what = "wait until it writes a line that contains this" },
	{ NULL },
};
static const struct mcp_field logs_gives[] = {
	{ "tag", MCP_STRING, NEEDED },
	{ "output", MCP_STRING, NEEDED },
	{ "running", MCP_BOOLEAN, NEEDED },
	{ "exit_code", MCP_INTEGER },
	{ "signal", MCP_INTEGER },
	{ "omitted_bytes", MCP_INTEGER },
	NOTE,
	{ NULL },
};

static const struct mcp_field kill_takes[] = {
	{ "tag", MCP_STRING, NEEDED, .what = "that Bash was given or answered" },
	{ "signal", MCP_INTEGER, .min = 1, .max = 64,
	  .what = "default: TERM, and KILL half a second later" },
	{ NULL },
};
static const struct mcp_field kill_gives[] = {
	{ "tag", MCP_STRING, NEEDED },
	{ "running", MCP_BOOLEAN, NEEDED },
	{ "exit_code", MCP_INTEGER },
	{ "signal", MCP_INTEGER },
	NOTE,
	{ NULL },
};

/* ---- Glob, Grep ----------------------------------------------------------------------------- */

static const struct mcp_field glob_takes[] = {
	{ "pattern", MCP_STRING, NEEDED, .what = "as **/*.c or src/*.{h,c}; dot files match too" },
	{ "path", MCP_STRING, .what = "where to look" INSIDE "; default: the workspace" },
	{ "limit", MCP_INTEGER, .min = 1, .max = 10000, .what = "most paths; default 500" },
	{ NULL },
};
static const struct mcp_field glob_gives[] = {
	{ "paths", MCP_STRINGS, NEEDED, .what = "sorted" },
	{ "count", MCP_INTEGER, NEEDED },
	{ "truncated", MCP_BOOLEAN, NEEDED },
	NOTE,
	{ NULL },
};

static const struct mcp_field grep_takes[] = {
	{ "pattern", MCP_STRING, NEEDED, .what = "a regular expression (PCRE)" },
	{ "path", MCP_STRING, .what = "file or folder" INSIDE "; default: the workspace" },
	{ "glob", MCP_STRING, .what = "only files whose path matches, as *.py" },
	{ "case_sensitive", MCP_BOOLEAN, .what = "default true" },
	{ "limit", MCP_INTEGER, .min = 1, .max = 10000, .what = "most lines; default 200" },
	{ "context", MCP_INTEGER, .min = 0, .max = 100, .what = "lines before and after each" },
	{ NULL },
};
static const struct mcp_field match[] = {
	{ "path", MCP_STRING, NEEDED },
	{ "line", MCP_INTEGER, NEEDED },
	{ "text", MCP_STRING, NEEDED },
	{ "context", MCP_BOOLEAN, .what = "it only stands around a match" },
	{ NULL },
};
static const struct mcp_field grep_gives[] = {
	{ "matches", MCP_OBJECTS, NEEDED, .of = match },
	{ "count", MCP_INTEGER, NEEDED, .what = "of lines that match" },
	{ "truncated", MCP_BOOLEAN, NEEDED },
	NOTE,
	{ NULL },
};

/* ---- the sandbox ---------------------------------------------------------------------------- */

static const struct mcp_field mount_takes[] = {
	{ "host_path", MCP_STRING, NEEDED,
	  .what = "a file or folder of the host, beneath a mount_root of the policy" },
	{ "path", MCP_STRING, NEEDED, .what = "where it appears, absolute, as /mnt/data" },
	{ "writable", MCP_BOOLEAN, .what = "default false; only beneath /mnt/rw" },
	{ NULL },
};
static const struct mcp_field mount_gives[] = {
	{ "path", MCP_STRING, NEEDED },
	{ "writable", MCP_BOOLEAN, NEEDED },
	NOTE,
	{ NULL },
};

static const struct mcp_field change[] = {
	{ "path", MCP_STRING, NEEDED },
	{ "change", MCP_STRING, NEEDED, .what = "added, modified or deleted" },
	{ "reason", MCP_STRING, .what = "why it was left out" },
	{ NULL },
};
static const struct mcp_field diff_takes[] = {
	{ "paths", MCP_STRINGS, .what = "only these; default: all" },
	{ "names_only", MCP_BOOLEAN, .what = "no changed lines" },
	{ NULL },
};
static const struct mcp_field diff_gives[] = {
	{ "changes", MCP_OBJECTS, NEEDED, .of = change },
	{ "patch", MCP_STRING, NEEDED, .what = "the changed lines, as patch(1) reads them" },
	{ "truncated", MCP_BOOLEAN, NEEDED },
	NOTE,
	{ NULL },
};

static const struct mcp_field commit_takes[] = {
	{ "dry_run", MCP_BOOLEAN, .what = "only say what would be written" },
	{ NULL },
};
static const struct mcp_field commit_gives[] = {
	{ "applied", MCP_OBJECTS, NEEDED, .of = change },
	{ "left", MCP_OBJECTS, NEEDED, .of = change,
	  .what = "what was not written, each with a reason" },
	NOTE,
	{ NULL },
};

static const struct mcp_field sandbox_takes[] = { { NULL } };
static const struct mcp_field sandbox_gives[] = {
	{ "sandbox_id", MCP_STRING, NEEDED, .what = "of its record, for caisson runs" },
	{ "tier", MCP_STRING, NEEDED },
	{ "backend", MCP_STRING, NEEDED },
	{ "workspace", MCP_STRING, NEEDED, .what = "where it stands inside" },
	{ "mode", MCP_STRING, NEEDED, .what = "of the workspace: ro, rw, cow or none" },
	{ "enforced", MCP_STRINGS, NEEDED },
	{ "policy", MCP_STRING, .what = "in effect, as YAML" },
	NOTE,
	{ NULL },
};

const struct mcp_tool mcp_tools[] = {
	{ "Read", "Read a file",
	  "Reads a text file, at most 2,000 lines or 50 KB at a time; offset and limit choose "
	  "lines. Images are shown as images. To list a folder, use Glob.",
	  read_takes, read_gives, MCP_READS | MCP_IDEMPOTENT | MCP_FOR_READERS, mcp_read },
	{ "Write", "Write a file",
	  "Replaces a file, whole or not at all, or makes it, and the folders above it.",
	  write_takes, write_gives, MCP_DESTROYS | MCP_IDEMPOTENT, mcp_write },
	{ "Edit", "Edit a file",
	  "Replaces a text in a file where it occurs exactly once. If it occurs never or more than "
	  "once, nothing is changed, and the answer says where.",
	  edit_takes, edit_gives, MCP_DESTROYS, mcp_edit },
	{ "Bash", "Run a command",
	  "Runs a command in the sandbox. Each begins anew: cd, export and variables do not carry "
	  "over. Long output keeps its beginning and its end. What the sandbox denied is named "
	  "after the output, with what is allowed instead: trying again does not help.",
	  bash_takes, bash_gives, MCP_DESTROYS, mcp_bash },
	{ "Glob", "Find files", "Lists paths that match a pattern, sorted.", glob_takes, glob_gives,
	  MCP_READS | MCP_IDEMPOTENT | MCP_FOR_READERS, mcp_glob },
	{ "Grep", "Search in files",
	  "Lists lines that match a regular expression, as path:line:text.", grep_takes, grep_gives,
	  MCP_READS | MCP_IDEMPOTENT | MCP_FOR_READERS, mcp_grep },
	{ "Logs", "Output of a background command",
	  "Shows what a command in the background has written and whether it still runs; can wait "
	  "for its end, a port or a text.",
	  logs_takes, logs_gives, MCP_READS | MCP_IDEMPOTENT, mcp_logs },
	{ "Kill", "End a background command",
	  "Ends a command in the background and all that it started.", kill_takes, kill_gives,
	  MCP_DESTROYS, mcp_kill },
	{ "Mount", "Show a host folder",
	  "Shows one more file or folder of the host in the sandbox, if the policy lends it and "
	  "the "
	  "wall can; else it answers \"not supported\".",
	  mount_takes, mount_gives, 0, mcp_mount },
	{ "Diff", "Show changes",
	  "Shows what was changed in the sandbox's copy of the workspace, as a patch.", diff_takes,
	  diff_gives, MCP_READS | MCP_IDEMPOTENT, mcp_diff },
	{ "Commit", "Keep changes",
	  "Writes what was changed in the sandbox's copy to the original workspace, except what "
	  "changed there meanwhile or would make other programs run something.",
	  commit_takes, commit_gives, MCP_DESTROYS | MCP_IDEMPOTENT | MCP_IS_COMMIT, mcp_commit },
	{ "Sandbox", "Describe the sandbox",
	  "Says what is enforced and allowed here: files, network, limits, and how much is used.",
	  sandbox_takes, sandbox_gives, MCP_READS | MCP_IDEMPOTENT | MCP_FOR_READERS, mcp_sandbox },
	{ NULL },
};
