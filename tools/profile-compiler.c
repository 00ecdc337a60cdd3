/*
 * profile-compiler ARCH PROGRAMS.c RULES.c NAME.profile...
 *
 * Writes the two C files of one architecture: the programs (all the agent links) and the
 * rules with their reasons and the names of syscalls (for the monitor). Runs at build time.
 */
#include "profile-compiler.h"

#include <stdlib.h>
#include <string.h>

#define PROFILES_MAX 16

struct outputs {
	FILE *programs, *rules;
	const struct target *target;
	unsigned count;
	char names[PROFILES_MAX][64];
};

static void write_text(FILE *file, const char *text)
{
	fputc('"', file);
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			fputc('\\', file);
		fputc(*text, file);
	}
	fputc('"', file);
}

static void write_program(const struct outputs *outputs, const struct sock_filter *code,
			  size_t count)
{
	fprintf(outputs->programs, "static const struct sock_filter code_%u[] = {\n",
		outputs->count);
	for (size_t i = 0; i < count; i++)
		fprintf(outputs->programs, "\t{ 0x%02x, %u, %u, 0x%08x },\n", code[i].code,
			code[i].jt, code[i].jf, code[i].k);
	fprintf(outputs->programs, "};\n\n");
}

static void write_tests(FILE *file, const struct source *source, unsigned profile)
{
	if (source->test_count == 0)
		return;
	fprintf(file, "static const struct profile_test tests_%u[] = {\n", profile);
	for (size_t i = 0; i < source->test_count; i++) {
		const struct profile_test *test = &source->tests[i];

		fprintf(file, "\t{ %u, (enum profile_test_kind)%u, %d, 0x%08x, %u, { ", test->arg,
			(unsigned)test->kind, test->is_negated, test->mask, test->value_count);
		for (unsigned j = 0; j < test->value_count; j++)
			fprintf(file, "0x%08x, ", test->values[j]);
		fprintf(file, "%s} },\n", test->value_count == 0 ? "0 " : "");
	}
	fprintf(file, "};\n\n");
}

static void write_rule(FILE *file, const struct source *source, unsigned profile,
		       const struct profile_rule *rule)
{
	fprintf(file, "\t{ ");
	write_text(file, rule->name);
	fprintf(file, ", %d, (enum profile_verdict)%u, %d, ", rule->nr, (unsigned)rule->verdict,
		rule->error);
	write_text(file, rule->when);
	fprintf(file, ", ");
	if (rule->test_count > 0)
		fprintf(file, "tests_%u + %td, %u, ", profile, rule->tests - source->tests,
			rule->test_count);
	else
		fprintf(file, "NULL, 0, ");
	write_text(file, rule->reason);
	fprintf(file, " },\n");
}

static void write_rules(const struct outputs *outputs, const struct source *source)
{
	write_tests(outputs->rules, source, outputs->count);
	fprintf(outputs->rules, "static const struct profile_rule rules_%u[] = {\n",
		outputs->count);
	for (size_t i = 0; i < source->rule_count; i++)
		write_rule(outputs->rules, source, outputs->count, &source->rules[i]);
	write_rule(outputs->rules, source, outputs->count, &source->otherwise);
	fprintf(outputs->rules, "};\n\n");
}

static bool compile_profile(struct outputs *outputs, const char *path)
{
	struct source *source = calloc(1, sizeof *source);
	struct sock_filter *code = calloc(BPF_MAXINSNS, sizeof *code);
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	size_t count = 0;
	bool is_good = source && code && source_parse(source, outputs->target, path) &&
		       source_emit(source, outputs->target, code, &count);

	if (is_good) {
		snprintf(outputs->names[outputs->count], sizeof outputs->names[0], "%.*s",
			 (int)strcspn(name, "."), name);
		write_program(outputs, code, count);
		write_rules(outputs, source);
		outputs->count++;
	}
	if (source)
		source_done(source);
	free(source);
	free(code);
	return is_good;
}

static void write_heads(const struct outputs *outputs)
{
	const char *head = "/* Made from profiles/ by tools/profile-compiler. */\n"
			   "#include \"tables.h\"\n\n";

	fputs(head, outputs->programs);
	fputs(head, outputs->rules);
}

static void write_indexes(const struct outputs *outputs)
{
	const char *arch = outputs->target->name;
	char name[64];

	fprintf(outputs->programs, "const struct profile_program_entry profile_programs_%s[] = {\n",
		arch);
	fprintf(outputs->rules, "const struct profile_rules_entry profile_rules_%s[] = {\n", arch);
	for (unsigned i = 0; i < outputs->count; i++) {
		fprintf(outputs->programs,
			"\t{ \"%s\", { sizeof code_%u / sizeof *code_%u,"
			" (struct sock_filter *)code_%u } },\n",
			outputs->names[i], i, i, i);
		fprintf(outputs->rules,
			"\t{ \"%s\", rules_%u, sizeof rules_%u / sizeof *rules_%u - 1 },\n",
			outputs->names[i], i, i, i);
	}
	fprintf(outputs->programs, "\t{ NULL, { 0, NULL } },\n};\n");
	fprintf(outputs->rules, "\t{ NULL, NULL, 0 },\n};\n\n");
	fprintf(outputs->rules, "const uint32_t profile_arch_%s = 0x%08x;\n", arch,
		outputs->target->scmp_arch);
	fprintf(outputs->rules, "const char *const profile_names_%s[PROFILE_NAMES_END] = {\n",
		arch);
	for (int nr = 0; nr < SYSCALLS_END; nr++) {
		syscall_name(outputs->target, nr, name, sizeof name);
		if (name[0])
			fprintf(outputs->rules, "\t[%d] = \"%s\",\n", nr, name);
	}
	fprintf(outputs->rules, "};\n");
}

int main(int argc, char **argv)
{
	struct outputs outputs = { 0 };
	bool is_good;

	outputs.target = argc > 4 ? target_of(argv[1]) : NULL;
	if (!outputs.target || argc - 4 > PROFILES_MAX) {
		fprintf(stderr, "profile-compiler ARCH PROGRAMS.c RULES.c NAME.profile...\n");
		return 2;
	}
	outputs.programs = fopen(argv[2], "w");
	outputs.rules = fopen(argv[3], "w");
	is_good = outputs.programs && outputs.rules;
	if (is_good)
		write_heads(&outputs);
	for (int i = 4; is_good && i < argc; i++)
		is_good = compile_profile(&outputs, argv[i]);
	if (is_good)
		write_indexes(&outputs);
	if (outputs.programs && (ferror(outputs.programs) | fclose(outputs.programs)) != 0)
		is_good = false;
	if (outputs.rules && (ferror(outputs.rules) | fclose(outputs.rules)) != 0)
		is_good = false;
	if (!is_good)
		fprintf(stderr, "profile-compiler: stopped, nothing usable was written\n");
	return !is_good;
}
