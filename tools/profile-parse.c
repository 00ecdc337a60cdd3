/*
 * The text of a profile: one syscall, one verdict, one reason a line.
 *
 *   NAME VERDICT [ERRNO] [on ARCH] [when CONDITION] # reason
 *   default VERDICT [ERRNO] # reason
 *   listener none # reason
 *   include OTHER # reason
 *
 * A line that cannot be understood, has no reason, or names something that does not exist
 * stops the build: a filter that was half read is worse than none.
 */
#include "profile-compiler.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define INCLUDE_DEPTH_MAX 4
#define TEXT_SIZE_MAX (256 * 1024)

/* Where the reader stands, and what it needs of its surroundings. */
struct reader {
	struct source *source;
	const struct target *target;
	const char *path;
	unsigned line;
	unsigned text; /* index in source->texts */
	unsigned depth;
	char *cursor; /* what is left of the line, without its reason */
	const char *reason;
};

__attribute__((format(printf, 2, 3))) static bool complain(const struct reader *reader,
							   const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fprintf(stderr, "%s:%u: ", reader->path, reader->line);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
	return false;
}

/* The next word, cut out of the line; NULL at its end. */
static char *next_word(struct reader *reader)
{
	char *word = reader->cursor + strspn(reader->cursor, " \t");
	size_t size = strcspn(word, " \t");

	if (size == 0)
		return NULL;
	reader->cursor = word + size;
	if (*reader->cursor)
		*reader->cursor++ = 0;
	return word;
}

static bool at_word(struct reader *reader, const char *wanted)
{
	char *start = reader->cursor + strspn(reader->cursor, " \t");
	size_t size = strlen(wanted);

	if (strncmp(start, wanted, size) != 0 || (start[size] && !strchr(" \t", start[size])))
		return false;
	next_word(reader);
	return true;
}

/* A|B|C */
static bool parse_flags(struct reader *reader, uint32_t *ret_mask)
{
	char *word = next_word(reader), *part;
	uint32_t value;

	if (!word)
		return complain(reader, "flags are missing");
	*ret_mask = 0;
	while ((part = strsep(&word, "|"))) {
		if (!constant_value(part, &value))
			return complain(reader, "%s is not in the compiler's table", part);
		*ret_mask |= value;
	}
	if (*ret_mask == 0)
		return complain(reader, "no flag has a bit");
	return true;
}

/* A, B, C */
static bool parse_values(struct reader *reader, struct profile_test *test)
{
	bool has_more = true;

	while (has_more) {
		char *word = next_word(reader);
		size_t size = word ? strlen(word) : 0;

		if (size == 0)
			return complain(reader, "a value is missing");
		has_more = word[size - 1] == ',';
		if (has_more)
			word[size - 1] = 0;
		if (test->value_count == PROFILE_VALUES_MAX)
			return complain(reader, "more than %d values: split the line",
					PROFILE_VALUES_MAX);
		if (!constant_value(word, &test->values[test->value_count]))
			return complain(reader, "%s is not in the compiler's table", word);
		if (test->values[test->value_count++] & ~test->mask)
			return complain(reader, "%s has bits outside the mask", word);
	}
	return true;
}

/* argN [& MASK] is [not] VALUES | argN is [not] NULL | argN has FLAGS | argN lacks FLAGS */
static bool parse_test(struct reader *reader, struct profile_test *test)
{
	char *word = next_word(reader);

	*test = (struct profile_test){ .mask = 0xffffffff };
	if (!word || strlen(word) != 4 || strncmp(word, "arg", 3) != 0 || word[3] < '0' ||
	    word[3] > '5')
		return complain(reader, "a condition begins with arg0 to arg5");
	test->arg = (unsigned char)(word[3] - '0');
	if (at_word(reader, "has") || (test->is_negated = at_word(reader, "lacks"))) {
		test->kind = PROFILE_HAS;
		return parse_flags(reader, &test->mask);
	}
	if (at_word(reader, "&") && !parse_flags(reader, &test->mask))
		return false;
	if (!at_word(reader, "is"))
		return complain(reader, "a condition is `is`, `has` or `lacks`");
	test->is_negated = at_word(reader, "not");
	if (at_word(reader, "NULL")) {
		test->kind = PROFILE_NULL;
		return test->mask == 0xffffffff || complain(reader, "NULL takes no mask");
	}
	return parse_values(reader, test);
}

static bool parse_condition(struct reader *reader, struct profile_rule *rule)
{
	struct source *source = reader->source;
	char *copy;

	copy = reader->cursor + strspn(reader->cursor, " \t");
	for (size_t size = strlen(copy); size > 0 && strchr(" \t", copy[size - 1]); size--)
		copy[size - 1] = 0;
	rule->when = copy;
	reader->cursor = strdup(copy); /* words are cut out of the copy, `when` stays whole */
	copy = reader->cursor;
	if (!copy)
		return complain(reader, "out of memory");
	rule->tests = source->tests + source->test_count;
	bool is_good = true;
	do {
		if (source->test_count == SOURCE_TESTS_MAX)
			is_good = complain(reader, "more than %d conditions", SOURCE_TESTS_MAX);
		else
			is_good = parse_test(reader, &source->tests[source->test_count++]);
		rule->test_count++;
	} while (is_good && at_word(reader, "and"));
	if (is_good && next_word(reader))
		is_good = complain(reader, "words after the condition (lists need commas)");
	free(copy);
	reader->cursor = strchr(rule->when, 0);
	return is_good;
}

static bool parse_verdict(struct reader *reader, struct profile_rule *rule)
{
	static const char *const verdicts[] = {
		[PROFILE_ALLOW] = "allow",
		[PROFILE_WATCH] = "watch",
		[PROFILE_DENY] = "deny",
		[PROFILE_QUIET] = "quiet",
	};
	char *word = next_word(reader);
	size_t i = 0;

	while (word && i < 4 && strcmp(verdicts[i], word) != 0)
		i++;
	if (!word || i == 4)
		return complain(reader, "a verdict is allow, watch, deny or quiet");
	rule->verdict = (enum profile_verdict)i;
	if (rule->verdict == PROFILE_ALLOW || rule->verdict == PROFILE_WATCH)
		return true;
	word = next_word(reader);
	if (!word || !error_value(word, &rule->error))
		return complain(reader, "deny and quiet need an errno from the compiler's table");
	return true;
}

/* Takes what an included file said about this syscall out: a name replaces it whole. */
static void forget_included(struct reader *reader, const char *name)
{
	struct source *source = reader->source;
	size_t kept = 0;

	for (size_t i = 0; i < source->rule_count; i++) {
		if (source->origins[i] != reader->text && strcmp(source->rules[i].name, name) == 0)
			continue;
		source->rules[kept] = source->rules[i];
		source->origins[kept++] = source->origins[i];
	}
	source->rule_count = kept;
}

/* `on ARCH` must be there exactly when the call is missing elsewhere. */
static bool check_marker(struct reader *reader, const char *name, const char *marker)
{
	static const char *const all[] = { "x86_64", "aarch64" };

	if (marker && !marker_is_known(marker))
		return complain(reader, "%s is no architecture of ours", marker);
	for (size_t i = 0; i < 2; i++) {
		const struct target *target = target_of(all[i]);
		bool is_said = !marker || strcmp(marker, target->marker) == 0;
		bool is_there = syscall_number(target, name) >= 0;

		if (is_said && !is_there)
			return complain(reader, "%s is absent on %s: a wrong name, or say where",
					name, target->marker);
		if (!is_said && is_there)
			return complain(reader, "%s exists on %s too", name, target->marker);
	}
	return true;
}

static bool parse_rule(struct reader *reader, char *name)
{
	struct source *source = reader->source;
	struct profile_rule rule = { .name = name, .when = "", .reason = reader->reason };
	const char *marker = NULL;

	if (!parse_verdict(reader, &rule))
		return false;
	if (at_word(reader, "on") && !(marker = next_word(reader)))
		return complain(reader, "`on` needs an architecture");
	if (at_word(reader, "when") && !parse_condition(reader, &rule))
		return false;
	if (next_word(reader))
		return complain(reader, "words that are not understood");
	if (!check_marker(reader, name, marker))
		return false;
	if (rule.verdict == PROFILE_WATCH && !source->has_listener)
		return complain(reader, "watch needs a listener");
	forget_included(reader, name);
	rule.nr = syscall_number(reader->target, name);
	if (rule.nr < 0)
		return true; /* absent here */
	if (source->rule_count == SOURCE_RULES_MAX)
		return complain(reader, "more than %d rules", SOURCE_RULES_MAX);
	source->rules[source->rule_count] = rule;
	source->origins[source->rule_count++] = reader->text;
	return true;
}

static bool parse_default(struct reader *reader)
{
	struct profile_rule rule = { .name = "", .nr = -1, .when = "", .reason = reader->reason };

	if (!parse_verdict(reader, &rule))
		return false;
	if (next_word(reader))
		return complain(reader, "a default has no condition");
	reader->source->otherwise = rule;
	return true;
}

static bool read_file(struct source *source, const struct target *target, const char *path,
		      unsigned depth);

static bool parse_include(struct reader *reader)
{
	const char *name = next_word(reader), *slash = strrchr(reader->path, '/');
	char path[512];
	int size;

	if (!name || next_word(reader) || strchr(name, '/'))
		return complain(reader, "include takes the name of a profile beside this one");
	for (size_t i = 0; i < reader->source->rule_count; i++)
		if (reader->source->origins[i] == reader->text)
			return complain(reader, "include stands above the rules");
	if (reader->depth == INCLUDE_DEPTH_MAX)
		return complain(reader, "includes are nested too deep");
	size = snprintf(path, sizeof path, "%.*s%s.profile",
			slash ? (int)(slash - reader->path) + 1 : 0, reader->path, name);
	if (size < 0 || (size_t)size >= sizeof path)
		return complain(reader, "the path is too long");
	return read_file(reader->source, reader->target, path, reader->depth + 1);
}

static bool parse_line(struct reader *reader, char *line)
{
	char *mark = strchr(line, '#'), *word;

	reader->cursor = line;
	if (!mark && line[strspn(line, " \t")])
		return complain(reader, "no reason: a line ends with `# why`");
	if (!mark)
		return true;
	*mark = 0;
	reader->reason = mark + 1 + strspn(mark + 1, " \t");
	word = next_word(reader);
	if (!word)
		return true; /* a comment */
	if (!*reader->reason)
		return complain(reader, "the reason is empty");
	if (strcmp(word, "include") == 0)
		return parse_include(reader);
	if (strcmp(word, "default") == 0)
		return parse_default(reader);
	if (strcmp(word, "listener") != 0)
		return parse_rule(reader, word);
	reader->source->has_listener = false;
	return (at_word(reader, "none") && !next_word(reader)) ||
	       complain(reader, "listener none, or no such line");
}

static char *load_text(const char *path)
{
	FILE *file = fopen(path, "r");
	char *text = file ? calloc(1, TEXT_SIZE_MAX) : NULL;
	size_t size = text ? fread(text, 1, TEXT_SIZE_MAX - 1, file) : 0;

	if (text && (size == 0 || !feof(file))) {
		free(text);
		text = NULL;
	}
	if (file)
		fclose(file);
	return text;
}

static bool read_file(struct source *source, const struct target *target, const char *path,
		      unsigned depth)
{
	struct reader reader = { .source = source,
				 .target = target,
				 .path = path,
				 .text = source->text_count,
				 .depth = depth };
	char *text, *line;

	if (source->text_count == SOURCE_FILES_MAX)
		return complain(&reader, "more than %d files", SOURCE_FILES_MAX);
	text = load_text(path);
	if (!text)
		return complain(&reader, "cannot be read, is empty or too large");
	source->texts[source->text_count++] = text;
	while ((line = strsep(&text, "\n"))) {
		reader.line++;
		if (!parse_line(&reader, line))
			return false;
	}
	return true;
}

/* Stable, so that the lines of one syscall keep their order. */
static void sort_rules(struct source *source)
{
	for (size_t i = 1; i < source->rule_count; i++) {
		struct profile_rule rule = source->rules[i];
		size_t at = i;

		for (; at > 0 && source->rules[at - 1].nr > rule.nr; at--)
			source->rules[at] = source->rules[at - 1];
		source->rules[at] = rule;
	}
}

/* The last line of a syscall, and no other, has no condition. */
static bool check_ends(const struct source *source, const char *path)
{
	for (size_t i = 0; i < source->rule_count; i++) {
		const struct profile_rule *rule = &source->rules[i];
		bool is_last = i + 1 == source->rule_count || rule[1].nr != rule->nr;

		if (is_last == (rule->test_count == 0))
			continue;
		fprintf(stderr, "%s: %s: %s\n", path, rule->name,
			is_last ? "the last line must be without a condition"
				: "a line after one without a condition is never reached");
		return false;
	}
	return true;
}

/* A listener that nobody holds would be asked. */
static bool check_watches(const struct source *source, const char *path)
{
	for (size_t i = 0; i < source->rule_count && !source->has_listener; i++) {
		if (source->rules[i].verdict != PROFILE_WATCH)
			continue;
		fprintf(stderr, "%s: %s: an included watch, and there is no listener\n", path,
			source->rules[i].name);
		return false;
	}
	return true;
}

bool source_parse(struct source *source, const struct target *target, const char *path)
{
	*source = (struct source){ .has_listener = true };
	if (!read_file(source, target, path, 0))
		return false;
	if (!source->otherwise.name) {
		fprintf(stderr, "%s: no default\n", path);
		return false;
	}
	sort_rules(source);
	return check_watches(source, path) && check_ends(source, path);
}

void source_done(struct source *source)
{
	for (unsigned i = 0; i < source->text_count; i++)
		free(source->texts[i]);
	source->text_count = 0;
}
