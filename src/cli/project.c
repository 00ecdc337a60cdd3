/*
 * Where the caller stands
 *
 * The project is the nearest folder, here or above, that holds .git or caisson.yaml, and it
 * is never home or /: a workspace that is the home directory would lend everything in it.
 * A marker counts only if the caller or root owns it, so nobody can widen another user's
 * project from a shared parent such as /tmp.
 */
#include "cli/project.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/path.h"
#include "base/place.h"
#include "base/str.h"

/* The caller's home from /etc/passwd; NSS modules are not for a static program. */
static void home_from_passwd(char *ret_home, size_t size)
{
	FILE *file = fopen("/etc/passwd", "re");
	const struct passwd *found;

	while (file && (found = fgetpwent(file)))
		if (found->pw_uid == getuid()) {
			snprintf(ret_home, size, "%s", found->pw_dir);
			break;
		}
	if (file)
		fclose(file);
}

static void find_home(char ret_home[PATH_MAX])
{
	const char *home = getenv("HOME");
	char text[PATH_MAX] = "", real[PATH_MAX];

	if (home && home[0] == '/')
		snprintf(text, sizeof text, "%s", home);
	else
		home_from_passwd(text, sizeof text);
	/* Compared with the real working folder, so links in it must be resolved. */
	snprintf(ret_home, PATH_MAX, "%s", realpath(text, real) ? real : text);
}

int project_xdg(const char *name, const char *fallback, char *ret_path, size_t size,
		struct csn_error *err)
{
	const char *base = getenv(name);
	char home[PATH_MAX];
	int length;

	find_home(home);
	if (base && base[0] == '/')
		length = snprintf(ret_path, size, "%s/caisson", base);
	else if (home[0] == '/')
		length = snprintf(ret_path, size, "%s/%s/caisson", home, fallback);
	else
		return csn_fail(err, -ENOENT, "project",
				"neither $%s nor $HOME names a folder; set one of them", name);
	if (length < 0 || (size_t)length >= size)
		return csn_fail(err, -ENAMETOOLONG, "project", "$%s is too long a path", name);
	return 0;
}

static int current_folder(char ret_path[PATH_MAX], struct csn_error *err)
{
	if (!getcwd(ret_path, PATH_MAX) || ret_path[0] != '/')
		return csn_fail(
			err, -ENOENT, "project",
			"the current folder is gone or out of reach; cd to one that exists");
	return 0;
}

int project_run_root(const char *run_dir, char *ret_path, size_t size, struct csn_error *err)
{
	char cwd[PATH_MAX], base[PATH_MAX];
	int r;

	if (run_dir) {
		r = current_folder(cwd, err);
		if (r < 0)
			return r;
		if (path_join(cwd, run_dir, ret_path, size) < 0)
			return csn_fail(err, -EINVAL, "project", "--run-dir %s is no usable path",
					run_dir);
		return 0;
	}
	r = project_xdg("XDG_STATE_HOME", ".local/state", base, sizeof base, err);
	if (r < 0)
		return r;
	if (path_join(base, "runs", ret_path, size) < 0)
		return csn_fail(err, -ENAMETOOLONG, "project",
				"$XDG_STATE_HOME is too long a path");
	return 0;
}

static bool has_marker(const char *folder)
{
	static const char *const markers[] = { ".git", POLICY_FILE_NAME };
	struct stat st;
	char path[PATH_MAX + 16];

	for (size_t i = 0; i < ARRAY_SIZE(markers); i++) {
		snprintf(path, sizeof path, "%s/%s", folder, markers[i]);
		if (lstat(path, &st) == 0 && (st.st_uid == geteuid() || st.st_uid == 0))
			return true;
	}
	return false;
}

/* Cuts the last part of `path`; false where the search ends: at home and at /, which are not looked
 * at. */
static bool go_up(const struct project *project, char *path)
{
	char *slash = strrchr(path, '/');

	if (str_is(path, project->home) || slash == path)
		return false;
	*slash = 0;
	return !str_is(path, project->home);
}

/* Follows the links in as much of a path as exists; the rest is kept as it is. */
static void resolve_nearest(char path[PATH_MAX])
{
	char head[PATH_MAX], real[PATH_MAX], whole[2 * PATH_MAX];
	char *slash;
	int length;

	snprintf(head, sizeof head, "%s", path);
	while (!realpath(head, real) && (slash = strrchr(head, '/')) && slash != head)
		*slash = 0;
	if (!realpath(head, real))
		return;
	length = snprintf(whole, sizeof whole, "%s%s", real, path + strlen(head));
	if (length < PATH_MAX)
		memcpy(path, whole, (size_t)length + 1);
}

int project_find(const char *run_dir, struct project *ret_project, struct csn_error *err)
{
	char path[PATH_MAX];
	int r;

	find_home(ret_project->home);
	r = current_folder(ret_project->cwd, err);
	if (r < 0)
		return r;
	snprintf(ret_project->folder, PATH_MAX, "%s", ret_project->cwd);
	snprintf(path, sizeof path, "%s", ret_project->cwd);
	do {
		if (!has_marker(path))
			continue;
		snprintf(ret_project->folder, PATH_MAX, "%s", path);
		break;
	} while (go_up(ret_project, path));
	r = project_run_root(run_dir, ret_project->run_root, PATH_MAX, err);
	if (r == 0 && place_path(ret_project->place, PATH_MAX) < 0)
		r = csn_fail(err, -ENAMETOOLONG, "project", "$XDG_RUNTIME_DIR is too long a path");
	if (r < 0)
		return r;
	resolve_nearest(ret_project->run_root);
	resolve_nearest(ret_project->place);
	return 0;
}

int policy_file_find(const struct project *project, char *ret_path, size_t size)
{
	char path[PATH_MAX];
	struct stat st;
	int length;

	snprintf(path, sizeof path, "%s", project->cwd);
	do {
		length = snprintf(ret_path, size, "%s/%s", str_is(path, "/") ? "" : path,
				  POLICY_FILE_NAME);
		if (length < 0 || (size_t)length >= size)
			return -ENAMETOOLONG;
		if (lstat(ret_path, &st) == 0)
			return 0;
	} while (go_up(project, path));
	ret_path[0] = 0;
	return 0;
}
