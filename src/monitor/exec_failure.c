/*
 * Why a command could not be executed, in a sentence with the way out
 *
 * The kernel says ENOENT for a name that nothing has, for a script whose interpreter is missing and
 * for a path that is called otherwise inside; each needs another answer. Whoever reads it stands
 * outside, so the host's file is looked at: the one that the name means inside. It is the
 * command's and may be anything: it is opened without following a link at its end and without
 * waiting, and of what it holds only a plain interpreter's path is ever repeated.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "base/program.h"
#include "base/str.h"
#include "monitor/run_private.h"

/* Two names of WORD_TEXT and the sentence around them have room in an error: no word is cut. */
enum { FIRST_LINE = 256, WORD_TEXT = 140, MOUNT_TEXT = 240 };

struct look {
	const struct attempt *attempt;
	const char *name;      /* as it was typed */
	char inside[PATH_MAX]; /* absolute; "" for a name that is searched */
	char host[PATH_MAX];   /* the same file out here; "" where nothing shows it */
	struct stat st;
	bool exists; /* at `host` */
	char interpreter[FIRST_LINE];
	char word[WORD_TEXT]; /* the name for a shell; "NAME" where it is too long for a sentence */
};

static const char *const builtins[] = {
	"cd",    "export", "source", "alias",   "unalias", "unset",  "eval", "exec",    "set",
	"shift", "trap",   "ulimit", "umask",   "type",    "pushd",  "popd", "shopt",   "declare",
	"local", "let",    "jobs",   "history", "bg",      "fg",     ".",    ":",       "if",
	"for",   "while",  "wait",   "read",    "hash",    "return", "exit", "readonly"
};

static bool is_builtin(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(builtins); i++)
		if (str_is(builtins[i], name))
			return true;
	return false;
}

/* `path` at `from` as it is called at `to`; false: it lies elsewhere. */
static bool move(const char *path, const char *from, const char *to, char ret_path[PATH_MAX])
{
	const char *tail;
	int n;

	if (!from || !to || from[0] != '/' || !path_is_beneath(path, from))
		return false;
	tail = path_tail(path, from);
	n = snprintf(ret_path, PATH_MAX, "%s%s%s", str_is(to, "/") ? "" : to, *tail ? "/" : "",
		     tail);
	return n > 0 && n < PATH_MAX;
}

/* What is shown under its own path by every wall. */
static bool is_system(const char *path)
{
	static const char *const folders[] = { "/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc" };

	for (size_t i = 0; i < ARRAY_SIZE(folders); i++)
		if (path_is_beneath(path, folders[i]))
			return true;
	return false;
}

/* The host's path of a path inside; "" where nothing of the host is shown there. */
static void find_host(const struct plan *plan, const char *inside, char ret_host[PATH_MAX])
{
	ret_host[0] = 0;
	for (size_t i = 0; i < plan->mount_count; i++)
		if (move(inside, plan->mounts[i].at, plan->mounts[i].host, ret_host))
			return;
	if (move(inside, plan->workspace.at, plan->workspace.host, ret_host))
		return;
	if (is_system(inside))
		snprintf(ret_host, PATH_MAX, "%s", inside);
}

/* The interpreter of a first line: printable, so that it can be repeated. A \r at its end stays. */
static void read_interpreter(struct look *look)
{
	char line[FIRST_LINE] = "", *at, *end;
	_cleanup_fd_ int fd =
		open(look->host, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	ssize_t n = fd < 0 ? -1 : pread(fd, line, sizeof line - 1, 0);

	if (n < 3 || line[0] != '#' || line[1] != '!')
		return;
	at = line + 2 + strspn(line + 2, " \t");
	end = at + strcspn(at, " \t\n");
	*end = 0;
	for (char *c = at; c < end; c++)
		if ((*c < ' ' || *c > '~') && !(*c == '\r' && c[1] == 0))
			return;
	snprintf(look->interpreter, sizeof look->interpreter, "%s", at);
}

/* `text` for a shell, or what stands for it. */
static const char *word_of(const char *text, const char *otherwise, char *ret_word, size_t size)
{
	if (str_shell_word(text, ret_word, size) < 0)
		snprintf(ret_word, size, "%s", otherwise);
	return ret_word;
}

/* The name as a shell takes it; one that begins with `-` would be a flag of chmod or sed. */
static void read_word(struct look *look)
{
	char name[PATH_MAX];

	snprintf(name, sizeof name, "%s%s", look->name[0] == '-' ? "./" : "", look->name);
	word_of(name, "NAME", look->word, sizeof look->word);
}

static void look_at(struct look *look, const struct attempt *attempt)
{
	*look = (struct look){ .attempt = attempt, .name = attempt->program };
	read_word(look);
	if (!strchr(look->name, '/')) {
		look->exists = program_find(look->name, getenv("PATH"), look->host) &&
			       stat(look->host, &look->st) == 0;
		if (look->exists)
			read_interpreter(look);
		return;
	}
	if (path_join(attempt->cwd, look->name, look->inside, PATH_MAX) < 0) {
		look->inside[0] = 0;
		return;
	}
	find_host(attempt->plan, look->inside, look->host);
	look->exists = look->host[0] && stat(look->host, &look->st) == 0;
	if (look->exists && S_ISREG(look->st.st_mode))
		read_interpreter(look);
}

/* Before HOST:AT. */
static const char *lend_words(const struct look *look)
{
	return look->attempt->stays ? "`caisson mount NAME`" : "-m";
}

/* A path of the host that is shown under another name. */
static bool say_elsewhere(const struct look *look, struct csn_error *err)
{
	const struct plan *plan = look->attempt->plan;
	char inside[PATH_MAX], host[PATH_MAX], near[PATH_MAX] = "", word[WORD_TEXT];
	struct stat st;

	if (look->name[0] != '/' || look->exists || stat(look->name, &st) < 0 ||
	    path_normalize(look->name, host, sizeof host) < 0 ||
	    !move(host, plan->workspace.host, plan->workspace.at, inside))
		return false;
	if (path_is_beneath(inside, look->attempt->cwd))
		snprintf(near, sizeof near, "./%.*s", PATH_MAX - 3,
			 path_tail(inside, look->attempt->cwd));
	csn_fail(err, -ENOENT, "exec", "%.100s is %.100s inside; use %s or --at host", look->name,
		 inside, word_of(near[0] ? near : inside, "that", word, sizeof word));
	return true;
}

/* A path that is here and not inside, or nowhere. */
static void say_absent(const struct look *look, struct csn_error *err)
{
	char folder[PATH_MAX], mount[2 * PATH_MAX], word[MOUNT_TEXT];
	struct stat st;

	snprintf(folder, sizeof folder, "%s", look->name);
	if (look->name[0] == '/' && stat(look->name, &st) == 0 && strrchr(folder, '/') != folder) {
		*strrchr(folder, '/') = 0;
		snprintf(mount, sizeof mount, "%s:%s", folder, folder);
		csn_fail(err, -ENOENT, "exec",
			 "%.120s is not shown inside. To lend its folder: caisson %s %s",
			 look->name, look->attempt->stays ? "mount NAME" : "run -m",
			 word_of(mount, "HOST:AT", word, sizeof word));
		return;
	}
	csn_fail(err, -ENOENT, "exec", "there is no file %.200s, neither here nor inside",
		 look->name);
}

/* A file that is there inside, and yet ENOENT: what its first line names is missing. */
static void say_interpreter(const struct look *look, struct csn_error *err)
{
	size_t n = strlen(look->interpreter);
	struct stat st;

	if (n == 0)
		csn_fail(
			err, -ENOENT, "exec",
			"%.200s is there, and what it needs to start is not shown inside: a link's "
			"target, or its loader (file %.100s names it); %s HOST:AT adds a folder",
			look->name, look->name, lend_words(look));
	else if (look->interpreter[n - 1] == '\r')
		csn_fail(err, -ENOENT, "exec",
			 "the first line of %.100s ends with a carriage return, which is taken for "
			 "a part of %.*s: sed -i 's/\\r$//' %s",
			 look->name, n > 100 ? 100 : (int)n - 1, look->interpreter, look->word);
	else
		csn_fail(err, -ENOENT, "exec",
			 "the first line of %.150s names %.150s, which is not %s", look->name,
			 look->interpreter,
			 stat(look->interpreter, &st) == 0 ? "shown inside" : "here or inside");
}

static void say_missing(const struct look *look, struct csn_error *err)
{
	if (is_builtin(look->name))
		csn_fail(err, -ENOENT, "exec",
			 "%s is a word of the shell and not a program: caisson %s -c '%s …'",
			 look->name, look->attempt->stays ? "exec NAME" : "run", look->name);
	else if (!look->inside[0] && look->attempt->path)
		csn_fail(err, -ENOENT, "exec",
			 "there is no program named %.150s in the PATH that this call sets: %.200s",
			 look->name, look->attempt->path);
	else if (!look->inside[0] && !look->exists)
		csn_fail(
			err, -ENOENT, "exec",
			"there is no program named %.200s, neither here nor inside; install it, or "
			"%s HOST:AT shows the folder that has it",
			look->name, lend_words(look));
	else if (!look->inside[0] && !(look->interpreter[0] && is_system(look->host)))
		csn_fail(err, -ENOENT, "exec",
			 "%.100s was not found inside; it is %.200s here: the command sees the "
			 "workspace, the system folders and the mounts; %s HOST:AT adds one",
			 look->name, look->host, lend_words(look));
	else if (look->exists)
		say_interpreter(look, err);
	else if (!say_elsewhere(look, err))
		say_absent(look, err);
}

/* What runs a file of this name, "" for none that is known. */
static const char *runner_of(const char *name)
{
	static const char *const runners[][2] = {
		{ ".py", "python3" }, { ".sh", "sh" },   { ".bash", "bash" }, { ".js", "node" },
		{ ".rb", "ruby" },    { ".pl", "perl" }, { ".php", "php" },   { ".lua", "lua" },
	};
	const char *dot = strrchr(name, '.');

	for (size_t i = 0; dot && i < ARRAY_SIZE(runners); i++)
		if (str_is(dot, runners[i][0]))
			return runners[i][1];
	return "";
}

static void say_refused(const struct look *look, int error, struct csn_error *err)
{
	const char *runner = runner_of(look->name);
	bool is_file = look->exists && S_ISREG(look->st.st_mode);

	if (look->exists && S_ISDIR(look->st.st_mode))
		csn_fail(err, -error, "exec", "%.200s is a folder, not a program", look->name);
	else if (error == EACCES && is_file && !(look->st.st_mode & 0111))
		csn_fail(err, -error, "exec", "%.100s is not executable: chmod +x %s%s%s%s%s",
			 look->name, look->word, *runner ? ", or " : "", runner, *runner ? " " : "",
			 *runner ? look->word : "");
	else if (error == ENOEXEC)
		csn_fail(err, -error, "exec",
			 "%.200s is no program for this machine (Exec format error)", look->name);
	else
		csn_fail(err, error ? -error : -EIO, "exec", "%.200s cannot be executed: %s",
			 look->name, strerror(error));
}

void attempt_say_failure(const struct attempt *attempt, int error, struct csn_error *err)
{
	struct look look;

	if (!attempt->program) {
		csn_fail(err, error ? -error : -EIO, "exec", "the shell cannot be executed: %s",
			 strerror(error));
		return;
	}
	look_at(&look, attempt);
	if (error == ENOENT)
		say_missing(&look, err);
	else
		say_refused(&look, error, err);
}

void run_say_exec_failure(struct run *run, int error)
{
	const struct attempt attempt = { .plan = run->plan,
					 .cwd = run->cwd,
					 .program = run->setup->argv ? run->setup->argv[0] : NULL };

	attempt_say_failure(&attempt, error, &run->error);
}
