/*
 * The closed list of events, as one table: the names in the log, what they mean (docs/events.md
 * is made from it), and which of them may wait in the buffer of the chain. Only what the
 * launch itself reports may wait: all of it is followed by ExecStarted within milliseconds,
 * so the account of the launch is on disk before untrusted code can act.
 */
#include "audit/audit.h"

#include <assert.h>

static const struct {
	const char *name;
	const char *what;
	bool may_wait;
} events[EVENT_COUNT] = {
	[EVENT_RUN_STARTED] = { "RunStarted",
				"A run begins: `command`, `tier`, `backend`, `runtime`, `image`, "
				"`mounts`, `network`, `permission_mode` (none: nobody is asked; "
				"approval: a person was, before the start), `limits`, "
				"`env_passed` (names only), `policy_sha256`.",
				false },
	[EVENT_LOCKDOWN_STEP] = { "LockdownStep",
				  "One step of building the wall was done: `step`, and `why` "
				  "there.",
				  true },
	[EVENT_GRANT] = { "Grant",
			  "The caller lends something to the sandbox: `what` (workspace, mount, "
			  "variable, network) and by which flag or line of the policy.",
			  true },
	[EVENT_POLICY_OVERRIDE] = { "PolicyOverride",
				    "The policy file changed a default: `what`, `old`, `now`, "
				    "`where` "
				    "(its line), the file's `digest`.",
				    true },
	[EVENT_EXEC_STARTED] = { "ExecStarted",
				 "A command is about to be executed: `command`, `cwd`.", false },
	[EVENT_EXEC_ENDED] = { "ExecEnded", "A command ended: `termination`, `usage`.", false },
	[EVENT_GATE_CALLED] = { "GateCalled",
				"Sandboxed code asked for something by name: `gate`, redacted "
				"`args`, `call_id`, `is_error`, `reason`, `duration_ms`; "
				"`others`: refused calls before it that are not on record.",
				false },
	[EVENT_FORWARDED] = { "Forwarded",
			      "A connection from inside to an endpoint of the host's is over: "
			      "`forward` as it was named, `reason` (closed: both ends said all; "
			      "reset; refused: nobody was reached; ended: with the sandbox), "
			      "`sent_bytes`, `received_bytes`, `duration_ms`; `others`: such "
			      "before "
			      "it that are not on record by themselves.",
			      false },
	[EVENT_APPROVED] = { "Approved",
			     "A person said yes to this start, and the yes is used up: `id`, "
			     "`digest` of the terms, `asked` and `answered` (uid, time, how).",
			     false },
	[EVENT_VIOLATION] = { "Violation",
			      "The sandbox attempted what the plan does not permit: the violation "
			      "with its `source`, `rule` and `count`.",
			      false },
	[EVENT_WORKER_EVENT] = { "WorkerEvent",
				 "What a job's worker reported through its descriptor: `kind`, "
				 "`report`, "
				 "`books` with it; or `refused` and why.",
				 false },
	[EVENT_RUN_EXITED] = { "RunExited",
			       "The run ended: `termination`, the exit `status` told to "
			       "the caller, and again `tier`, `runtime`, `image`, the effective "
			       "`mounts`, `network`, `permission_mode`, `env_passed`.",
			       false },
	[EVENT_COMMITTED] = { "Committed",
			      "Changes of a copy-on-write workspace were written back: paths and "
			      "counts.",
			      false },
	[EVENT_JOB_STARTED] = { "JobStarted",
				"A job was made: `config` (worker, data set, execution), `limits`, "
				"`books`.",
				false },
	[EVENT_JOB_RESUMED] = { "JobResumed",
				"A launch of it begins, the first one too: `launch`, `config`, "
				"`permission_mode`, `books` as they stood.",
				false },
	[EVENT_JOB_EXTENDED] = { "JobExtended",
				 "Its ceilings were changed: `limits`, the `old` ones, `books`.",
				 false },
	[EVENT_JOB_CLOCK] = { "JobClock", "Time went by without a report: `books`.", false },
	[EVENT_JOB_ENDED] = { "JobEnded",
			      "A launch of it ended: `status`, `reason`, `exit_code`, `books`.",
			      false },
};

const char *audit_event_name(enum audit_event event)
{
	assert((unsigned)event < EVENT_COUNT);
	return events[event].name;
}

const char *audit_event_what(enum audit_event event)
{
	assert((unsigned)event < EVENT_COUNT);
	return events[event].what;
}

bool audit_event_may_wait(enum audit_event event)
{
	assert((unsigned)event < EVENT_COUNT);
	return events[event].may_wait;
}
