/* A hostile log, and a text to redact, from the same bytes. */
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "audit/verify.h"
#include "base/str.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void verify(const uint8_t *data, size_t size)
{
	struct chain_end end = { .watch_seq = 2 };
	int fd = memfd_create("log", MFD_CLOEXEC);
	struct finding finding;

	if (pwrite(fd, data, size, 0) != (ssize_t)size || verify_chain(fd, &end, &finding) != 0 ||
	    end.size > size || (finding.line == 0) != (end.size == size))
		__builtin_trap();
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct redactor *redactor;
	json_t *text;

	verify(data, size);
	if (redactor_new(&redactor) < 0 || redactor_add(redactor, "NAME", "s3cr3t") < 0)
		return 0;
	text = redact_text(redactor, data, size);
	data = (const uint8_t *)json_string_value(text);
	size = json_string_length(text);
	if (memmem(data, size, "s3cr3t", 6) || !str_is_utf8(data, size))
		__builtin_trap();
	json_decref(text);
	redactor_free(redactor);
	return 0;
}
