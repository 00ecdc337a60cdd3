/* Endings: the contract's list, row by row. */
#include "monitor/ending.h"

#include "tap.h"

#include <ctype.h>
#include <signal.h>

/* CONTRACTS, section 2: reason, and the CLI's status for exit code 3 and signal 15. */
static const struct {
	enum ending ending;
	const char *name;
	int status;
} contract[] = {
	{ END_EXITED, "exited", 3 },
	{ END_SIGNALED, "signaled", 128 + 15 },
	{ END_TIMEOUT, "timeout", 124 },
	{ END_MEMORY, "memory", 137 },
	{ END_OUTPUT, "output", 137 },
	{ END_PROCESSES, "processes", 137 },
	{ END_SCRATCH, "scratch", 137 },
	{ END_VIOLATION, "violation", 137 },
	{ END_CANCELLED, "cancelled", 128 + 15 },
	{ END_LOST, "lost", 125 },
	{ END_START_FAILED, "start_failed", 3 },
};

static void rows(void)
{
	for (size_t i = 0; i < sizeof contract / sizeof *contract; i++) {
		CHECK_STR(ending_name(contract[i].ending), contract[i].name);
		CHECK(ending_status(contract[i].ending, 3, 15) == contract[i].status);
	}
	CHECK(sizeof contract / sizeof *contract == END_COUNT - 1); /* all but END_NONE */
}

/* A status that says "done" must not come from anything but the program itself. */
static void zero_is_the_programs(void)
{
	for (int ending = END_NONE; ending < END_COUNT; ending++) {
		int status = ending_status(ending, 0, 0);

		CHECK(ending_name(ending)[0]);
		if (ending != END_EXITED && ending != END_START_FAILED)
			CHECK(status != 0);
	}
	CHECK(ending_status(END_EXITED, 0, 0) == 0 && ending_status(END_EXITED, 255, 9) == 255);
	CHECK(ending_status(END_START_FAILED, 127, 0) == 127);
	CHECK(ending_status(END_START_FAILED, 126, 0) == 126);
	CHECK(ending_status(END_CANCELLED, 0, SIGINT) == 130);
}

static void signals(void)
{
	CHECK_STR(ending_signal_name(SIGKILL), "SIGKILL");
	CHECK_STR(ending_signal_name(SIGTERM), "SIGTERM");
	CHECK_STR(ending_signal_name(SIGSYS), "SIGSYS");
	CHECK_STR(ending_signal_name(SIGINT), "SIGINT");
	for (int number = 1; number < 32; number++) {
		const char *name = ending_signal_name(number);

		CHECK(strncmp(name, "SIG", 3) == 0 && strlen(name) > 4);
		for (const char *at = name; *at; at++)
			CHECK(isupper((unsigned char)*at) || isdigit((unsigned char)*at));
	}
	CHECK_STR(ending_signal_name(SIGPROF), "SIGPROF"); /* an exhausted timer ends a program */
	CHECK_STR(ending_signal_name(SIGRTMIN), "SIGRT");
	CHECK_STR(ending_signal_name(64), "SIGRT");
	CHECK_STR(ending_signal_name(65), "SIG?");
	CHECK_STR(ending_signal_name(0), "SIG?");
}

static const struct tap_test tests[] = {
	{ "each reason has the contract's name and status", rows },
	{ "status 0 is the program's own", zero_is_the_programs },
	{ "signals have names", signals },
};

TAP_MAIN(tests)
