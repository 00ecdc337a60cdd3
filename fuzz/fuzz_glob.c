/* A pattern, a NUL, a path: parsed, matched, and its expression read for literals. */
#include <stdint.h>
#include <string.h>

#include "search/glob.h"
#include "search/literal.h"

#define FUZZ_MAX 1024

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_arena_ struct arena arena;
	struct refusal refusal = { 0 };
	struct literal literal;
	char text[FUZZ_MAX + 2] = { 0 };
	struct glob glob;

	if (size > FUZZ_MAX)
		return 0;
	memcpy(text, data, size);
	const char *path = text + strlen(text) + 1;
	arena_init(&arena, 32 << 20);
	for (enum glob_kind kind = GLOB_PATHS; kind <= GLOB_FILTER; kind++) {
		refusal.reason = NULL;
		if (glob_parse(text, kind, &arena, &glob, &refusal) == 0)
			glob_matches(&glob, path);
		else if (!refusal.reason || !refusal.detail[0])
			__builtin_trap();
	}
	literal_read(text, &literal);
	const char *found = literal.size > 0 ? literal_find(&literal, path, strlen(path)) : NULL;
	/* A text that is the whole expression is found where it is. */
	if (literal.is_whole && (found != NULL) != (strstr(path, text) != NULL))
		__builtin_trap();
	return 0;
}
