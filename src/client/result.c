/* Results and their memory; see result.h. */
#include "client/result.h"

#include <stdalign.h>
#include <stdlib.h>

/* What lies before each result. */
struct holder {
	alignas(max_align_t) struct arena arena;
};

void *result_new(struct call *call, size_t size)
{
	struct holder *holder = calloc(1, sizeof *holder + size);

	if (!holder)
		return NULL;
	holder->arena = call->arena;
	holder->arena.quota = SIZE_MAX; /* what is added is ours, and bounded where it is made */
	arena_init(&call->arena, 0);
	return holder + 1;
}

struct arena *result_arena(void *result)
{
	return &((struct holder *)result - 1)->arena;
}

CSN_API void csn_free(const void *result)
{
	struct holder *holder = (struct holder *)(uintptr_t)result;

	if (!holder)
		return;
	holder--;
	arena_done(&holder->arena);
	free(holder);
}

const char *result_text(const struct term *map, const char *key)
{
	const struct term *value = term_get(map, key);

	return value ? (const char *)value->bytes.data : NULL;
}

uint64_t result_u64(const struct term *map, const char *key)
{
	const struct term *value = term_get(map, key);

	return value && value->type == TERM_INT ? (uint64_t)value->integer : 0;
}

int result_int(const struct term *map, const char *key, int otherwise)
{
	const struct term *value = term_get(map, key);

	return value && value->type == TERM_INT ? (int)value->integer : otherwise;
}

bool result_flag(const struct term *map, const char *key)
{
	const struct term *value = term_get(map, key);

	return value && term_is_atom(value, "true");
}

csn_bytes result_bytes(const struct term *map, const char *key)
{
	const struct term *value = term_get(map, key);

	if (!value)
		return (csn_bytes){ NULL, 0 };
	return (csn_bytes){ (const char *)value->bytes.data, value->bytes.size };
}

int result_texts(void *result, const struct term *list, const char *const **ret_texts)
{
	const char **texts = arena_array(result_arena(result), list->count + 1, sizeof *texts);

	if (!texts)
		return -CSN_ENOMEM;
	for (size_t i = 0; i < list->count; i++)
		texts[i] = (const char *)list->items[i].bytes.data;
	*ret_texts = texts;
	return 0;
}

void *result_array(void *result, const struct term *list, size_t size)
{
	return arena_array(result_arena(result), list->count + 1, size);
}

void result_violation(const struct term *map, csn_violation *ret_violation)
{
	*ret_violation = (csn_violation){
		.event = result_text(map, "event"),
		.source = result_text(map, "source"),
		.rule = result_text(map, "rule"),
		.say = result_text(map, "say"),
		.certain = result_flag(map, "certain"),
		.expected = result_flag(map, "expected"),
		.others = result_flag(map, "others"),
		.count = result_u64(map, "count"),
		.time_ms = (int64_t)result_u64(map, "time_ms"),
		.last_ms = (int64_t)result_u64(map, "last_ms"),
		.pid = (int64_t)result_u64(map, "pid"),
		.comm = result_text(map, "comm"),
		.syscall = result_text(map, "syscall"),
		.path = result_text(map, "path"),
		.to = result_text(map, "to"),
		.address = result_text(map, "address"),
		.host = result_text(map, "host"),
		.text = result_text(map, "text"),
		.port = (uint16_t)result_u64(map, "port"),
	};
}
