/*
 * Opening a copy, and what in it may not pass unasked; see copy.h
 *
 * Rules are about names and what stands beside them: what a name holds can change between two
 * looks at it, a name cannot.
 */
#include "monitor/copy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/escape.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"
#include "monitor/copy_bare.h"
#include "monitor/copy_save.h"
#include "plan/plan.h"

enum { PATH_TEXT_MAX = 8 * PATH_MAX };

int copy_open(struct copy *copy, int run_fd, const struct copy_facts *facts, struct csn_error *err)
{
	copy->facts = *facts;
	copy->cow_fd = layer_open(run_fd, "cow", O_DIRECTORY);
	copy->upper_fd =
		copy->cow_fd < 0 ? copy->cow_fd : layer_open(copy->cow_fd, "upper", O_DIRECTORY);
	if (copy->upper_fd < 0)
		return csn_fail(err, copy->upper_fd, "cow",
				"run %s kept no layer of changes; it must be started with --cow "
				"and a record",
				facts->run_id);
	copy->facts.started_ms = copy_since(copy->cow_fd, facts->started_ms);
	copy->lower_fd = open(facts->workspace, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (copy->lower_fd < 0)
		return csn_fail(err, -errno, "cow", "cannot open the workspace %s: %s",
				facts->workspace, strerror(errno));
	return layer_read(copy->upper_fd, copy->lower_fd, &copy->layer, err);
}

void copy_done(struct copy *copy)
{
	layer_done(&copy->layer);
	copy->cow_fd = fd_close(copy->cow_fd);
	copy->upper_fd = fd_close(copy->upper_fd);
	copy->lower_fd = fd_close(copy->lower_fd);
}

/* Is `path` the path `above` or beneath it? Both relative. */
static bool is_at_or_beneath(const char *path, const char *above)
{
	size_t length = strlen(above);

	return strncmp(path, above, length) == 0 && (path[length] == 0 || path[length] == '/');
}

/* A path as a person types it, without "./" and trailing slashes; or where it is inside. */
static void tidy(const struct copy *copy, const char *typed, char ret_path[PATH_MAX])
{
	const char *at = copy->facts.at;
	char absolute[PATH_MAX];

	if (path_join("/", typed, absolute, sizeof absolute) < 0)
		snprintf(absolute, sizeof absolute, "/%s", typed);
	if (at && typed[0] == '/' && path_is_beneath(absolute, at))
		snprintf(ret_path, PATH_MAX, "%s", path_tail(absolute, at));
	else
		snprintf(ret_path, PATH_MAX, "%s", absolute + 1);
}

/* Does a named path cover the entry? */
static bool covers(const char *named, const struct layer_entry *entry)
{
	bool is_new_folder = entry->change == LAYER_ADDED && S_ISDIR(entry->now.st_mode);

	return !*named || is_at_or_beneath(entry->path, named) ||
	       (is_new_folder && is_at_or_beneath(named, entry->path));
}

bool copy_is_named(const struct copy *copy, const struct layer_entry *entry)
{
	char path[PATH_MAX];

	for (const char *const *named = copy->paths; named && *named; named++) {
		tidy(copy, *named, path);
		if (covers(path, entry))
			return true;
	}
	return !copy->paths;
}

bool copy_is_named_itself(const struct copy *copy, const struct layer_entry *entry)
{
	char path[PATH_MAX];

	for (const char *const *named = copy->paths; named && *named; named++) {
		tidy(copy, *named, path);
		if (str_is(path, entry->path))
			return true;
	}
	return false;
}

/* What git itself writes when a sandbox commits; everything else in .git can run programs. */
static const char *const git_data[] = { "objects",    "refs",       "logs",           "index",
					"HEAD",       "ORIG_HEAD",  "FETCH_HEAD",     "MERGE_HEAD",
					"MERGE_MSG",  "MERGE_MODE", "COMMIT_EDITMSG", "packed-refs",
					"description" };

static bool is_git_data(const char *tail)
{
	for (size_t i = 0; i < ARRAY_SIZE(git_data); i++)
		if (is_at_or_beneath(tail, git_data[i]))
			return !is_at_or_beneath(tail, "objects/info");
	return false;
}

/* A .git without one of these is no repository to git, which then takes a folder above for one. */
static bool unmakes_git(const struct layer_entry *entry)
{
	static const char *const needed[] = { ".git/HEAD", ".git/refs", ".git/objects" };
	bool is_gone = entry->change == LAYER_DELETED ||
		       (entry->change == LAYER_MODIFIED &&
			(entry->now.st_mode & S_IFMT) != (entry->old.st_mode & S_IFMT));

	for (size_t i = 0; is_gone && i < ARRAY_SIZE(needed); i++)
		if (str_is(entry->path, needed[i]))
			return true;
	return false;
}

/* Names of files and folders at any depth, and who runs what is in them. */
static const struct {
	const char *name;
	const char *who;
} guarded[] = {
	{ ".git", "git runs programs that it names" },      { ".envrc", "direnv runs it" },
	{ ".vscode", "an editor runs its tasks" },          { ".idea", "an editor runs its tasks" },
	{ ".devcontainer", "an editor runs its commands" },
};

/* Who runs what has this name, of `length` bytes. */
static const char *guard_of_part(const char *part, size_t length)
{
	for (size_t i = 0; i < ARRAY_SIZE(guarded); i++)
		/* Without regard to case: so do some file systems. */
		if (strlen(guarded[i].name) == length &&
		    strncasecmp(part, guarded[i].name, length) == 0)
			return guarded[i].who;
	return NULL;
}

/* Names that mean the same for every policy. */
static const char *guard_by_name(const char *path)
{
	const char *who = NULL;
	size_t length;

	if (str_starts(path, ".git/") && is_git_data(path + strlen(".git/")))
		return NULL;
	for (const char *part = path; !who && *part; part += length + (part[length] == '/')) {
		length = strcspn(part, "/");
		who = guard_of_part(part, length);
	}
	return who;
}

const char *copy_guard_name(const char *path, bool is_folder)
{
	const char *slash = strrchr(path, '/'), *who;
	size_t length;

	if (strcasecmp(slash ? slash + 1 : path, PLAN_POLICY_NAME) == 0)
		return "it is a policy file";
	for (const char *part = path; *part; part += length + (part[length] == '/')) {
		length = strcspn(part, "/");
		who = guard_of_part(part, length);
		if (!who)
			continue;
		if (strncasecmp(part, ".git", length) != 0)
			return who;
		if (part[length] ? is_git_data(part + length + 1) : is_folder)
			return NULL;
		return who;
	}
	return NULL;
}

/* Protected names are paths. What is put in the place of a folder above one changes it too. */
static bool is_protected(const char *name, const char *path, bool is_folder)
{
	size_t length = strlen(name), size = strlen(path);

	if (strncasecmp(path, name, length) == 0 && (path[length] == 0 || path[length] == '/'))
		return true;
	return !is_folder && size < length && name[size] == '/' &&
	       strncasecmp(name, path, size) == 0;
}

/* What the policy that was in force protected or hid. */
static const char *guard_by_policy(const struct copy_facts *facts, const char *path, bool is_folder)
{
	for (const char *const *name = facts->protect; name && *name; name++)
		if (**name && is_protected(*name, path, is_folder))
			return "the policy protects it";
	for (const char *const *pattern = facts->hide; pattern && *pattern; pattern++)
		if (**pattern && str_path_covers(*pattern, path))
			return "the policy hides it";
	return NULL;
}

static const char *guard(const struct copy *copy, const char *path, bool is_folder)
{
	const char *who = guard_by_name(path);

	if (!who)
		who = guard_by_policy(&copy->facts, path, is_folder);
	/* In .git a remote's branch may be named config, beside the remote's HEAD. */
	if (!who && !str_starts(path, ".git/") && copy_is_bare(copy, path))
		who = "git takes its folder for a repository and runs programs that are named "
		      "there";
	return who;
}

mode_t copy_mode(const struct layer_entry *entry)
{
	return entry->change == LAYER_DELETED ? entry->old.st_mode : entry->now.st_mode;
}

const char *copy_guard(const struct copy *copy, const struct layer_entry *entry)
{
	if (unmakes_git(entry))
		return "without it git takes another folder for the repository";
	return guard(copy, entry->path, S_ISDIR(copy_mode(entry)));
}

const char *copy_objection(const struct copy *copy, const struct layer_entry *entry)
{
	const char *who = copy_guard(copy, entry);
	char named[PATH_MAX];

	/* Named itself, or with a folder that is guarded: naming "." is not naming .git. */
	for (const char *const *path = copy->paths; who && path && *path; path++) {
		tidy(copy, *path, named);
		if (covers(named, entry) &&
		    (str_is(named, entry->path) || guard(copy, named, true)))
			return NULL;
	}
	return who;
}

bool copy_is_policy(const struct copy *copy, const char *path)
{
	const char *in_force = copy->facts.policy_path, *slash = strrchr(path, '/');
	char absolute[2 * PATH_MAX];

	snprintf(absolute, sizeof absolute, "%s/%s", copy->facts.workspace, path);
	return strcasecmp(slash ? slash + 1 : path, PLAN_POLICY_NAME) == 0 ||
	       (in_force && str_is(absolute, in_force));
}

bool copy_link_leaves(const char *path, const char *target)
{
	bool has_name = false;
	int depth = 0;
	size_t length;

	if (target[0] == '/')
		return true;
	for (const char *at = path; (at = strchr(at, '/')); at++)
		depth++;
	for (const char *part = target; *part; part += length + (part[length] == '/')) {
		length = strcspn(part, "/");
		if (length == 2 && part[0] == '.' && part[1] == '.')
			depth--;
		else if (length > 0 && !(length == 1 && part[0] == '.'))
			has_name = true;
		/* Above a name may be anywhere: it can be a link itself, as to ".". */
		if (depth < 0 || (has_name && length == 2 && part[0] == '.' && part[1] == '.'))
			return true;
	}
	return false;
}

int copy_read_target(const struct copy *copy, const struct layer_entry *entry,
		     char ret_target[PATH_MAX])
{
	_cleanup_fd_ int fd = -1;
	const char *name;
	ssize_t n;

	fd = layer_open_parent(copy->upper_fd, entry->path, &name);
	if (fd < 0)
		return fd;
	n = readlinkat(fd, name, ret_target, PATH_MAX - 1);
	if (n < 0)
		return -errno;
	ret_target[n] = 0;
	return 0;
}

char *copy_path_text(const struct layer_entry *entry)
{
	_cleanup_buf_ struct buf text;

	buf_init(&text, PATH_TEXT_MAX);
	if (escape_add(&text, entry->path, strlen(entry->path), false) < 0 ||
	    (S_ISDIR(copy_mode(entry)) && buf_add_byte(&text, '/') < 0) || !buf_text(&text))
		return NULL;
	return strdup(buf_text(&text));
}

const char *copy_change_name(const struct layer_entry *entry)
{
	static const char *const names[] = {
		[LAYER_ADDED] = "added", [LAYER_MODIFIED] = "modified", [LAYER_DELETED] = "deleted"
	};

	return names[entry->change];
}

const char *copy_kind_name(const struct layer_entry *entry)
{
	mode_t mode = copy_mode(entry);

	if (S_ISREG(mode))
		return "file";
	if (S_ISLNK(mode))
		return "link";
	return S_ISDIR(mode) ? "folder" : "other";
}

char copy_change_letter(const struct layer_entry *entry)
{
	static const char letters[] = {
		[LAYER_ADDED] = 'A', [LAYER_MODIFIED] = 'M', [LAYER_DELETED] = 'D'
	};

	return letters[entry->change];
}
