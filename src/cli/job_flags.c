/*
 * Flags of the job commands; the rows are in job_commands.inc
 */
#include "cli/cli.h"

#define TO(field) offsetof(struct cli_options, field)

#define CEILINGS                                                                            \
	{ "max-cost-usd", 0, "N", "ceiling of the money that the worker reports", CLI_TEXT, \
	  TO(job.max[0]) },                                                                 \
		{ "max-time-minutes",                                                       \
		  0,                                                                        \
		  "N",                                                                      \
		  "of the time it runs, all launches together",                             \
		  CLI_TEXT,                                                                 \
		  TO(job.max[1]) },                                                         \
		{ "max-tokens-total", 0, "N", "of the tokens that it reports", CLI_TEXT,    \
		  TO(job.max[2]) },                                                         \
	{                                                                                   \
		"max-iterations", 0, "N", "of the iterations that it reports", CLI_TEXT,    \
			TO(job.max[3])                                                      \
	}

#define ADDITIONS                                                                                  \
	{ "add-cost-usd", 0, "N", "so much more than the ceiling was", CLI_TEXT, TO(job.add[0]) }, \
		{ "add-time-minutes", 0, "N", "the same", CLI_TEXT, TO(job.add[1]) },              \
		{ "add-tokens-total", 0, "N", "the same", CLI_TEXT, TO(job.add[2]) },              \
	{                                                                                          \
		"add-iterations", 0, "N", "the same", CLI_TEXT, TO(job.add[3])                     \
	}

const struct cli_flag cli_job_start_flags[] = {
	{ "run-id", 0, "ID", "its name, and that of its folder in the run root; default: a new one",
	  CLI_TEXT, TO(job.run_id) },
	{ "data", 0, "PATH", "the data set, shown read-only at /workspace/data", CLI_TEXT,
	  TO(job.data), .offer = OFFER_FILE },
	{ "worker", 0, "ARGV",
	  "the worker and its arguments, parted by blanks; or the words at the end", CLI_TEXT,
	  TO(job.worker) },
	{ "manifest", 0, "FILE",
	  "a YAML file whose `execution:` block holds what flags leave unsaid", CLI_TEXT,
	  TO(job.manifest), .offer = OFFER_FILE },
	{ "execution-mode", 0, "host|container",
	  "default container; host is tier local, which a trusted policy file must name", CLI_TEXT,
	  TO(job.mode) },
	{ "container-runtime", 0, "docker|podman", "default: the first that is usable", CLI_TEXT,
	  TO(job.runtime) },
	{ "container-image", 0, "NAME", "the image that it runs", CLI_TEXT, TO(job.image) },
	{ "container-network", 0, "none|default",
	  "default none; default is the engine's own, which the policy must allow", CLI_TEXT,
	  TO(job.network) },
	{ "use-bypass-permissions", 0, NULL,
	  "tell the worker to ask nobody (bypassPermissions); on the host it is told acceptEdits",
	  CLI_SWITCH, TO(job.use_bypass) },
	CEILINGS,
	{ "grace", 0, "TIME", "from TERM to KILL when a ceiling is reached; default 30s", CLI_TEXT,
	  TO(job.grace) },
	{ "tier", 0, "TIER", "at least this wall", CLI_TEXT, TO(tier), .offer = OFFER_TIER },
	{ "backend", 0, "NAME", "exactly this wall, as process, in the place of a container",
	  CLI_TEXT, TO(backend), .offer = OFFER_BACKEND },
	{ "limit", 'l', "KEY=VALUE", "a limit as in the policy's limits; may be repeated",
	  CLI_LIMIT, TO(limits), .offer = OFFER_LIMIT },
	{ "memory", 0, "SIZE", "memory of the whole tree, as 512MiB, 2GiB", CLI_LIMIT, TO(limits),
	  "memory" },
	{ "cpus", 0, "N", "processors", CLI_LIMIT, TO(limits), "cpus" },
	{ "forward", 0, "FROM:AT",
	  "let code at AT inside, a socket's path in scratch or a port, reach unix:PATH or "
	  "tcp:127.0.0.1:PORT of the host; may be repeated",
	  CLI_LIST, TO(forwards) },
	{ "env", 'e', "NAME[=VALUE]", "pass or set a variable; may be repeated", CLI_LIST, TO(env),
	  .offer = OFFER_VARIABLE },
	{ NULL },
};

const struct cli_flag cli_job_resume_flags[] = {
	CEILINGS,
	ADDITIONS,
	{ "grace", 0, "TIME", "from TERM to KILL when a ceiling is reached; default 30s", CLI_TEXT,
	  TO(job.grace) },
	{ "forward", 0, "FROM:AT",
	  "let code at AT inside, a socket's path in scratch or a port, reach unix:PATH or "
	  "tcp:127.0.0.1:PORT of the host; may be repeated",
	  CLI_LIST, TO(forwards) },
	{ "env", 'e', "NAME[=VALUE]",
	  "pass or set a variable; values are not kept from launch to launch", CLI_LIST, TO(env),
	  .offer = OFFER_VARIABLE },
	{ NULL },
};

const struct cli_flag cli_job_extend_flags[] = {
	CEILINGS,
	ADDITIONS,
	{ NULL },
};

const struct cli_flag cli_job_logs_flags[] = {
	{ "follow", 'f', NULL, "until the worker has ended", CLI_SWITCH, TO(follow) },
	{ "stderr", 0, NULL, "what it wrote there; default: stdout", CLI_SWITCH,
	  TO(job.is_stderr) },
	{ NULL },
};

const struct cli_flag cli_job_report_flags[] = {
	{ "output", 0, "FILE", "where the page is written; default: stdout", CLI_TEXT,
	  TO(job.output), .offer = OFFER_FILE },
	{ NULL },
};
