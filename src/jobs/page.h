/*
 * page - a job's account as one HTML page, for a ticket
 *
 * One file that needs nothing else: no script, no image, one style sheet, which the page's own
 * content security policy names by its hash and allows nothing beside. It is below PAGE_MAX bytes
 * whatever the job did: every text in it is cut and every list folded (story.h, html.h).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "audit/audit.h"
#include "jobs/folder.h"
#include "jobs/html.h"
#include "jobs/story.h"

enum { PAGE_MAX = 1000000 };

/* What is told. All is borrowed. */
struct page {
	const char *id, *root; /* the job and its run root; paths may hold any bytes */
	const char *version;   /* of what writes it */
	int64_t now_ms;
	bool is_running; /* somebody holds the folder */
	const struct story *story;
	const struct verdict *verdict;
	const struct folder *folder;
	const json_t *manifest; /* NULL: there is none */
};

/* Writes the page into `html`, which is empty and has PAGE_MAX bytes of room. 0, or -E2BIG,
 * -ENOMEM. */
int page_write(const struct page *page, struct html *html);

/* "running", "lost", "new", or the status of the last launch. Static, or of `page`. */
const char *page_state(const struct page *page);
