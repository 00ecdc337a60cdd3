/*
 * cli - the command `caisson`: one table of commands, one parser of flags
 *
 * Everything a person can type is data: `cli_commands[]` names each command with its flags,
 * and help, the manual page, docs/cli.md and the shell completions are printed from that
 * same table. A flag says where in `struct cli_options` its value goes, so the parser knows
 * no flag by name.
 *
 * Life: main() finds the command, parses its flags into `struct cli`, calls its `run`,
 * which returns the exit status.
 *
 * Texts in options point into argv and live as long as the process; lists are owned.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/* Exit statuses of our own making. A command that starts a sandbox has only the last one. */
enum cli_status {
	CLI_OK = 0,
	CLI_FAILED = 1,
	CLI_USAGE = 2,
	CLI_NOT_STARTED = 125,
};

/* Values of a flag that may be repeated. */
struct cli_list {
	const char *
		*items; /* owned array, borrowed texts (limits: owned); NULL-terminated, or NULL */
	size_t count;
};

/* Of the commands of jobs. */
struct cli_job_options {
	bool is_job; /* set by the commands that launch one */
	const char *run_id;
	const char *data;
	const char *worker;
	const char *manifest;
	const char *mode;
	const char *runtime;
	const char *image;
	const char *network;
	bool use_bypass;
	const char *max[4]; /* in the order of cli_job_limits */
	const char *add[4];
	const char *grace;
	bool is_stderr;     /* logs */
	const char *output; /* report */
};

/* Where the flags of all commands go. NULL, 0 and false mean unsaid. */
struct cli_options {
	/* Shared by the commands that start a sandbox (flag set CLI_SANDBOX_FLAGS). */
	const char *policy;
	const char *tier;
	const char *backend;
	const char *backend_from;   /* what named it where that is no flag: a variable */
	bool stays;                 /* set by commands that start a sandbox that outlives them */
	const char *workspace;      /* PATH without the mode */
	const char *workspace_mode; /* "ro" "rw" "cow" */
	const char *workspace_at;   /* path or "host" */
	struct cli_list mounts;     /* "HOST:AT[:ro|rw]" */
	const char *network;
	struct cli_list allow;
	struct cli_list limits; /* "KEY=VALUE", each key once; --timeout is "command=…" */
	struct cli_list env;
	struct cli_list tags;
	struct cli_list forwards; /* "unix:PATH:AT" … */
	const char *stdin_file;
	const char *tty; /* "auto" "always" "never" */
	const char *result;
	bool no_record;
	/* Shared by the commands that read or write records. */
	const char *run_dir;
	/* Output. */
	bool quiet;
	bool verbose;
	bool no_color;
	bool json;
	bool help;
	/* Of one command each. */
	const char *text; /* run -c TEXT */
	bool effective;   /* policy show */
	bool force;       /* policy init, runs commit */
	bool yes;         /* policy trust, approve */
	bool dry_run;     /* runs commit, runs gc */
	bool names_only;  /* runs diff */
	bool man;         /* help */
	bool markdown;    /* help */
	const char *max_runs;
	/* Of the commands of sandboxes that stay. */
	const char *fd; /* monitor */
	const char *within;
	const char *wall_fd;
	struct cli_list gates;
	struct cli_list enforces;
	struct cli_list observes;
	const char *pool; /* up */
	const char *size; /* pool start */
	const char *cwd;
	const char *call_timeout;
	const char *tag;
	bool detach;
	bool follow;
	const char *port;
	const char *line;
	const char *offset;
	const char *length;
	const char *mode;
	const char *old_text;
	const char *new_text;
	const char *most; /* --limit of glob and grep */
	const char *glob;
	const char *context;
	bool ignore_case;
	bool ends_in_nul;
	const char *listen; /* serve */
	const char *token_file;
	struct cli_list host_names;
	const char *max_sandboxes;
	const char *max_calls;
	const char *max_body;
	const char *max_rate;
	const char *max_age;
	const char *max_size;
	const char *approval; /* run, up */
	const char *wait_approval;
	bool list; /* approve */
	bool list_all;
	bool deny;
	const char *good_for;
	const char *tools;  /* mcp */
	bool allow_commit;  /* mcp */
	const char *medium; /* eval */
	const char *session;
	const char *variant;
	bool describe;
	struct cli_job_options job;
};

enum cli_kind {
	CLI_SWITCH, /* no value: sets a bool */
	CLI_FIXED,  /* no value: sets a text to the flag's `value` */
	CLI_TEXT,   /* sets a text, once */
	CLI_LIST,   /* adds to a list */
	CLI_LIMIT,  /* adds "KEY=VALUE" to limits; `value` is the KEY, NULL if it is typed */
};

/* What a shell can offer where a value or a word is typed (completion.c). */
enum cli_offer {
	OFFER_WORDS, /* the lower-case words between '|' in `arg` or `usage`; nothing without any */
	OFFER_FILE,
	OFFER_FOLDER,
	OFFER_WORKSPACE, /* a folder, then :ro, :rw or :cow */
	OFFER_MOUNT,     /* a host path, a path inside, then :ro or :rw */
	OFFER_TIER,
	OFFER_BACKEND,
	OFFER_LIMIT,    /* KEY= of the policy's limits */
	OFFER_SETTING,  /* KEY= of a policy */
	OFFER_VARIABLE, /* of the caller's environment */
	OFFER_RUN,
	OFFER_COMMAND, /* of ours */
	OFFER_PROGRAM, /* of the host, then whatever that program offers */
	OFFER_COUNT,
};

struct cli_flag {
	const char *name; /* long name; NULL ends a table */
	char letter;      /* 0: none */
	const char *arg;  /* name of the value; lower-case words with '|' are its only choices */
	const char *what; /* half a sentence for help */
	enum cli_kind kind;
	size_t target; /* offset in struct cli_options */
	const char *value;
	enum cli_offer offer;
};

struct cli;

/* Flag sets that several commands share. */
enum cli_set {
	CLI_SANDBOX_FLAGS = 1 << 0,
	CLI_STREAM_FLAGS = 1 << 1, /* of commands that run one command */
	CLI_RECORD_FLAGS = 1 << 2,
	CLI_OUTPUT_FLAGS = 1 << 3,
	CLI_PROJECT_FLAGS = 1 << 4, /* --policy alone */
	CLI_APPROVAL_FLAGS = 1 << 5,
	CLI_SETS = 6,
};

struct cli_command {
	const char *name;             /* "run", "policy init" */
	const char *usage;            /* what follows the name and its flags */
	const char *summary;          /* half a sentence */
	const char *text;             /* paragraphs for help and manual, "" if none */
	const struct cli_flag *flags; /* its own, NULL if none */
	unsigned sets;
	bool takes_argv;     /* flags end at the first word that is none */
	int own_words;       /* … after so many of our own */
	bool starts_sandbox; /* every failure of ours is CLI_NOT_STARTED */
	int min_args;
	int max_args;             /* -1: any number */
	enum cli_offer offers[2]; /* for the first word, for later ones */
	int (*run)(struct cli *cli);
};

struct cli {
	const struct cli_command *command;
	struct cli_options options;
	char **args; /* what is left after the flags, NULL-terminated; owned array */
	int arg_count;
};

/* ---- table (commands.c) ------------------------------------------------------------ */

/* Those of jobs (job_commands.c), in their place among them. */
extern const struct cli_flag cli_job_start_flags[], cli_job_resume_flags[], cli_job_extend_flags[],
	cli_job_logs_flags[], cli_job_report_flags[];

/* All commands in the order of help; the last has a NULL name. */
extern const struct cli_command cli_commands[];

/* The flags of each set (shared_flags.c), in the order of its bits. */
extern const struct cli_flag *const cli_shared_flags[CLI_SETS];

/* The i-th flag of a command: its own first, then the shared ones; NULL after the last. */
const struct cli_flag *cli_flag_at(const struct cli_command *command, size_t i);

/* The command named by the first one or two words; *ret_words says how many. NULL: none. */
const struct cli_command *cli_command_find(int argc, char **argv, int *ret_words);

/* Is `word` the first of a two-word command ("policy")? */
bool cli_is_group(const char *word);

/* ---- parser (flags.c) -------------------------------------------------------------- */

/* Does a flag take a value? */
bool cli_flag_has_value(const struct cli_flag *flag);

/*
 * Parses what follows the command's name into `cli` (zeroed by the caller, `command` set).
 * -EINVAL with a sentence and a way out for the first thing wrong. Parsing goes on after it
 * up to the first word that is no flag, so that --json and --result hold for the refusal too.
 */
int cli_parse(struct cli *cli, int argc, char **argv, struct csn_error *err);
void cli_done(struct cli *cli);

/* Adds a borrowed text to a list. 0 or -ENOMEM. */
int cli_list_add(struct cli_list *list, const char *text);

/* The command or group nearest to what was typed, NULL if none is near. Static memory. */
const char *cli_nearest_command(const char *typed);

/* The nearest of `count` names to `word`, NULL if none is near enough to be a slip. */
const char *cli_nearest(const char *word, const char *const *names, size_t count);

/* ---- commands ---------------------------------------------------------------------- */

/* Each runs one command and returns the exit status. cli_run is in run.c. */
int cli_run(struct cli *cli);
int cli_up(struct cli *cli);
int cli_monitor(struct cli *cli);
int cli_port(struct cli *cli);
int cli_exec(struct cli *cli);
int cli_eval(struct cli *cli);
int cli_shell(struct cli *cli);
int cli_cp(struct cli *cli);
int cli_read(struct cli *cli);
int cli_write(struct cli *cli);
int cli_edit(struct cli *cli);
int cli_glob(struct cli *cli);
int cli_grep(struct cli *cli);
int cli_mount(struct cli *cli);
int cli_logs(struct cli *cli);
int cli_wait(struct cli *cli);
int cli_kill(struct cli *cli);
int cli_diff(struct cli *cli);
int cli_commit(struct cli *cli);
int cli_snapshot(struct cli *cli);
int cli_fork(struct cli *cli);
int cli_mcp(struct cli *cli);
int cli_ps(struct cli *cli);
int cli_stats(struct cli *cli);
int cli_gc(struct cli *cli);
int cli_down(struct cli *cli);
int cli_pool_start(struct cli *cli);
int cli_pool_status(struct cli *cli);
int cli_pool_stop(struct cli *cli);
int cli_serve(struct cli *cli);
int cli_job_start(struct cli *cli);
int cli_job_resume(struct cli *cli);
int cli_job_extend(struct cli *cli);
int cli_job_stop(struct cli *cli);
int cli_job_ls(struct cli *cli);
int cli_job_top(struct cli *cli);
int cli_job_show(struct cli *cli);
int cli_job_logs(struct cli *cli);
int cli_job_report(struct cli *cli);
int cli_doctor(struct cli *cli);
int cli_policy_init(struct cli *cli);
int cli_policy_set(struct cli *cli);
int cli_policy_check(struct cli *cli);
int cli_policy_show(struct cli *cli);
int cli_policy_explain(struct cli *cli);
int cli_policy_trust(struct cli *cli);
int cli_runs_ls(struct cli *cli);
int cli_runs_show(struct cli *cli);
int cli_runs_verify(struct cli *cli);
int cli_runs_diff(struct cli *cli);
int cli_runs_commit(struct cli *cli);
int cli_runs_rm(struct cli *cli);
int cli_runs_gc(struct cli *cli);
int cli_why(struct cli *cli);
int cli_approve(struct cli *cli);
int cli_version(struct cli *cli);
int cli_help(struct cli *cli);
int cli_completion(struct cli *cli);

/* Help of one command, or of all with NULL, on stdout (is_error: on stderr). */
void cli_print_help(const struct cli_command *command, bool is_error);
/* The commands of a group ("policy"), as help. */
void cli_print_group(const char *group, bool is_error);

/*
 * Ends a command of ours that failed: the sentence on stderr, with --json also as
 * {"error":{…}} on stdout, and for a command that starts a sandbox as a result without a
 * run where --result says. Returns the exit status.
 */
int cli_fail(const struct cli *cli, const struct csn_error *err);
/* The same for a command line that makes no sense. */
int cli_misuse(const struct cli *cli, const struct csn_error *err);
