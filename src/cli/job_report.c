/*
 * caisson job report: a job's account as one page for a ticket
 *
 * The chain is verified first, and the page tells what was there when that began: who reads a job
 * that runs never shows a line that was not checked. The page is written even where the record is
 * broken, says so at its top, and the status says so too.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "audit/files.h"
#include "audit/list.h"
#include "audit/manifest.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "cli/job.h"
#include "cli/out.h"
#include "jobs/page.h"
#include "os/sys.h"

/* All that a page is made of. */
struct sources {
	int dir_fd; /* owned */
	struct verdict verdict;
	struct story *story;
	struct folder *folder;
	json_t *manifest;
	bool is_running;
};

static void sources_done(struct sources *sources)
{
	fd_cleanup(&sources->dir_fd);
	story_free(sources->story);
	free(sources->folder);
	json_decref(sources->manifest);
}

/* How many of the chain's lines may be believed. */
static uint64_t good_lines(const struct verdict *verdict, const char *id)
{
	char file[RUN_ID_SIZE + 32];

	snprintf(file, sizeof file, "%s/logs/events.jsonl", id);
	return !verdict->is_good && verdict->line && str_is(verdict->file, file) ? verdict->line - 1
										 : UINT64_MAX;
}

static int chain_size(int dir_fd, uint64_t *ret_bytes)
{
	_cleanup_fd_ int fd = files_open_regular(dir_fd, "logs/events.jsonl");
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return fd < 0 ? fd : -errno;
	*ret_bytes = (uint64_t)st.st_size;
	return 0;
}

static int read_sources(const struct job_place *place, struct sources *sources,
			struct csn_error *err)
{
	uint64_t bytes = 0;
	int r;

	sources->dir_fd = job_open_own(place, place->id, err);
	if (sources->dir_fd < 0)
		return sources->dir_fd;
	sources->is_running = list_status(sources->dir_fd) == RUN_RUNNING;
	r = chain_size(sources->dir_fd, &bytes);
	if (r < 0)
		return files_fail(err, r, "read", "logs/events.jsonl");
	r = record_verify(place->root_fd, place->id, &sources->verdict, err);
	if (r == 0)
		r = story_read(sources->dir_fd, bytes, good_lines(&sources->verdict, place->id),
			       &sources->story, err);
	if (r < 0)
		return r;
	if (!sources->story->has_job && sources->verdict.is_good)
		return csn_fail(err, -EBADMSG, "job",
				"the chain of %s is good, but tells of no job: `caisson runs show "
				"%s` reads it",
				place->id, place->id);
	r = folder_read(sources->dir_fd, &sources->folder);
	if (r < 0)
		return files_fail(err, r, "read the folder of", place->id);
	files_read_json(sources->dir_fd, "manifest.json", MANIFEST_BYTES_MAX, &sources->manifest);
	return 0;
}

/* ---- the file ------------------------------------------------------------------------------- */

static int fail_to_write(int r, const char *path, struct csn_error *err)
{
	return csn_fail(err, r, "job", "cannot write %s: %s", path,
			r == -ELOOP ? "a symbolic link is on its way, which whoever writes there "
				      "could have laid: name the folder that it means"
				    : strerror(-r));
}

/* The folder that a path names something in: no link may lead to it, which a worker could have
 * laid. */
static int open_above(const char *path, size_t size)
{
	char above[PATH_MAX];

	if (size >= sizeof above)
		return -ENAMETOOLONG;
	snprintf(above, sizeof above, "%.*s", size ? (int)size : 1, size ? path : ".");
	return sys_openat2(AT_FDCWD, above, O_RDONLY | O_DIRECTORY, RESOLVE_NO_SYMLINKS);
}

/* A new file takes the name: what had it, somebody's link or pipe, is not written to. */
static int replace_file(const char *path, const struct html *html, struct csn_error *err)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	_cleanup_fd_ int dir_fd = open_above(path, (size_t)(name - path));
	int r = dir_fd;

	if (r >= 0)
		r = files_replace(dir_fd, name, (const char *)buf_at(&html->buf),
				  buf_size(&html->buf), false);
	return r < 0 ? fail_to_write(r, path, err) : 0;
}

static int write_page(const struct cli *cli, const struct html *html, struct csn_error *err)
{
	const char *path = cli->options.job.output;

	if (path && !str_is(path, "-"))
		return replace_file(path, html, err);
	return fd_write_all(STDOUT_FILENO, buf_at(&html->buf), buf_size(&html->buf)) < 0
		       ? csn_fail(err, -EPIPE, "job", "nobody reads the page")
		       : 0;
}

static const char *chain_word(const struct verdict *verdict)
{
	return verdict->is_good ? "verified" : verdict->is_open ? "open" : "broken";
}

static void tell(const struct cli *cli, const struct page *page, size_t size)
{
	const struct verdict *verdict = page->verdict;
	bool is_broken = !verdict->is_good && !verdict->is_open;

	if (cli->options.json)
		out_json(json_pack("{s:s, s:s, s:s, s:I, s:s, s:I, s:s?}", "run_id", page->id,
				   "status", page_state(page), "output", cli->options.job.output,
				   "bytes", (json_int_t)size, "chain", chain_word(verdict), "lines",
				   (json_int_t)page->story->lines, "why",
				   verdict->is_good ? NULL : verdict->reason));
	if (!is_broken)
		return;
	fputs("caisson: the record is broken: ", stderr);
	out_text(stderr, verdict->file);
	if (verdict->line)
		fprintf(stderr, ", line %llu", (unsigned long long)verdict->line);
	fputs(": ", stderr);
	out_text(stderr, verdict->reason);
	fputs("; the page says so\n", stderr);
}

static int report(struct cli *cli, const struct job_place *place, const struct sources *sources,
		  struct csn_error *err)
{
	const struct page page = { .id = place->id,
				   .root = place->root,
				   .version = CAISSON_VERSION,
				   .now_ms = clock_wall_ms(),
				   .is_running = sources->is_running,
				   .story = sources->story,
				   .verdict = &sources->verdict,
				   .folder = sources->folder,
				   .manifest = sources->manifest };
	struct html html;
	int r;

	html_init(&html, PAGE_MAX);
	r = page_write(&page, &html);
	if (r < 0)
		csn_fail(err, r, "job", "the page cannot be made: %s", strerror(-r));
	else
		r = write_page(cli, &html, err);
	if (r == 0)
		tell(cli, &page, buf_size(&html.buf));
	html_done(&html);
	return r;
}

int cli_job_report(struct cli *cli)
{
	_cleanup_job_place_ struct job_place place = JOB_PLACE_NONE;
	struct sources sources = { .dir_fd = -1 };
	struct csn_error err = { 0 };
	bool is_bad;
	int r = 0;

	if (cli->options.json && !cli->options.job.output) {
		csn_fail(&err, -EINVAL, "usage",
			 "--json tells of the page that --output FILE writes: give both");
		return cli_misuse(cli, &err);
	}
	r = job_place_open(cli, cli->args[0], &place, &err);
	if (r == 0)
		r = read_sources(&place, &sources, &err);
	if (r == 0)
		r = report(cli, &place, &sources, &err);
	is_bad = !sources.verdict.is_good && !sources.verdict.is_open;
	sources_done(&sources);
	return r < 0 ? cli_fail(cli, &err) : is_bad ? CLI_FAILED : CLI_OK;
}
