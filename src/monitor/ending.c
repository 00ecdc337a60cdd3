/* Why a command ended, as a table; see ending.h. */
#include "monitor/ending.h"

#include <signal.h>
#include <stddef.h>
#include <stdio.h>

#include "base/str.h"

static const struct {
	const char *name;
	int status; /* -1: from the exit code, -2: 128 + signal */
} endings[END_COUNT] = {
	[END_NONE] = { "none", 125 },           [END_EXITED] = { "exited", -1 },
	[END_SIGNALED] = { "signaled", -2 },    [END_TIMEOUT] = { "timeout", 124 },
	[END_MEMORY] = { "memory", 137 },       [END_OUTPUT] = { "output", 137 },
	[END_PROCESSES] = { "processes", 137 }, [END_SCRATCH] = { "scratch", 137 },
	[END_VIOLATION] = { "violation", 137 }, [END_CANCELLED] = { "cancelled", -2 },
	[END_LOST] = { "lost", 125 },           [END_START_FAILED] = { "start_failed", -1 },
};

static const struct {
	int number;
	const char *name;
} signals[] = {
	{ SIGHUP, "SIGHUP" },       { SIGINT, "SIGINT" },       { SIGQUIT, "SIGQUIT" },
	{ SIGILL, "SIGILL" },       { SIGTRAP, "SIGTRAP" },     { SIGABRT, "SIGABRT" },
	{ SIGBUS, "SIGBUS" },       { SIGFPE, "SIGFPE" },       { SIGKILL, "SIGKILL" },
	{ SIGUSR1, "SIGUSR1" },     { SIGSEGV, "SIGSEGV" },     { SIGUSR2, "SIGUSR2" },
	{ SIGPIPE, "SIGPIPE" },     { SIGALRM, "SIGALRM" },     { SIGTERM, "SIGTERM" },
	{ SIGXCPU, "SIGXCPU" },     { SIGXFSZ, "SIGXFSZ" },     { SIGSYS, "SIGSYS" },
	{ SIGSTKFLT, "SIGSTKFLT" }, { SIGVTALRM, "SIGVTALRM" }, { SIGPROF, "SIGPROF" },
	{ SIGIO, "SIGIO" },         { SIGPWR, "SIGPWR" },       { SIGCHLD, "SIGCHLD" },
	{ SIGCONT, "SIGCONT" },     { SIGSTOP, "SIGSTOP" },     { SIGTSTP, "SIGTSTP" },
	{ SIGTTIN, "SIGTTIN" },     { SIGTTOU, "SIGTTOU" },     { SIGURG, "SIGURG" },
	{ SIGWINCH, "SIGWINCH" },
};

const char *ending_name(enum ending ending)
{
	return endings[ending].name;
}

int ending_status(enum ending ending, int exit_code, int signal)
{
	int status = endings[ending].status;

	if (status == -1)
		return exit_code;
	return status == -2 ? 128 + signal : status;
}

const char *ending_signal_name(int signal)
{
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
		if (signals[i].number == signal)
			return signals[i].name;
	return signal >= 32 && signal <= 64 ? "SIGRT" : "SIG?"; /* 32 and 33 are libc's own */
}

enum { STOP_TIME, STOP_SIZE, STOP_COUNT };

static const struct ending_stop stops[] = {
	{ "timeout", "command", "command_ms", STOP_TIME, "stopped after ", " (limits.command)" },
	{ "timeout", "budget", "budget_ms", STOP_TIME, "stopped after ", " (limits.budget)" },
	{ "timeout", "startup", "startup_ms", STOP_TIME, "stopped: not started within ",
	  " (limits.startup)" },
	{ "output", "", "output_bytes", STOP_SIZE, "stopped: more than ",
	  " of output (limits.output)" },
	{ "memory", "", "mem_bytes", STOP_SIZE, "stopped: more than ",
	  " of memory (limits.memory)" },
	{ "processes", "", "processes", STOP_COUNT, "stopped: more than ",
	  " processes (limits.processes)" },
	{ "scratch", "", "scratch_bytes", STOP_SIZE, "stopped: more than ",
	  " of scratch space (scratch.size)" },
	{ "violation", "", "", STOP_COUNT, "stopped at what was denied (on_violation: kill)", "" },
};

const struct ending_stop *ending_stop_find(const char *reason, const char *clock)
{
	for (size_t i = 0; i < ARRAY_SIZE(stops); i++)
		if (str_is(stops[i].reason, reason) && str_is(stops[i].clock, clock))
			return &stops[i];
	return NULL;
}

/* "45 s": as a person writes it. */
static void format_limit(uint64_t value, int unit, char *ret_text, size_t size)
{
	if (unit == STOP_SIZE)
		str_format_size(value, ret_text, size);
	else if (unit == STOP_COUNT)
		snprintf(ret_text, size, "%llu", (unsigned long long)value);
	else if (value < 1000)
		snprintf(ret_text, size, "%llu ms", (unsigned long long)value);
	else
		snprintf(ret_text, size, "%.10g s", (double)value / 1000.0);
}

void ending_stop_say(const struct ending_stop *stop, uint64_t limit, char *ret_text, size_t size)
{
	char text[32] = "";

	if (*stop->limit)
		format_limit(limit, stop->unit, text, sizeof text);
	snprintf(ret_text, size, "%s%s%s", stop->before, text, stop->after);
}
