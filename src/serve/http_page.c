/*
 * The page: a few files that hold no secret, so they need no token
 *
 * A target is compared with the table and with nothing else: there is no path of the host to
 * traverse to.
 */
#include "serve/http_page.h"

#include "base/str.h"
#include "serve/http_routes.h"

static const struct page_file *find(const char *target)
{
	for (const struct page_file *file = page_files; file->target; file++)
		if (str_is(file->target, target))
			return file;
	return NULL;
}

bool page_answers(struct request *request)
{
	const struct page_file *file = find(request->target);

	if (!file)
		return false;
	if (!guard_passes(request, true))
		return true;
	if (str_is(request->method, "GET") || str_is(request->method, "HEAD"))
		reply_bytes(request, file->type, file->data, file->size);
	else
		reply_problem(request, 405, "method", "a file of the page can only be read");
	return true;
}
