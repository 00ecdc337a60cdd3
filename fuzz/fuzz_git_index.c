/* A git index from a folder where anybody may have written. */
#include "cli/git_index.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t sha1[GIT_SHA1];

	git_index_find(data, size, "caisson.yaml", sha1);
	return 0;
}
