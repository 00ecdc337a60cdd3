/*
 * Redaction: known values, keys of well-known kinds, and what must stay as it is. The keys
 * below are made up; they are put together at run time so that no scanner takes them for real.
 */
#include "audit/audit.h"
#include "base/str.h"
#include "tap.h"

#include <errno.h>
#include <time.h>

static struct redactor *make(void)
{
	static const char *const secrets[][2] = {
		{ "API_KEY", "s3cr3t" }, { "LONG", "s3cr3t-and-more" },
		{ "SHORT", "abc" },      { "A", "abcdef" },
		{ "B", "defghij" },      { "bad\xff", "bad-name-value" },
	};
	struct redactor *redactor;

	CHECK(redactor_new(&redactor) == 0);
	for (size_t i = 0; i < ARRAY_SIZE(secrets); i++)
		CHECK(redactor_add(redactor, secrets[i][0], secrets[i][1]) == 0);
	return redactor;
}

static void expect(const struct redactor *redactor, const void *data, size_t size, const char *out)
{
	json_t *text = redact_text(redactor, data, size);

	CHECK(text);
	CHECK_STR(json_string_value(text), out);
	CHECK(json_string_length(text) == strlen(out));
	json_decref(text);
}

static void test_known(void)
{
	static const struct {
		const char *in, *out;
	} table[] = {
		{ "", "" },
		{ "nothing here", "nothing here" },
		{ "s3cr3t", "[REDACTED:API_KEY]" },
		{ "xs3cr3ty s3cr3t", "x[REDACTED:API_KEY]y [REDACTED:API_KEY]" },
		{ "s3cr3t-and-more", "[REDACTED:LONG]" },
		{ "s3cr3t-and-mor", "[REDACTED:API_KEY]-and-mor" },
		{ "s3cr3", "s3cr3" },
		{ "abc", "abc" },
		{ "abcdefghij", "[REDACTED:A]" }, /* B's tail goes with A */
		{ "abcdef defghij", "[REDACTED:A] [REDACTED:B]" },
		{ "bad-name-value", "[REDACTED:secret]" },
	};
	struct redactor *redactor = make();

	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		expect(redactor, table[i].in, strlen(table[i].in), table[i].out);
	redactor_free(redactor);
	redactor_free(NULL);
}

#define W20 "klmnopqrst0123456789"
#define W40 W20 W20
#define U16 "ABCDEFGH01234567"

static void test_patterns(void)
{
	static const struct {
		const char *head, *tail; /* joined */
		const char *out;
	} table[] = {
		{ "id=AK", "IA" U16 " x", "id=[REDACTED:aws-access-key] x" },
		{ "AK",
		  "IA"
		  "short",
		  "AKIAshort" },
		{ "gh", "p_" W40, "[REDACTED:github-token]" },
		{ "https://x:gh", "o_" W40 "@h", "https://x:[REDACTED:github-token]@h" },
		{ "github", "_pat_" W40 "_1", "[REDACTED:github-token]" },
		{ "gh", "p_short", "ghp_short" },
		{ "s", "k-" W40, "[REDACTED:api-key]" },
		{ "'s", "k-ant-api03-" W40 "'", "'[REDACTED:api-key]'" },
		{ "task-", W40, "task-" W40 },
		{ "desk", "-" W40, "desk-" W40 },
		{ "xo", "xb-123-" W20, "[REDACTED:slack-token]" },
		{ "xo", "xp-123-" W20, "[REDACTED:slack-token]" },
		{ "t=ey", "J" W20 ".ey" W20 "." W20 "!", "t=[REDACTED:jwt]!" },
		{ "ey", "J" W20 "." W20, "eyJ" W20 "." W20 },
		{ "keyJ", "x.y.z", "keyJx.y.z" },
		{ "Authorization: Bearer ", W20 "==\r\n", "Authorization: [REDACTED:bearer]\r\n" },
		{ "authorization: bearer ", W20, "authorization: [REDACTED:bearer]" },
		{ "the bearer ", "of this", "the bearer of this" },
		{ "-----BEGIN RSA PRI", "VATE KEY-----\nMII\n-----END RSA PRIVATE KEY-----\nx",
		  "[REDACTED:private-key]\nx" },
		{ "a -----BEGIN PRI", "VATE KEY-----\nMII cut", "a [REDACTED:private-key]" },
		{ "-----BEGIN ", "CERTIFICATE-----\nMII", "-----BEGIN CERTIFICATE-----\nMII" },
	};
	struct redactor *redactor = make();
	char text[512];

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		snprintf(text, sizeof text, "%s%s", table[i].head, table[i].tail);
		expect(redactor, text, strlen(text), table[i].out);
		expect(NULL, text, strlen(text), table[i].out);
	}
	redactor_free(redactor);
}

static void test_bytes(void)
{
	expect(NULL,
	       "a\xff"
	       "b\xc3",
	       4,
	       "a\xef\xbf\xbd"
	       "b\xef\xbf\xbd");
	expect(NULL, "a\0b", 3,
	       "a\xef\xbf\xbd"
	       "b");
	expect(NULL, "\xed\xa0\x80", 3, "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
	expect(NULL, "gr\xc3\xbc\xc3\x9f\xf0\x9f\x98\x80\n", 11,
	       "gr\xc3\xbc\xc3\x9f\xf0\x9f\x98\x80\n");
	expect(NULL, NULL, 0, "");
}

/* A broken byte, or one that needs escaping, beside a secret hides nothing. */
static void test_hidden(void)
{
	struct redactor *redactor = make();

	expect(redactor, "\xffs3cr3t\xff", 8, "\xef\xbf\xbd[REDACTED:API_KEY]\xef\xbf\xbd");
	expect(redactor, "\0s3cr3t", 7, "\xef\xbf\xbd[REDACTED:API_KEY]");
	redactor_free(redactor);
}

static void fill(char *text, size_t size, const char *piece)
{
	for (size_t i = 0; i < size; i++)
		text[i] = piece[i % strlen(piece)];
}

/* Time of this process alone: the machine may be busy. */
static uint64_t cpu_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void test_is_linear(void)
{
	static const char *const pieces[] = {
		"eyJ",         "eyJaaaaaaaa.", "-----BEGIN ",
		"sk-",         "Bearer ",      "a",
		"ghp_",        "s3cr3",        "-----BEGIN RSA PRIVATE KEY-----",
		"abcdefghij",  "-----END ",    "\xf0\x9f",
		"github_pat_", "xoxb-AKIA",
	};
	size_t size = 1 << 20;
	char *text = malloc(size), secret[5000];
	struct redactor *redactor = make();
	uint64_t start;

	fill(secret, sizeof secret, "a");
	memcpy(secret + sizeof secret - 2, "b", 2);
	CHECK(redactor_add(redactor, "AAB", secret) == 0);
	for (size_t i = 0; i < ARRAY_SIZE(pieces); i++) {
		fill(text, size, pieces[i]);
		start = cpu_ms();
		json_decref(redact_text(redactor, text, size));
		printf("# %s: %llu ms\n", pieces[i], (unsigned long long)(cpu_ms() - start));
		CHECK(cpu_ms() - start < 2000);
	}
}

static void test_json(void)
{
	struct redactor *redactor = make();
	json_t *value = json_pack("{s:[s, i, n, f], s:{s:s}, s:b}", "list", "s3cr3t", 1, 0.5, "in",
				  "s3cr3t as key", "x", "t", 1);
	json_t *clean = redact_json(redactor, value), *deep = json_string("s3cr3t");
	char *text = json_dumps(clean, JSON_COMPACT | JSON_SORT_KEYS);

	CHECK_STR(text, "{\"in\":{\"[REDACTED:API_KEY] as key\":\"x\"},"
			"\"list\":[\"[REDACTED:API_KEY]\",1,null,0.5],\"t\":true}");
	CHECK(strstr(json_dumps(value, 0), "s3cr3t as key"));
	for (int i = 0; i < 100; i++)
		deep = json_pack("[o]", deep);
	CHECK(!strstr(json_dumps(redact_json(redactor, deep), 0), "s3cr3t"));
}

static long countdown = -1;

static void *failing_malloc(size_t size)
{
	return countdown >= 0 && countdown-- == 0 ? NULL : malloc(size);
}

static void test_out_of_memory(void)
{
	struct redactor *redactor = make();
	json_t *value =
		json_pack("{s:[s, i], s:{s:s}}", "list", "s3cr3t", 1, "in", "key", "s3cr3t");
	int failed = 0;

	json_set_alloc_funcs(failing_malloc, free);
	for (long n = 0; n < 60; n++) {
		countdown = n;
		json_t *clean = redact_json(redactor, value);
		countdown = -1;
		failed += !clean;
		CHECK(!clean ||
		      (!strstr(json_dumps(clean, 0), "s3cr3t") && json_object_size(clean) == 2));
	}
	CHECK(failed > 5);
}

static const struct tap_test tests[] = {
	{ "known values go wherever they are", test_known },
	{ "well-known kinds of keys go, words stay", test_patterns },
	{ "what comes out is UTF-8 without NUL", test_bytes },
	{ "a broken byte hides no secret", test_hidden },
	{ "no text takes more than linear time", test_is_linear },
	{ "values are redacted at every level", test_json },
	{ "allocation n fails: nothing, or everything", test_out_of_memory },
};

TAP_MAIN(tests)
