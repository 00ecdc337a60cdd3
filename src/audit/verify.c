/*
 * The verifier: the chain line by line, then its end against heads.jsonl, then the manifest
 * against heads.jsonl, then each file against the manifest. Each step trusts only what the
 * step before has checked, and heads.jsonl is the one file that was never within reach of
 * what ran inside.
 *
 * It reads hostile files; reasons never quote them.
 */
#include "audit/verify.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "audit/dump.h"
#include "audit/files.h"
#include "audit/lines.h"
#include "audit/manifest.h"
#include "base/fd.h"
#include "base/str.h"

enum { DECODE = JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, LINE_KEYS = 6 };

/* ---- one line ----------------------------------------------------------------------------- */

/* The SHA-256 of an object's canonical text; `is_short`: numbers as short as they can be. */
static int hash_of(json_t *value, bool is_short, char *ret_hash)
{
	char *text;
	size_t size;
	int r = dump_json(value, DUMP_CANONICAL, &text, &size);

	if (r < 0)
		return r;
	if (is_short)
		dump_shorten(text, &size);
	sha_parts(&(struct sha_part){ text, size }, 1, ret_hash);
	free(text);
	return 0;
}

/* Lines of before have all digits of their numbers, those of today no more than they need. */
static bool is_canonical(json_t *entry, const char *line, size_t size, bool *ret_is_short)
{
	char *text;
	size_t text_size;
	bool is_same;

	if (dump_json(entry, DUMP_CANONICAL, &text, &text_size) < 0)
		return false;
	*ret_is_short = text_size != size;
	if (*ret_is_short)
		dump_shorten(text, &text_size);
	is_same = text_size == size && memcmp(text, line, size) == 0;
	free(text);
	return is_same;
}

static const char *text_at(json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

static uint64_t number_at(json_t *object, const char *key)
{
	json_int_t value = json_integer_value(json_object_get(object, key));

	return value > 0 ? (uint64_t)value : 0;
}

__attribute__((format(printf, 2, 3))) static bool say(struct finding *finding, const char *format,
						      ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(finding->reason, sizeof finding->reason, format, args);
	va_end(args);
	return false;
}

/* A line as it was read. */
struct text {
	const char *line;
	size_t size;
	bool is_short;
};

static bool check_form(json_t *entry, struct text *text, struct finding *finding)
{
	if (!json_is_object(entry))
		return say(finding, "not a JSON object");
	if (json_object_size(entry) != LINE_KEYS || !*text_at(entry, "event") ||
	    !*text_at(entry, "time") || !json_object_get(entry, "payload"))
		return say(finding, "keys are missing or foreign");
	if (!is_canonical(entry, text->line, text->size, &text->is_short))
		return say(finding, "not in canonical form");
	return true;
}

/* Checks a parsed line against the one before it, and advances `end`. Consumes the key `hash`. */
static bool check_entry(json_t *entry, const struct text *text, struct chain_end *end,
			struct finding *finding)
{
	uint64_t seq = number_at(entry, "seq");
	char hash[SHA_HEX], claimed[SHA_HEX];

	if (seq != end->seq + 1)
		return say(finding, "seq %llu where %llu was expected", (unsigned long long)seq,
			   (unsigned long long)end->seq + 1);
	snprintf(claimed, sizeof claimed, "%s", text_at(entry, "hash"));
	json_object_del(entry, "hash");
	if (hash_of(entry, text->is_short, hash) < 0 || !str_is(hash, claimed))
		return say(finding, "hash does not match");
	if (!str_is(text_at(entry, "prev"), end->head))
		return say(finding, "prev is not the hash of the line before");
	end->seq = seq;
	memcpy(end->head, hash, SHA_HEX);
	if (seq == end->watch_seq)
		memcpy(end->watch, hash, SHA_HEX);
	return true;
}

static bool check_line(const struct lines *lines, const char *line, size_t size,
		       struct chain_end *end, struct finding *finding)
{
	struct text text = { line, size, false };
	json_t *entry;
	bool is_good;

	finding->is_cut = lines->is_cut;
	if (lines->is_too_long)
		return say(finding, "longer than %d bytes", CHAIN_LINE_MAX);
	if (lines->is_cut)
		return say(finding, "cut short");
	entry = json_loadb(line, size, DECODE, NULL);
	is_good = check_form(entry, &text, finding) && check_entry(entry, &text, end, finding);
	json_decref(entry);
	if (is_good)
		end->size += size + 1;
	return is_good;
}

int verify_chain(int fd, struct chain_end *end, struct finding *ret_finding)
{
	struct lines lines;
	const char *line;
	size_t size;
	int r = lines_init(&lines, fd, CHAIN_LINE_MAX);

	*ret_finding = (struct finding){ 0 };
	*end = (struct chain_end){ .watch_seq = end->watch_seq };
	memset(end->head, '0', SHA_HEX - 1);
	while (r == 0 && (r = lines_next(&lines, &line, &size)) == 1) {
		r = 0;
		if (!check_line(&lines, line, size, end, ret_finding)) {
			ret_finding->line = lines.number;
			break;
		}
	}
	lines_done(&lines);
	return r;
}

/* ---- a whole run ------------------------------------------------------------------------- */

struct check {
	int root_fd, dir_fd; /* borrowed, owned */
	const char *run_id;
	struct verdict *verdict;
	struct {
		uint64_t line; /* in heads.jsonl, 0: none */
		uint64_t seq;
		char hash[SHA_HEX], manifest[SHA_HEX];
	} head;
	struct chain_end end;
};

/* Notes the first bad thing; `file` NULL is heads.jsonl, else relative to the run. Returns 1: stop.
 */
__attribute__((format(printf, 4, 5))) static int blame(struct check *check, const char *file,
						       uint64_t line, const char *format, ...)
{
	struct verdict *verdict = check->verdict;
	va_list args;

	if (!file)
		snprintf(verdict->file, sizeof verdict->file, "heads.jsonl");
	else if (file[0] == '/')
		snprintf(verdict->file, sizeof verdict->file, "%s", file);
	else
		snprintf(verdict->file, sizeof verdict->file, "%s/%s", check->run_id, file);
	verdict->line = line;
	va_start(args, format);
	vsnprintf(verdict->reason, sizeof verdict->reason, format, args);
	va_end(args);
	return 1;
}

static void take_head(struct check *check, const char *line, size_t size, uint64_t number)
{
	json_t *entry = json_loadb(line, size, DECODE, NULL);

	if (entry && str_is(text_at(entry, "run_id"), check->run_id)) {
		check->head.line = number;
		check->head.seq = number_at(entry, "seq");
		snprintf(check->head.hash, SHA_HEX, "%s", text_at(entry, "hash"));
		snprintf(check->head.manifest, SHA_HEX, "%s", text_at(entry, "manifest"));
	}
	json_decref(entry);
}

/* The run's last line in heads.jsonl. Damaged lines of other runs are none of our business. */
static int find_head(struct check *check)
{
	_cleanup_fd_ int fd = files_open_regular(check->root_fd, "heads.jsonl");
	struct lines lines;
	const char *line;
	size_t size;
	int r;

	if (fd < 0)
		return fd == -ENOENT ? 0 : blame(check, NULL, 0, "cannot be read");
	r = lines_init(&lines, fd, HEADS_LINE_MAX);
	while (r == 0 && (r = lines_next(&lines, &line, &size)) == 1) {
		r = 0;
		if (size && memmem(line, size, check->run_id, strlen(check->run_id)))
			take_head(check, line, size, lines.number);
	}
	lines_done(&lines);
	return r;
}

/* Opens one of the run's files; a missing or odd one is a verdict. */
static int open_or_blame(struct check *check, const char *path, int *ret_fd)
{
	int fd = files_open_regular(check->dir_fd, path);

	if (fd == -ENOMEM || fd == -EMFILE || fd == -ENFILE)
		return fd;
	if (fd < 0)
		return blame(check, path, 0, "%s",
			     fd == -ENOENT ? "file is missing"
			     : fd == -EINVAL || fd == -ELOOP || fd == -EXDEV
				     ? "not a regular file of this run"
				     : "cannot be read");
	*ret_fd = fd;
	return 0;
}

/* A folder is what keeps the place while a job runs, so that the worker makes no file there. */
static bool is_there(struct check *check, const char *name)
{
	struct stat st;

	return fstatat(check->dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISDIR(st.st_mode);
}

static int check_chain(struct check *check)
{
	static const char file[] = "logs/events.jsonl";
	_cleanup_fd_ int fd = -1;
	struct finding finding;
	int r = open_or_blame(check, file, &fd);

	if (r != 0)
		return r;
	check->end.watch_seq = check->head.seq;
	r = verify_chain(fd, &check->end, &finding);
	if (r < 0)
		return r;
	if (finding.line == 0)
		return 0;
	/* A line that a kill or a full disk cut, and nothing that ended says there were more. */
	check->verdict->is_open = finding.is_cut && check->end.seq >= check->head.seq &&
				  !is_there(check, "result.json");
	return blame(check, file, finding.line, "%s", finding.reason);
}

static int check_head(struct check *check)
{
	static const char file[] = "logs/events.jsonl";
	unsigned long long line = check->head.line, seq = check->head.seq;

	if (line == 0 && !is_there(check, "result.json")) {
		check->verdict->is_open = true;
		return blame(check, "result.json", 0,
			     "the run did not finish; its %llu lines are good",
			     (unsigned long long)check->end.seq);
	}
	if (line == 0)
		return blame(check, NULL, 0, "no line for this run");
	if (check->end.seq < seq)
		return blame(check, file, check->end.seq + 1,
			     "ends here; heads.jsonl line %llu says that there are %llu lines",
			     line, seq);
	if (seq && !str_is(check->end.watch, check->head.hash))
		return blame(check, file, seq,
			     "good by itself, but not the head in heads.jsonl line %llu: the chain "
			     "was made anew",
			     line);
	if (check->end.seq > seq && !is_there(check, "manifest.json")) {
		check->verdict->is_open = true;
		return blame(check, "result.json", 0,
			     "the run went on after heads.jsonl line %llu and did not finish; its "
			     "%llu lines are good",
			     line, (unsigned long long)check->end.seq);
	}
	if (check->end.seq > seq)
		return blame(check, file, seq + 1, "added after the run ended");
	return 0;
}

static int check_file(struct check *check, json_t *entry)
{
	const char *path = text_at(entry, "path");
	uint64_t size = 0, expected = number_at(entry, "size");
	_cleanup_fd_ int fd = -1;
	char hash[SHA_HEX];
	struct stat st;
	int r;

	if (!*path)
		return blame(check, "manifest.json", 0, "an entry has no path");
	r = open_or_blame(check, path, &fd);
	if (r != 0)
		return r;
	if (fstat(fd, &st) < 0)
		return -errno;
	if ((uint64_t)st.st_size != expected)
		return blame(check, path, 0, "%llu bytes where %llu were recorded",
			     (unsigned long long)st.st_size, (unsigned long long)expected);
	if (!json_object_get(entry, "sha256")) /* too much to hash: its size is all we know */
		return 0;
	r = sha_fd(fd, expected, &size, hash);
	if (r < 0 && r != -EFBIG)
		return r;
	if (r < 0 || size != expected || !str_is(hash, text_at(entry, "sha256")))
		return blame(check, path, 0, "content is not what was recorded");
	return 0;
}

static int check_manifest_hash(struct check *check)
{
	_cleanup_fd_ int fd = -1;
	char hash[SHA_HEX];
	uint64_t size;
	int r = open_or_blame(check, "manifest.json", &fd);

	if (r != 0)
		return r;
	r = sha_fd(fd, MANIFEST_BYTES_MAX, &size, hash);
	if (r < 0 || !str_is(hash, check->head.manifest))
		return blame(check, "manifest.json", 0,
			     "not the one that heads.jsonl line %llu names",
			     (unsigned long long)check->head.line);
	return 0;
}

static int check_manifest(struct check *check)
{
	json_t *manifest = NULL, *entry;
	int r = check_manifest_hash(check);
	size_t i;

	if (r != 0)
		return r;
	r = files_read_json(check->dir_fd, "manifest.json", MANIFEST_BYTES_MAX, &manifest);
	if (r < 0)
		return r == -ENOMEM ? r : blame(check, "manifest.json", 0, "not JSON");
	json_array_foreach(json_object_get(manifest, "files"), i, entry) {
		r = check_file(check, entry);
		if (r != 0)
			break;
	}
	json_decref(manifest);
	return r;
}

int record_verify(int root_fd, const char *run_id, struct verdict *ret_verdict,
		  struct csn_error *err)
{
	static int (*const steps[])(struct check *) = { find_head, check_chain, check_head,
							check_manifest };
	bool is_id = record_is_id(run_id) || record_is_job_id(run_id);
	_cleanup_fd_ int dir_fd = is_id ? files_open_dir(root_fd, run_id) : -ENOENT;
	struct verdict verdict = { 0 };
	struct check check = {
		.root_fd = root_fd, .dir_fd = dir_fd, .run_id = run_id, .verdict = &verdict
	};
	int r = 0;

	if (dir_fd < 0)
		return files_fail(err, dir_fd, "open the run", run_id);
	for (size_t i = 0; i < ARRAY_SIZE(steps) && r == 0; i++)
		r = steps[i](&check);
	if (r < 0)
		return files_fail(err, r, "verify", run_id);
	verdict.is_good = r == 0;
	*ret_verdict = verdict;
	return 0;
}
