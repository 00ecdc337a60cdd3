/* Any bytes as a git configuration: what is taken over is text of one line, or nothing. */
#include "monitor/git_user.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct git_user user = { 0 };

	git_user_parse((const char *)data, size, &user);
	for (size_t i = 0; i < 2; i++) {
		const char *text = i ? user.email : user.name;
		size_t n = strnlen(text, sizeof user.name);

		if (n == sizeof user.name || strpbrk(text, "\n\t\b\x7f") ||
		    (n && !str_is_utf8(text, n)))
			abort();
	}
	return 0;
}
