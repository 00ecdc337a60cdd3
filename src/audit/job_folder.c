/*
 * The folder of a job. It differs from a run's in three ways: its owner names it, it may hold files
 * before the job begins, and what runs inside may write in it. So nothing in it is believed that
 * was not made here: `logs` is a folder of ours and no link, or there is no job.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "audit/audit.h"
#include "audit/files.h"
#include "audit/verify.h"
#include "base/fd.h"

bool record_is_job_id(const char *text)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789";
	size_t size = strlen(text);

	if (size == 0 || size >= RUN_ID_SIZE || !strchr(letters, text[0]) || record_is_id(text))
		return false;
	for (size_t i = 0; i < size; i++)
		if (!strchr(letters, text[i]) && !strchr("-_.", text[i]))
			return false;
	return strcmp(text, "heads.jsonl") != 0;
}

/* Ours, and nobody else writes in it: else others could have laid books of their own there. */
static int check_own(int fd, const char *id, const char *name, struct csn_error *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return files_fail(err, -errno, "look at", *name ? name : id);
	if (st.st_uid != geteuid() || (st.st_mode & 022))
		return csn_fail(
			err, -EPERM, "record",
			"%s%s%s belongs to somebody else, or others may write in it, and so may "
			"its books be: if they are yours, chown and chmod go-w; else choose "
			"another id",
			id, *name ? "/" : "", name);
	return 0;
}

int record_check_job(int dir_fd, const char *id, struct csn_error *err)
{
	_cleanup_fd_ int logs = -1, fd = -1;
	int r = check_own(dir_fd, id, "", err);

	if (r < 0)
		return r;
	logs = files_open_dir(dir_fd, "logs");
	if (logs < 0) /* none yet, or no folder: whoever needs it says so */
		return logs == -ENOENT ? 0 : files_fail(err, logs, "open", "logs");
	r = check_own(logs, id, "logs", err);
	if (r < 0)
		return r;
	fd = files_open_regular(logs, "events.jsonl");
	if (fd < 0)
		return fd == -ENOENT ? 0 : files_fail(err, fd, "open", "logs/events.jsonl");
	return check_own(fd, id, "logs/events.jsonl", err);
}

void record_shut_job(int dir_fd)
{
	struct stat st;

	if (fstat(dir_fd, &st) == 0 && (st.st_mode & 022))
		fchmod(dir_fd, st.st_mode & 07755);
}

static int make_folder(struct record *record, const char *id, struct csn_error *err)
{
	if (mkdirat(record->root_fd, id, 0700) < 0 && errno != EEXIST)
		return files_fail(err, -errno, "make the job's folder in the run root", id);
	record->dir_fd = files_open_dir(record->root_fd, id);
	if (record->dir_fd < 0)
		return files_fail(err, record->dir_fd, "open the job's folder", id);
	if (flock(record->dir_fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK)
		return csn_fail(err, -EBUSY, "record", "%s is running", id);
	return record_check_job(record->dir_fd, id, err);
}

/* A chain without a whole line is what a kill left of a start: it never was. */
static int check_empty(int fd, const char *id, struct csn_error *err)
{
	struct chain_end end = { 0 };
	struct finding finding;
	struct stat st;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return csn_fail(err, -EINVAL, "record", "%s/logs/events.jsonl is no file", id);
	if (verify_chain(fd, &end, &finding) < 0 || end.seq > 0 ||
	    (finding.line && !finding.is_cut))
		return csn_fail(err, -EEXIST, "record",
				"there is a job %s: `caisson job resume %s` goes on with it", id,
				id);
	return ftruncate(fd, 0) < 0 ? files_fail(err, -errno, "empty", "logs/events.jsonl") : 0;
}

static int make_chain(struct record *record, const char *id, struct csn_error *err)
{
	_cleanup_fd_ int logs = -1, fd = -1;
	int r;

	if (mkdirat(record->dir_fd, "logs", 0700) < 0 && errno != EEXIST)
		return files_fail(err, -errno, "make", "logs");
	logs = files_open_dir(record->dir_fd, "logs");
	if (logs < 0)
		return files_fail(err, logs, "open", "logs");
	fd = openat(logs, "events.jsonl",
		    O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
	if (fd < 0)
		return files_fail(err, -errno, "make", "logs/events.jsonl");
	r = check_empty(fd, id, err);
	if (r < 0)
		return r;
	if (fsync(logs) < 0 || fsync(record->dir_fd) < 0 || fsync(record->root_fd) < 0)
		return files_fail(err, -errno, "make", "logs/events.jsonl");
	chain_init(&record->chain, fd_take(&fd));
	return 0;
}

int record_open_job(struct record *record, const char *root, const char *id, struct csn_error *err)
{
	int r;

	*record = (struct record){ .root_fd = -1, .dir_fd = -1 };
	chain_init(&record->chain, -1);
	if (!record_is_job_id(id))
		return csn_fail(err, -EINVAL, "record",
				"%.60s is no id for a job: at most %d letters, digits, '-', '_', "
				"'.', the first a letter or a digit, and not of a run's form",
				id, RUN_ID_SIZE - 1);
	r = files_open_root(root, true, &record->root_fd, err);
	if (r == 0)
		r = make_folder(record, id, err);
	if (r == 0)
		r = make_chain(record, id, err);
	if (r < 0) {
		record_done(record);
		return r;
	}
	memcpy(record->run_id, id, strlen(id) + 1);
	return 0;
}
