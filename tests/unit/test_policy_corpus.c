/* Every file of the fuzzer's corpus, and each of them cut short and with a byte turned. */
#include "../../fuzz/policy.c"
#include "tap.h"

#include <dirent.h>

static const char corpus[] = "fuzz/corpus/policy";

/* Started from a build folder, or from the root of the tree. */
static void go_to_root(void)
{
	char path[1024];

	snprintf(path, sizeof path, "%s", __FILE__);
	*strrchr(path, '/') = 0;
	strncat(path, "/../..", sizeof path - strlen(path) - 1);
	CHECK(chdir(path) == 0 || chdir(".") == 0);
}

static size_t read_corpus(const char *name, uint8_t *data, size_t size)
{
	char path[1024];
	FILE *file;
	size_t n;

	snprintf(path, sizeof path, "%s/%s", corpus, name);
	file = fopen(path, "rb");
	CHECK(file);
	n = fread(data, 1, size, file);
	fclose(file);
	return n;
}

static void test_corpus(void)
{
	static uint8_t data[1 << 16], turned[1 << 16];
	struct dirent *entry;
	int files = 0;
	DIR *dir;

	go_to_root();
	dir = opendir(corpus);
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
