/*
 * caisson-search: one glob or grep, then it ends
 *
 *   caisson-search glob pattern=P [limit=N] <FOLDER
 *   caisson-search grep pattern=P [path=P] [glob=P] [case_sensitive=false] [limit=N] [context=N]
 *                  [workspace=P] <FOLDER-OR-FILE
 *
 * The agent starts one for each call, with the opened folder as standard input, and reads the
 * answer (answer.h) from its standard output. `path` is only how that folder was called. A process
 * of its own, because here the worst happens: an expression that does not end, a file system that
 * does not answer, a hundred thousand folders, a parser of patterns in C. Whatever it is, the agent
 * ends it with SIGKILL and goes on. Keys and defaults are those of docs/protocol.md.
 *
 * Trust: the call comes from the caller; names and contents of files are the untrusted code's.
 */
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/path.h"
#include "base/str.h"
#include "search/grep.h"
#include "search/walk.h"

enum {
	LIMIT = 1000,
	CONTEXT_MAX = 100,
	MEMORY = 512 << 20,    /* names, patterns, one buffer: far more than is needed */
	GLOB_BYTES = 32 << 20, /* of a parsed pattern */
};

struct options {
	const char *pattern;
	const char *path; /* how the folder searched was called */
	const char *glob;
	const char *workspace;
	const char *case_sensitive;
	const char *limit_text, *context_text;
	uint64_t limit, context;
};

static const char **find_option(struct options *options, const char *key, size_t size)
{
	const struct {
		const char *name;
		const char **value;
	} keys[] = {
		{ "pattern", &options->pattern },
		{ "path", &options->path },
		{ "glob", &options->glob },
		{ "workspace", &options->workspace },
		{ "case_sensitive", &options->case_sensitive },
		{ "limit", &options->limit_text },
		{ "context", &options->context_text },
	};

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (strlen(keys[i].name) == size && memcmp(keys[i].name, key, size) == 0)
			return keys[i].value;
	return NULL;
}

static int read_options(char **argv, struct options *options, struct refusal *refusal)
{
	*options = (struct options){ .path = ".", .workspace = "/", .limit = LIMIT };
	for (; *argv; argv++) {
		size_t size = strcspn(*argv, "=");
		const char **value = find_option(options, *argv, size);

		if (!value || !(*argv)[size])
			return refuse(refusal, "invalid", "unknown argument \"%.100s\"", *argv);
		*value = *argv + size + 1;
	}
	if (options->limit_text &&
	    str_parse_u64(options->limit_text, ANSWER_ITEMS, &options->limit) < 0)
		return refuse(refusal, "invalid", "limit: at most %d", ANSWER_ITEMS);
	if (options->context_text &&
	    str_parse_u64(options->context_text, CONTEXT_MAX, &options->context) < 0)
		return refuse(refusal, "invalid", "context: at most %d", CONTEXT_MAX);
	if (!options->pattern)
		return refuse(refusal, "invalid", "a pattern is needed");
	return 0;
}

/* What paths in the answer begin with, "" or ending with a slash: relative to the workspace where
 * it is beneath that. Without "." and empty parts. */
static int make_prefix(const struct options *options, char *ret_prefix, size_t size,
		       struct refusal *refusal)
{
	char path[WALK_PATH + 1];
	const char *from = options->path;
	size_t at = 0;

	if (from[0] == '/' && path_normalize(from, path, sizeof path) == 0) {
		from = path;
		if (path_is_beneath(path, options->workspace))
			from = path_tail(path, options->workspace);
		else
			ret_prefix[at++] = '/';
	}
	while (*(from += strspn(from, "/"))) {
		size_t part = strcspn(from, "/");

		if (at + part + 2 > size)
			return refuse(refusal, "enametoolong", "the path is too long");
		if (part != 1 || *from != '.') {
			memcpy(ret_prefix + at, from, part);
			at += part;
			ret_prefix[at++] = '/';
		}
		from += part;
	}
	ret_prefix[at] = 0;
	return 0;
}

/* ---- the two verbs -------------------------------------------------------------------------- */

static uint64_t run_glob(const struct options *options, struct writer *writer,
			 struct refusal *refusal)
{
	_cleanup_arena_ struct arena arena;
	struct glob glob;
	const struct walk_plan plan = { &glob, "", STDIN_FILENO, false };
	struct walk walk;
	struct walk_entry entry;
	uint64_t skipped;

	arena_init(&arena, GLOB_BYTES);
	if (glob_parse(options->pattern, GLOB_PATHS, &arena, &glob, refusal) < 0)
		return 0;
	if (walk_init(&walk, &plan, refusal) == 0)
		while (walk_next(&walk, &entry) > 0) {
			if (writer->paths == options->limit) {
				writer->is_truncated = true;
				break;
			}
			if (writer_path(writer, entry.path, entry.size) < 0)
				break;
		}
	skipped = walk.skipped;
	walk_done(&walk);
	return skipped;
}

struct grep_run {
	const struct options *options;
	struct glob glob; /* of paths as they are told */
	struct grep grep;
	char path[2 * WALK_PATH + 2]; /* as told: a prefix, then what the walk found */
	char prefix[WALK_PATH + 1];
	size_t prefix_size;
};

/* Everything beneath a folder. A filter is about paths as they are told, so the prefix counts;
 * folders that it does not lead to are not read. */
static void grep_folder(struct grep_run *run, struct refusal *refusal)
{
	const struct walk_plan plan = { &run->glob, run->prefix, STDIN_FILENO, true };
	struct walk walk;
	struct walk_entry entry;
	int r = walk_init(&walk, &plan, refusal);

	while (r == 0 && walk_next(&walk, &entry) > 0) {
		struct grep_file file = { entry.folder_fd, entry.name, run->path,
					  run->prefix_size + entry.size };

		if (file.path_size > WALK_PATH) {
			walk.skipped++;
			continue;
		}
		memcpy(run->path + run->prefix_size, entry.path, entry.size + 1);
		r = grep_file(&run->grep, &file);
	}
	run->grep.skipped += walk.skipped;
	walk_done(&walk);
}

static void grep_start(struct grep_run *run, struct refusal *refusal)
{
	struct grep_file file = { .path = run->path, .path_size = run->prefix_size };
	struct stat st;

	if (fstat(STDIN_FILENO, &st) < 0 || (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))) {
		refuse(refusal, "einval", "%.400s is neither a file nor a folder",
		       run->options->path);
	} else if (S_ISDIR(st.st_mode)) {
		grep_folder(run, refusal);
	} else {
		run->path[--file.path_size] = 0; /* the slash */
		if (glob_matches(&run->glob, run->path))
			grep_open_file(&run->grep, &file, STDIN_FILENO);
	}
}

static uint64_t run_grep(const struct options *options, struct writer *writer,
			 struct refusal *refusal)
{
	_cleanup_arena_ struct arena arena;
	bool is_caseless = options->case_sensitive && str_is(options->case_sensitive, "false");
	struct grep_run run = { .options = options };
	struct regex regex = { 0 };

	arena_init(&arena, GLOB_BYTES);
	run.grep = (struct grep){ .regex = &regex,
				  .writer = writer,
				  .limit = options->limit,
				  .context = options->context,
				  .refusal = refusal };
	if (regex_init(&regex, options->pattern, is_caseless, refusal) == 0 &&
	    glob_parse(options->glob ? options->glob : "**", GLOB_FILTER, &arena, &run.glob,
		       refusal) == 0 &&
	    make_prefix(options, run.prefix, sizeof run.prefix, refusal) == 0 &&
	    grep_init(&run.grep) == 0) {
		run.prefix_size = strlen(run.prefix);
		memcpy(run.path, run.prefix, run.prefix_size + 1);
		grep_start(&run, refusal);
	}
	grep_done(&run.grep);
	regex_done(&regex);
	return run.grep.skipped;
}

int main(int argc, char **argv)
{
	const struct rlimit memory = { MEMORY, MEMORY };
	struct refusal refusal = { 0 };
	struct options options;
	struct writer writer;
	uint64_t skipped = 0;

	setrlimit(RLIMIT_DATA, &memory);
	writer_init(&writer, STDOUT_FILENO);
	if (argc < 2 || read_options(argv + 2, &options, &refusal) < 0)
		refuse(&refusal, "invalid", "glob or grep?");
	else if (str_is(argv[1], "glob"))
		skipped = run_glob(&options, &writer, &refusal);
	else if (str_is(argv[1], "grep"))
		skipped = run_grep(&options, &writer, &refusal);
	else
		refuse(&refusal, "invalid", "glob or grep?");
	return writer_end(&writer, skipped, &refusal) < 0;
}
