/* What a job's worker writes on its descriptor, cut anywhere: the books only ever grow. */
#include "jobs/book.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void enter(void *data, const char *line, size_t size)
{
	struct book *book = data, before = *book;
	struct report report;
	const char *why = report_read(line, size, &report);

	if (*why)
		return;
	book_enter(book, &report, &why);
	report_done(&report);
	assert(book->cost_nano >= before.cost_nano && book->tokens >= before.tokens);
	assert(book->iteration >= before.iteration && book->report_seq >= before.report_seq);
	assert(book->checkpoint[0] != '/');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct book book = { .limits = BOOK_UNLIMITED };
	struct report_lines lines;
	size_t part = size ? data[0] % size : 0;

	report_lines_init(&lines);
	report_lines_add(&lines, (const char *)data, part, enter, &book);
	report_lines_add(&lines, (const char *)data + part, size - part, enter, &book);
	report_lines_done(&lines);
	return 0;
}
