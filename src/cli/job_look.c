/*
 * caisson job ls, show, logs: what the records say, and finding a job by its name
 *
 * state.json is the launcher's account, but texts in it (a checkpoint's path) are the worker's:
 * they are escaped where they are printed.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "audit/files.h"
#include "audit/list.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/str.h"
#include "cli/job.h"
#include "cli/out.h"
#include "jobs/money.h"
#include "jobs/state.h"

enum { CANDIDATES = 300, PIECE = 64 << 10, FOLLOW_NS = 200000000 };

/* ---- finding -------------------------------------------------------------------------------- */

static bool is_job(int root_fd, const char *name)
{
	_cleanup_fd_ int fd = record_is_job_id(name) ? files_open_dir(root_fd, name) : -1;
	struct stat st;

	return fd >= 0 && fstatat(fd, "logs/events.jsonl", &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* The ids in the folder; the caller frees them, on failure too. */
static int read_names(DIR *dir, int root_fd, char (**names)[RUN_ID_SIZE], size_t *count)
{
	struct dirent *entry;

	while ((entry = readdir(dir))) {
		char(*more)[RUN_ID_SIZE];

		if (!is_job(root_fd, entry->d_name))
			continue;
		more = realloc(*names, (*count + 1) * sizeof *more);
		if (!more)
			return -ENOMEM;
		*names = more;
		snprintf(more[(*count)++], RUN_ID_SIZE, "%.39s", entry->d_name);
	}
	return 0;
}

int job_each(int root_fd, int (*each)(const char *id, void *data), void *data)
{
	int fd = files_open_dir(root_fd, "."), r;
	char(*names)[RUN_ID_SIZE] = NULL;
	size_t count = 0;
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir) {
		fd_close(fd);
		return fd < 0 ? fd : -ENOMEM;
	}
	r = read_names(dir, root_fd, &names, &count);
	closedir(dir);
	if (count)
		qsort(names, count, sizeof *names, by_name);
	for (size_t i = 0; i < count && r == 0; i++)
		r = each(names[i], data);
	free(names);
	return r;
}

struct search {
	const char *name;
	char id[RUN_ID_SIZE];
	struct buf candidates;
	unsigned count;
};

static int match(const char *id, void *data)
{
	struct search *search = data;
	size_t size = strlen(id), tail = strlen(search->name);

	if (tail > size || !str_is(id + size - tail, search->name))
		return 0;
	if (search->count++ == 0)
		snprintf(search->id, sizeof search->id, "%s", id);
	buf_printf(&search->candidates, "%s%s", search->count > 1 ? ", " : "", id);
	return 0;
}

static int find(struct job_place *place, const char *name, struct csn_error *err)
{
	struct search search = { .name = name };
	int r = 0;

	if (is_job(place->root_fd, name)) { /* whole, it is nobody else's */
		snprintf(place->id, sizeof place->id, "%s", name);
		return 0;
	}
	buf_init(&search.candidates, CANDIDATES);
	job_each(place->root_fd, match, &search);
	if (!*name || search.count == 0)
		r = csn_fail(err, -ENOENT, "job",
			     "no job ends in %.60s; `caisson job ls` lists them", name);
	else if (search.count > 1)
		r = csn_fail(err, -ENOTUNIQ, "job", "%u jobs end in %.60s: %s", search.count, name,
			     buf_text(&search.candidates));
	snprintf(place->id, sizeof place->id, "%s", search.id);
	buf_done(&search.candidates);
	return r;
}

int job_place_open(const struct cli *cli, const char *name, struct job_place *ret_place,
		   struct csn_error *err)
{
	int r = project_run_root(cli->options.run_dir, ret_place->root, sizeof ret_place->root,
				 err);

	if (r == 0)
		r = record_open_root(ret_place->root, &ret_place->root_fd, err);
	if (r == -ENOENT)
		return csn_fail(err, r, "job", "there are no jobs in %s yet", ret_place->root);
	return r == 0 && name ? find(ret_place, name, err) : r;
}

void job_place_done(struct job_place *place)
{
	place->root_fd = fd_close(place->root_fd);
}

/* ---- state ---------------------------------------------------------------------------------- */

static const char *text_at(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

int job_open_own(const struct job_place *place, const char *id, struct csn_error *err)
{
	_cleanup_fd_ int dir_fd = files_open_dir(place->root_fd, id);
	int r = dir_fd < 0 ? files_fail(err, dir_fd, "open the job", id)
			   : record_check_job(dir_fd, id, err);

	return r < 0 ? r : fd_take(&dir_fd);
}

/* As it is written, but one that says it runs and that nobody holds was lost. One that others may
 * have written is unknown, and a sentence says why. */
static json_t *read_state(const struct job_place *place, const char *id)
{
	struct csn_error err = { 0 };
	_cleanup_fd_ int dir_fd = job_open_own(place, id, &err);
	bool is_running = dir_fd >= 0 && list_status(dir_fd) == RUN_RUNNING;
	json_t *state = NULL;

	if (dir_fd == -EPERM) {
		fputs("caisson: ", stderr);
		out_text(stderr, err.text);
		fputc('\n', stderr);
	}
	if (dir_fd < 0 || state_read(dir_fd, &state) < 0 || !json_object_get(state, "status")) {
		json_decref(state);
		state = json_pack("{s:s, s:s}", "run_id", id, "status", "unknown");
	}
	if (!is_running && str_is(text_at(state, "status"), "running"))
		json_object_set_new(state, "status", json_string("lost"));
	return state;
}

static void print_row(const json_t *state)
{
	const json_t *sum = json_object_get(state, "cumulative");
	char cost[MONEY_TEXT];

	money_format(money_of(json_object_get(sum, "cost_usd")), cost);
	printf("%-9s ", text_at(state, "status"));
	printf("%9lld  %-11s %12lld %7llds  ",
	       (long long)json_integer_value(json_object_get(state, "iteration")), cost,
	       (long long)json_integer_value(json_object_get(sum, "tokens")),
	       (long long)json_integer_value(json_object_get(sum, "wall_ms")) / 1000);
	out_text(stdout, text_at(state, "run_id"));
	putchar('\n');
}

struct listing {
	const struct cli *cli;
	const struct job_place *place;
	json_t *rows; /* NULL: printed */
	bool is_begun, has_any;
};

static int list_one(const char *id, void *data)
{
	struct listing *listing = data;
	json_t *state;

	listing->has_any = true;
	if (listing->cli->options.quiet) {
		puts(id);
		return 0;
	}
	state = read_state(listing->place, id);
	if (listing->rows) {
		json_array_append_new(listing->rows, state);
		return 0;
	}
	if (!listing->is_begun)
		printf("%-9s %9s  %-11s %12s %8s  %s\n", "STATE", "ITERATION", "COST", "TOKENS",
		       "TIME", "ID");
	listing->is_begun = true;
	print_row(state);
	json_decref(state);
	return 0;
}

int cli_job_ls(struct cli *cli)
{
	_cleanup_job_place_ struct job_place place = JOB_PLACE_NONE;
	struct listing listing = { .cli = cli };
	struct csn_error err = { 0 };
	int r = job_place_open(cli, NULL, &place, &err);

	if (r < 0 && r != -ENOENT)
		return cli_fail(cli, &err);
	listing.place = &place;
	if (cli->options.json)
		listing.rows = json_array();
	if (r == 0)
		r = job_each(place.root_fd, list_one, &listing);
	if (!listing.has_any)
		out_empty(cli, "there are no jobs here; `caisson job start --data PATH -- WORKER` "
			       "makes one (--run-dir names another folder)");
	return listing.rows ? out_json(json_pack("{s:o}", "jobs", listing.rows)) : CLI_OK;
}

/* Until somebody ends it; once, where nobody watches. */
int cli_job_top(struct cli *cli)
{
	bool is_watched = isatty(STDOUT_FILENO) && !cli->options.json && !cli->options.quiet;
	int status;

	do {
		if (is_watched)
			fputs("\033[H\033[J", stdout); /* to the top, and nothing below */
		status = cli_job_ls(cli);
		fflush(stdout);
		if (is_watched)
			nanosleep(&(struct timespec){ .tv_sec = 1 }, NULL);
	} while (is_watched && status == CLI_OK && !ferror(stdout));
	return status;
}

static json_int_t int_at(const json_t *object, const char *key)
{
	return json_integer_value(json_object_get(object, key));
}

/* What was used, and the ceiling where there is one. */
static void print_cost(const json_t *used, const json_t *ceiling)
{
	char cost[MONEY_TEXT];

	money_format_all(money_of(used), cost);
	printf("%-11s %s", "cost", cost);
	if (json_is_number(ceiling)) {
		money_format_all(money_of(ceiling), cost);
		printf(" of %s", cost);
	}
	putchar('\n');
}

static void print_used(const char *label, double used, const json_t *ceiling)
{
	const double amounts[] = { used, json_number_value(ceiling) };
	char text[400]; /* the largest double has 309 digits */

	printf("%-11s ", label);
	for (size_t i = 0; i < (json_is_number(ceiling) ? 2 : 1); i++) {
		size_t end = (size_t)snprintf(text, sizeof text, "%.6f", amounts[i]);

		while (text[end - 1] == '0')
			end--;
		end -= text[end - 1] == '.';
		printf("%s%.*s", i ? " of " : "", (int)end, text);
	}
	puts(str_is(label, "time") ? " min" : "");
}

static void print_launches(const json_t *state)
{
	const json_t *launch;
	size_t i;

	printf("%-11s %lld\n", "launches", (long long)int_at(state, "launches"));
	json_array_foreach(json_object_get(state, "resume_history"), i, launch) {
		printf("%-11s ", "");
		out_text(stdout, text_at(launch, "time"));
		if (text_at(launch, "after")[0]) {
			fputs(", after ", stdout);
			out_text(stdout, text_at(launch, "after"));
			printf(" at iteration %lld", (long long)int_at(launch, "iteration"));
		}
		putchar('\n');
	}
}

static void print_books(const json_t *state)
{
	const json_t *sum = json_object_get(state, "cumulative");
	const json_t *limits = json_object_get(state, "limits");
	const char *checkpoint = text_at(state, "checkpoint");

	print_used("iteration", (double)int_at(state, "iteration"),
		   json_object_get(limits, "max_iterations"));
	print_cost(json_object_get(sum, "cost_usd"), json_object_get(limits, "max_cost_usd"));
	print_used("tokens", (double)int_at(sum, "tokens"),
		   json_object_get(limits, "max_tokens_total"));
	print_used("time", (double)(int_at(sum, "wall_ms") / 600) / 100,
		   json_object_get(limits, "max_time_minutes"));
	printf("%-11s ", "checkpoint");
	out_text(stdout, checkpoint[0] ? checkpoint : "none");
	printf("\n%-11s %lld entered, %lld refused, %lld came twice\n", "reports",
	       (long long)int_at(state, "reports"), (long long)int_at(state, "refused"),
	       (long long)int_at(state, "duplicates"));
}

static void print_state(const struct job_place *place, const json_t *state)
{
	const char *reason = text_at(state, "reason");

	printf("%-11s %s\n%-11s ", "job", place->id, "folder");
	out_text(stdout, place->root);
	printf("/%s\n%-11s ", place->id, "status");
	out_text(stdout, text_at(state, "status"));
	fputs(reason[0] ? ": " : "", stdout);
	out_text(stdout, reason);
	putchar('\n');
	if (!json_is_object(json_object_get(state, "cumulative")))
		return; /* it cannot be read */
	print_books(state);
	print_launches(state);
	printf("%-11s ", "updated");
	out_text(stdout, text_at(state, "updated"));
	putchar('\n');
}

int cli_job_show(struct cli *cli)
{
	_cleanup_job_place_ struct job_place place = JOB_PLACE_NONE;
	_cleanup_fd_ int dir_fd = -1;
	struct csn_error err = { 0 };
	json_t *state;

	if (job_place_open(cli, cli->args[0], &place, &err) < 0)
		return cli_fail(cli, &err);
	dir_fd = job_open_own(&place, place.id, &err);
	if (dir_fd < 0)
		return cli_fail(cli, &err);
	state = read_state(&place, place.id);
	if (cli->options.json)
		return out_json(state);
	print_state(&place, state);
	json_decref(state);
	return CLI_OK;
}

/* ---- logs ----------------------------------------------------------------------------------- */

static int copy_out(int fd)
{
	char data[PIECE];
	ssize_t n;

	while ((n = read(fd, data, sizeof data)) > 0)
		if (fd_write_all(STDOUT_FILENO, data, (size_t)n) < 0)
			return -EPIPE;
	return 0;
}

static int open_log(int dir_fd, bool is_stderr, const char *end)
{
	char path[32];

	snprintf(path, sizeof path, "logs/%s%s", is_stderr ? "stderr" : "stdout", end);
	return files_open_regular(dir_fd, path);
}

/* The first half, then what came last. While it is followed, the file that grows. */
static int print_logs(const struct cli *cli, int dir_fd)
{
	static const char *const ends[] = { "", ".1", ".2" };
	int last_fd = -1, r = 0;
	bool is_running;

	for (size_t i = 0; i < ARRAY_SIZE(ends) && r == 0; i++) {
		int fd = open_log(dir_fd, cli->options.job.is_stderr, ends[i]);

		if (fd < 0)
			continue;
		if (i == 1)
			fputs("caisson: between here and the last part output was cut\n", stderr);
		r = copy_out(fd);
		fd_close(last_fd);
		last_fd = fd;
	}
	do {
		is_running = cli->options.follow && list_status(dir_fd) == RUN_RUNNING;
		if (last_fd < 0)
			last_fd = open_log(dir_fd, cli->options.job.is_stderr, "");
		if (is_running)
			nanosleep(&(struct timespec){ .tv_nsec = FOLLOW_NS }, NULL);
		if (last_fd >= 0 && r == 0)
			r = copy_out(last_fd);
	} while (is_running && r == 0);
	fd_close(last_fd);
	return r;
}

int cli_job_logs(struct cli *cli)
{
	_cleanup_job_place_ struct job_place place = JOB_PLACE_NONE;
	_cleanup_fd_ int dir_fd = -1;
	struct csn_error err = { 0 };

	if (job_place_open(cli, cli->args[0], &place, &err) < 0)
		return cli_fail(cli, &err);
	dir_fd = job_open_own(&place, place.id, &err);
	if (dir_fd < 0)
		return cli_fail(cli, &err);
	return print_logs(cli, dir_fd) < 0 ? CLI_FAILED : CLI_OK;
}
