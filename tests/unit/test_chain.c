/*
 * The hash chain and the table of events. With CAISSON_WRITE_DOCS set, docs/events.md is
 * written from the table; otherwise it is compared.
 */
#include "audit/dump.h"
#include "audit/audit.h"
#include "audit/sha.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

/* ---- helpers ---------------------------------------------------------------------------- */

static int make_log(void)
{
	char path[] = "/tmp/caisson-chain-XXXXXX";
	int fd = mkostemp(path, O_APPEND | O_CLOEXEC);

	CHECK(fd >= 0);
	unlink(path);
	return fd;
}

static char *read_log(int fd)
{
	char *text = calloc(1, 8 << 20);

	CHECK(text && pread(fd, text, (8 << 20) - 1, 0) >= 0);
	return text;
}

static char *canonical(const json_t *entry)
{
	char *text = json_dumps(entry, JSON_SORT_KEYS | JSON_COMPACT);
	size_t size;

	CHECK(text);
	dump_shorten(text, &size);
	return text;
}

/* Checks one line the slow way: parse, drop the hash, dump, hash. Returns the line's hash. */
static void check_line(const char *line, size_t size, uint64_t seq, char *prev)
{
	json_t *entry = json_loadb(line, size, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
	char hash[SHA_HEX], *text;

	if (!entry)
		printf("# %.*s\n", (int)size, line);
	CHECK(entry);
	text = canonical(entry);
	CHECK(strlen(text) == size && memcmp(text, line, size) == 0);
	CHECK(json_integer_value(json_object_get(entry, "seq")) == (json_int_t)seq);
	CHECK_STR(json_string_value(json_object_get(entry, "prev")), prev);
	memcpy(prev, json_string_value(json_object_get(entry, "hash")), SHA_HEX);
	json_object_del(entry, "hash");
	text = canonical(entry);
	sha_parts(&(struct sha_part){ text, strlen(text) }, 1, hash);
	CHECK_STR(hash, prev);
}

static bool may_be_cut; /* set by the test that kills a writer: its last line may have no end */

/* Checks every line and returns how many there are. */
static uint64_t check_log(int fd, char *ret_head)
{
	char *text = read_log(fd), *at = text, *end;
	uint64_t seq = 0;

	memset(ret_head, '0', 64);
	ret_head[64] = 0;
	for (; (end = strchr(at, '\n')); at = end + 1) {
		CHECK(end - at < CHAIN_LINE_MAX);
		check_line(at, (size_t)(end - at), ++seq, ret_head);
	}
	CHECK(may_be_cut || *at == 0);
	free(text);
	return seq;
}

/* ---- tests -------------------------------------------------------------------------------- */

static void test_hash(void)
{
	char hash[SHA_HEX];

	sha_parts((struct sha_part[]){ { "a", 1 }, { "bc", 2 } }, 2, hash);
	CHECK_STR(hash, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

static void test_lines(void)
{
	struct chain chain;
	char head[SHA_HEX];
	int fd = make_log();

	chain_init(&chain, dup(fd));
	chain_add(&chain, EVENT_RUN_STARTED, json_pack("{s:s, s:[s,s]}", "z", "1", "a", "x", "y"));
	chain_add(&chain, EVENT_GRANT,
		  json_pack("{s:f, s:i, s:n, s:b}", "f", 0.1, "i", -7, "n", "b", 1));
	chain_add(&chain, EVENT_GRANT, NULL);
	chain_add(&chain, EVENT_RUN_EXITED,
		  json_pack("{s:s}", "text", "a\"b\\c\n\x01 gr\xc3\xbc\xc3\x9f"));
	CHECK(check_log(fd, head) == 4);
	CHECK(chain.seq == 5 && !chain.is_incomplete);
	CHECK_STR(chain.head, head);
	CHECK(strstr(read_log(fd), "\"payload\":{\"missing\":true}"));
	chain_done(&chain);
}

static void test_waiting(void)
{
	struct chain chain;
	char head[SHA_HEX];
	int fd = make_log();

	chain_init(&chain, dup(fd));
	chain_add(&chain, EVENT_RUN_STARTED, json_object());
	CHECK(check_log(fd, head) == 1);
	for (int i = 0; i < CHAIN_WAITING_MAX - 1; i++)
		chain_add(&chain, EVENT_LOCKDOWN_STEP, json_object());
	CHECK(check_log(fd, head) == 1);
	chain_add(&chain, EVENT_LOCKDOWN_STEP, json_object());
	CHECK(check_log(fd, head) == 1 + CHAIN_WAITING_MAX);
	chain_add(&chain, EVENT_LOCKDOWN_STEP, json_object());
	chain_add(&chain, EVENT_EXEC_STARTED, json_object());
	CHECK(check_log(fd, head) == 3 + CHAIN_WAITING_MAX);
	chain_add(&chain, EVENT_GRANT, json_object());
	chain_done(&chain);
	CHECK(check_log(fd, head) == 4 + CHAIN_WAITING_MAX);

	fd = make_log();
	chain_init(&chain, dup(fd));
	chain.syncs = true;
	chain_add(&chain, EVENT_GRANT, json_object());
	CHECK(check_log(fd, head) == 1);
	chain_done(&chain);
}

static json_t *text_of(size_t size)
{
	char *text = malloc(size);
	json_t *value;

	for (size_t i = 0; i < size; i++)
		text[i] = "\xc3\xbc"[i % 2];
	value = json_stringn(text, size);
	free(text);
	CHECK(value);
	return value;
}

static json_t *list_of(size_t count)
{
	json_t *list = json_array();

	while (count--)
		json_array_append_new(list, json_string("twelve bytes"));
	return list;
}

static void test_big_payloads(void)
{
	struct chain chain;
	char head[SHA_HEX], *text;
	int fd = make_log();

	chain_init(&chain, dup(fd));
	chain_add(&chain, EVENT_EXEC_STARTED,
		  json_pack("{s:o, s:s}", "command", text_of(1 << 20), "tag", "kept"));
	chain_add(&chain, EVENT_EXEC_STARTED, json_pack("{s:o}", "argv", list_of(20000)));
	for (size_t size = CHAIN_LINE_MAX - 600; size < CHAIN_LINE_MAX + 8; size += 8)
		chain_add(&chain, EVENT_EXEC_STARTED, json_pack("{s:o}", "x", text_of(size)));
	CHECK(!chain.is_incomplete);
	CHECK(check_log(fd, head) == chain.seq - 1);
	text = read_log(fd);
	CHECK(strstr(text, "[cut: 1047552 more bytes]\",\"tag\":\"kept\""));
	CHECK(strstr(text,
		     "\"payload\":{\"bytes\":300010,\"cut\":true,\"start\":\"{\\\"argv\\\":"));
	chain_done(&chain);
}

static void test_full_disk(void)
{
	struct chain chain;
	char head[SHA_HEX];
	int fd = make_log();

	signal(SIGXFSZ, SIG_IGN);
	setrlimit(RLIMIT_FSIZE, &(struct rlimit){ 2000, 2000 });
	chain_init(&chain, dup(fd));
	for (int i = 0; i < 20; i++)
		chain_add(
			&chain, i % 3 ? EVENT_GRANT : EVENT_VIOLATION,
			json_pack("{s:s}", "text", "some forty bytes, so that the disk fills up"));
	CHECK(chain.is_incomplete && chain.error == -EFBIG);
	CHECK(check_log(fd, head) == chain.seq - 1);
	CHECK_STR(chain.head, head);
	CHECK(chain.seq > 3 && chain.seq < 12);
	chain_done(&chain);
}

static void test_no_record(void)
{
	struct chain chain;

	chain_init(&chain, -1);
	chain_add(&chain, EVENT_RUN_STARTED, json_object());
	CHECK(!chain.is_incomplete);
	chain_done(&chain);
}

static void test_killed(void)
{
	struct chain chain;
	char head[SHA_HEX];
	int fd = make_log();
	pid_t pid;

	may_be_cut = true;
	for (int i = 0; i < 20; i++) {
		CHECK(ftruncate(fd, 0) == 0);
		pid = fork();
		if (pid == 0) {
			chain_init(&chain, fd);
			for (;;)
				chain_add(&chain, EVENT_VIOLATION, json_pack("{s:i}", "i", i));
		}
		usleep(1000 + 311 * (useconds_t)i);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		check_log(fd, head);
	}
}

static bool fails_at(long *countdown)
{
	return *countdown >= 0 && (*countdown)-- == 0;
}

static long countdown = -1; /* which allocation fails; set before the chain is used */

static void *failing_malloc(size_t size)
{
	return fails_at(&countdown) ? NULL : malloc(size);
}

static void test_out_of_memory(void)
{
	struct chain chain;
	char head[SHA_HEX];
	int fd;

	json_set_alloc_funcs(failing_malloc, free);
	for (long n = 0; n < 60; n++) {
		json_t *payload = json_pack("{s:s, s:{s:i}}", "a", "b", "c", "d", 1);
		struct redactor *redactor;

		fd = make_log();
		CHECK(redactor_new(&redactor) == 0 &&
		      redactor_add(redactor, "K", "secret-value") == 0);
		chain_init(&chain, dup(fd));
		chain.redactor = redactor;
		chain_add(&chain, EVENT_RUN_STARTED, json_object());
		countdown = n;
		chain_add(&chain, EVENT_GRANT, payload);
		countdown = -1;
		chain_add(&chain, EVENT_RUN_EXITED, json_object());
		CHECK(check_log(fd, head) == (chain.is_incomplete ? 1 : 3));
		chain_done(&chain);
		redactor_free(redactor);
		close(fd);
	}
}

static void test_redacted(void)
{
	struct redactor *redactor;
	struct chain chain;
	int fd = make_log();

	CHECK(redactor_new(&redactor) == 0 && redactor_add(redactor, "DB", "pa55word") == 0);
	chain_init(&chain, dup(fd));
	chain.redactor = redactor;
	chain_add(&chain, EVENT_RUN_STARTED,
		  json_pack("{s:[s], s:i}", "argv", "--db=pa55word", "pa55word", 1));
	CHECK(!strstr(read_log(fd), "pa55word"));
	CHECK(strstr(read_log(fd), "[\"--db=[REDACTED:DB]\"]"));
	chain_done(&chain);
}

/* ---- docs/events.md -------------------------------------------------------------------------- */

static void make_page(struct buf *page)
{
	buf_add_text(page, "# Events\n\n"
			   "`logs/events.jsonl` of a run holds one JSON object a line: `seq`, "
			   "`time`, `event`, `payload`,\n"
			   "`prev` (the hash of the line before, 64 zeros at the start) and "
			   "`hash`, the SHA-256 of the line\n"
			   "without `hash` as JSON with sorted keys and no blanks. `caisson runs "
			   "verify ID` checks it.\n\n"
			   "This list is closed. A line is at most 64 KiB; what is longer is cut "
			   "and says so.\n\n"
			   "| event | meaning, payload |\n| --- | --- |\n");
	for (unsigned i = 0; i < EVENT_COUNT; i++)
		buf_printf(page, "| `%s` | %s |\n", audit_event_name(i), audit_event_what(i));
	buf_add_text(page,
		     "\n`LockdownStep`, `Grant` and `PolicyOverride` may reach the file together "
		     "with the next event of\n"
		     "another kind; every other event is in the file before the run goes on.\n");
}

static void test_docs(void)
{
	char path[4096], have[65536];
	_cleanup_buf_ struct buf page;
	_cleanup_fd_ int fd = -1;
	ssize_t size;

	buf_init(&page, sizeof have);
	make_page(&page);
	snprintf(path, sizeof path, "%.*s/../../docs/events.md",
		 (int)(strrchr(__FILE__, '/') - __FILE__), __FILE__);
	if (getenv("CAISSON_WRITE_DOCS")) {
		fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
		CHECK(fd_write_all(fd, buf_at(&page), buf_size(&page)) == 0);
		return;
	}
	fd = open(path, O_RDONLY);
	if (fd < 0)
		SKIP("docs/events.md: not reachable from here");
	size = fd_read_all(fd, have, sizeof have - 1);
	CHECK(size >= 0);
	have[size] = 0;
	CHECK_STR(have, buf_text(&page));
}

static const struct tap_test tests[] = {
	{ "SHA-256 is SHA-256", test_hash },
	{ "lines are canonical and chained", test_lines },
	{ "only launch events wait, and not many", test_waiting },
	{ "big payloads are cut with a marker", test_big_payloads },
	{ "a full disk leaves whole lines", test_full_disk },
	{ "no record, no writes", test_no_record },
	{ "a killed writer leaves a chain that verifies", test_killed },
	{ "allocation n fails: the chain stays good", test_out_of_memory },
	{ "payloads are redacted", test_redacted },
	{ "docs/events.md is made from the table", test_docs },
};

TAP_MAIN(tests)
