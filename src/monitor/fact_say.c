/*
 * The sentence of a fact: what was denied, and what is allowed instead.
 *
 * It is read by a model that must choose its next step, or by a person, so it names the
 * thing, the reason and the flag that would permit it, all from the plan: "denied" must never
 * look like "broken". One short function per event; nothing here decides.
 */
#include <stdio.h>
#include <string.h>

#include "base/path.h"
#include "base/str.h"
#include "monitor/fact.h"

struct sentence {
	struct fact *fact;
	const struct plan *plan;
};

#define SAY(s, ...) fact_print((s)->fact->say, sizeof(s)->fact->say, __VA_ARGS__)

static bool in_workspace(const struct plan *plan, const char *path)
{
	return plan->workspace.host && plan->workspace.at &&
	       path_is_beneath(path, plan->workspace.at);
}

static void say_write(struct sentence *s)
{
	fact_say_write(s->fact, s->plan);
}

static void say_read(struct sentence *s)
{
	const char *path = s->fact->detail.path;

	if (in_workspace(s->plan, path))
		SAY(s,
		    "Reading %s is not permitted: the policy hides it (workspace.hide); work "
		    "without it.",
		    path);
	else
		SAY(s,
		    "%s is not visible here: the sandbox shows system folders, %s%sand the "
		    "policy's mounts; ask for --mount HOST:%s if it is needed.",
		    path, s->plan->workspace.host ? s->plan->workspace.at : "",
		    s->plan->workspace.host ? " " : "", path);
}

static const char *network_rule(const struct plan *plan)
{
	static const char *const rules[] = {
		[NETWORK_NONE] = "there is no network here",
		[NETWORK_LOOPBACK] = "only 127.0.0.1 and ::1 can be reached here",
		[NETWORK_ALLOW] = "only the policy's hosts can be reached, through the proxy",
		[NETWORK_ENGINE] = "the container engine's network decides",
	};

	return rules[plan->network];
}

static bool is_loopback_text(const char *address)
{
	return str_starts(address, "127.") || str_is(address, "::1") ||
	       str_is(address, "0.0.0.0") || str_is(address, "::");
}

/*
 * A bind is let go on: the network namespace decides, and where there is none even a success
 * reaches nobody. The sentence must be true whatever the program was answered.
 */
static void say_bind(struct sentence *s)
{
	const struct fact_detail *detail = &s->fact->detail;
	bool is_none = s->plan->network == NETWORK_NONE;

	SAY(s, "A server was to listen at %s port %u: bound or not, %s; %s.",
	    detail->address[0] ? detail->address : "another network", detail->port,
	    is_none ? "nothing can reach it, there is no network here" : network_rule(s->plan),
	    is_none ? "ask for --network loopback to talk to servers inside the sandbox"
		    : "use 127.0.0.1");
}

static void say_network(struct sentence *s)
{
	const struct fact_detail *detail = &s->fact->detail;

	if (detail->path_unknown)
		SAY(s, "A connection was refused because its address could not be read (%s).",
		    detail->text);
	else if (detail->host[0])
		SAY(s,
		    "Looking up or reaching %s is not permitted: %s; use what is installed or in "
		    "the workspace.",
		    detail->host, network_rule(s->plan));
	else if (str_starts(detail->address, "unix:"))
		SAY(s, "The socket %s cannot be reached: only sockets beneath %s can.",
		    detail->address + strlen("unix:"),
		    s->plan->scratch_at ? s->plan->scratch_at : "/tmp");
	else if (str_is(detail->syscall, "bind"))
		say_bind(s);
	else if (s->plan->network == NETWORK_NONE && is_loopback_text(detail->address))
		SAY(s,
		    "The address %s port %u is not permitted: %s; ask for --network loopback to "
		    "talk to servers inside the sandbox.",
		    detail->address, detail->port, network_rule(s->plan));
	else
		SAY(s,
		    "The address %s port %u is not permitted: %s; use what is installed or in "
		    "the workspace.",
		    detail->address[0] ? detail->address : "of another network", detail->port,
		    network_rule(s->plan));
}

static void say_syscall(struct sentence *s)
{
	SAY(s,
	    "The system call %s is not permitted with these arguments; no flag permits it, so use "
	    "ordinary calls on files and on the sandbox's own processes.",
	    s->fact->detail.syscall);
}

static uint64_t limit_of_clock(const struct plan_limits *limits, const char *clock)
{
	const struct {
		const char *name;
		uint64_t ms;
	} clocks[] = { { "command", limits->command_ms },
		       { "budget", limits->budget_ms },
		       { "startup", limits->startup_ms },
		       { "idle", limits->idle_ms } };

	for (size_t i = 0; i < ARRAY_SIZE(clocks); i++)
		if (str_is(clocks[i].name, clock))
			return clocks[i].ms;
	return PLAN_UNLIMITED;
}

/* A call may have given itself less than the policy does. */
static void say_timeout(struct sentence *s)
{
	const char *clock = s->fact->detail.text[0] ? s->fact->detail.text : "command";
	uint64_t plans_ms = limit_of_clock(&s->plan->limits, clock);
	uint64_t own_ms = s->fact->detail.limit_ms;
	char limit[32], own[32];

	str_format_duration(plans_ms, limit, sizeof limit);
	str_format_duration(own_ms, own, sizeof own);
	if (own_ms > 0 && own_ms < plans_ms) {
		SAY(s,
		    "The %s that this call was given ran out; do less in it, or give it longer, up "
		    "to limits.%s, %s.",
		    own, clock, limit);
		return;
	}
	SAY(s,
	    "The %s of the %s clock ran out; do less in one call, or lift limits.%s in the policy "
	    "file.",
	    limit, clock, clock);
}

static void say_processes(struct sentence *s)
{
	SAY(s,
	    "No more than %llu processes may exist at once; start fewer in parallel, or ask for "
	    "--limit processes=N.",
	    (unsigned long long)s->plan->limits.processes);
}

static void say_memory(struct sentence *s)
{
	char text[32];

	str_format_size(s->plan->limits.mem_bytes, text, sizeof text);
	SAY(s, "More than %s of memory was needed; use less at once, or ask for --memory SIZE.",
	    text);
}

static void say_output(struct sentence *s)
{
	char text[32];

	str_format_size(s->plan->limits.output_bytes, text, sizeof text);
	SAY(s,
	    "More than %s of output was written, so it was cut; write it to a file and read parts, "
	    "or ask for --limit output=SIZE.",
	    text);
}

static void say_scratch(struct sentence *s)
{
	char text[32];

	str_format_size(s->plan->limits.scratch_bytes, text, sizeof text);
	SAY(s,
	    "The %s of scratch space at %s are full; remove files there, or ask for --limit "
	    "scratch=SIZE.",
	    text, s->plan->scratch_at ? s->plan->scratch_at : "/tmp");
}

static void say_strict(struct sentence *s)
{
	bool is_required = s->fact->event == FACT_STRICT_REQUIRED;

	SAY(s,
	    "%s the strict tier and this machine cannot give it%s%s; nothing was run, and `caisson "
	    "doctor` says what is missing.",
	    is_required ? "The policy demands" : "The request asked for",
	    s->fact->detail.text[0] ? ": " : "", s->fact->detail.text);
}

static void say_override(struct sentence *s)
{
	SAY(s, "The policy file changes a default: %s.", s->fact->detail.text);
}

static void (*const sentences[FACT_EVENT_COUNT])(struct sentence *) = {
	[FACT_NETWORK_ACCESS] = say_network,  [FACT_FILESYSTEM_WRITE] = say_write,
	[FACT_FILESYSTEM_READ] = say_read,    [FACT_TIMEOUT] = say_timeout,
	[FACT_PROCESS_LIMIT] = say_processes, [FACT_SYSCALL] = say_syscall,
	[FACT_MEMORY_LIMIT] = say_memory,     [FACT_OUTPUT_LIMIT] = say_output,
	[FACT_SCRATCH_LIMIT] = say_scratch,   [FACT_STRICT_UNAVAILABLE] = say_strict,
	[FACT_STRICT_REQUIRED] = say_strict,  [FACT_POLICY_OVERRIDE] = say_override,
};

void fact_say(struct fact *fact, const struct plan *plan)
{
	struct sentence sentence = { .fact = fact, .plan = plan };

	if (!fact->say[0] && (unsigned)fact->event < FACT_EVENT_COUNT)
		sentences[fact->event](&sentence);
}
