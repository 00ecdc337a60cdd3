/*
 * The verifier against everything one can do to a record, then listing, names, retention and
 * removal of hostile folders.
 */
#include "audit/audit.h"
#include "audit/files.h"
#include "base/tree.h"
#include "audit/verify.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "audit_scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>

static int root_fd = -1;

/* A finished run of 5 lines, with one file more. */
static void make_run(char *ret_id)
{
	struct csn_error err = { 0 };
	struct record record;
	json_t *result = json_pack("{s:s}", "schema", "caisson.result/1");

	CHECK(record_open(&record, scratch("runs"), &err) == 0);
	for (int i = 0; i < 5; i++)
		chain_add(&record.chain, EVENT_VIOLATION,
			  json_pack("{s:i, s:s}", "i", i, "run", record.run_id));
	CHECK(files_replace(record.dir_fd, "more", "text\n", 5, false) == 0);
	CHECK(record_write_state(&record, json_pack("{s:s}", "status", "done"), &err) == 0);
	CHECK(record_close(&record, result, &err) == 0);
	snprintf(ret_id, RUN_ID_SIZE, "%s", record.run_id);
	record_done(&record);
	if (root_fd < 0)
		CHECK(record_open_root(scratch("runs"), &root_fd, &err) == 0);
	json_decref(result);
}

static const char *in_run(const char *id, const char *name)
{
	static char path[512];

	snprintf(path, sizeof path, "%s/%s/%s", scratch("runs"), id, name);
	return path;
}

struct text {
	char data[65536];
	size_t size;
};

static void load(const char *path, struct text *text)
{
	_cleanup_fd_ int fd = open(path, O_RDONLY);
	ssize_t size = fd_read_all(fd, text->data, sizeof text->data - 1);

	CHECK(size >= 0);
	text->size = (size_t)size;
	text->data[size] = 0;
}

static void store(const char *path, const struct text *text)
{
	_cleanup_fd_ int fd = open(path, O_WRONLY | O_TRUNC | O_CREAT, 0600);

	CHECK(fd >= 0 && fd_write_all(fd, text->data, text->size) == 0);
}

/* Where line n (from 1) begins. */
static char *line_at(struct text *text, int n)
{
	char *at = text->data;

	while (--n > 0)
		at = strchr(at, '\n') + 1;
	return at;
}

static struct verdict verify(const char *id)
{
	struct csn_error err = { 0 };
	struct verdict verdict = { 0 };

	CHECK(record_verify(root_fd, id, &verdict, &err) == 0);
	return verdict;
}

static void expect(const char *id, const char *file, uint64_t line, const char *reason)
{
	struct verdict verdict = verify(id);
	bool is_file = strlen(file) <= strlen(verdict.file) &&
		       str_is(verdict.file + strlen(verdict.file) - strlen(file), file);

	if (verdict.is_good || !is_file || verdict.line != line || !strstr(verdict.reason, reason))
		printf("# got %s line %llu: %s\n", verdict.file, (unsigned long long)verdict.line,
		       verdict.reason);
	CHECK(!verdict.is_good);
	CHECK(is_file && verdict.line == line);
	CHECK(strstr(verdict.reason, reason));
}

/* ---- what can be done to a chain ------------------------------------------------------------- */

static void payload(struct text *text)
{
	*strstr(line_at(text, 3), "\"i\":2") = '"';
	*(strstr(line_at(text, 3), "\"i\":2") + 4) = '7';
}

static void hash(struct text *text)
{
	char *at = strstr(line_at(text, 2), "\"hash\":\"") + 8;

	*at = *at == '0' ? '1' : '0';
}

static void swapped(struct text *text)
{
	char *a = line_at(text, 2), *b = line_at(text, 3), *c = line_at(text, 4), copy[4096];

	memcpy(copy, a, (size_t)(b - a));
	memmove(a, b, (size_t)(c - b));
	memcpy(a + (c - b), copy, (size_t)(b - a));
}

static void dropped(struct text *text)
{
	char *a = line_at(text, 2), *b = line_at(text, 3);

	memmove(a, b, text->size - (size_t)(b - text->data));
	text->size -= (size_t)(b - a);
}

static void doubled(struct text *text)
{
	char *a = line_at(text, 2), *b = line_at(text, 3);

	memmove(b, a, text->size - (size_t)(a - text->data));
	text->size += (size_t)(b - a);
}

static void truncated(struct text *text)
{
	text->size = (size_t)(line_at(text, 4) - text->data);
}

static void emptied(struct text *text)
{
	text->size = 0;
}

static void half_line(struct text *text)
{
	text->size = (size_t)(line_at(text, 5) - text->data) + 20;
}

static void no_newline(struct text *text)
{
	text->size--;
}

static void blanks(struct text *text)
{
	char *at = line_at(text, 2) + 1;

	memmove(at + 1, at, text->size - (size_t)(at - text->data));
	*at = ' ';
	text->size++;
}

static void garbage(struct text *text)
{
	memset(line_at(text, 4), '[', 100);
}

static void padded(struct text *text)
{
	/* Blanks before the object: JSON still, but not what was hashed. */
	char *at = line_at(text, 5);
	size_t tail = text->size - (size_t)(at - text->data);

	memmove(text->data + sizeof text->data - tail, at, tail);
	memset(at, ' ', sizeof text->data - tail - (size_t)(at - text->data));
	text->size = sizeof text->data;
}

static void test_chain(void)
{
	static const struct {
		const char *name;
		void (*change)(struct text *text);
		uint64_t line;
		const char *reason;
	} table[] = {
		{ "payload", payload, 3, "hash does not match" },
		{ "hash", hash, 2, "hash does not match" },
		{ "swapped", swapped, 2, "seq 3 where 2 was expected" },
		{ "dropped", dropped, 2, "seq 3 where 2 was expected" },
		{ "doubled", doubled, 3, "seq 2 where 3 was expected" },
		{ "truncated", truncated, 4, "says that there are 5 lines" },
		{ "emptied", emptied, 1, "says that there are 5 lines" },
		{ "half line", half_line, 5, "cut short" },
		{ "no newline", no_newline, 5, "cut short" },
		{ "blanks", blanks, 2, "canonical" },
		{ "garbage", garbage, 4, "not a JSON object" },
		{ "padded line", padded, 5, "canonical" },
	};
	static struct text good, bad;
	char id[RUN_ID_SIZE];

	make_run(id);
	CHECK(verify(id).is_good);
	load(in_run(id, "logs/events.jsonl"), &good);
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		printf("# %s\n", table[i].name);
		bad = good;
		table[i].change(&bad);
		store(in_run(id, "logs/events.jsonl"), &bad);
		expect(id, "logs/events.jsonl", table[i].line, table[i].reason);
	}
	store(in_run(id, "logs/events.jsonl"), &good);
	CHECK(verify(id).is_good);
}

static void test_too_long(void)
{
	_cleanup_fd_ int fd = open(scratch("long"), O_RDWR | O_CREAT, 0600);
	struct chain_end end = { 0 };
	struct finding finding;

	CHECK(ftruncate(fd, 10 << 20) == 0);
	CHECK(verify_chain(fd, &end, &finding) == 0);
	CHECK(finding.line == 1 && strstr(finding.reason, "longer than 65536"));
}

static void test_deep(void)
{
	static struct text text;
	_cleanup_fd_ int fd = open(scratch("deep"), O_RDWR | O_CREAT, 0600);
	struct chain_end end = { 0 };
	struct finding finding;

	text.size = 60000;
	memset(text.data, '[', text.size);
	text.data[text.size++] = '\n';
	CHECK(write(fd, text.data, text.size) == (ssize_t)text.size && lseek(fd, 0, SEEK_SET) == 0);
	CHECK(verify_chain(fd, &end, &finding) == 0);
	CHECK(finding.line == 1);
}

/* A whole new chain that is consistent, from another run. */
static void test_recomputed(void)
{
	static struct text text;
	char id[RUN_ID_SIZE], other[RUN_ID_SIZE];

	make_run(id);
	make_run(other);
	load(in_run(other, "logs/events.jsonl"), &text);
	store(in_run(id, "logs/events.jsonl"), &text);
	expect(id, "logs/events.jsonl", 5, "made anew");
	load(in_run(other, "manifest.json"), &text);
	store(in_run(id, "manifest.json"), &text);
	expect(id, "logs/events.jsonl", 5, "made anew");
}

static void test_appended(void)
{
	struct chain_end end = { 0 };
	struct finding finding;
	char id[RUN_ID_SIZE];
	struct chain chain;
	int fd;

	make_run(id);
	fd = open(in_run(id, "logs/events.jsonl"), O_RDWR | O_APPEND);
	CHECK(verify_chain(fd, &end, &finding) == 0 && finding.line == 0);
	chain_resume(&chain, fd, &end);
	chain_add(&chain, EVENT_APPROVED, json_object());
	chain_done(&chain);
	expect(id, "logs/events.jsonl", 6, "added after the run ended");
}

static void test_files(void)
{
	static const struct {
		const char *name, *content, *file, *reason;
	} table[] = {
		{ "more", "tex\n", "more", "4 bytes where 5 were recorded" },
		{ "more", "TEXT\n", "more", "content is not what was recorded" },
		{ "more", NULL, "more", "file is missing" },
		{ "result.json", NULL, "result.json", "file is missing" },
		{ "state.json", "{}", "state.json", "2 bytes where" },
		{ "manifest.json", "{}", "manifest.json", "not the one that heads.jsonl line" },
		{ "manifest.json", NULL, "manifest.json", "file is missing" },
		{ "logs/events.jsonl", NULL, "logs/events.jsonl", "file is missing" },
		{ "../heads.jsonl", "", "heads.jsonl", "no line for this run" },
		{ "../heads.jsonl", NULL, "heads.jsonl", "no line for this run" },
	};
	char id[RUN_ID_SIZE];
	struct text text;

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		make_run(id);
		CHECK(verify(id).is_good);
		unlink(in_run(id, table[i].name));
		if (table[i].content) {
			text.size = strlen(table[i].content);
			memcpy(text.data, table[i].content, text.size);
			store(in_run(id, table[i].name), &text);
		}
		expect(id, table[i].file, 0, table[i].reason);
	}
	make_run(id);
	unlink(in_run(id, "more"));
	CHECK(symlink("/etc/passwd", in_run(id, "more")) == 0);
	expect(id, "more", 0, "not a regular file");
	unlink(in_run(id, "more"));
	CHECK(mkfifo(in_run(id, "more"), 0600) == 0);
	expect(id, "more", 0, "not a regular file");
}

static void test_unfinished(void)
{
	struct csn_error err;
	struct record record;
	struct verdict verdict;

	CHECK(record_open(&record, scratch("runs"), &err) == 0);
	chain_add(&record.chain, EVENT_RUN_STARTED, json_object());
	root_fd = record.root_fd;
	expect(record.run_id, "result.json", 0, "did not finish; its 1 lines are good");
	CHECK(record_verify(root_fd, "../etc", &verdict, &err) == -ENOENT);
	CHECK(record_verify(root_fd, "20260102-030405-abcdef123456", &verdict, &err) == -ENOENT);
	CHECK(strstr(err.text, "20260102-030405-abcdef123456"));
}

/* ---- listing ----------------------------------------------------------------------------- */

static char listed[8][RUN_ID_SIZE + 32];
static size_t listed_count;

static int note(const struct run_info *info, void *data)
{
	(void)data;
	CHECK((info->size_bytes > 0 || str_is(info->status, "lost")) && info->started_ms > 0 &&
	      listed_count < 8);
	snprintf(listed[listed_count++], sizeof *listed, "%s %s%s", info->run_id, info->status,
		 info->is_kept ? " kept" : "");
	return 0;
}

static void expect_list(size_t at, const char *id, const char *status)
{
	char text[80];

	snprintf(text, sizeof text, "%s %s", id, status);
	CHECK_STR(listed[at], text);
}

static void rewrite_state(const char *id, json_int_t pid, json_int_t start)
{
	int fd = files_open_dir(root_fd, id);
	json_t *state = json_pack("{s:I, s:I}", "pid", pid, "pid_start", start);

	CHECK(files_replace_json(fd, "state.json", state, false) == 0);
	close(fd);
}

static void test_list(void)
{
	struct record record;
	char done[RUN_ID_SIZE], lost[RUN_ID_SIZE], old[] = "19990102-030405-abcdef123456";
	uint64_t start;

	make_run(done);
	CHECK(files_replace(files_open_dir(root_fd, done), "keep", "", 0, false) == 0);
	CHECK(record_open(&record, scratch("runs"), NULL) == 0);
	snprintf(lost, sizeof lost, "%s", record.run_id);
	record_done(&record);
	CHECK(record_open(&record, scratch("runs"), NULL) == 0); /* no state.json yet: its lock */
	CHECK(mkdirat(root_fd, old, 0700) == 0);                 /* the clock was set back */
	CHECK(mkdirat(root_fd, "something else", 0700) == 0);
	CHECK(record_list(root_fd, note, NULL, NULL) == 0);
	CHECK(listed_count == 4);
	expect_list(0, record.run_id, "running");
	expect_list(1, lost, "lost");
	expect_list(2, done, "finished kept");
	expect_list(3, old, "lost");

	/* No lock, but a living process; then the same pid with another start. */
	CHECK(files_process_start(getpid(), &start) == 0);
	listed_count = 0;
	rewrite_state(lost, getpid(), (json_int_t)start);
	rewrite_state(old, getpid(), (json_int_t)start + 1);
	CHECK(record_list(root_fd, note, NULL, NULL) == 0);
	expect_list(1, lost, "running");
	expect_list(3, old, "lost");
	CHECK(record_remove(root_fd, lost, NULL) == -EBUSY);
	CHECK(record_remove(root_fd, record.run_id, NULL) == -EBUSY);
	record_done(&record);
	CHECK(record_remove(root_fd, record.run_id, NULL) == 0);
	CHECK(record_remove(root_fd, record.run_id, NULL) == -ENOENT);
	CHECK(record_remove(root_fd, "something else", NULL) == -ENOENT);
}

static void test_order(void)
{
	char ids[20][RUN_ID_SIZE], id[RUN_ID_SIZE];

	for (int i = 0; i < 20; i++) {
		make_run(ids[i]);
		CHECK(i == 0 || strcmp(ids[i - 1], ids[i]) < 0);
		CHECK(record_resolve(root_fd, "", id, sizeof id, NULL) == 0);
		CHECK_STR(id, ids[i]);
	}
}

static void test_resolve(void)
{
	struct csn_error err = { 0 };
	char id[RUN_ID_SIZE] = "untouched";

	CHECK(mkdir(scratch("runs"), 0700) == 0);
	CHECK(record_open_root(scratch("runs"), &root_fd, &err) == 0);
	CHECK(record_resolve(root_fd, "", id, sizeof id, &err) == -ENOENT);
	CHECK_STR(id, "untouched");
	CHECK(mkdirat(root_fd, "20260102-030405-abcdef123456", 0700) == 0);
	CHECK(mkdirat(root_fd, "20260102-030406-abcdef003456", 0700) == 0);
	CHECK(record_resolve(root_fd, "23456", id, sizeof id, &err) == 0);
	CHECK_STR(id, "20260102-030405-abcdef123456");
	CHECK(record_resolve(root_fd, "", id, sizeof id, &err) == 0);
	CHECK_STR(id, "20260102-030406-abcdef003456");
	CHECK(record_resolve(root_fd, "20260102-030405-abcdef123456", id, sizeof id, &err) == 0);
	CHECK(record_resolve(root_fd, "3456", id, sizeof id, &err) == -ENOTUNIQ);
	CHECK(strstr(err.text, "20260102-030405-abcdef123456"));
	CHECK(strstr(err.text, "20260102-030406-abcdef003456"));
	CHECK(record_resolve(root_fd, "zz", id, sizeof id, &err) == -ENOENT);
	CHECK(strstr(err.text, "caisson runs ls"));
	CHECK(record_resolve(root_fd, "23456", id, 10, &err) == -ENOSPC);
}

static size_t count_runs(void)
{
	listed_count = 0;
	CHECK(record_list(root_fd, note, NULL, NULL) == 0);
	return listed_count;
}

static void test_retention(void)
{
	static const struct {
		struct retention bounds;
		int removed;
	} table[] = {
		{ { 10, 86400000, 1 << 30 }, 0 }, { { 5, 86400000, 1 << 30 }, 0 },
		{ { 4, 86400000, 1 << 30 }, 1 },  { { 4, 86400000, 1 }, 3 },
		{ { 4, 86400000, 1 }, 0 },        { { 0, 86400000, 1 << 30 }, 1 },
	};
	char id[RUN_ID_SIZE], kept[RUN_ID_SIZE];
	struct record running;
	int fd;

	make_run(kept);
	fd = files_open_dir(root_fd, kept);
	CHECK(files_replace(fd, "keep", "", 0, false) == 0);
	CHECK(record_open(&running, scratch("runs"), NULL) == 0);
	for (int i = 0; i < 5; i++)
		make_run(id);
	CHECK(mkdirat(root_fd, ".gone-20260102-030405-abcdef123456", 0700) == 0);
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		int removed = record_retain(root_fd, &table[i].bounds, NULL);

		printf("# %zu: %d\n", i, removed);
		CHECK(removed == table[i].removed);
	}
	CHECK(count_runs() == 2);
	CHECK(faccessat(root_fd, ".gone-20260102-030405-abcdef123456", F_OK, 0) < 0);

	/* Age, by the id; a kept one stays, one from the future too. */
	make_run(id);
	CHECK(renameat(root_fd, id, root_fd, "20200102-030405-abcdef123456") == 0);
	make_run(id);
	CHECK(renameat(root_fd, id, root_fd, "29990102-030405-abcdef123456") == 0);
	CHECK(record_retain(root_fd, &(struct retention){ 200, 604800000, 1 << 30 }, NULL) == 1);
	CHECK(count_runs() == 3);
}

static void test_due(void)
{
	struct retention bounds = { .runs = 8 };
	char id[RUN_ID_SIZE];
	int due = 0;

	CHECK(mkdir(scratch("runs"), 0700) == 0);
	CHECK(record_open_root(scratch("runs"), &root_fd, NULL) == 0);
	for (int i = 0; i < 6400; i++) {
		CHECK(record_make_id(id, sizeof id) == 0);
		due += record_retain_is_due(root_fd, id, &bounds);
	}
	printf("# %d of 6400\n", due);
	CHECK(due > 40 && due < 200);
	for (int i = 0; i < 10; i++) {
		snprintf(id, sizeof id, "20260102-030405-abcdef12345%x", i);
		CHECK(mkdirat(root_fd, id, 0700) == 0);
	}
	CHECK(record_retain_is_due(root_fd, "20260102-030405-abcdef123458", &bounds));
	CHECK(record_retain_is_due(root_fd, "20260102-030405-abcdef123450", &bounds));
	/* Not each one, or records that must stay make every run walk over all. */
	CHECK(!record_retain_is_due(root_fd, "20260102-030405-abcdef123456", &bounds));
}

/* ---- hostile folders
 * ------------------------------------------------------------------------------- */

/* A tree `levels` deep below fd, with a file in each folder. */
static void dig(int take_fd, int levels)
{
	for (int i = 0; i < levels; i++) {
		int next;

		close(openat(take_fd, "f", O_WRONLY | O_CREAT, 0600));
		CHECK(mkdirat(take_fd, "d", 0700) == 0);
		next = openat(take_fd, "d", O_RDONLY | O_DIRECTORY);
		CHECK(next >= 0);
		close(take_fd);
		take_fd = next;
	}
	close(take_fd);
}

static void test_remove_hostile(void)
{
	int fd, home;

	/* As an ordinary user: root ignores modes. */
	CHECK(mkdir(scratch("t"), 0700) == 0 && mkdir(scratch("t/precious"), 0777) == 0);
	close(open(scratch("t/precious/file"), O_WRONLY | O_CREAT, 0600));
	if (geteuid() == 0) {
		CHECK(chmod(scratch_top, 0755) == 0 && chmod(scratch(""), 0755) == 0);
		CHECK(chown(scratch("t"), 12345, 12345) == 0);
		CHECK(setresuid(12345, 12345, 12345) == 0);
	}
	home = open(scratch("t"), O_RDONLY | O_DIRECTORY);
	CHECK(mkdirat(home, "run", 0700) == 0 && mkdirat(home, "run/work", 0700) == 0);
	CHECK(mkdirat(home, "run/work/work", 0000) == 0);
	CHECK(mkdirat(home, "run/dark", 0700) == 0 && mkdirat(home, "run/dark/x", 0700) == 0);
	dig(openat(home, "run/dark/x", O_RDONLY | O_DIRECTORY), 3);
	CHECK(fchmodat(home, "run/dark/x/d", 0000, 0) == 0);
	CHECK(fchmodat(home, "run/dark/x", 0500, 0) == 0 && fchmodat(home, "run/dark", 0, 0) == 0);
	CHECK(symlinkat(scratch("t/precious"), home, "run/link") == 0);
	CHECK(symlinkat("..", home, "run/up") == 0);
	CHECK(mkfifoat(home, "run/fifo", 0) == 0);
	CHECK(mkdirat(home, "run/.deep-0", 0700) == 0 && mkdirat(home, "run/.deep-0/x", 0700) == 0);
	close(openat(home, "run/.deep-1", O_WRONLY | O_CREAT, 0));
	dig(openat(home, "run", O_RDONLY | O_DIRECTORY), 3000);
	setrlimit(RLIMIT_NOFILE, &(struct rlimit){ 64, 64 });
	alarm(20);
	CHECK(tree_size(home, "run") > 0);
	CHECK(tree_remove(home, "run") == 0);
	fd = openat(home, "run", O_RDONLY);
	CHECK(fd < 0 && errno == ENOENT);
	CHECK(faccessat(home, "precious/file", F_OK, 0) == 0);
	CHECK(tree_remove(home, "run") == -ENOENT);
	CHECK(symlinkat("precious", home, "run") == 0);
	CHECK(tree_remove(home, "run") < 0);
	CHECK(faccessat(home, "precious/file", F_OK, 0) == 0);
}

static void test_remove_mount(void)
{
	struct csn_error err = { 0 };
	char id[RUN_ID_SIZE], from[256];

	if (unshare(CLONE_NEWNS) < 0)
		SKIP("mount namespace: %s", strerror(errno));
	mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
	make_run(id);
	CHECK(mkdir(scratch("precious"), 0700) == 0);
	snprintf(from, sizeof from, "%s", scratch("precious"));
	close(open(scratch("precious/file"), O_WRONLY | O_CREAT, 0600));
	CHECK(mkdir(in_run(id, "merged"), 0700) == 0);
	CHECK(mount(from, in_run(id, "merged"), NULL, MS_BIND, NULL) == 0);
	CHECK(record_remove(root_fd, id, &err) < 0);
	CHECK(access(scratch("precious/file"), F_OK) == 0);
}

/* ---- continuing
 * -------------------------------------------------------------------------------------- */

static void test_reopen(void)
{
	struct csn_error err = { 0 };
	struct record record, again;
	char id[RUN_ID_SIZE];
	json_t *result = json_object();
	int fd;

	make_run(id);
	CHECK(record_reopen(&record, root_fd, id, &err) == 0);
	CHECK(record_reopen(&again, root_fd, id, &err) == -EBUSY);
	CHECK(record.chain.seq == 6);
	chain_add(&record.chain, EVENT_RUN_STARTED, json_object());
	expect(id, "result.json", 0, "went on after heads.jsonl line 1");
	record_done(&record);

	/* It was killed in the middle of a line. */
	fd = open(in_run(id, "logs/events.jsonl"), O_WRONLY | O_APPEND);
	CHECK(write(fd, "{\"event\":", 9) == 9);
	expect(id, "logs/events.jsonl", 7, "cut short");
	rewrite_state(id, 0, 0);
	CHECK(record_reopen(&record, root_fd, id, &err) == 0);
	CHECK(record.chain.seq == 7);
	chain_add(&record.chain, EVENT_RUN_EXITED, json_object());
	CHECK(record_close(&record, result, &err) == 0);
	record_done(&record);
	CHECK(verify(id).is_good);

	CHECK(pwrite(open(in_run(id, "logs/events.jsonl"), O_WRONLY), "x", 1, 3) == 1);
	CHECK(record_reopen(&record, root_fd, id, &err) == -EBADMSG);
	CHECK(strstr(err.text, "line 1"));
}

static void test_damaged_heads(void)
{
	static struct text text;
	char first[RUN_ID_SIZE], id[RUN_ID_SIZE];

	make_run(first);
	load(in_run(first, "../heads.jsonl"), &text);
	text.size -= 30; /* a crash cut this line, or a full disk */
	store(in_run(first, "../heads.jsonl"), &text);
	make_run(id);
	CHECK(verify(id).is_good);
	expect(first, "heads.jsonl", 0, "no line for this run");
}

static const struct tap_test tests[] = {
	{ "every change to a chain is named by line", test_chain },
	{ "a line without end is bounded", test_too_long },
	{ "deep JSON is bounded", test_deep },
	{ "a chain made anew disagrees with its head", test_recomputed },
	{ "lines added after the end are named", test_appended },
	{ "every change to a file is named", test_files },
	{ "an unfinished run is said to be one", test_unfinished },
	{ "heads.jsonl survives a cut line", test_damaged_heads },
	{ "a run can be continued", test_reopen },
	{ "running, lost, finished, kept", test_list },
	{ "the last run is the last, within a second too", test_order },
	{ "names resolve by a unique suffix", test_resolve },
	{ "retention removes the oldest finished runs", test_retention },
	{ "retention is due now and then", test_due },
	{ "hostile folders are removed, nothing else is", test_remove_hostile },
	{ "a mount inside is not entered", test_remove_mount },
};

SCRATCH_MAIN(tests)
