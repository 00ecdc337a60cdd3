/* Requests and answers: what a digest covers, what happens once, what is not believed. */
#include "audit/approvals.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "audit_scratch.h"
#include "base/fd.h"
#include "base/str.h"
#include "tap.h"

static struct csn_error err;

static int open_folder(void)
{
	int fd = -1;

	CHECK(approvals_open(scratch("runs"), true, &fd, &err) == 0);
	return fd;
}

static json_t *terms_of(const char *command)
{
	return json_pack("{s:[s], s:{s:s, s:s}, s:i}", "command", command, "env", "A", "1", "B",
			 "2", "n", 1);
}

static void digest_is_of_the_canonical_form(void)
{
	static const char same[] = "{\"b\": {\"d\": 1, \"c\": [1, 2]}, \"a\": \"\\u0041\"}";
	static const char plain[] = "{\"a\":\"A\",\"b\":{\"c\":[1,2],\"d\":1}}";
	static const char other[] = "{\"a\":\"A\",\"b\":{\"c\":[2,1],\"d\":1}}";
	const struct sha_part part = { plain, strlen(plain) };
	char one[SHA_HEX], two[SHA_HEX], three[SHA_HEX], expected[SHA_HEX];
	json_t *a = json_loads(same, 0, NULL), *b = json_loads(plain, 0, NULL);
	json_t *c = json_loads(other, 0, NULL);

	sha_parts(&part, 1, expected);
	CHECK(approval_digest(a, one, &err) == 0 && approval_digest(b, two, &err) == 0);
	CHECK(approval_digest(c, three, &err) == 0);
	CHECK_STR(one, expected);
	CHECK_STR(two, expected);
	CHECK(!str_is(three, expected));
	json_decref(a);
	json_decref(b);
	json_decref(c);
}

static void terms_that_nobody_reads(void)
{
	static char text[APPROVAL_TERMS_MAX + 1];
	char digest[SHA_HEX];
	json_t *terms;

	memset(text, 'x', sizeof text - 1);
	terms = json_pack("{s:s}", "command", text);
	CHECK(approval_digest(terms, digest, &err) == -EFBIG);
	CHECK(strstr(err.text, "put the command into a script"));
	json_decref(terms);
	CHECK(approval_digest(NULL, digest, &err) == -ENOMEM);
}

static void names_of_what_differs(void)
{
	json_t *a =
		json_pack("{s:s, s:{s:i, s:i}, s:[i]}", "x", "1", "env", "A", 1, "B", 2, "l", 1);
	json_t *b = json_pack("{s:s, s:{s:i, s:i}, s:[i], s:n}", "x", "1", "env", "A", 1, "C", 2,
			      "l", 2, "new");
	char text[64], narrow[12];

	approval_differences(a, a, text, sizeof text);
	CHECK_STR(text, "");
	approval_differences(a, b, text, sizeof text);
	CHECK(strstr(text, "env.B") && strstr(text, "env.C") && strstr(text, "l") &&
	      strstr(text, "new") && !strstr(text, "env.A") && !strstr(text, "x"));
	approval_differences(a, b, narrow, sizeof narrow);
	CHECK(strlen(narrow) < sizeof narrow);
	json_decref(a);
	json_decref(b);
}

static void one_yes_one_start(void)
{
	const struct approval_answer yes = { true, 1000, "test" }, no = { false, 1000, "test" };
	struct approval asked = { 0 }, same = { 0 }, given = { 0 };
	json_t *terms = terms_of("true");
	int fd = open_folder();

	CHECK(approval_ask(fd, terms, &asked, &err) == 0 && approval_is_id(asked.id));
	CHECK(approval_ask(fd, terms, &same, &err) == 0);
	CHECK_STR(same.id, asked.id);
	CHECK(approval_answer(fd, &asked, &yes, &err) == 0);
	CHECK(approval_answer(fd, &asked, &no, &err) == -ENOENT);
	CHECK(approval_read(fd, asked.id, &given, &err) == 0);
	CHECK(given.state == APPROVAL_GIVEN && given.left_ms > 0 && given.left_ms <= 1000);
	CHECK_STR(given.digest, asked.digest);
	CHECK(approval_use(fd, &given, &err) == 0);
	CHECK(approval_use(fd, &given, &err) == -ENOENT);
	approval_done(&asked);
	approval_done(&same);
	approval_done(&given);
	json_decref(terms);
	fd_close(fd);
}

enum { ROUNDS = 40, RIVALS = 6 };

/* Uses it as soon as all are let go on; 0: it was his. */
static pid_t rival(int dir_fd, const struct approval *given, int gate[2])
{
	pid_t pid = fork();
	char byte;

	if (pid != 0)
		return pid;
	close(gate[1]);
	if (read(gate[0], &byte, 1) != 0)
		_exit(2);
	_exit(approval_use(dir_fd, given, &err) == 0 ? 0 : 1);
}

static void of_many_at_once_one_starts(void)
{
	const struct approval_answer yes = { true, 60000, "test" };
	json_t *terms = terms_of("true");
	int fd = open_folder();

	for (int round = 0; round < ROUNDS; round++) {
		struct approval asked = { 0 }, given = { 0 };
		pid_t pids[RIVALS];
		int gate[2], winners = 0, status;

		CHECK(approval_ask(fd, terms, &asked, &err) == 0);
		CHECK(approval_answer(fd, &asked, &yes, &err) == 0);
		CHECK(approval_read(fd, asked.id, &given, &err) == 0);
		CHECK(pipe(gate) == 0);
		for (int i = 0; i < RIVALS; i++)
			pids[i] = rival(fd, &given, gate);
		close(gate[1]);
		for (int i = 0; i < RIVALS; i++) {
			CHECK(waitpid(pids[i], &status, 0) == pids[i] && WIFEXITED(status));
			winners += WEXITSTATUS(status) == 0;
			CHECK(WEXITSTATUS(status) < 2);
		}
		close(gate[0]);
		CHECK(winners == 1);
		approval_done(&asked);
		approval_done(&given);
	}
	json_decref(terms);
	fd_close(fd);
}

/* Another answer is put in its place between the look and the use. */
static void what_is_used_is_what_was_read(void)
{
	const struct approval_answer yes = { true, 60000, "test" };
	struct approval first = { 0 }, second = { 0 }, given = { 0 };
	json_t *one = terms_of("true"), *two = terms_of("false");
	int fd = open_folder();
	char from[32], to[32];

	CHECK(approval_ask(fd, one, &first, &err) == 0 &&
	      approval_ask(fd, two, &second, &err) == 0);
	CHECK(approval_answer(fd, &first, &yes, &err) == 0);
	CHECK(approval_answer(fd, &second, &yes, &err) == 0);
	CHECK(approval_read(fd, first.id, &given, &err) == 0);
	snprintf(from, sizeof from, "%s.yes", second.id);
	snprintf(to, sizeof to, "%s.yes", first.id);
	CHECK(renameat(fd, from, fd, to) == 0);
	CHECK(approval_use(fd, &given, &err) == -EBADMSG);
	CHECK(faccessat(fd, to, F_OK, 0) < 0);
	approval_done(&first);
	approval_done(&second);
	approval_done(&given);
	json_decref(one);
	json_decref(two);
	fd_close(fd);
}

static void the_key_stays(void)
{
	uint8_t one[APPROVAL_KEY], two[APPROVAL_KEY];
	int fd = open_folder();

	CHECK(approvals_key(fd, one, &err) == 0 && approvals_key(fd, two, &err) == 0);
	CHECK(memcmp(one, two, sizeof one) == 0);
	CHECK(fchmodat(fd, "key", 0640, 0) == 0 && approvals_key(fd, one, &err) == -EPERM);
	fd_close(fd);
}

static void no_flood(void)
{
	int fd = open_folder(), r = 0, count = 0;
	char command[16];

	for (; r == 0 && count <= APPROVALS_WAITING_MAX; count++) {
		struct approval asked = { 0 };
		json_t *terms;

		snprintf(command, sizeof command, "c%d", count);
		terms = terms_of(command);
		r = approval_ask(fd, terms, &asked, &err);
		approval_done(&asked);
		json_decref(terms);
	}
	CHECK(r == -EAGAIN && count == APPROVALS_WAITING_MAX + 1);
	fd_close(fd);
}

static void ids(void)
{
	CHECK(approval_is_id("0123abcd"));
	CHECK(!approval_is_id("") && !approval_is_id("0123abc") && !approval_is_id("0123abcd0"));
	CHECK(!approval_is_id("../../aa") && !approval_is_id("0123ABCD"));
}

static const struct tap_test tests[] = {
	{ "a digest is of the canonical form", digest_is_of_the_canonical_form },
	{ "terms are no longer than a person reads", terms_that_nobody_reads },
	{ "what differs has names", names_of_what_differs },
	{ "one yes, one start", one_yes_one_start },
	{ "of many at once one starts", of_many_at_once_one_starts },
	{ "what is used is what was read", what_is_used_is_what_was_read },
	{ "the key stays, and is the owner's alone", the_key_stays },
	{ "requests are bounded", no_flood },
	{ "ids", ids },
};

SCRATCH_MAIN(tests)
