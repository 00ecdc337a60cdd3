/*
 * The protocol between monitor and agent, as data: each message, each verb with its keys,
 * types and bounds. Receivers check against these tables and docs/protocol.md is printed
 * from them, so neither can say something else than the other.
 */
#include "base/str.h"
#include "wire/frame.h"

enum {
	PATH_BYTES = 4095,       /* PATH_MAX without its NUL */
	TEXT_BYTES = 131071,     /* MAX_ARG_STRLEN without its NUL: the kernel takes no more */
	ARGV_BYTES = 2 << 20,    /* execve refuses argv + env beyond 2 MiB with the usual stack */
	EDIT_BYTES = 1 << 20,    /* of one side of an edit */
	LISTING_BYTES = 2 << 20, /* of all paths in one answer */
	CALL_BYTES = 5 << 20,
	INIT_BYTES = 64 << 10,
	SMALL_BYTES = 64, /* a message of integers and short atoms */
	PIECE_BYTES = FRAME_PIECE + SMALL_BYTES,
	DETAIL_BYTES = 4096,
	NAME_BYTES = 255,
	RESULTS_MAX = 10000, /* matches or paths in one answer */
	TTY_SIDE = 65535,    /* struct winsize has 16 bits */
	VIOLATIONS_MAX = 1024,
	SIGNAL_MAX = 64,
	MODE_MAX = 07777,
	COMMANDS_MAX = 128,   /* running and remembered: AGENT_CALLS + AGENT_ENDED */
	PATTERN_BYTES = 1024, /* of an expression for `wait` */
	OPEN_LIST_BYTES = 1 << 20,
	GATES_BYTES = 32 << 10, /* of all names of gates */
	IMAGE_BYTES = 4 << 20,  /* of an evaluator */
	EVAL_CODE_BYTES = 1 << 20,
	EVAL_VALUE_BYTES = 3 << 20,
	FORWARDS_BYTES = 2 << 10,
	FORWARDS_MAX = 15, /* the last of 16 */
};

#define YEAR_MS 31536000000u
#define OFFSET_MAX INT64_MAX

static const struct frame_key init_keys[] = {
	{ "workspace", 'p', true, PATH_BYTES, "the directory that relative paths start from" },
	{ "profile", 't', true, NAME_BYTES, "name of the syscall profile for commands" },
	{ "listener", 'B', false, 0,
	  "commands announce a notify listener, with their Ref, on descriptor 3" },
	{ "ahead", 'B', false, 0, "commands will come: the first may be forked ahead" },
	{ "gates", 'L', false, GATES_BYTES, "what commands may ask for by `gate_call`" },
	{ "gates_at", 'p', false, PATH_BYTES,
	  "a folder to be made: `gates` in it is a socket, `bin` has a program for each" },
	{ "forwards", 'L', false, FORWARDS_BYTES,
	  "where the agent listens, for `forward_open`: a path of a socket that it makes, or a "
	  "port "
	  "of its own loopback" },
	{ NULL },
};

static const struct frame_key ready_keys[] = {
	{ "version", 'i', true, UINT16_MAX, "of this protocol: 1" },
	{ "verbs", 'A', true, 64, "what `call` may name" },
	{ "enforces", 'A', true, 64, "what this agent enforces by itself" },
	{ "gates", 'B', false, 0, "`gate_call` may come: `init` asked for it" },
	{ "forwards", 'B', false, 0, "it listens on all that `init` asked for" },
	{ "forward_error", 't', false, PATH_BYTES, "or why it does not" },
	{ NULL },
};

static const struct frame_key gate_keys[] = {
	{ "result", 'b', true, FRAME_GATE_RESULT_BYTES, "what it answered, or why it did not" },
	{ "is_error", 'B', true, 0, "it did not" },
	{ NULL },
};

const struct frame_message frame_messages[] = {
	[FRAME_INIT] = { "init", "m", "{init, Map}", FROM_MONITOR, INIT_BYTES,
			 "the first message; answered by `ready`", .keys = init_keys },
	[FRAME_CALL] = { "call", "iam", "{call, Ref, Verb, Map}", FROM_MONITOR, CALL_BYTES,
			 "starts a verb; `reply` or `failed` with the same Ref ends it" },
	[FRAME_DATA_IN] = { "data", "iad", "{data, Ref, stdin, Bin | eof}", FROM_MONITOR,
			    PIECE_BYTES, "input of a running call", .atoms = "stdin",
			    .max_binary = FRAME_PIECE },
	[FRAME_WINDOW_IN] = { "window", "ii", "{window, Ref, Bytes}", FROM_MONITOR, SMALL_BYTES,
			      "so many more bytes of output may be sent for this call",
			      .max_integer = FRAME_MAX },
	[FRAME_SIGNAL] = { "signal", "ii", "{signal, Ref, N}", FROM_MONITOR, SMALL_BYTES,
			   "sends a signal to the command's process group; TERM and KILL to its "
			   "tree",
			   .max_integer = SIGNAL_MAX },
	[FRAME_RESIZE] = { "resize", "iii", "{resize, Ref, Rows, Cols}", FROM_MONITOR, SMALL_BYTES,
			   "the size of the command's terminal", .max_integer = TTY_SIDE },
	[FRAME_CANCEL] = { "cancel", "i", "{cancel, Ref}", FROM_MONITOR, SMALL_BYTES,
			   "ends a call and everything it started" },
	[FRAME_STOP] = { "stop", "", "{stop}", FROM_MONITOR, SMALL_BYTES,
			 "ends everything; answered by `bye`" },
	[FRAME_GATE_RESULT] = { "gate_result", "im", "{gate_result, Ref, Map}", FROM_MONITOR,
				FRAME_GATE_RESULT_BYTES + 2 * SMALL_BYTES,
				"the answer to `gate_call`; a Ref that nobody waits for any more "
				"is passed over",
				.keys = gate_keys },
	[FRAME_FORWARD_DATA_IN] = { "forward_data", "ib", "{forward_data, Ref, Bin}", FROM_MONITOR,
				    PIECE_BYTES, "bytes from the host's endpoint",
				    .max_binary = FRAME_PIECE },
	[FRAME_FORWARD_END_IN] = { "forward_end", "i", "{forward_end, Ref}", FROM_MONITOR,
				   SMALL_BYTES, "the endpoint sends no more; it may read yet" },
	[FRAME_FORWARD_WINDOW_IN] = { "forward_window", "ii", "{forward_window, Ref, Bytes}",
				      FROM_MONITOR, SMALL_BYTES,
				      "the endpoint took so many bytes: as many more may be sent",
				      .max_integer = FRAME_FORWARD_WINDOW },
	[FRAME_FORWARD_CLOSE_IN] = { "forward_close", "ia", "{forward_close, Ref, Reason}",
				     FROM_MONITOR, SMALL_BYTES,
				     "the connection is over, said once of each: `closed` when "
				     "both "
				     "ends had said all, `reset`, or `refused` where nobody "
				     "listens",
				     .atoms = "closed reset refused" },
	[FRAME_READY] = { "ready", "m", "{ready, Map}", FROM_AGENT, INIT_BYTES,
			  "the answer to `init`", .keys = ready_keys },
	[FRAME_REPLY] = { "reply", "im", "{reply, Ref, Map}", FROM_AGENT, CALL_BYTES,
			  "the result of a call; nothing follows for its Ref" },
	[FRAME_FAILED] = { "failed", "iab", "{failed, Ref, Reason, Detail}", FROM_AGENT,
			   2 * DETAIL_BYTES,
			   "the call could not be done; Reason is an errno name in lower case, or "
			   "`not_supported`, `invalid`, `cancelled`, `timeout`, `invalid_pattern`, "
			   "`invalid_regex`, `match_limit`, `lost`",
			   .max_binary = DETAIL_BYTES },
	[FRAME_DATA_OUT] = { "data", "iab", "{data, Ref, stdout | stderr | tty | report, Bin}",
			     FROM_AGENT, PIECE_BYTES, "output of a running call",
			     .atoms = "stdout stderr tty report", .max_binary = FRAME_PIECE },
	[FRAME_WINDOW_OUT] = { "window", "ii", "{window, Ref, Bytes}", FROM_AGENT, SMALL_BYTES,
			       "so many more bytes of input may be sent for this call",
			       .max_integer = FRAME_MAX },
	[FRAME_FACT] = { "fact", "m", "{fact, Map}", FROM_AGENT, INIT_BYTES,
			 "what the monitor is told unasked: that a detached command ended; or, by "
			 "a "
			 "wall of one's own, an `event` that `command.observes` names, with `ref` "
			 "of the call, `path`, `address`, `host`, `text`" },
	[FRAME_GATE_CALL] = { "gate_call", "ibb", "{gate_call, Ref, Name, Args}", FROM_AGENT,
			      FRAME_GATE_CALL_BYTES + NAME_BYTES + SMALL_BYTES,
			      "code asks for a gate by its name; Ref is the asker's own, Args the "
			      "text of a JSON object",
			      .max_binary = FRAME_GATE_CALL_BYTES },
	[FRAME_FORWARD_OPEN] = { "forward_open", "ii", "{forward_open, Ref, N}", FROM_AGENT,
				 SMALL_BYTES,
				 "somebody connected to the N-th of `init`'s forwards, from 0. Ref "
				 "grows from 1, and is never used again; 32 are open at most. "
				 "Either side may then send "
				 "131072 bytes, and more as `forward_window` says",
				 .max_integer = FORWARDS_MAX },
	[FRAME_FORWARD_DATA_OUT] = { "forward_data", "ib", "{forward_data, Ref, Bin}", FROM_AGENT,
				     PIECE_BYTES, "bytes for the host's endpoint",
				     .max_binary = FRAME_PIECE },
	[FRAME_FORWARD_END_OUT] = { "forward_end", "i", "{forward_end, Ref}", FROM_AGENT,
				    SMALL_BYTES, "who connected sends no more; he may read yet" },
	[FRAME_FORWARD_WINDOW_OUT] = { "forward_window", "ii", "{forward_window, Ref, Bytes}",
				       FROM_AGENT, SMALL_BYTES,
				       "he took so many bytes: as many more may be sent",
				       .max_integer = FRAME_FORWARD_WINDOW },
	[FRAME_FORWARD_CLOSE_OUT] = { "forward_close", "ia", "{forward_close, Ref, Reason}",
				      FROM_AGENT, SMALL_BYTES,
				      "he left: `closed` when what he sent is still to be "
				      "delivered, "
				      "else `reset`. Until it is answered by the same the "
				      "connection "
				      "counts as one of 32",
				      .atoms = "closed reset" },
	[FRAME_BYE] = { "bye", "m", "{bye, Info}", FROM_AGENT, INIT_BYTES,
			"the last message; Info is a map" },
	[FRAME_OPEN] = { "open", "im", "{open, Ref, Map}", FROM_OPENER, CALL_BYTES,
			 "makes the sandbox, or joins one; answered by `reply`, or by `failed`, "
			 "after "
			 "which another may follow" },
	[FRAME_CLOSE] = { "close", "i", "{close, Ref}", FROM_OPENER, SMALL_BYTES,
			  "ends the sandbox, or leaves one that was joined; answered by `reply` "
			  "when "
			  "nothing of it is left; the last message" },
};
const size_t frame_message_count = ARRAY_SIZE(frame_messages);

static const struct frame_key exec_limits[] = {
	{ "open_files", 'i', false, 1 << 20, "RLIMIT_NOFILE" },
	{ "data_bytes", 'i', false, OFFSET_MAX, "RLIMIT_DATA" },
	{ "processes", 'i', false, 1 << 22, "RLIMIT_NPROC" },
	{ NULL },
};

static const struct frame_key exec_args[] = {
	{ "argv", 'L', false, ARGV_BYTES, "program and arguments; this or `command`" },
	{ "command", 't', false, TEXT_BYTES, "text for bash, or sh where there is no bash" },
	{ "cwd", 'p', false, PATH_BYTES, "default: the workspace, where a relative one begins" },
	{ "env", 'M', false, ARGV_BYTES, "the whole environment" },
	{ "timeout_ms", 'i', false, YEAR_MS, "after which the command's tree is killed" },
	{ "tty", 'B', false, 0, "run on a terminal of its own" },
	{ "rows", 'i', false, TTY_SIDE, "of that terminal" },
	{ "cols", 'i', false, TTY_SIDE, "of that terminal" },
	{ "stdin", 'B', false, 0, "`data` with input will follow; else input is empty" },
	{ "detach", 'B', false, 0,
	  "outlives the call, which is answered when the program was executed; no `stdin`" },
	{ "tag", 't', false, NAME_BYTES, "name by which it is found; unique among those that run" },
	{ "profile", 't', false, NAME_BYTES, "name of the syscall profile; default: `init`'s" },
	{ "limits", 'm', false, 0, "resource limits of the command", exec_limits },
	{ "last", 'B', false, 0, "the agent ends by itself after the reply" },
	{ "image", 'b', false, IMAGE_BYTES,
	  "the program itself, executed from memory; `argv` is what it is told" },
	{ "report", 'B', false, 0,
	  "the command gets a pipe as descriptor 3; what it writes there comes as `data` on "
	  "report" },
	{ NULL },
};

static const struct frame_key exec_result[] = {
	{ "exit_code", 'I', true, UINT8_MAX, "null when it did not exit by itself" },
	{ "signal", 'I', true, SIGNAL_MAX, "that ended it, or null" },
	{ "timed_out", 'B', false, 0, "`timeout_ms` passed and the tree was killed" },
	{ "error", 'a', false, 0, "errno name in lower case: the program was not started" },
	{ "stage", 't', false, NAME_BYTES, "what failed then" },
	{ "user_us", 'i', true, OFFSET_MAX, "CPU time in the program" },
	{ "system_us", 'i', true, OFFSET_MAX, "CPU time in the kernel" },
	{ "max_rss_bytes", 'i', true, OFFSET_MAX, "largest resident set of one process" },
	{ "detached", 'B', false, 0, "the command goes on; all but `pid` says nothing yet" },
	{ "pid", 'i', false, INT32_MAX, "of a detached one, inside" },
	{ NULL },
};

static const struct frame_key ps_command[] = {
	{ "ref", 'i', true, INT64_MAX, "of its call" },
	{ "tag", 't', false, NAME_BYTES, "its name" },
	{ "state", 'a', true, 0,
	  "starting, running, ending, ended, or lost: its keeper died before it" },
	{ "detached", 'B', true, 0, "outlives its call" },
	{ "pid", 'I', true, INT32_MAX, "inside; null before it began" },
	{ "exit_code", 'I', true, UINT8_MAX, "null when it has not exited by itself" },
	{ "signal", 'I', true, SIGNAL_MAX, "that ended it, or null" },
	{ "started_ms", 'i', true, OFFSET_MAX, "since 1970, UTC" },
	{ "bytes", 'i', true, OFFSET_MAX, "output of a detached one so far" },
	{ "cut", 'i', true, OFFSET_MAX, "of them, those that `logs` no longer has" },
	{ NULL },
};

static const struct frame_key ps_result[] = {
	{ "commands", 'R', true, COMMANDS_MAX, "ended ones first, the oldest first", ps_command },
	{ NULL },
};

static const struct frame_key logs_args[] = {
	{ "tag", 't', false, NAME_BYTES, "of a detached command; this or `ref`" },
	{ "ref", 'i', false, INT64_MAX, "of its call" },
	{ "follow", 'B', false, 0, "goes on until the command has ended" },
	{ NULL },
};

static const struct frame_key logs_result[] = {
	{ "bytes", 'i', true, OFFSET_MAX, "that came as `data`" },
	{ "cut", 'i', true, OFFSET_MAX, "that the command wrote and that did not come" },
	{ "running", 'B', true, 0, "there may be more" },
	{ NULL },
};

static const struct frame_key wait_args[] = {
	{ "tag", 't', false, NAME_BYTES, "of a detached command; this or `ref`" },
	{ "ref", 'i', false, INT64_MAX, "of its call" },
	{ "port", 'i', false, UINT16_MAX, "until somebody inside listens on this TCP port" },
	{ "line", 't', false, PATTERN_BYTES,
	  "until it writes a line that this POSIX extended expression matches" },
	{ "text", 't', false, PATTERN_BYTES, "until it writes a line that contains this" },
	{ "timeout_ms", 'i', false, YEAR_MS, "default: none; the command lives on" },
	{ "forget", 'B', false, 0, "of one that has ended: drops its status and output" },
	{ NULL },
};

static const struct frame_key wait_result[] = {
	{ "reached", 'B', true, 0, "it is so; without port, line and text: it has ended" },
	{ "timed_out", 'B', true, 0, "the time is over" },
	{ "running", 'B', true, 0, "the command has not ended" },
	{ "exit_code", 'I', true, UINT8_MAX, "null when it has not exited by itself" },
	{ "signal", 'I', true, SIGNAL_MAX, "that ended it, or null" },
	{ "line", 'b', false, PATH_BYTES + 1, "the one that matched, as far as it had come" },
	{ NULL },
};

static const struct frame_key kill_args[] = {
	{ "tag", 't', false, NAME_BYTES, "of a command; this or `ref`" },
	{ "ref", 'i', false, INT64_MAX, "of its call" },
	{ "signal", 'i', false, SIGNAL_MAX,
	  "TERM and KILL go to its tree, others to its process group; default: TERM, and KILL "
	  "after 500 ms" },
	{ NULL },
};

static const struct frame_key read_args[] = {
	{ "path", 'p', true, PATH_BYTES, "a file" },
	{ "offset", 'i', false, OFFSET_MAX, "first byte; default 0" },
	{ "length", 'i', false, OFFSET_MAX, "most bytes; default: to the end" },
	{ NULL },
};

static const struct frame_key read_result[] = {
	{ "bytes", 'b', false, FRAME_PIECE,
	  "the content; absent when it came as `data` on stdout" },
	{ "size", 'i', true, OFFSET_MAX, "bytes delivered" },
	{ NULL },
};

static const struct frame_key write_args[] = {
	{ "path", 'p', true, PATH_BYTES, "a file; its parents are created" },
	{ "bytes", 'b', false, FRAME_PIECE, "the content; this or `stdin`" },
	{ "stdin", 'B', false, 0, "the content follows as `data` on stdin" },
	{ "mode", 'i', false, MODE_MAX, "permissions; default: those it had, or 0644" },
	{ NULL },
};

static const struct frame_key edit_args[] = {
	{ "path", 'p', true, PATH_BYTES, "a file" },
	{ "old", 'b', true, EDIT_BYTES, "must occur exactly once" },
	{ "new", 'b', true, EDIT_BYTES, "what replaces it" },
	{ NULL },
};

static const struct frame_key edit_result[] = {
	{ "occurrences", 'i', true, OFFSET_MAX, "of `old`; the file was written if 1" },
	{ "content", 'b', false, EDIT_BYTES, "of the file now; absent when it is longer" },
	{ NULL },
};

static const struct frame_key glob_args[] = {
	{ "pattern", 't', true, PATH_BYTES, "with `**` and braces; matches dot files" },
	{ "cwd", 'p', false, PATH_BYTES, "default: the workspace, where a relative one begins" },
	{ "limit", 'i', false, RESULTS_MAX, "most paths, the first in order; default 1000" },
	{ "timeout_ms", 'i', false, YEAR_MS, "after which it fails with `timeout`; default 30000" },
	{ NULL },
};

static const struct frame_key glob_result[] = {
	{ "paths", 'L', true, LISTING_BYTES, "relative to `cwd`, sorted" },
	{ "truncated", 'B', true, 0, "there were more" },
	{ "skipped", 'i', true, OFFSET_MAX, "folders that could not be read, or are the kernel's" },
	{ NULL },
};

static const struct frame_key grep_args[] = {
	{ "pattern", 't', true, PATH_BYTES, "a regular expression" },
	{ "path", 'p', false, PATH_BYTES, "file or directory; default: the workspace" },
	{ "glob", 't', false, PATH_BYTES, "only files whose path matches" },
	{ "case_sensitive", 'B', false, 0, "default true" },
	{ "limit", 'i', false, RESULTS_MAX, "most matches, the first in order; default 1000" },
	{ "context", 'i', false, 100, "lines before and after" },
	{ "timeout_ms", 'i', false, YEAR_MS, "after which it fails with `timeout`; default 30000" },
	{ NULL },
};

static const struct frame_key grep_match[] = {
	{ "path", 'p', true, PATH_BYTES, "relative to the workspace, absolute if not in it" },
	{ "line_number", 'i', true, OFFSET_MAX, "from 1" },
	{ "line", 'b', true, FRAME_PIECE, "without its newline, cut at the bound" },
	{ "is_context", 'B', false, 0, "a neighbour of a match" },
	{ NULL },
};

static const struct frame_key grep_result[] = {
	{ "matches", 'R', true, RESULTS_MAX, "in order of path and line", grep_match },
	{ "binary", 'L', true, LISTING_BYTES, "files that match but are not text" },
	{ "truncated", 'B', true, 0, "there were more" },
	{ "skipped", 'i', true, OFFSET_MAX,
	  "files and folders that could not be read, or are the kernel's" },
	{ NULL },
};

static const struct frame_key path_args[] = {
	{ "path", 'p', true, PATH_BYTES, "relative to the workspace, or absolute" },
	{ NULL },
};

static const struct frame_key stat_result[] = {
	{ "type", 'a', true, 0, "file, directory, symlink, fifo, socket, device" },
	{ "size", 'i', true, OFFSET_MAX, "bytes" },
	{ "mode", 'i', true, MODE_MAX, "permissions" },
	{ "mtime_ms", 'i', true, OFFSET_MAX, "since 1970, UTC" },
	{ "target", 't', false, PATH_BYTES, "of a symbolic link" },
	{ NULL },
};

static const struct frame_key list_entry[] = {
	{ "name", 'p', true, NAME_BYTES, "without its directory" },
	{ "type", 'a', true, 0, "as in `stat`" },
	{ "size", 'i', true, OFFSET_MAX, "bytes" },
	{ NULL },
};

static const struct frame_key list_result[] = {
	{ "entries", 'R', true, RESULTS_MAX, "sorted by name, dot files too", list_entry },
	{ "truncated", 'B', true, 0, "there were more" },
	{ NULL },
};

static const struct frame_key remove_args[] = {
	{ "path", 'p', true, PATH_BYTES, "a file, a link, or a directory" },
	{ "recursive", 'B', false, 0, "a directory with its content; default false" },
	{ NULL },
};

static const struct frame_key move_args[] = {
	{ "path", 'p', true, PATH_BYTES, "what" },
	{ "to", 'p', true, PATH_BYTES, "its new path, which is replaced" },
	{ NULL },
};

static const struct frame_key nothing[] = { { NULL } };

static const char read_notes[] = "A folder is `eisdir`; a fifo, socket or device is `einval`, and "
				 "none is waited for. Up to\n"
				 "64 KiB come in `bytes`. More comes as `data` on stdout before "
				 "the reply, 256 KiB at first,\n"
				 "then as far as `window` lets it; a hole of a file is bytes.";

static const char write_notes[] = "The content goes to a temporary file beside the old one "
				  "(`.caisson-` and 16 digits), which is\n"
				  "renamed over it at the end and removed on any failure. With "
				  "`stdin`, each piece is answered\n"
				  "by `window`. A link in the last place is followed and stays a "
				  "link. The mode is kept without\n"
				  "its set-id bits, the owner where the agent may; other hard "
				  "links keep the old content. Folders\n"
				  "are made with 0755 and stay. `ebusy`: something is mounted on "
				  "the file. Nothing is synced.";

static const char edit_notes[] = "Occurrences that overlap count: `aa` is twice in `aaa`, so "
				 "nothing is changed. An empty `old`\n"
				 "is `einval`, a file above 16 MiB `efbig`, one that others "
				 "changed since it was read `estale`.\n"
				 "The file is replaced as by `write`.";

static const char list_notes[] =
	"Names are sorted by their bytes; of more than 10,000 the first ones are told.";

static const char remove_notes[] =
	"Links are removed, not followed. `enotempty`: a directory that is not empty, without\n"
	"`recursive`. `ebusy`: the workspace, `/`, a mount point, or a directory that holds one; "
	"what\n"
	"was removed before a failure stays removed.";

static const char move_notes[] =
	"`exdev`: the new path is on another mount; nothing is copied. Folders are not made.";

static const char exec_notes[] =
	"When its leader ends, or is killed, everything that the command started is killed before\n"
	"the reply, whatever session it moved to; detached commands are others. At most 64 calls "
	"and\n"
	"detached commands at once, else `eagain`. `eexist`: a command with this tag runs.\n"
	"`etimedout`, `cancelled`: it had not begun. `lost`: the process that watched over it was\n"
	"killed, by itself on kernels before 6.12; what was left of it was killed too. Such a "
	"process\n"
	"that is stopped is continued, and killed at the ninth time.";

static const char ps_notes[] = "Of detached commands that ended, the newest 64 are remembered, of "
			       "16 MiB of output at most, "
			       "until another with their tag\n"
			       "starts or `wait` forgets them.";

static const char logs_notes[] =
	"The newest 1 MiB of output is kept (256 KiB where 16 others ran when "
	"it began), with 4 bytes\n"
	"for each change between stdout and stderr, and replayed in the order in which it was "
	"read, as often as it "
	"is asked for. A follower who\n"
	"is slower than that loses what was cut meanwhile.";

static const char wait_notes[] =
	"Output from the beginning counts, as far as it is kept; a line longer than 4096 bytes is\n"
	"looked at in pieces, one that has not ended as far as it came. Expressions have no back\n"
	"references, and repetitions that multiply to 1000 at most, else `einval`. The port may "
	"be\n"
	"anybody's in this network namespace. `not_supported`: neither `/proc/net/tcp` nor a\n"
	"connection to the loopback address can tell.";

const struct frame_verb frame_verbs[] = {
	{ "exec", "runs a program; a status other than 0 is a result", exec_args, exec_result,
	  exec_notes },
	{ "ps", "lists commands that run, and detached ones that ended", nothing, ps_result,
	  ps_notes },
	{ "logs", "replays a detached command's output", logs_args, logs_result, logs_notes },
	{ "wait", "waits for a detached command", wait_args, wait_result, wait_notes },
	{ "kill", "signals a command; answered when it was sent", kill_args, nothing },
	{ "read", "reads a file", read_args, read_result, read_notes },
	{ "write", "replaces a file, whole or not at all", write_args, nothing, write_notes },
	{ "edit", "replaces a text that occurs exactly once", edit_args, edit_result, edit_notes },
	{ "glob", "lists paths that match a pattern", glob_args, glob_result },
	{ "grep", "finds lines", grep_args, grep_result },
	{ "stat", "describes a path; links are not followed", path_args, stat_result },
	{ "list", "lists a directory", path_args, list_result, list_notes },
	{ "remove", "removes a path", remove_args, nothing, remove_notes },
	{ "move", "renames a path", move_args, nothing, move_notes },
};
const size_t frame_verb_count = ARRAY_SIZE(frame_verbs);

const struct frame_key frame_ended[] = {
	{ "event", 'a', true, 0, "ended" },
	{ "ref", 'i', true, INT64_MAX, "of its call" },
	{ "exit_code", 'I', true, UINT8_MAX, "null when it did not exit by itself" },
	{ "signal", 'I', true, SIGNAL_MAX, "that ended it, or null" },
	{ "user_us", 'i', true, OFFSET_MAX, "CPU time in the program" },
	{ "system_us", 'i', true, OFFSET_MAX, "CPU time in the kernel" },
	{ "max_rss_bytes", 'i', true, OFFSET_MAX, "largest resident set of one process" },
	{ "bytes", 'i', true, OFFSET_MAX, "its output" },
	{ "lost", 'B', true, 0, "its keeper died before it" },
	{ NULL },
};

/* ---- between a client and a monitor --------------------------------------------------------- */

const struct frame_key frame_violation[] = {
	{ "event", 't', true, NAME_BYTES, "as in docs/violations.md: `NetworkAccessViolation`" },
	{ "source", 'a', false, 0, "what it was seen by: seccomp, landlock, cgroup, clock" },
	{ "rule", 't', true, NAME_BYTES, "what decided: `limits.memory`" },
	{ "say", 't', true, DETAIL_BYTES, "a sentence: what was denied, what is allowed instead" },
	{ "certain", 'B', true, 0, "false: a program that races could have blurred it" },
	{ "expected", 'B', false, 0, "noise that well-known tools make" },
	{ "others", 'B', false, 0, "stands for further different ones of its event" },
	{ "count", 'i', true, OFFSET_MAX, "equal ones are folded" },
	{ "time_ms", 'i', false, OFFSET_MAX, "of the first, since 1970, UTC" },
	{ "last_ms", 'i', false, OFFSET_MAX, "of the last" },
	{ "pid", 'i', false, OFFSET_MAX, "as the monitor sees it" },
	{ "comm", 't', false, NAME_BYTES, "short name of the program, which can choose it" },
	{ "syscall", 't', false, NAME_BYTES, "its name" },
	{ "path", 't', false, PATH_BYTES, "inside the sandbox" },
	{ "to", 't', false, PATH_BYTES, "second path of a rename or link" },
	{ "address", 't', false, NAME_BYTES, "that was called" },
	{ "port", 'i', false, UINT16_MAX, "of that address" },
	{ "host", 't', false, NAME_BYTES, "name that was asked for" },
	{ "text", 't', false, DETAIL_BYTES, "anything else: a limit and a peak, a reason" },
	{ "ref", 'i', false, OFFSET_MAX, "in `fact`: the call during which it was seen" },
	{ NULL },
};

static const struct frame_key exec_order[] = {
	{ "argv", 'L', false, ARGV_BYTES, "program and arguments; this or `command`" },
	{ "command", 't', false, TEXT_BYTES, "text for bash, or sh where there is no bash" },
	{ "cwd", 'p', false, PATH_BYTES, "default: the workspace, where a relative one begins" },
	{ "env", 'M', false, ARGV_BYTES, "added to what the sandbox gives" },
	{ "timeout_ms", 'i', false, YEAR_MS, "may shorten the policy's clock" },
	{ "tty", 'B', false, 0, "run on a terminal of its own" },
	{ "rows", 'i', false, TTY_SIDE, "of that terminal" },
	{ "cols", 'i', false, TTY_SIDE, "of that terminal" },
	{ "stdin", 'B', false, 0, "`data` with input will follow; else input is empty" },
	{ "detach", 'B', false, 0, "survives the call" },
	{ "tag", 't', false, NAME_BYTES, "name by which a detached command is found" },
	{ NULL },
};

static const struct frame_key exec_account[] = {
	{ "reason", 'a', true, 0,
	  "exited, signaled, timeout, memory, output, processes, scratch, violation, cancelled, "
	  "lost, start_failed; detached: it goes on" },
	{ "detached", 'B', false, 0, "the command goes on; the rest says nothing yet" },
	{ "pid", 'i', false, INT32_MAX, "of a detached one, inside" },
	{ "clock", 'a', false, 0, "of a timeout: startup, command, idle, budget" },
	{ "exit_code", 'I', true, UINT8_MAX, "null when it did not exit by itself" },
	{ "signal", 'I', true, SIGNAL_MAX, "that ended it, or null" },
	{ "error", 'a', false, 0, "of start_failed: errno name in lower case" },
	{ "stage", 't', false, NAME_BYTES, "what failed then" },
	{ "text", 't', false, DETAIL_BYTES, "a sentence on it, or on the limit that ended it" },
	{ "wall_us", 'i', true, OFFSET_MAX, "from its start to its end" },
	{ "cpu_us", 'i', true, OFFSET_MAX, "CPU time, program and kernel" },
	{ "mem_peak_bytes", 'i', true, OFFSET_MAX, "most memory in use" },
	{ "scope", 'a', false, 0, "what the usage is of: command, sandbox" },
	{ "stdout_bytes", 'i', true, OFFSET_MAX, "that it wrote, cut ones included" },
	{ "stderr_bytes", 'i', true, OFFSET_MAX, "the same" },
	{ "output_cut_bytes", 'i', true, OFFSET_MAX, "that the output limit cut" },
	{ "violations", 'R', true, VIOLATIONS_MAX, "in order of first appearance",
	  frame_violation },
	{ NULL },
};

static const struct frame_key mount_args[] = {
	{ "host", 'p', true, PATH_BYTES, "on the host, beneath one of the policy's `mount_roots`" },
	{ "at", 'p', true, PATH_BYTES, "where it appears" },
	{ "mode", 'a', false, 0, "ro or rw; default ro" },
	{ NULL },
};

static const struct frame_key diff_args[] = {
	{ "paths", 'L', false, LISTING_BYTES, "only these; default: all" },
	{ "names_only", 'B', false, 0, "no changed lines" },
	{ NULL },
};

static const struct frame_key commit_args[] = {
	{ "paths", 'L', false, LISTING_BYTES, "only these; default: all" },
	{ "force", 'B', false, 0, "replaces what somebody else changed meanwhile" },
	{ "dry_run", 'B', false, 0, "only says what it would do" },
	{ NULL },
};

static const struct frame_key change[] = {
	{ "path", 'p', true, PATH_BYTES, "relative to the workspace" },
	{ "change", 'a', true, 0, "added, modified, deleted" },
	{ "kind", 'a', false, 0, "file, folder, link, other" },
	{ "size", 'i', false, OFFSET_MAX, "bytes, now, or of what was deleted" },
	{ "mode", 'i', false, MODE_MAX, "permissions, in the same way" },
	{ "other", 'p', false, PATH_BYTES,
	  "of a rename: where an added one was, where a deleted one is" },
	{ "guarded", 'B', false, 0, "`commit` writes it only if it is named" },
	{ "reason", 't', false, DETAIL_BYTES, "why it was left out" },
	{ NULL },
};

static const struct frame_key diff_result[] = {
	{ "changes", 'R', true, RESULTS_MAX,
	  "sorted by path; changed lines come before, as `data` on stdout", change },
	{ "truncated", 'B', true, 0, "there were more" },
	{ "foreign", 'i', false, INT32_MAX,
	  "files of the workspace whose owner or group has no number inside: they cannot be "
	  "changed; of its first 20000" },
	{ "foreign_names", 'L', false, LISTING_BYTES, "ten of them" },
	{ NULL },
};

static const struct frame_key commit_result[] = {
	{ "applied", 'R', true, RESULTS_MAX, "written to the workspace", change },
	{ "left", 'R', true, RESULTS_MAX, "not written, with a reason", change },
	{ "truncated", 'B', false, 0, "there were more of either" },
	{ NULL },
};

static const struct frame_key snapshot_args[] = {
	{ "tag", 't', true, NAME_BYTES, "of the snapshot: letters, digits, '-', '_', '.'" },
	{ NULL },
};

static const struct frame_key fork_args[] = {
	{ "name", 't', true, NAME_BYTES, "of the new sandbox" },
	{ "tag", 't', false, NAME_BYTES, "of a snapshot that it begins with; default: as it is" },
	{ NULL },
};

static const struct frame_key copied_result[] = {
	{ "entries", 'i', true, OFFSET_MAX, "that were copied" },
	{ "bytes", 'i', true, OFFSET_MAX, "of files, as long as they are" },
	{ "torn", 'i', true, OFFSET_MAX, "files that changed all the time" },
	{ "torn_name", 'b', true, NAME_BYTES, "of the first of them, without its folder" },
	{ NULL },
};

static const struct frame_key eval_args[] = {
	{ "medium", 't', true, NAME_BYTES, "in which the code is written: lua" },
	{ "session", 't', false, NAME_BYTES, "whose variables it has; default: `main`" },
	{ "code", 'b', true, EVAL_CODE_BYTES, "a piece of it; an evaluator may take less" },
	{ "timeout_ms", 'i', false, YEAR_MS, "of the code, in all; default 30000" },
	{ NULL },
};

static const struct frame_key eval_result[] = {
	{ "value", 'b', false, EVAL_VALUE_BYTES, "of its last expression, as JSON" },
	{ "reason", 'b', false, DETAIL_BYTES * 4, "why there is none" },
	{ "output", 'b', true, EVAL_CODE_BYTES, "what it printed" },
	{ "done", 'B', true, 0, "it called `done`: the session is over" },
	{ NULL },
};

static const char eval_notes[] =
	"A session begins with its first eval and ends with the sandbox, or with `done`; at most 8 "
	"in a\nsandbox, one eval in each at a time (`ebusy`). Code that fails is a reply with "
	"`reason`. An\nevaluator that ran out of time, broke or died is replaced at the next eval, "
	"with the variables\nof the last reply. Text in `value` that is no UTF-8 has U+FFFD in its "
	"place.";

static const struct frame_key stats_result[] = {
	{ "sandbox_id", 't', true, NAME_BYTES, "of its record" },
	{ "tier", 't', true, NAME_BYTES, "that was asked for" },
	{ "backend", 't', true, NAME_BYTES, "the wall that was chosen" },
	{ "workspace", 't', true, PATH_BYTES, "on the host; empty: none" },
	{ "mode", 't', true, NAME_BYTES, "of the workspace: ro, rw, cow" },
	{ "started_ms", 'i', true, OFFSET_MAX, "since 1970, UTC" },
	{ "commands", 'i', true, OFFSET_MAX, "that run, detached ones too" },
	{ "idle_ms", 'i', true, OFFSET_MAX,
	  "since anything was asked but this; 0 while somebody waits for an answer" },
	{ "idle_limit_ms", 'I', true, OFFSET_MAX, "after which it ends; null: never" },
	{ "means", 't', true, NAME_BYTES, "how the rest is known: cgroup, sampled" },
	{ "mem_bytes", 'I', true, OFFSET_MAX, "of all its commands together, or null" },
	{ "mem_limit", 'I', true, OFFSET_MAX, "null: none" },
	{ "processes", 'I', true, OFFSET_MAX, "processes and threads" },
	{ "processes_limit", 'I', true, OFFSET_MAX, "null: none" },
	{ "cpu_us", 'I', true, OFFSET_MAX, "of processor time, since it began" },
	{ "scratch_bytes", 'I', true, OFFSET_MAX, "in use; null where scratch has no size" },
	{ "scratch_limit", 'I', true, OFFSET_MAX, "its size" },
	{ NULL },
};

static const char diff_notes[] =
	"Only where the workspace is `cow`. Paths are relative to it, or as they are inside. What "
	"is\nchanged meanwhile is listed as it was when it was met.";

static const char commit_notes[] =
	"Each file is replaced in one step, with the bytes of one moment; what the sandbox shows "
	"stays\nthe same. Left out: what changed in the workspace since the sandbox began, other "
	"than by a\ncommit; names that make other programs run something, and what the policy "
	"hides "
	"or protects,\nunless they are named; links out of the workspace, unless named themselves; "
	"policy\nfiles, devices, sockets and pipes.\nSet-id bits are dropped. `ebusy`: another "
	"commit is under way.";

static const char snapshot_notes[] =
	"Only where the workspace is `cow`. Commands are not stopped: each file is that of one "
	"moment,\nnot all of the same one, and one that changed all the time is copied as it was "
	"met and counted\nas torn. At most 32; they lie in the sandbox's record and go with it.";

static const char fork_notes[] =
	"The new sandbox has the plan, the grants and the environment of this one, a wall, a "
	"record and\nlimits of its own, and no owner: it ends by `stop`, silence, or its wall's "
	"end. Processes, scratch\nand late mounts are not copied. The files are, as by "
	"`snapshot`.";

const struct frame_verb frame_client_verbs[] = {
	{ "exec", "runs a program and accounts for it", exec_order, exec_account },
	{ "mount", "lends one more path", mount_args, nothing },
	{ "diff", "lists what a copy-on-write workspace changed", diff_args, diff_result,
	  diff_notes },
	{ "commit", "writes those changes to the workspace", commit_args, commit_result,
	  commit_notes },
	{ "snapshot", "keeps what changed so far under a tag", snapshot_args, copied_result,
	  snapshot_notes },
	{ "fork", "starts another sandbox with what changed so far", fork_args, copied_result,
	  fork_notes },
	{ "stats", "what the sandbox is and uses", nothing, stats_result },
	{ "eval", "evaluates code in a session", eval_args, eval_result, eval_notes },
};
const size_t frame_client_verb_count = ARRAY_SIZE(frame_client_verbs);

/* ---- caisson port ---------------------------------------------------------------------------- */

const struct frame_key frame_open[] = {
	{ "attach", 't', false, NAME_BYTES,
	  "the name of a sandbox that `caisson up` made, to be joined; alone" },
	{ "pool", 't', false, NAME_BYTES,
	  "the name of a pool to take it from; one that does not fit is made as without" },
	{ "policy", 'p', false, PATH_BYTES, "the policy file; default: the one found" },
	{ "tier", 't', false, NAME_BYTES, "at least this wall" },
	{ "backend", 't', false, NAME_BYTES, "exactly this one" },
	{ "workspace", 'p', false, PATH_BYTES, "`PATH[:ro|rw|cow]`" },
	{ "at", 'p', false, PATH_BYTES, "where it appears; `host`: under its own path" },
	{ "network", 't', false, NAME_BYTES, "none, loopback, allow, engine" },
	{ "allow", 'L', false, OPEN_LIST_BYTES, "`HOST[:PORT]`" },
	{ "mounts", 'L', false, OPEN_LIST_BYTES, "`HOST:AT[:ro|rw]`" },
	{ "limits", 'L', false, OPEN_LIST_BYTES, "`memory=1GiB`, `processes=64`" },
	{ "env", 'L', false, OPEN_LIST_BYTES, "`NAME=VALUE`, or `NAME` to pass on the port's" },
	{ "gates", 'L', false, OPEN_LIST_BYTES,
	  "`NAME` or `NAME=SCHEMA`: what the opener answers, by `gate_result` to each "
	  "`gate_call`" },
	{ "tags", 'L', false, OPEN_LIST_BYTES, "words for the record and for `strict_when`" },
	{ "run_dir", 'p', false, PATH_BYTES, "where the record goes" },
	{ "record", 'B', false, 0, "false: none is kept" },
	{ NULL },
};

const struct frame_key frame_opened[] = {
	{ "caisson", 't', true, NAME_BYTES, "the version of the program" },
	{ "protocol", 'i', true, UINT16_MAX, "that of this protocol: 1" },
	{ "verbs", 'A', true, 64, "what `call` may name" },
	{ "enforces", 'A', true, 64, "what holds" },
	{ "sandbox_id", 't', true, NAME_BYTES, "of its record" },
	{ "tier", 't', true, NAME_BYTES, "that was asked for" },
	{ "backend", 't', true, NAME_BYTES, "the wall that was chosen" },
	{ "workspace", 't', true, PATH_BYTES, "on the host; empty: none" },
	{ "mode", 't', true, NAME_BYTES, "of the workspace: ro, rw, cow" },
	{ "name", 't', false, NAME_BYTES, "of one that was joined" },
	{ "at", 't', false, PATH_BYTES,
	  "where the workspace is inside; this and all below: not of "
	  "one that was joined" },
	{ "network", 't', false, NAME_BYTES, "none, loopback, allow, engine" },
	{ "warnings", 'L', false, LISTING_BYTES,
	  "`KEY: why`, of each setting that this wall does not carry out" },
	{ "protect_not_enforced", 'L', false, LISTING_BYTES,
	  "protected names that are writable after all" },
	{ NULL },
};

const struct frame_key frame_closed[] = {
	{ "reason", 'a', true, 0, "`cancelled`: as it was asked; else as `bye`; or `detached`" },
	{ "sandbox_id", 't', false, NAME_BYTES, "of its record" },
	{ "recorded", 'B', false, 0, "there is a record" },
	{ "result", 'm', false, 0,
	  "`result.json` as a map: its keys are atoms, its texts binaries. Absent where it is "
	  "beyond this message's bound" },
	{ NULL },
};
