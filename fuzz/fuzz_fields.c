/* The body of a request over HTTP: any JSON, into one field of each kind. What was taken keeps what
 * the table promises: texts end where their size says, lists with NULL, numbers are within their
 * bounds. */
#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include "serve/http_fields.h"

enum { QUOTA = 1 << 20, FEW = 3, SMALL = 100 };

struct taken {
	const char *text, *data, *const *texts, *const *pairs;
	uint64_t u64, size;
	size_t data_size;
	uint32_t u32;
	int number;
	uint16_t u16;
	bool is_it;
};

#define AT(member) offsetof(struct taken, member)

static const struct field fields[] = {
	{ "text", FIELD_TEXT, AT(text), .is_required = true, .what = "" },
	{ "data", FIELD_BYTES, AT(data), AT(data_size), .what = "" },
	{ "texts", FIELD_TEXTS, AT(texts), .max = FEW, .what = "" },
	{ "pairs", FIELD_PAIRS, AT(pairs), .what = "" },
	{ "bool", FIELD_BOOL, AT(is_it), .what = "" },
	{ "u16", FIELD_U16, AT(u16), .max = SMALL, .what = "" },
	{ "u32", FIELD_U32, AT(u32), .what = "" },
	{ "u64", FIELD_U64, AT(u64), .what = "" },
	{ "size", FIELD_SIZE, AT(size), .what = "" },
	{ "int", FIELD_INT, AT(number), .what = "" },
	{ "skip", FIELD_SKIP, .what = "" },
	{ NULL },
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look(const struct taken *taken)
{
	size_t count = 0, length = 0;

	assert(taken->text && (!taken->data || taken->data[taken->data_size] == 0));
	for (; taken->texts && taken->texts[count]; count++)
		length += strlen(taken->texts[count]);
	assert(count <= FEW && length <= QUOTA);
	for (size_t i = 0; taken->pairs && taken->pairs[i]; i++)
		assert(strchr(taken->pairs[i], '=') > taken->pairs[i]);
	assert(taken->u16 <= SMALL && taken->number >= 0 && taken->u64 <= INT64_MAX &&
	       taken->size <= INT64_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	json_t *body = json_loadb((const char *)data, size, JSON_REJECT_DUPLICATES, NULL);
	struct taken taken = { .u16 = 0 };
	csn_error err = { 0 };
	struct arena arena;
	int r;

	arena_init(&arena, QUOTA);
	r = json_is_object(body) ? fields_take(fields, body, &arena, &taken, &err) : 0;
	if (json_is_object(body) && r == 0)
		look(&taken);
	assert(r == 0 || (err.text[0] && (r == -CSN_INVALID || r == -CSN_ENOMEM)));
	arena_done(&arena);
	json_decref(body);
	return 0;
}
