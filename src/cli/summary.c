/*
 * What a person is told on stderr after a run: why it ended if that was not its own doing, and
 * each kind of denial in one sentence, with the way to the whole account.
 */
#include "cli/summary.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/program.h"
#include "base/str.h"
#include "cli/changes_out.h"
#include "cli/cow.h"
#include "cli/out.h"
#include "cli/runs.h"
#include "monitor/copy_foreign.h"

enum {
	SHOWN = 5,
	GROUP_NAMES = 3,
	HIDDEN_NAMES = 3,
	FOLDER_NAMES = 4,
	INDENT = 2,
	LINE_MAX_BYTES = 64 << 10,
	WORD_TEXT = 512,
	MAKEFILE_BYTES = 64 << 10,
	LINE_TEXT = 4 * PATH_MAX,
};

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

static bool is_shown(const struct cli *cli)
{
	return !cli->options.quiet && (cli->options.verbose || isatty(STDERR_FILENO));
}

/*
 * An end that was not the command's own is said wherever stderr goes: a bare 137 says nothing. A
 * signal is the command's own, and told to a person as a shell would. A reader who has enough, as
 * head(1), is no news to anybody. A start that took too long is said to the quiet, too: nothing
 * ran, as after a refusal.
 */
static bool is_ending_said(const struct cli *cli, const json_t *end)
{
	const char *reason = text_of(end, "reason");

	if (str_is(reason, "exited") || str_is(reason, "start_failed") ||
	    (str_is(reason, "cancelled") && str_is(text_of(end, "signal_name"), "SIGPIPE")))
		return cli->options.verbose && is_shown(cli);
	if (str_is(text_of(end, "clock"), "startup"))
		return true;
	return str_is(reason, "signaled") ? is_shown(cli) : !cli->options.quiet;
}

static void print_ending(const struct cli *cli, const json_t *result)
{
	const json_t *usage = json_object_get(result, "usage");
	const json_t *termination = json_object_get(result, "termination");
	double wall = json_number_value(json_object_get(usage, "wall_ms"));
	char end[96];

	if (!is_ending_said(cli, termination))
		return;
	fprintf(stderr, "%scaisson:%s ", out_color(cli, stderr, OUT_BOLD), out_plain(cli, stderr));
	if (run_describe_stop(result, end, sizeof end)) {
		fprintf(stderr, "%s\n", end);
		return;
	}
	run_describe_end(result, end, sizeof end);
	fprintf(stderr, "ended: %s after %.2f s\n", end, wall / 1000.0);
}

static void print_violation(const json_t *violation)
{
	json_int_t count = json_integer_value(json_object_get(violation, "count"));
	const json_t *detail = json_object_get(violation, "detail");
	_cleanup_buf_ struct buf label;

	buf_init(&label, LINE_MAX_BYTES);
	/* The kind of event is one of our own words, but the texts of a result are data. */
	if (escape_add(&label, text_of(violation, "event"), strlen(text_of(violation, "event")),
		       false) < 0 ||
	    (count > 1 && buf_printf(&label, " (%lld times)", (long long)count) < 0) ||
	    buf_add_text(&label, ": ") < 0 || !buf_text(&label))
		return;
	out_tell(stderr,
		 &(struct out_told){ .label = buf_text(&label),
				     .text = text_of(violation, "say"),
				     .indent = INDENT,
				     .hang = INDENT,
				     .whole = { text_of(detail, "path"), text_of(detail, "to") } });
}

/* What kind of fact: an attempt, a bound that was met, or what our own sentence told already. */
static enum kind { KIND_ATTEMPT, KIND_BOUND, KIND_TOLD } kind_of(const json_t *violation)
{
	const char *event = text_of(violation, "event");

	if (json_is_true(json_object_get(violation, "expected")) || str_starts(event, "StrictMode"))
		return KIND_TOLD;
	return strstr(event, "Limit") || str_starts(event, "Timeout") ? KIND_BOUND : KIND_ATTEMPT;
}

/* "2 kinds of attempt denied, 1 limit met" */
static void print_counts(const struct cli *cli, size_t attempts, size_t bounds)
{
	fprintf(stderr, "%scaisson:%s ", out_color(cli, stderr, OUT_BOLD), out_plain(cli, stderr));
	if (attempts)
		fprintf(stderr, "%zu kind%s of attempt denied%s", attempts,
			attempts == 1 ? "" : "s", bounds ? ", " : "");
	if (bounds)
		fprintf(stderr, "%zu limit%s met", bounds, bounds == 1 ? "" : "s");
	fputc('\n', stderr);
}

/* What several denials of one kind are called together. The first row that fits counts. */
static const struct group {
	const char *event, *rule; /* how the rule starts */
	const char *words;        /* after their number */
	const char *what;         /* of the detail: what tells one from another */
} groups[] = {
	{ "FilesystemWriteViolation", "workspace.mode: ro,",
	  "writes to hidden or protected names of the read-only workspace denied", "path" },
	{ "FilesystemWriteViolation", "workspace.mode: ro",
	  "writes to the read-only workspace denied", "path" },
	{ "FilesystemWriteViolation", "workspace.hide", "writes to hidden files denied", "path" },
	{ "FilesystemWriteViolation", "workspace.protect", "writes to protected names denied",
	  "path" },
	{ "FilesystemWriteViolation", "mounts:", "writes to read-only mounts denied", "path" },
	{ "FilesystemWriteViolation", "built-in: read-only root",
	  "writes outside the writable places denied", "path" },
	{ "FilesystemReadViolation", "workspace.hide", "reads of hidden files denied", "path" },
	{ "FilesystemReadViolation", "built-in:", "reads of what is not shown denied", "path" },
	{ "NetworkAccessViolation", "", "attempts to reach names or addresses denied", "address" },
	{ "SyscallViolation", "", "system calls denied", "syscall" },
};

static const struct group *group_of(const json_t *violation)
{
	if (kind_of(violation) != KIND_ATTEMPT)
		return NULL;
	for (size_t i = 0; i < ARRAY_SIZE(groups); i++)
		if (str_is(text_of(violation, "event"), groups[i].event) &&
		    str_starts(text_of(violation, "rule"), groups[i].rule))
			return &groups[i];
	return NULL;
}

/* What was meant: a path as the command may call it, a name, an address. */
static const char *name_of(const json_t *result, const json_t *violation, const struct group *group)
{
	const json_t *detail = json_object_get(violation, "detail"), *mount;
	const char *text = text_of(detail, group->what), *host = text_of(detail, "host");
	size_t i;

	if (str_is(group->what, "address"))
		return *host ? host : text;
	if (!str_is(group->what, "path"))
		return text;
	text = run_blamed_path(result, violation);
	json_array_foreach(json_object_get(result, "mounts"), i, mount)
		if (json_is_true(json_object_get(mount, "workspace")) &&
		    path_is_beneath(text, text_of(mount, "at")))
			return path_tail(text, text_of(mount, "at"));
	return text;
}

static bool has_text(const json_t *list, const char *text)
{
	const json_t *item;
	size_t i;

	json_array_foreach(list, i, item)
		if (str_is(json_string_value(item), text))
			return true;
	return false;
}

/* What would permit all of a group: as each of its sentences ends. */
static const char *advice_of(const json_t *result, const json_t *violation)
{
	const char *say = text_of(violation, "say"), *at = strstr(say, "; "), *next;
	bool has_file = *text_of(json_object_get(result, "policy"), "path");

	if (str_is(text_of(violation, "rule"), "workspace.mode: ro"))
		return has_file ? "--cow lends a copy of it, `caisson policy set "
				  "workspace.mode=rw` the folder"
				: "--rw or --cow lends it";
	while (at && (next = strstr(at + 2, "; ")))
		at = next;
	return at ? at + 2 : "";
}

/* "12 writes to the read-only workspace denied: f1, f2, f3, …; --rw or --cow lends it" */
static void print_group(const json_t *result, const json_t *first, const struct group *group)
{
	const json_t *list = json_object_get(result, "violations"), *violation;
	json_t *names = json_array();
	char label[128], text[LINE_MAX_BYTES / 8], shown[LINE_MAX_BYTES / 16];
	const char *advice = advice_of(result, first);
	json_int_t count = 0;
	size_t i;

	json_array_foreach(list, i, violation) {
		if (group_of(violation) != group)
			continue;
		count += json_integer_value(json_object_get(violation, "count"));
		if (!has_text(names, name_of(result, violation, group)))
			json_array_append_new(names,
					      json_string(name_of(result, violation, group)));
	}
	run_list_texts(names, GROUP_NAMES, shown, sizeof shown);
	snprintf(label, sizeof label, "%lld %s: ", (long long)count, group->words);
	snprintf(text, sizeof text, "%s%s%s", shown, *advice ? "; " : "", advice);
	out_tell(stderr, &(struct out_told){
				 .label = label, .text = text, .indent = INDENT, .hang = INDENT });
	json_decref(names);
}

/* Has its group a denial before it? What has no group is a kind of its own. */
static bool is_first_of_group(const json_t *list, const json_t *violation)
{
	const struct group *group = group_of(violation);
	const json_t *other;
	size_t i;

	json_array_foreach(list, i, other) {
		if (!group || other == violation)
			return true;
		if (group_of(other) == group)
			return false;
	}
	return true;
}

static size_t count_group(const json_t *list, const struct group *group)
{
	const json_t *other;
	size_t i, count = 0;

	json_array_foreach(list, i, other)
		count += group_of(other) == group;
	return count;
}

/* One line for a denial, or for the group that it is the first of. False: told already. */
static bool print_line_of(const json_t *result, const json_t *violation)
{
	const json_t *list = json_object_get(result, "violations");
	const struct group *group = group_of(violation);

	if (!is_first_of_group(list, violation))
		return false;
	if (!group || count_group(list, group) == 1)
		print_violation(violation);
	else
		print_group(result, violation, group);
	return true;
}

static void print_violations(const struct cli *cli, const struct run_outcome *outcome)
{
	const json_t *list = json_object_get(outcome->result, "violations"), *violation;
	size_t counts[] = { 0, 0, 0 }, shown = 0, i;
	bool is_more = false;

	json_array_foreach(list, i, violation)
		counts[kind_of(violation)] += is_first_of_group(list, violation);
	if (counts[KIND_ATTEMPT] + counts[KIND_BOUND] == 0)
		return;
	print_counts(cli, counts[KIND_ATTEMPT], counts[KIND_BOUND]);
	json_array_foreach(list, i, violation) {
		if (kind_of(violation) == KIND_TOLD)
			continue;
		if (shown < SHOWN)
			shown += print_line_of(outcome->result, violation);
		else
			is_more = true;
	}
	if (outcome->is_recorded)
		fprintf(stderr, "  %s: caisson why %s\n",
			is_more ? "more, and the rules" : "the rules behind them", outcome->run_id);
}

/* A command that failed may have missed what was kept from it. */
static void print_kept(const struct cli *cli, const struct run_outcome *outcome)
{
	const json_t *hidden = json_object_get(outcome->result, "hidden");
	const json_t *end = json_object_get(outcome->result, "termination");
	char text[RUN_HIDDEN_TEXT];

	if (!str_is(text_of(end, "reason"), "exited") || outcome->status == 0 ||
	    json_array_size(hidden) == 0)
		return;
	run_list_texts(hidden, HIDDEN_NAMES, text, sizeof text);
	fprintf(stderr, "%scaisson:%s hidden from it: ", out_color(cli, stderr, OUT_BOLD),
		out_plain(cli, stderr));
	out_text(stderr, text);
	fputs("; see workspace.hide\n", stderr);
}

/* Does something that was shown hold it? Then it lacks something else. */
static bool was_shown(const json_t *result, const char *path)
{
	const json_t *item;
	size_t i;

	json_array_foreach(json_object_get(result, "toolchains"), i, item)
		if (path_is_beneath(path, json_string_value(item)))
			return true;
	json_array_foreach(json_object_get(result, "mounts"), i, item)
		if (path_is_beneath(path, text_of(item, "host")))
			return true;
	return path_is_beneath(path, "/usr") || path_is_beneath(path, "/bin") ||
	       path_is_beneath(path, "/sbin");
}

/* Folders of the caller's PATH in his home that were not shown. */
struct unshown {
	char folders[LINE_TEXT];    /* as PATH has them */
	json_t *names;              /* "~/.cargo/bin", or of programs "~/.cargo/bin/cargo" */
	char program[NAME_MAX + 1]; /* one of them; "" for folders */
};

static void add_unshown(struct unshown *unshown, const char *path)
{
	char name[PATH_MAX];

	snprintf(name, sizeof name, "~/%.*s", PATH_MAX - 3, path_tail(path, getenv("HOME")));
	if (!has_text(unshown->names, name))
		json_array_append_new(unshown->names, json_string(name));
}

static void find_folders(const json_t *result, struct unshown *unshown)
{
	const char *path = getenv("PATH"), *home = getenv("HOME");
	char part[PATH_MAX], folder[PATH_MAX];
	size_t n, used = 0;
	struct stat st;

	for (; path && *path && home && home[0] == '/'; path += n + (path[n] == ':')) {
		n = strcspn(path, ":");
		snprintf(part, sizeof part, "%.*s", n < PATH_MAX ? (int)n : 0, path);
		if (path_normalize(part, folder, sizeof folder) < 0 ||
		    !path_is_beneath(folder, home) || was_shown(result, folder) ||
		    stat(folder, &st) < 0 || !S_ISDIR(st.st_mode) ||
		    used + strlen(folder) + 2 > sizeof unshown->folders)
			continue;
		used += (size_t)snprintf(unshown->folders + used, sizeof unshown->folders - used,
					 "%s%s", used ? ":" : "", folder);
		add_unshown(unshown, folder);
	}
}

/* The project's file may be anything. Its size, 0 for none that can be read. */
static size_t read_makefile(char *ret_text, size_t size)
{
	static const char *const names[] = { "GNUmakefile", "makefile", "Makefile" };
	struct stat st;
	ssize_t n = -1;

	for (size_t i = 0; n < 0 && i < ARRAY_SIZE(names); i++) {
		_cleanup_fd_ int fd =
			open(names[i], O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

		if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
			n = fd_read_all(fd, ret_text, size - 1);
	}
	ret_text[n > 0 ? n : 0] = 0;
	return n > 0 ? (size_t)n : 0;
}

/* Instead of the folders the programs in them that the Makefile here names. */
static void find_programs(struct unshown *unshown)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				      "0123456789_-+.";
	char text[MAKEFILE_BYTES], word[NAME_MAX + 1], path[PATH_MAX];
	size_t size = read_makefile(text, sizeof text), n;

	json_array_clear(unshown->names);
	for (size_t at = 0; at < size; at += n + (n == 0)) {
		n = strspn(text + at, letters);
		if (n == 0 || n >= sizeof word)
			continue;
		snprintf(word, sizeof word, "%.*s", (int)n, text + at);
		/* In the system's folders there is one inside, too. */
		if (program_find(word, "/usr/local/bin:/usr/bin:/bin", path) ||
		    !program_find(word, unshown->folders, path))
			continue;
		add_unshown(unshown, path);
		memcpy(unshown->program, word, n + 1);
	}
}

/* Is it make that was started, in whatever way? */
static bool is_make(const struct cli *cli)
{
	const char *text = cli->options.text ? cli->options.text : cli->args[0], *slash;
	char word[PATH_MAX];

	snprintf(word, sizeof word, "%.*s", (int)strcspn(text, " \t\n;&|"), text);
	slash = strrchr(word, '/');
	return str_is(slash ? slash + 1 : word, "make") || str_is(word, "gmake");
}

static void print_unshown(const struct cli *cli, const struct unshown *unshown)
{
	char text[LINE_TEXT];

	run_list_texts(unshown->names, FOLDER_NAMES, text, sizeof text);
	fprintf(stderr,
		"%scaisson:%s of your PATH not shown inside: ", out_color(cli, stderr, OUT_BOLD),
		out_plain(cli, stderr));
	out_text(stderr, text);
	fputc('\n', stderr);
	snprintf(
		text, sizeof text,
		"a tool that only a file calls, as a Makefile does, is not looked for: name it, as "
		"in `caisson run -c 'make # %s'`, or lend its folder with -m HOST:AT",
		*unshown->program ? unshown->program : "cargo");
	out_tell(stderr,
		 &(struct out_told){ .label = "", .text = text, .indent = INDENT, .hang = INDENT });
}

/* A program may have been missed that a file calls: a shell says 127 then, and make 2. */
static void print_missed(const struct cli *cli, const struct run_outcome *outcome)
{
	const json_t *end = json_object_get(outcome->result, "termination");
	struct unshown unshown = { .names = json_array() };
	bool is_shell = outcome->status == 127;

	if (str_is(text_of(end, "reason"), "exited") &&
	    (is_shell || (outcome->status == 2 && is_make(cli)))) {
		find_folders(outcome->result, &unshown);
		if (!is_shell)
			find_programs(&unshown);
		if (json_array_size(unshown.names) > 0)
			print_unshown(cli, &unshown);
	}
	json_decref(unshown.names);
}

enum { COPY_NAMES = 10 };

/* "2 modified, 1 added: M a, M b, A c", at most ten names. */
static void print_changes(const struct copy *copy)
{
	static const char *const names[] = {
		[LAYER_MODIFIED] = "modified", [LAYER_ADDED] = "added", [LAYER_DELETED] = "deleted"
	};
	static const enum layer_change order[] = { LAYER_MODIFIED, LAYER_ADDED, LAYER_DELETED };
	size_t counts[ARRAY_SIZE(order)] = { 0 };
	const char *between = "";

	for (size_t i = 0; i < copy->layer.count; i++)
		counts[copy->layer.entries[i].change]++;
	for (size_t i = 0; i < ARRAY_SIZE(order); i++)
		if (counts[order[i]]) {
			fprintf(stderr, "%s%zu %s", between, counts[order[i]], names[order[i]]);
			between = ", ";
		}
	for (size_t i = 0; i < copy->layer.count && i < COPY_NAMES; i++) {
		char *name = copy_path_text(&copy->layer.entries[i]);

		fprintf(stderr, "%s %c %s", i ? "," : ":",
			copy_change_letter(&copy->layer.entries[i]), name ? name : "?");
		free(name);
	}
	fputs(copy->layer.count > COPY_NAMES ? ", …\n" : "\n", stderr);
}

/* A command as a shell takes it, for the run and the place of its record. */
static void print_command(const struct cli *cli, const char *verb, const char *run_id)
{
	char word[PATH_MAX * 4];

	fprintf(stderr, "caisson %s ", verb);
	if (cli->options.run_dir)
		fprintf(stderr, "--run-dir %s ",
			str_shell_word(cli->options.run_dir, word, sizeof word) < 0 ? "DIR" : word);
	fputs(run_id, stderr);
}

/* Who failed because of it was told "Value too large". */
static void print_foreign(const struct cli *cli, const struct copy *copy)
{
	struct copy_foreign foreign;

	copy_find_foreign(copy->lower_fd, &foreign);
	changes_say_foreign(cli, foreign.count, (const char *const *)foreign.names, foreign.named);
	copy_foreign_done(&foreign);
}

/* What a copy-on-write workspace holds now, and the commands that work on it. */
static void print_copy(const struct cli *cli, const struct run_outcome *outcome)
{
	_cleanup_cow_ struct cow cow = COW_NONE;
	struct cli named = *cli;
	char id[sizeof outcome->run_id];
	char *words[] = { id, NULL };
	struct csn_error err = { 0 };
	const json_t *mount;
	bool is_cow = false;
	size_t i;

	json_array_foreach(json_object_get(outcome->result, "mounts"), i, mount)
		is_cow = is_cow || str_is(text_of(mount, "mode"), "cow");
	if (!is_cow || !outcome->is_recorded)
		return;
	snprintf(id, sizeof id, "%s", outcome->run_id);
	named.args = words;
	named.arg_count = 1;
	if (cow_open(&named, &cow, &err) < 0)
		return;
	print_foreign(cli, &cow.copy);
	if (cow.copy.layer.count == 0)
		return;
	fprintf(stderr, "%scaisson:%s in the copy ", out_color(cli, stderr, OUT_BOLD),
		out_plain(cli, stderr));
	print_changes(&cow.copy);
	fputs("  to see them:   ", stderr);
	print_command(cli, "diff", id);
	fputs("\n  to keep them:  ", stderr);
	print_command(cli, "commit", id);
	fputc('\n', stderr);
}

static void print_own(const struct cli *cli)
{
	fprintf(stderr, "%scaisson:%s ", out_color(cli, stderr, OUT_RED), out_plain(cli, stderr));
}

/* A whole command line in one word: the name of no program. */
static bool is_line(const struct cli *cli, const struct run_outcome *outcome)
{
	struct stat st;

	return outcome->status == 127 && !cli->options.text && cli->arg_count == 1 &&
	       strpbrk(cli->args[0], " \t\n|&;<>") && stat(cli->args[0], &st) < 0;
}

/* Only words that mean to a shell what they say, with blanks between them. */
static bool has_plain_words(const char *line)
{
	char word[WORD_TEXT];
	size_t n;

	/* A variable for the command is a shell's affair. */
	if (memchr(line, '=', strcspn(line, " ")))
		return false;
	for (; *line; line += n + (line[n] == ' ')) {
		n = strcspn(line, " ");
		if (n == 0)
			continue;
		if (n >= sizeof word / 2)
			return false;
		snprintf(word, sizeof word / 2, "%.*s", (int)n, line);
		str_shell_word(word, word + sizeof word / 2, sizeof word / 2);
		if (!str_is(word, word + sizeof word / 2))
			return false;
	}
	return true;
}

static void print_line(const struct cli *cli)
{
	const char *line = cli->args[0];
	char text[LINE_TEXT];

	print_own(cli);
	fputc('"', stderr);
	out_text(stderr, line);
	fputs("\" is one word, and no program inside has that name. ", stderr);
	if (has_plain_words(line))
		fprintf(stderr, "As a program and its arguments: caisson run -- %s; as text", line);
	else
		fputs("As text", stderr);
	fprintf(stderr, " for a shell: caisson run -c %s\n",
		str_shell_word(line, text, sizeof text) < 0 ? "TEXT" : text);
}

/* A program that is here and was not shown: where it is, and how to lend it. */
static bool is_hidden(const struct cli *cli, const struct run_outcome *outcome, char *ret_path)
{
	return outcome->status == 127 && !cli->options.text && cli->arg_count > 0 &&
	       program_find(cli->args[0], getenv("PATH"), ret_path) &&
	       !was_shown(outcome->result, ret_path);
}

static void print_hidden(const struct cli *cli, const char *path)
{
	char folder[PATH_MAX], mount[2 * PATH_MAX], word[LINE_TEXT];

	snprintf(folder, sizeof folder, "%s", path);
	*strrchr(folder, '/') = 0;
	print_own(cli);
	out_text(stderr, cli->args[0]);
	fputs(" lies in ", stderr);
	out_text(stderr, folder);
	snprintf(mount, sizeof mount, "%s:%s", folder, folder);
	fprintf(stderr, ", which is not shown inside. To lend that folder: caisson run -m %s -- ",
		str_shell_word(mount, word, sizeof word) < 0 ? "HOST:AT" : word);
	fprintf(stderr, "%s%s\n", str_shell_word(path, word, sizeof word) < 0 ? "PROGRAM" : word,
		cli->arg_count > 1 ? " …" : "");
}

static void print_error(const struct cli *cli, const struct run_outcome *outcome)
{
	print_own(cli);
	out_text(stderr, outcome->error.text);
	fputc('\n', stderr);
}

void summary_print(const struct cli *cli, const struct run_outcome *outcome)
{
	char path[PATH_MAX];

	if (is_hidden(cli, outcome, path))
		print_hidden(cli, path);
	else if (is_line(cli, outcome))
		print_line(cli);
	else if (outcome->error.code)
		print_error(cli, outcome);
	if (str_is(text_of(outcome->result, "backend"), "local") && !cli->options.quiet)
		fprintf(stderr, "caisson: tier local: there was no wall, the command had every "
				"right of yours\n");
	print_ending(cli, outcome->result);
	if (!is_shown(cli))
		return;
	print_violations(cli, outcome);
	print_kept(cli, outcome);
	if (!outcome->error.code && !is_hidden(cli, outcome, path))
		print_missed(cli, outcome);
	print_copy(cli, outcome);
}
