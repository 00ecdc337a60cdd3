/*
 * replay - runs a fuzz target over a folder of inputs, without a fuzzer
 *
 * So that every input that once broke something, and every seed, is tried in each ordinary
 * test run and under each compiler. The target's own checks and the sanitizers judge; a folder
 * that is missing or empty is a failure, since a test that tries nothing says nothing.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* One target per program; every fuzz_NAME.c defines it. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { INPUT_MAX = 1 << 20 };

static int replay_file(const char *folder, const char *name)
{
	char path[4096];
	uint8_t *data, *exact;
	size_t size;
	FILE *file;

	snprintf(path, sizeof path, "%s/%s", folder, name);
	file = fopen(path, "re");
	data = malloc(INPUT_MAX);
	if (!file || !data) {
		fprintf(stderr, "cannot read %s\n", path);
		return 1;
	}
	size = fread(data, 1, INPUT_MAX, file);
	fclose(file);
	/* Exactly as large as the input: a sanitizer sees the first byte too many. */
	exact = realloc(data, size ? size : 1);
	if (!exact)
		return 1;
	LLVMFuzzerTestOneInput(exact, size);
	free(exact);
	return 0;
}

int main(int argc, char **argv)
{
	DIR *folder = argc == 2 ? opendir(argv[1]) : NULL;
	struct dirent *entry;
	unsigned count = 0;
	int failed = 0;

	if (!folder) {
		fprintf(stderr, "usage: %s FOLDER-OF-INPUTS\n", argv[0]);
		return 2;
	}
	while ((entry = readdir(folder))) {
		if (entry->d_name[0] == '.')
			continue;
		failed |= replay_file(argv[1], entry->d_name);
		count++;
	}
	closedir(folder);
	printf("%u inputs\n", count);
	return failed || count == 0;
}
