/*
 * The folder of one run, from record_open() before the wall is built to record_close() after
 * its end. It is on the path of every launch, so it makes as few system calls as it can and
 * waits for no disk unless asked to (`chain.syncs`).
 *
 * Whoever owns a run holds a lock on its folder. It dies with him, so "is it still running"
 * has an answer before state.json exists, in another pid namespace, and where /proc is hidden.
 */
#include "audit/audit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "audit/files.h"
#include "audit/list.h"
#include "audit/manifest.h"
#include "base/tree.h"
#include "audit/verify.h"
#include "base/clock.h"
#include "base/fd.h"

enum { OPEN_CHAIN = O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, ID_TRIES = 8 };

enum { AHEAD_NAME = sizeof RECORD_AHEAD + RUN_ID_SIZE };

#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE 1
#endif

/* ---- ids ----------------------------------------------------------------------------------- */

int record_make_id(char *ret_id, size_t size)
{
	unsigned char bytes[4];
	char when[CLOCK_STAMP];
	struct timespec now;
	ssize_t n;

	if (size < RUN_ID_SIZE)
		return -ENOSPC;
	n = getrandom(bytes, sizeof bytes, 0);
	if (n != (ssize_t)sizeof bytes)
		return n < 0 ? -errno : -EIO;
	clock_gettime(CLOCK_REALTIME, &now);
	clock_stamp((int64_t)now.tv_sec * 1000, when);
	snprintf(ret_id, size, "%s-%04x%02x%02x%02x%02x", when,
		 (unsigned)(now.tv_nsec * 65536 / 1000000000) & 0xffff, bytes[0], bytes[1],
		 bytes[2], bytes[3]);
	return 0;
}

bool record_is_id(const char *text)
{
	static const char form[] = "dddddddd-dddddd-hhhhhhhhhhhh";

	if (strlen(text) != sizeof form - 1)
		return false;
	for (size_t i = 0; i < sizeof form - 1; i++) {
		bool is_digit = text[i] >= '0' && text[i] <= '9';
		bool is_hex = is_digit || (text[i] >= 'a' && text[i] <= 'f');

		if (form[i] == '-' ? text[i] != '-' : form[i] == 'd' ? !is_digit : !is_hex)
			return false;
	}
	return true;
}

/* ---- opening ------------------------------------------------------------------------------- */

int record_open_root(const char *root, int *ret_fd, struct csn_error *err)
{
	return files_open_root(root, false, ret_fd, err);
}

static int lock_folder(int fd, int how)
{
	int r;

	while ((r = flock(fd, how)) < 0 && errno == EINTR)
		;
	/* A file system without locks (some network ones): pid and pid_start must do. */
	return r < 0 && errno == EWOULDBLOCK ? -EBUSY : 0;
}

/* Makes the run's folder under `id`, NULL: a new one. A clock that stands still gives none twice.
 */
static int make_folder(struct record *record, const char *id, struct csn_error *err)
{
	int r = -EEXIST;

	if (id && !record_is_id(id))
		return csn_fail(err, -EINVAL, "record", "%.40s is no run id", id);
	for (int i = 0; i < (id ? 1 : ID_TRIES) && r == -EEXIST; i++) {
		r = 0;
		if (id)
			memcpy(record->run_id, id, strlen(id) + 1);
		else
			r = record_make_id(record->run_id, sizeof record->run_id);
		if (r == 0 && mkdirat(record->root_fd, record->run_id, 0700) < 0)
			r = -errno;
	}
	if (r < 0)
		return files_fail(err, r, "make the run's folder in the run root", record->run_id);
	record->dir_fd = files_open_dir(record->root_fd, record->run_id);
	if (record->dir_fd < 0)
		return files_fail(err, record->dir_fd, "open the run's folder", record->run_id);
	lock_folder(record->dir_fd, LOCK_EX);
	return 0;
}

static int make_chain(struct record *record, struct csn_error *err)
{
	int fd;

	if (mkdirat(record->dir_fd, "logs", 0700) < 0)
		return files_fail(err, -errno, "make", "logs");
	fd = openat(record->dir_fd, "logs/events.jsonl", OPEN_CHAIN | O_EXCL, 0600);
	if (fd < 0)
		return files_fail(err, -errno, "make", "logs/events.jsonl");
	chain_init(&record->chain, fd);
	return 0;
}

static void unmake_folder(struct record *record)
{
	if (record->dir_fd >= 0) {
		unlinkat(record->dir_fd, "logs/events.jsonl", 0);
		unlinkat(record->dir_fd, "logs", AT_REMOVEDIR);
		unlinkat(record->root_fd, record->run_id, AT_REMOVEDIR);
	}
	record_done(record);
}

static void reset(struct record *record)
{
	*record = (struct record){ .root_fd = -1, .dir_fd = -1 };
	chain_init(&record->chain, -1);
}

int record_open(struct record *record, const char *root, struct csn_error *err)
{
	return record_open_as(record, root, NULL, err);
}

int record_open_as(struct record *record, const char *root, const char *id, struct csn_error *err)
{
	int r;

	reset(record);
	r = files_open_root(root, true, &record->root_fd, err);
	if (r == 0)
		r = make_folder(record, id, err);
	if (r == 0)
		r = make_chain(record, err);
	if (r < 0)
		unmake_folder(record);
	return r;
}

/* ---- ahead of a run ------------------------------------------------------------------------ */

static void ahead_name(const struct record *record, char ret_name[AHEAD_NAME])
{
	snprintf(ret_name, AHEAD_NAME, RECORD_AHEAD "%s", record->run_id);
}

static int make_ahead(struct record *record, struct csn_error *err)
{
	char name[AHEAD_NAME];
	int r = record_make_id(record->run_id, sizeof record->run_id);

	ahead_name(record, name);
	if (r == 0 && mkdirat(record->root_fd, name, 0700) < 0)
		r = -errno;
	record->dir_fd = r < 0 ? r : files_open_dir(record->root_fd, name);
	if (record->dir_fd < 0)
		return files_fail(err, record->dir_fd, "make a folder in the run root", name);
	lock_folder(record->dir_fd, LOCK_EX);
	r = make_chain(record, err);
	if (r == 0)
		files_prepare(record->dir_fd, "state.json");
	if (r == 0)
		record_prepare(record);
	return r;
}

int record_open_ahead(struct record *record, const char *root, struct csn_error *err)
{
	int r;

	reset(record);
	r = files_open_root(root, true, &record->root_fd, err);
	if (r == 0)
		r = make_ahead(record, err);
	if (r < 0)
		record_drop(record);
	return r;
}

/* A run root that was moved away meanwhile is not where somebody will look. */
static bool is_same_folder(int a_fd, int b_fd)
{
	struct stat a, b;

	return fstat(a_fd, &a) == 0 && fstat(b_fd, &b) == 0 && a.st_dev == b.st_dev &&
	       a.st_ino == b.st_ino;
}

int record_begin(struct record *record, const char *root, const char *id, struct csn_error *err)
{
	_cleanup_fd_ int root_fd = -1;
	char name[AHEAD_NAME];
	int r = record_is_id(id) ? files_open_root(root, false, &root_fd, err) : -EINVAL;

	ahead_name(record, name);
	if (r == 0 && !is_same_folder(root_fd, record->root_fd))
		r = -ESTALE;
	if (r == 0 &&
	    syscall(SYS_renameat2, record->root_fd, name, root_fd, id, RENAME_NOREPLACE) < 0)
		r = -errno;
	if (r < 0) {
		record_drop(record);
		return files_fail(err, r, "make the run's folder in the run root", id);
	}
	snprintf(record->run_id, sizeof record->run_id, "%s", id);
	return 0;
}

void record_drop(struct record *record)
{
	char name[AHEAD_NAME];

	ahead_name(record, name);
	if (record->dir_fd >= 0)
		tree_remove(record->root_fd, name);
	record_done(record);
}

/* ---- an existing one ----------------------------------------------------------------------- */

/* Finds the end of an existing chain and continues there. What a crash cut short is cut off. */
static int resume_chain(struct record *record, struct csn_error *err)
{
	_cleanup_fd_ int fd = files_open_regular(record->dir_fd, "logs/events.jsonl");
	struct chain_end end = { 0 };
	struct finding finding;
	int r = fd < 0 ? fd : verify_chain(fd, &end, &finding);

	if (r < 0)
		return files_fail(err, r, "read", "logs/events.jsonl");
	if (finding.line && !finding.is_cut)
		return csn_fail(err, -EBADMSG, "record",
				"logs/events.jsonl line %llu: %s; a chain that does not verify is "
				"not continued",
				(unsigned long long)finding.line, finding.reason);
	fd_cleanup(&fd);
	fd = openat(record->dir_fd, "logs/events.jsonl",
		    O_WRONLY | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || ftruncate(fd, (off_t)end.size) < 0)
		return files_fail(err, -errno, "continue", "logs/events.jsonl");
	chain_resume(&record->chain, fd_take(&fd), &end);
	return 0;
}

int record_reopen(struct record *record, int root_fd, const char *run_id, struct csn_error *err)
{
	int r = 0;

	reset(record);
	record->dir_fd = record_is_id(run_id) || record_is_job_id(run_id)
				 ? files_open_dir(root_fd, run_id)
				 : -ENOENT;
	if (record->dir_fd < 0)
		return files_fail(err, record->dir_fd, "open the run", run_id);
	snprintf(record->run_id, sizeof record->run_id, "%s", run_id);
	record->root_fd = fcntl(root_fd, F_DUPFD_CLOEXEC, 3);
	if (record->root_fd < 0)
		r = files_fail(err, -errno, "open", "the run root");
	else if (record_is_job_id(run_id))
		r = record_check_job(record->dir_fd, run_id, err);
	if (r == 0 && (list_status(record->dir_fd) == RUN_RUNNING ||
		       lock_folder(record->dir_fd, LOCK_EX | LOCK_NB) < 0))
		r = list_fail_busy(record->dir_fd, run_id, err);
	else if (r == 0)
		r = resume_chain(record, err);
	if (r < 0) {
		record_done(record);
		return r;
	}
	/* It is no longer finished: until record_close() it is running, or lost. */
	unlinkat(record->dir_fd, "result.json", 0);
	unlinkat(record->dir_fd, "manifest.json", 0);
	return 0;
}

void record_open_none(struct record *record)
{
	reset(record);
	record_make_id(record->run_id, sizeof record->run_id);
}

/* ---- state and result ------------------------------------------------------------------------ */

static json_t *redacted(const struct record *record, json_t *value)
{
	return record->chain.redactor ? redact_json(record->chain.redactor, value)
				      : json_incref(value);
}

static int default_to(json_t *state, const char *key, json_t *value)
{
	int r = 0;

	if (json_object_get(state, key))
		json_decref(value);
	else
		r = json_object_set_new(state, key, value);
	return r < 0 ? -ENOMEM : 0;
}

static int add_defaults(const struct record *record, json_t *state)
{
	uint64_t start = 0;
	int r = 0;

	if (!json_object_get(state, "pid_start"))
		r = files_process_start(getpid(), &start);
	/* Without /proc the folder's lock alone tells that the run lives. */
	r = default_to(state, "pid_start", json_integer(r == 0 ? (json_int_t)start : 0));
	if (r == 0)
		r = default_to(state, "pid", json_integer(getpid()));
	if (r == 0)
		r = default_to(state, "run_id", json_string(record->run_id));
	if (r == 0)
		r = default_to(state, "schema_version", json_integer(1));
	return r;
}

int record_write_state(struct record *record, json_t *state, struct csn_error *err)
{
	json_t *clean, *full;
	int r;

	if (record->dir_fd < 0)
		return 0;
	clean = redacted(record, state);
	full = clean ? json_copy(clean) : NULL;
	r = full ? add_defaults(record, full) : -ENOMEM;
	if (r == 0)
		r = files_replace_json(record->dir_fd, "state.json", full, record->chain.syncs);
	json_decref(clean);
	json_decref(full);
	return r < 0 ? files_fail(err, r, "write", "state.json") : 0;
}

void record_prepare(struct record *record)
{
	if (record->dir_fd < 0)
		return;
	files_prepare(record->dir_fd, "result.json");
	files_prepare(record->dir_fd, "manifest.json");
}

int record_keep(struct record *record, const char *path, struct csn_error *err)
{
	if (record->dir_fd < 0)
		return 0;
	if (!record->kept)
		record->kept = json_array();
	if (json_array_size(record->kept) >= MANIFEST_FILES_MAX / 2)
		return files_fail(err, -E2BIG, "keep one more file", path);
	if (json_array_append_new(record->kept, json_string(path)) < 0)
		return files_fail(err, -EILSEQ, "keep", path);
	return 0;
}

static int write_result(struct record *record, json_t *result, struct csn_error *err)
{
	json_t *clean = redacted(record, result);
	int r = clean ? files_replace_json(record->dir_fd, "result.json", clean,
					   record->chain.syncs)
		      : -ENOMEM;

	json_decref(clean);
	return r < 0 ? files_fail(err, r, "write", "result.json") : 0;
}

int record_close(struct record *record, json_t *result, struct csn_error *err)
{
	char manifest_hash[SHA_HEX];
	int r, first;

	if (record->dir_fd < 0)
		return 0;
	chain_flush(&record->chain);
	/* Without a result the chain is still worth its head; the first failure is the one told. */
	first = write_result(record, result, err);
	r = manifest_write(record, manifest_hash, first < 0 ? NULL : err);
	if (r == 0)
		r = heads_append(record, manifest_hash, first < 0 ? NULL : err);
	chain_done(&record->chain);
	flock(record->dir_fd, LOCK_UN); /* finished, for all who share the lock */
	return first < 0 ? first : r;
}

void record_done(struct record *record)
{
	chain_done(&record->chain);
	json_decref(record->kept);
	record->kept = NULL;
	record->dir_fd = fd_close(record->dir_fd);
	record->root_fd = fd_close(record->root_fd);
}
