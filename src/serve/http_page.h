/* http_page - the files of the page, which are part of the program (tools/embed) */
#pragma once

#include <stddef.h>

struct page_file {
	const char *target; /* "/app.js"; NULL ends the table */
	const char *type;
	const unsigned char *data;
	size_t size;
};

extern const struct page_file page_files[];
