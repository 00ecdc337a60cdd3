/* A monitor as a child; see starter.h. Options become flags, word by word: nothing is parsed here.
 */
#include "client/starter.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/errno_name.h"
#include "base/fd.h"
#include "base/pool.h"
#include "base/program.h"
#include "base/str.h"

enum { MONITOR_FD = 3, WALL_FD, FIRST_FREE_FD, SAID_BYTES = 4096, WORDS_MAX = 1024 };

extern char **environ;

/* ---- flags ---------------------------------------------------------------------------------- */

struct words {
	const char *at[WORDS_MAX + 1];
	size_t count;
};

static void add(struct words *words, const char *word)
{
	if (words->count < WORDS_MAX)
		words->at[words->count] = word;
	words->count++;
}

static void add_value(struct words *words, const char *flag, const char *value)
{
	if (!value)
		return;
	add(words, flag);
	add(words, value);
}

static void add_values(struct words *words, const char *flag, const char *const *values)
{
	for (; values && *values; values++)
		add_value(words, flag, *values);
}

static void add_options(struct words *words, const csn_options *options)
{
	add_value(words, "--policy", options->policy);
	add_value(words, "--tier", options->tier);
	add_value(words, "--backend", options->backend);
	add_value(words, "--workspace", options->workspace);
	add_value(words, "--at", options->at);
	add_value(words, "--network", options->network);
	add_values(words, "--allow", options->allow);
	add_values(words, "--mount", options->mounts);
	add_values(words, "--limit", options->limits);
	add_values(words, "--env", options->env);
	add_values(words, "--tag", options->tags);
	add_value(words, "--run-dir", options->run_dir);
	add_value(words, "--within", options->within);
	if (options->no_record)
		add(words, "--no-record");
}

/* What is declared goes along as it is; the monitor knows the names. */
static void add_wall(struct words *words, const csn_wall *wall)
{
	if (!wall)
		return;
	add_value(words, "--wall-fd", "4");
	add_values(words, "--enforces", wall->enforces);
	add_values(words, "--observes", wall->observes);
}

/* ---- the process ---------------------------------------------------------------------------- */

/* A file that cannot grow: a monitor that goes on talking fills no memory. */
static int make_said(void)
{
	_cleanup_fd_ int fd = memfd_create("caisson-said", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 || ftruncate(fd, SAID_BYTES) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) < 0)
		return -errno;
	return fd_take(&fd);
}

/* What the monitor gets of ours; all lie above what is set up there. */
struct lent {
	int fd;
	int said_fd;
	int wall_fd; /* -1: none */
};

/* 0 or an errno. */
static int set_files(posix_spawn_file_actions_t *actions, const struct lent *lent)
{
	int first = lent->wall_fd < 0 ? WALL_FD : FIRST_FREE_FD;
	int r = posix_spawn_file_actions_adddup2(actions, lent->said_fd, STDERR_FILENO);

	if (r == 0)
		r = posix_spawn_file_actions_adddup2(actions, lent->fd, MONITOR_FD);
	if (r == 0 && lent->wall_fd >= 0)
		r = posix_spawn_file_actions_adddup2(actions, lent->wall_fd, WALL_FD);
	if (r == 0)
		r = posix_spawn_file_actions_addopen(actions, STDIN_FILENO, "/dev/null", O_RDONLY,
						     0);
	if (r == 0)
		r = posix_spawn_file_actions_addopen(actions, STDOUT_FILENO, "/dev/null", O_WRONLY,
						     0);
	return r == 0 ? posix_spawn_file_actions_addclosefrom_np(actions, first) : r;
}

static int set_attributes(posix_spawnattr_t *attributes)
{
	const short flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP;
	sigset_t none, all;
	int r;

	sigemptyset(&none);
	sigfillset(&all);
	r = posix_spawnattr_setsigmask(attributes, &none);
	if (r == 0)
		r = posix_spawnattr_setsigdefault(attributes, &all);
	if (r == 0)
		r = posix_spawnattr_setpgroup(attributes, 0);
	return r == 0 ? posix_spawnattr_setflags(attributes, flags) : r;
}

/* 0 or an errno. */
static int spawn(const struct words *words, const struct lent *lent, pid_t *ret_pid)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	int r = posix_spawn_file_actions_init(&actions);

	if (r != 0)
		return r;
	r = posix_spawnattr_init(&attributes);
	if (r == 0)
		r = set_files(&actions, lent);
	if (r == 0)
		r = set_attributes(&attributes);
	if (r == 0)
		r = posix_spawn(ret_pid, words->at[0], &actions, &attributes,
				(char *const *)(uintptr_t)words->at, environ);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attributes);
	return r;
}

static int explain(int error, const char *program, csn_error *err)
{
	errno = error;
	if (error == ENOENT)
		return code_fail(err, CSN_ENOENT, "open",
				 "%s is not there: install caisson, or name the command in "
				 "csn_options.program",
				 program);
	return code_fail(err, code_of_errno(error), "open", "cannot start %s: %m", program);
}

/* Moves a descriptor above what is set up in the child, whatever is closed in the host. */
static int above(int fd)
{
	int high = fd < 0 ? fd : fcntl(fd, F_DUPFD_CLOEXEC, FIRST_FREE_FD);

	fd_close(fd);
	return high;
}

/* The one that was installed with us, or, where that was moved, the one that a shell would find. */
static const char *find_caisson(const csn_options *options, char *path)
{
	if (options->program)
		return options->program;
	if (!program_is(CAISSON_PROGRAM) && program_find("caisson", getenv("PATH"), path))
		return path;
	return CAISSON_PROGRAM;
}

/* 1: a pool gave one; 0: make one; -code: it could not be made either. */
static int take_prepared(const csn_options *options, int *ret_fd, csn_error *err)
{
	struct words words = { .count = 0 };
	struct csn_error why = { 0 };
	int r;

	if (!options->pool || options->within || options->gate_count > 0)
		return 0;
	if (options->wall)
		return code_fail(err, CSN_INVALID, "open",
				 "a pool's sandboxes have walls already: leave out pool or wall");
	add_options(&words, options);
	if (words.count > WORDS_MAX)
		return 0;
	r = pool_ask(options->pool, POOL_OPEN, words.at, ret_fd, &why);
	return r < 0 ? code_pass(err, code_of_name(error_name(&why)), &why) : r;
}

int starter_spawn(const csn_options *options, const struct lent_host *host,
		  struct spawned *ret_spawned, csn_error *err)
{
	char path[PATH_MAX];
	struct words words = { .at = { find_caisson(options, path), "monitor", "--fd", "3" },
			       .count = 4 };
	_cleanup_fd_ int ours = -1, theirs = -1, said = -1, wall = -1;
	struct lent lent;
	int pair[2], r = take_prepared(options, &ret_spawned->fd, err);

	if (r != 0) {
		ret_spawned->pid = 0;
		return r < 0 ? r : 0;
	}
	add_options(&words, options);
	add_wall(&words, options->wall);
	add_values(&words, "--gate", host->gates);
	if (words.count > WORDS_MAX)
		return code_fail(err, CSN_E2BIG, "open", "there are too many options: %zu words",
				 words.count);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return code_fail(err, code_of_errno(errno), "open", "cannot make a socket: %m");
	ours = pair[0];
	theirs = above(pair[1]);
	said = above(make_said());
	if (host->wall_fd >= 0)
		wall = fcntl(host->wall_fd, F_DUPFD_CLOEXEC, FIRST_FREE_FD);
	if (theirs < 0 || said < 0 || (host->wall_fd >= 0 && wall < 0))
		return code_fail(err, CSN_EMFILE, "open",
				 "there is no descriptor or memory to start a monitor with");
	lent = (struct lent){ theirs, said, wall };
	r = spawn(&words, &lent, &ret_spawned->pid);
	if (r != 0)
		return explain(r, words.at[0], err);
	ret_spawned->fd = fd_take(&ours);
	ret_spawned->said_fd = fd_take(&said);
	return 0;
}
