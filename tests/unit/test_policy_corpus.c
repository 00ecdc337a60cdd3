/* Every file of the fuzzer's corpus, and each of them cut short and with a byte turned. */
#include "../../fuzz/policy.c"
#include "tap.h"

#include <dirent.h>

static size_t read_corpus(const char *name, uint8_t *data, size_t size)
{
	char path[1024], folder[512];
	FILE *file;
	size_t n;

	/* The source's own place: tests are started from any build folder beside it. */
	snprintf(folder, sizeof folder, "%s", __FILE__);
	*strrchr(folder, '/') = 0;
	snprintf(path, sizeof path, "%s/../../fuzz/corpus/policy/%s", folder, name);
	file = fopen(path, "rb");
	CHECK(file);
	n = fread(data, 1, size, file);
	fclose(file);
	return n;
}

static DIR *open_corpus(void)
{
	char path[1024];

	snprintf(path, sizeof path, "%s", __FILE__);
	*strrchr(path, '/') = 0;
	strncat(path, "/../../fuzz/corpus/policy", sizeof path - strlen(path) - 1);
	return opendir(path);
}

static void test_corpus(void)
{
	static uint8_t data[1 << 16], turned[1 << 16];
	DIR *dir = open_corpus();
	struct dirent *entry;
	int files = 0;

	CHECK(dir);
	while ((entry = readdir(dir))) {
		size_t size;

		if (entry->d_name[0] == '.')
			continue;
		size = read_corpus(entry->d_name, data, sizeof data);
		LLVMFuzzerTestOneInput(data, size);
		for (size_t i = 0; i < size; i += 1 + size / 512) {
			memcpy(turned, data, size);
			turned[i] ^= (uint8_t)(1 + i % 255);
			LLVMFuzzerTestOneInput(turned, size);
			LLVMFuzzerTestOneInput(data, i);
		}
		files++;
	}
	closedir(dir);
	CHECK(files >= 15);
}

static const struct tap_test tests[] = {
	{ "the corpus ends in a plan or a sentence", test_corpus },
};

TAP_MAIN(tests)
