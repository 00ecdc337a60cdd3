/*
 * The manifest of a finished run and its line in heads.jsonl. The line holds the hashes of the
 * chain's last line and of the manifest, and lies outside everything that is ever mounted: who
 * rewrites a whole run consistently still disagrees with it.
 */
#include "audit/manifest.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "audit/dump.h"
#include "audit/files.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"

/* ---- files -------------------------------------------------------------------------------- */

static int add_file(json_t *files, int dir_fd, const char *path)
{
	_cleanup_fd_ int fd = files_open_regular(dir_fd, path);
	char hash[SHA_HEX];
	uint64_t size;
	json_t *entry;
	int r;

	if (fd < 0)
		return fd;
	r = sha_fd(fd, MANIFEST_HASH_MAX, &size, hash);
	if (r < 0)
		return r;
	entry = json_pack("{s:s, s:s, s:I}", "path", path, "sha256", hash, "size",
			  (json_int_t)size);
	/* A name that is not UTF-8 has no place in JSON; untrusted code cannot name files here. */
	return entry && json_array_append_new(files, entry) == 0 ? 0 : -EILSEQ;
}

static bool is_listed(const struct dirent *entry)
{
	return entry->d_name[0] != '.' && entry->d_type != DT_DIR && entry->d_type != DT_LNK &&
	       !str_is(entry->d_name, "manifest.json") && !str_is(entry->d_name, "keep");
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void free_names(char **names, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free(names[i]);
	free(names);
}

/* The listed names of a folder; the caller frees them, on failure too. */
static int read_names(DIR *dir, const char *prefix, char ***names, size_t *count)
{
	struct dirent *entry;
	char **more, *name;

	while ((entry = readdir(dir))) {
		if (!is_listed(entry))
			continue;
		if (*count == MANIFEST_FILES_MAX)
			return -E2BIG;
		more = realloc(*names, (*count + 1) * sizeof *more);
		if (!more)
			return -ENOMEM;
		*names = more;
		if (asprintf(&name, "%s%s", prefix, entry->d_name) < 0)
			return -ENOMEM;
		more[(*count)++] = name;
	}
	return 0;
}

/* Adds the files of `folder` ("." or "logs"), sorted by name. */
static int add_folder(json_t *files, int run_fd, const char *folder)
{
	int fd = files_open_dir(run_fd, folder), r;
	char **names = NULL;
	size_t count = 0;
	DIR *dir;

	if (fd < 0)
		return fd;
	dir = fdopendir(fd);
	if (!dir) {
		fd_close(fd);
		return -ENOMEM;
	}
	r = read_names(dir, str_is(folder, ".") ? "" : "logs/", &names, &count);
	closedir(dir);
	if (count)
		qsort(names, count, sizeof *names, by_text);
	for (size_t i = 0; i < count && r == 0; i++) {
		r = add_file(files, run_fd, names[i]);
		if (r == -EINVAL || r == -ELOOP) /* a FIFO, a socket: nothing to keep */
			r = 0;
	}
	free_names(names, count);
	return r;
}

/* In a job's folder anybody may have put anything: only what is ours is listed of it. */
static int add_own(json_t *files, int run_fd)
{
	static const char *const names[] = { "result.json", "state.json" };
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(names) && r == 0; i++) {
		r = add_file(files, run_fd, names[i]);
		r = r == -ENOENT ? 0 : r;
	}
	return r;
}

/* `data`: when it is over. Signals are blocked here and wait: someone wants us to end. */
static bool is_over(const void *data)
{
	static const int numbers[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
	const uint64_t *until_ms = data;
	sigset_t waiting;
	bool is_wanted = false;

	if (sigpending(&waiting) == 0)
		for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
			is_wanted |= sigismember(&waiting, numbers[i]) == 1;
	return is_wanted || clock_now_ms() >= *until_ms;
}

/* Adds what a worker registered; its size alone where the hash is not to be had within `limit`. */
static int add_registered(json_t *files, int dir_fd, const char *path, struct sha_limit *limit)
{
	_cleanup_fd_ int fd = files_open_regular(dir_fd, path);
	char hash[SHA_HEX];
	struct stat st;
	uint64_t size;
	json_t *entry;
	int r = -EFBIG;

	if (fd < 0 || fstat(fd, &st) < 0)
		return fd < 0 ? fd : -errno;
	size = (uint64_t)st.st_size;
	if (size <= limit->bytes)
		r = sha_fd_within(fd, limit, &size, hash);
	if (r < 0 && r != -EFBIG && r != -ECANCELED)
		return r;
	limit->bytes -= r == 0 ? size : 0;
	entry = json_pack("{s:s, s:s*, s:I}", "path", path, "sha256", r == 0 ? hash : NULL, "size",
			  (json_int_t)(r == 0 ? size : (uint64_t)st.st_size));
	return entry && json_array_append_new(files, entry) == 0 ? 0 : -EILSEQ;
}

/* Of a job's logs/, by the same rule: what its worker wrote may be long. The chain comes last,
 * since the head vouches for it anyway. */
static int add_logs(json_t *files, int dir_fd, struct sha_limit *limit)
{
	static const char *const names[] = { "logs/iterations.jsonl", "logs/stderr",
					     "logs/stderr.1",         "logs/stderr.2",
					     "logs/stdout",           "logs/stdout.1",
					     "logs/stdout.2",         "logs/events.jsonl" };
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(names) && r != -ENOMEM; i++)
		r = add_registered(files, dir_fd, names[i],
				   limit); /* one that is missing is none */
	return r == -ENOMEM ? r : 0;
}

/* A job's worker may register one file a thousand times, and it may be gone, or no file any more.
 */
static int add_all_registered(json_t *files, struct record *record)
{
	uint64_t until_ms = clock_now_ms() + MANIFEST_KEPT_MS;
	struct sha_limit limit = { MANIFEST_KEPT_MAX, is_over, &until_ms };
	json_t *seen = json_object(), *path;
	int r = seen ? add_logs(files, record->dir_fd, &limit) : -ENOMEM;
	size_t i;

	json_array_foreach(record->kept, i, path) {
		const char *text = json_string_value(path);

		if (r == -ENOMEM || json_object_get(seen, text))
			continue;
		r = json_object_set_new(seen, text, json_true()) < 0
			    ? -ENOMEM
			    : add_registered(files, record->dir_fd, text, &limit);
	}
	json_decref(seen);
	return r == -ENOMEM ? r : 0;
}

static int add_all(struct record *record, json_t *files)
{
	bool is_job = record_is_job_id(record->run_id);
	json_t *path;
	size_t i;
	int r;

	if (is_job)
		r = add_own(files, record->dir_fd);
	else
		r = add_folder(files, record->dir_fd, ".");
	if (r == 0 && is_job)
		return add_all_registered(files, record);
	if (r == 0)
		r = add_folder(files, record->dir_fd, "logs");
	json_array_foreach(record->kept, i, path)
		if (r == 0)
			r = add_file(files, record->dir_fd, json_string_value(path));
	return r;
}

int manifest_write(struct record *record, char *ret_hash, struct csn_error *err)
{
	const struct chain *chain = &record->chain;
	json_t *files = json_array(), *manifest;
	char *text = NULL;
	size_t size = 0;
	int r = files ? add_all(record, files) : -ENOMEM;

	manifest = json_pack("{s:s, s:s, s:{s:s, s:I}, s:b, s:o}", "schema", "caisson.manifest/1",
			     "run_id", record->run_id, "head", "hash", chain->disk_head, "seq",
			     (json_int_t)chain->disk_seq, "is_incomplete", chain->is_incomplete,
			     "files", files);
	if (r == 0)
		r = manifest ? dump_json(manifest, JSON_INDENT(1), &text, &size) : -ENOMEM;
	json_decref(manifest);
	if (r == 0) {
		sha_parts(&(struct sha_part){ text, size }, 1, ret_hash);
		r = files_replace(record->dir_fd, "manifest.json", text, size, chain->syncs);
	}
	free(text);
	return r < 0 ? files_fail(err, r, "write", "manifest.json") : 0;
}

/* ---- heads.jsonl ---------------------------------------------------------------------------- */

/* Under the lock: a line that a crash or a full disk cut short is ended first. */
static int append_line(int fd, const char *line, size_t size)
{
	struct stat st;
	char last = '\n';
	int r = 0;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_size > 0 && pread(fd, &last, 1, st.st_size - 1) < 0)
		return -errno;
	if (last != '\n')
		r = fd_write_all(fd, "\n", 1);
	if (r == 0)
		r = fd_write_all(fd, line, size);
	if (r < 0 && ftruncate(fd, st.st_size) < 0)
		return r;
	return r;
}

int heads_append(struct record *record, const char *manifest_hash, struct csn_error *err)
{
	char line[HEADS_LINE_MAX], time[CLOCK_TEXT];
	_cleanup_fd_ int fd = -1;
	int size, r;

	clock_format(clock_wall_ms(), time);
	size = snprintf(line, sizeof line,
			"{\"hash\":\"%s\",\"manifest\":\"%s\",\"run_id\":\"%s\",\"seq\":%llu,"
			"\"time\":\"%s\"}\n",
			record->chain.disk_head, manifest_hash, record->run_id,
			(unsigned long long)record->chain.disk_seq, time);
	fd = openat(record->root_fd, "heads.jsonl",
		    O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
	if (fd < 0)
		return files_fail(err, -errno, "open", "heads.jsonl");
	while ((r = flock(fd, LOCK_EX)) < 0 && errno == EINTR)
		;
	if (r < 0)
		return files_fail(err, -errno, "lock", "heads.jsonl");
	r = append_line(fd, line, (size_t)size);
	if (r == 0 && record->chain.syncs && fsync(fd) < 0)
		r = -errno;
	return r < 0 ? files_fail(err, r, "append to", "heads.jsonl") : 0;
}
