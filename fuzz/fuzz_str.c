/* Text from policy files and flags: numbers with units, patterns, paths. A NUL parts pattern and
 * text. */
#include <stdint.h>
#include <string.h>

#include "base/path.h"
#include "base/str.h"

#define FUZZ_MAX 512

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char text[FUZZ_MAX + 2] = { 0 }, path[FUZZ_MAX], again[FUZZ_MAX];
	uint64_t value;

	if (size > FUZZ_MAX)
		return 0;
	memcpy(text, data, size);
	const char *second = text + strlen(text) + 1;
	str_path_matches(text, second);
	str_matches(text, second);
	str_is_utf8(data, size);
	if (str_parse_duration(text, &value) == 0 && value > UINT64_C(365) * 24 * 3600 * 1000)
		__builtin_trap();
	if (str_parse_size(text, &value) == 0 && value > UINT64_C(1) << 53)
		__builtin_trap();
	if (str_parse_u64(text, 1000, &value) == 0 && value > 1000)
		__builtin_trap();
	/* A normalized path stays as it is. */
	if (path_normalize(text, path, sizeof path) == 0 &&
	    (path_normalize(path, again, sizeof again) != 0 || strcmp(path, again) != 0))
		__builtin_trap();
	return 0;
}
