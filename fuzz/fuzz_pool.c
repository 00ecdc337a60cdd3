/* A request to a pool: whatever was sent, what is taken lies in it and is as long as it says. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/pool.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pool_texts texts;
	struct pool_head head;
	char *bytes;

	if (size < sizeof head)
		return 0;
	memcpy(&head, data, sizeof head);
	if (!pool_is_head(&head) || size - sizeof head < head.size)
		return 0;
	bytes = calloc(1, (size_t)head.size + 1);
	if (!bytes)
		return 0;
	memcpy(bytes, data + sizeof head, head.size);
	if (pool_parse(&head, bytes, &texts) == 0) {
		for (uint32_t i = 0; i < head.words; i++)
			if (texts.words[i] < bytes || texts.words[i] >= bytes + head.size)
				__builtin_trap();
		if (texts.words[head.words] || texts.variables[head.variables] ||
		    texts.cwd[0] != '/' || texts.cwd >= bytes + head.size)
			__builtin_trap();
		pool_texts_done(&texts);
	}
	free(bytes);
	return 0;
}
