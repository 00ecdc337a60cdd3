/* Arguments of a gate and the schema they are held against: the text up to the first newline is the
 * schema, the rest a value. */
#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "monitor/gate_schema.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *end = size ? memchr(data, '\n', size) : NULL;
	_cleanup_arena_ struct arena arena;
	json_t *schema = NULL, *value;
	struct csn_error err;

	arena_init(&arena, 1 << 20);
	if (!end)
		return 0;
	value = json_loadb((const char *)end + 1, size - (size_t)(end + 1 - data),
			   JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, NULL);
	if (value &&
	    gate_schema_read(arena_copy(&arena, data, (size_t)(end - data)), &schema, &err) == 0)
		gate_schema_check(schema, value, &err);
	json_decref(schema);
	json_decref(value);
	return 0;
}
