/*
 * Rules to BPF. A program only jumps forward, so it is written from its end to its start:
 * every target is then known, and equal targets are shared. Whatever is compared (the
 * syscall number, an argument under a mask) becomes a sorted list of ranges and then a
 * binary search; ranges that lead to the same place are merged, and a lone value between
 * two equal neighbours is tested by itself. Programs are short that way, which is what
 * loading them costs by.
 *
 *   arch? -> ENOSYS     number -> search -> a return, or the tests of that syscall
 */
#include "profile-compiler.h"

#include <errno.h>
#include <linux/bpf_common.h>
#include <stdlib.h>
#include <string.h>

#define X32_BIT 0x40000000u
#define NEAR 250 /* conditional jumps reach 255; room for two copies between */
#define RANGES_MAX 1100
#define LONE_WINDOW 9 /* ranges left before lone values are tested one by one */

/* The program, last instruction first. A label is an index into `code`. */
struct emitter {
	struct sock_filter code[BPF_MAXINSNS];
	size_t near[BPF_MAXINSNS]; /* the newest copy or trampoline of a label */
	size_t count;
	bool is_full;
	bool is_twofold; /* a value stands twice: a sort cannot say which line is first */
	bool has_listener;
};

/* From `start` up to the next range: go to `label`. */
struct range {
	uint32_t start;
	size_t label;
};

static size_t put(struct emitter *emitter, uint16_t code, uint32_t k)
{
	if (emitter->count == BPF_MAXINSNS) {
		emitter->is_full = true;
		return 0;
	}
	emitter->code[emitter->count] = (struct sock_filter)BPF_STMT(code, k);
	emitter->near[emitter->count] = emitter->count;
	return emitter->count++;
}

/* The same place, near enough for a conditional jump: a copy of a return, or a long jump. */
static size_t reach(struct emitter *emitter, size_t label)
{
	const struct sock_filter *target = &emitter->code[label];

	if (emitter->count - emitter->near[label] <= NEAR)
		return emitter->near[label];
	if (BPF_CLASS(target->code) == BPF_RET)
		emitter->near[label] = put(emitter, target->code, target->k);
	else
		emitter->near[label] =
			put(emitter, BPF_JMP | BPF_JA, (uint32_t)(emitter->count - label - 1));
	return emitter->near[label];
}

static size_t put_jump(struct emitter *emitter, uint16_t op, uint32_t k, size_t yes, size_t no)
{
	size_t label;

	if (yes == no)
		return yes;
	yes = reach(emitter, yes);
	no = reach(emitter, no);
	label = put(emitter, BPF_JMP | BPF_K | op, k);
	if (label - yes > UINT8_MAX || label - no > UINT8_MAX)
		abort(); /* reach() promised otherwise */
	emitter->code[label].jt = (uint8_t)(label - yes - 1);
	emitter->code[label].jf = (uint8_t)(label - no - 1);
	return label;
}

static size_t put_return(struct emitter *emitter, uint32_t value)
{
	for (size_t i = 0; i < emitter->count; i++)
		if (emitter->code[i].code == (BPF_RET | BPF_K) && emitter->code[i].k == value)
			return i;
	return put(emitter, BPF_RET | BPF_K, value);
}

static size_t put_verdict(struct emitter *emitter, const struct profile_rule *rule)
{
	if (rule->verdict == PROFILE_ALLOW)
		return put_return(emitter, SECCOMP_RET_ALLOW);
	if (rule->verdict == PROFILE_WATCH ||
	    (rule->verdict == PROFILE_DENY && emitter->has_listener))
		return put_return(emitter, SECCOMP_RET_USER_NOTIF);
	return put_return(emitter, SECCOMP_RET_ERRNO | (uint32_t)rule->error);
}

/* A load in front of code that begins with the instruction written last. */
static size_t put_load(struct emitter *emitter, size_t label, uint32_t offset, uint32_t mask)
{
	if (label + 1 != emitter->count)
		put(emitter, BPF_JMP | BPF_JA, (uint32_t)(emitter->count - label - 1));
	if (mask != 0xffffffff)
		put(emitter, BPF_ALU | BPF_AND | BPF_K, mask);
	return put(emitter, BPF_LD | BPF_W | BPF_ABS, offset);
}

/* Merges neighbours that lead to the same place. */
static size_t merge_ranges(struct range *ranges, size_t count)
{
	size_t kept = 0;

	for (size_t i = 0; i < count; i++)
		if (kept == 0 || ranges[kept - 1].label != ranges[i].label)
			ranges[kept++] = ranges[i];
	return kept;
}

/* A value that is alone between two ranges that lead to the same place; 0 if none is. */
static size_t find_lone(const struct range *ranges, size_t count)
{
	for (size_t i = 1; i + 1 < count; i++)
		if (ranges[i + 1].start - ranges[i].start == 1 &&
		    ranges[i - 1].label == ranges[i + 1].label)
			return i;
	return 0;
}

/* Code that finds the range of the accumulator. Ends by the halving: depth is log2(count). */
static size_t put_search(struct emitter *emitter, struct range *ranges, size_t count)
{
	size_t lone = count <= LONE_WINDOW ? find_lone(ranges, count) : 0;
	struct range pivot;
	size_t other;

	if (count == 1)
		return ranges[0].label;
	if (lone) {
		pivot = ranges[lone];
		memmove(ranges + lone, ranges + lone + 2, (count - lone - 2) * sizeof *ranges);
		other = put_search(emitter, ranges, count - 2);
		return put_jump(emitter, BPF_JEQ, pivot.start, pivot.label, other);
	}
	pivot = ranges[count / 2];
	other = put_search(emitter, ranges + count / 2, count - count / 2);
	lone = put_search(emitter, ranges, count / 2);
	return put_jump(emitter, BPF_JGE, pivot.start, other, lone);
}

/* Ranges of single values (sorted by the caller) over everything else. */
static size_t put_values(struct emitter *emitter, const struct range *values, size_t count,
			 size_t otherwise)
{
	struct range ranges[2 * RANGES_MAX + 1];
	size_t used = 0;

	ranges[used++] = (struct range){ 0, otherwise };
	for (size_t i = 0; i < count; i++) {
		emitter->is_twofold |= i > 0 && values[i].start == values[i - 1].start;
		if (ranges[used - 1].start == values[i].start)
			used--;
		ranges[used++] = values[i];
		if (values[i].start != UINT32_MAX)
			ranges[used++] = (struct range){ values[i].start + 1, otherwise };
	}
	return put_search(emitter, ranges, merge_ranges(ranges, used));
}

static int compare_ranges(const void *a, const void *b)
{
	const struct range *left = a, *right = b;

	return (left->start > right->start) - (left->start < right->start);
}

static uint32_t arg_offset(const struct profile_test *test)
{
	return (uint32_t)offsetof(struct seccomp_data, args) + 8u * test->arg;
}

/* Code that goes to `yes` if the test holds, else to `no`. */
static size_t put_test(struct emitter *emitter, const struct profile_test *test, size_t yes,
		       size_t no)
{
	struct range values[PROFILE_VALUES_MAX];
	size_t label = test->is_negated ? no : yes, otherwise = test->is_negated ? yes : no;

	if (test->kind == PROFILE_HAS) {
		label = put_jump(emitter, BPF_JSET, test->mask, label, otherwise);
		return put_load(emitter, label, arg_offset(test), 0xffffffff);
	}
	if (test->kind == PROFILE_NULL) {
		label = put_jump(emitter, BPF_JEQ, 0, label, otherwise);
		label = put_load(emitter, label, arg_offset(test) + 4, 0xffffffff);
		label = put_jump(emitter, BPF_JEQ, 0, label, otherwise);
		return put_load(emitter, label, arg_offset(test), 0xffffffff);
	}
	for (size_t i = 0; i < test->value_count; i++)
		values[i] = (struct range){ test->values[i], label };
	qsort(values, test->value_count, sizeof *values, compare_ranges);
	label = put_values(emitter, values, test->value_count, otherwise);
	return put_load(emitter, label, arg_offset(test), test->mask);
}

/* May the rule be one of a search over one argument? */
static bool is_plain(const struct profile_rule *rule)
{
	return rule->test_count == 1 && rule->tests->kind == PROFILE_IS && !rule->tests->is_negated;
}

static bool is_same_key(const struct profile_rule *a, const struct profile_rule *b)
{
	return is_plain(a) && is_plain(b) && a->tests->arg == b->tests->arg &&
	       a->tests->mask == b->tests->mask;
}

/* One search for rules that ask the same argument. */
static size_t put_run(struct emitter *emitter, const struct profile_rule *rules, size_t count,
		      size_t otherwise)
{
	struct range values[RANGES_MAX];
	size_t used = 0, label;

	for (size_t i = 0; i < count; i++) {
		label = put_verdict(emitter, &rules[i]);
		for (size_t j = 0; j < rules[i].tests->value_count && used < RANGES_MAX; j++) {
			values[used].start = rules[i].tests->values[j];
			values[used++].label = label;
		}
	}
	qsort(values, used, sizeof *values, compare_ranges);
	label = put_values(emitter, values, used, otherwise);
	return put_load(emitter, label, arg_offset(rules->tests), rules->tests->mask);
}

/* All lines of one syscall; the last has no condition. */
static size_t put_rules(struct emitter *emitter, const struct profile_rule *rules, size_t count)
{
	size_t label = put_verdict(emitter, &rules[count - 1]), first, yes;

	for (size_t end = count - 1; end > 0; end = first) {
		first = end - 1;
		while (first > 0 && is_same_key(&rules[first - 1], &rules[end - 1]))
			first--;
		if (end - first > 1) {
			label = put_run(emitter, rules + first, end - first, label);
			continue;
		}
		yes = put_verdict(emitter, &rules[first]);
		size_t no = label;
		label = yes;
		for (unsigned t = rules[first].test_count; t > 0; t--)
			label = put_test(emitter, &rules[first].tests[t - 1], label, no);
	}
	return label;
}

static bool is_same_test(const struct profile_test *a, const struct profile_test *b)
{
	return a->arg == b->arg && a->kind == b->kind && a->is_negated == b->is_negated &&
	       a->mask == b->mask && a->value_count == b->value_count &&
	       memcmp(a->values, b->values, a->value_count * sizeof *a->values) == 0;
}

static bool is_same_rule(const struct profile_rule *a, const struct profile_rule *b)
{
	if (a->verdict != b->verdict || a->error != b->error || a->test_count != b->test_count)
		return false;
	for (unsigned i = 0; i < a->test_count; i++)
		if (!is_same_test(&a->tests[i], &b->tests[i]))
			return false;
	return true;
}

static size_t rules_of_one(const struct source *source, size_t first)
{
	size_t end = first + 1;

	while (end < source->rule_count && source->rules[end].nr == source->rules[first].nr)
		end++;
	return end - first;
}

/* The code of an earlier syscall with the same lines, if there is one. */
static bool find_same(const struct source *source, size_t first, size_t count, const size_t *labels,
		      size_t *ret_label)
{
	for (size_t i = 0, size; i < first; i += size) {
		size_t same = 0;

		size = rules_of_one(source, i);
		if (size != count)
			continue;
		while (same < count &&
		       is_same_rule(&source->rules[i + same], &source->rules[first + same]))
			same++;
		if (same < count)
			continue;
		*ret_label = labels[i];
		return true;
	}
	return false;
}

/* The bodies of all syscalls, then the search over numbers, then the entry. */
static void put_program(struct emitter *emitter, const struct source *source,
			const struct target *target)
{
	size_t labels[SOURCE_RULES_MAX] = { 0 }, used = 0, enosys, root;
	struct range numbers[SOURCE_RULES_MAX + 1], ranges[2 * RANGES_MAX + 3];

	enosys = put_return(emitter, SECCOMP_RET_ERRNO | ENOSYS);
	for (size_t i = 0, size; i < source->rule_count; i += size) {
		size = rules_of_one(source, i);
		if (!find_same(source, i, size, labels, &labels[i]))
			labels[i] = put_rules(emitter, &source->rules[i], size);
		numbers[used++] = (struct range){ (uint32_t)source->rules[i].nr, labels[i] };
	}
	size_t otherwise = put_verdict(emitter, &source->otherwise), count = 0;
	ranges[count++] = (struct range){ 0, otherwise };
	for (size_t i = 0; i < used; i++) {
		if (ranges[count - 1].start == numbers[i].start)
			count--;
		ranges[count++] = numbers[i];
		ranges[count++] = (struct range){ numbers[i].start + 1, otherwise };
	}
	if (target->has_x32)
		ranges[count++] = (struct range){ X32_BIT, enosys };
	root = put_search(emitter, ranges, merge_ranges(ranges, count));
	root = put_load(emitter, root, offsetof(struct seccomp_data, nr), 0xffffffff);
	root = put_jump(emitter, BPF_JEQ, target->scmp_arch, root, enosys);
	put_load(emitter, root, offsetof(struct seccomp_data, arch), 0xffffffff);
}

bool source_emit(const struct source *source, const struct target *target,
		 struct sock_filter *ret_code, size_t *ret_count)
{
	struct emitter *emitter = calloc(1, sizeof *emitter);

	if (!emitter)
		return false;
	emitter->has_listener = source->has_listener;
	put_program(emitter, source, target);
	if (emitter->is_full || emitter->is_twofold) {
		fprintf(stderr, "%s\n",
			emitter->is_full ? "the program is too long"
					 : "a value of one syscall stands twice");
		free(emitter);
		return false;
	}
	for (size_t i = 0; i < emitter->count; i++)
		ret_code[i] = emitter->code[emitter->count - 1 - i];
	*ret_count = emitter->count;
	free(emitter);
	return true;
}
