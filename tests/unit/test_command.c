/* The argument map of an exec call, as the agent reads it: a table of maps. */
#include "agent/command.h"

#include "base/str.h"
#include "tap.h"
#include "wire/emit.h"

#include <errno.h>

static struct arena arena;
static struct command command;

/* A map written by hand: `w`ords are keys, the values follow them. */
static int read_map(const char *bytes, size_t size)
{
	static struct term map;
	struct csn_error err = { 0 };
	int r;

	arena_init(&arena, 1 << 20);
	r = term_decode(&arena, (struct term_input){ bytes, size }, &term_limits, &map, &err);
	if (r < 0)
		printf("# %s\n", err.text);
	CHECK(r == 0);
	command = (struct command){ 0 };
	return command_read(&map, &arena, &command);
}
#define READ(text) read_map(("\x83" text), sizeof("\x83" text) - 1)
#define ECHO_HI "w\4argvl\0\0\0\2m\0\0\0\4echom\0\0\0\2hij"
#define TEXT "w\7commandm\0\0\0\7exit $1"

static void results(void)
{
	static const struct {
		const char *what, *bytes;
		size_t size;
		int result;
	} table[] = {
#define ROW(what, text, result) { what, "\x83" text, sizeof("\x83" text) - 1, result }
		ROW("neither", "t\0\0\0\0", -EINVAL),
		ROW("both", "t\0\0\0\2" ECHO_HI TEXT, -EINVAL),
		ROW("an empty argv", "t\0\0\0\1w\4argvj", -EINVAL),
		ROW("argv", "t\0\0\0\1" ECHO_HI, 0),
		ROW("text", "t\0\0\0\1" TEXT, 0),
		ROW("an empty text", "t\0\0\0\1w\7commandm\0\0\0\0", 0),
		ROW("detach", "t\0\0\0\2" TEXT "w\6detachw\4true", 0),
		ROW("detach, last", "t\0\0\0\3" TEXT "w\6detachw\4truew\4lastw\4true", -EINVAL),
		ROW("detach, input", "t\0\0\0\3" TEXT "w\6detachw\4truew\5stdinw\4true", -EINVAL),
		ROW("no detach", "t\0\0\0\2" TEXT "w\6detachw\5false", 0),
		ROW("a tag", "t\0\0\0\2" TEXT "w\3tagm\0\0\0\1x", 0),
		ROW("a clock", "t\0\0\0\2" TEXT "w\12timeout_msa\1", 0),
		ROW("the last one's clock", "t\0\0\0\3" TEXT "w\12timeout_msa\1w\4lastw\4true", 0),
		ROW("a limit", "t\0\0\0\2" TEXT "w\6limitst\0\0\0\1w\11processesa\5", -EOPNOTSUPP),
		ROW("memory", "t\0\0\0\2" TEXT "w\6limitst\0\0\0\1w\12data_bytesa\5", -EOPNOTSUPP),
		ROW("an empty argument", "t\0\0\0\1w\4argvl\0\0\0\1m\0\0\0\0j", 0),
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		int r = read_map(table[i].bytes, table[i].size);

		if (r != table[i].result)
			printf("# %s: %d\n", table[i].what, r);
		CHECK(r == table[i].result);
		CHECK(r == 0 || !command.argv); /* untouched on failure */
	}
}

static void argv(void)
{
	CHECK(READ("t\0\0\0\1" ECHO_HI) == 0);
	CHECK_STR(command.argv[0], "echo");
	CHECK_STR(command.argv[1], "hi");
	CHECK(!command.argv[2] && command.env && !command.env[0]);
	CHECK(!command.cwd);
	CHECK_STR(command.path, "/usr/local/bin:/usr/bin:/bin");
	CHECK(!command.profile && !command.has_stdin && !command.has_tty);
	CHECK(command.rows == 0 && command.cols == 0);
}

/* A text is one argument of a shell; nothing in it is an option or a program's name. */
static void text(void)
{
	CHECK(READ("t\0\0\0\1" TEXT) == 0);
	CHECK(str_is(command.argv[0], "/bin/bash") || str_is(command.argv[0], "/bin/sh"));
	CHECK_STR(command.argv[1], "-c");
	CHECK_STR(command.argv[2], "exit $1");
	CHECK(!command.argv[3]);
}

static void environment(void)
{
	CHECK(READ("t\0\0\0\2" ECHO_HI "w\3envt\0\0\0\3m\0\0\0\1Am\0\0\0\3b=cm\0\0\0\4PATHm\0\0\0"
		   "\2/xm\0\0\0\1Em\0\0\0\0") == 0);
	CHECK_STR(command.path, "/x");
	for (int i = 0; i < 3; i++)
		CHECK(str_is(command.env[i], "A=b=c") || str_is(command.env[i], "PATH=/x") ||
		      str_is(command.env[i], "E="));
	CHECK(!command.env[3] && !str_is(command.env[0], command.env[1]));
	/* a name that only ends like it is another */
	CHECK(READ("t\0\0\0\2" ECHO_HI "w\3envt\0\0\0\1m\0\0\0\5XPATHm\0\0\0\2/x") == 0);
	CHECK_STR(command.path, "/usr/local/bin:/usr/bin:/bin");
}

static void the_rest(void)
{
	CHECK(READ("t\0\0\0\7" ECHO_HI "w\3cwdm\0\0\0\4/tmpw\7profilem\0\0\0\1pw\5stdinw\4true"
		   "w\3ttyw\4truew\4rowsa\30w\4colsa\120") == 0);
	CHECK_STR(command.cwd, "/tmp");
	CHECK_STR(command.profile, "p");
	CHECK(command.has_stdin && command.has_tty && command.rows == 24 && command.cols == 80);
	CHECK(READ("t\0\0\0\3" ECHO_HI "w\5stdinw\5falsew\3ttyw\5false") == 0);
	CHECK(!command.has_stdin && !command.has_tty);
}

/* What it keeps is its own: the frame's bytes are gone when the command starts. */
static void out_of_memory(void)
{
	static const char bytes[] = "\x83t\0\0\0\2" ECHO_HI "w\3cwdm\0\0\0\4/tmp";
	int failed = 0;
	struct term map;

	arena_init(&arena, 1 << 20);
	CHECK(term_decode(&arena, (struct term_input){ bytes, sizeof bytes - 1 }, &term_limits,
			  &map, NULL) == 0);
	for (size_t quota = 0; quota < 400; quota += 8) {
		struct arena small;
		int r;

		arena_init(&small, quota);
		command = (struct command){ 0 };
		r = command_read(&map, &small, &command);
		CHECK(r == 0 ? command.argv != NULL : r == -ENOMEM && !command.argv);
		failed += r < 0;
		arena_done(&small);
	}
	CHECK(failed > 5 && failed < 45);
}

static const struct tap_test tests[] = {
	{ "argv or a text, and not both", results },
	{ "argv and defaults", argv },
	{ "a text is a shell's", text },
	{ "the environment is what the map says", environment },
	{ "folder, profile, stdin, terminal", the_rest },
	{ "out of memory at any step is an error", out_of_memory },
};

TAP_MAIN(tests)
