/*
 * The store of trusted policy files
 *
 * Written as a whole through a temporary file and a rename, so that two writers lose an
 * entry at worst and never the store. Believed only if it belongs to the caller and nobody
 * else may read or write it.
 */
#include "audit/dump.h"
#include "cli/trust.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"
#include "cli/project.h"

enum {
	STORE_MAX_BYTES = 64 << 20,
	VERSIONS_OF_A_FILE = 16,
	VERSIONS_OF_ALL = 256,
	STORE_VERSION = 1,
};

#define _cleanup_json_ __attribute__((cleanup(json_cleanup)))

static void json_cleanup(json_t **value)
{
	json_decref(*value);
}

/* The store's path, refused where the policy file's own folder could bring it along. */
static int store_path(const char *policy_path, char ret_path[PATH_MAX], struct csn_error *err)
{
	char base[PATH_MAX], real[PATH_MAX], folder[PATH_MAX];
	int r;

	r = project_xdg("XDG_CONFIG_HOME", ".config", base, sizeof base, err);
	if (r < 0)
		return r;
	if (path_join(base, "trusted", ret_path, PATH_MAX) < 0)
		return csn_fail(err, -ENAMETOOLONG, "trust", "$XDG_CONFIG_HOME is too long a path");
	snprintf(folder, sizeof folder, "%s", policy_path);
	*strrchr(folder, '/') = 0;
	/* A home that holds a policy file holds the store as well: that is no repository. */
	if (path_is_beneath(realpath(base, real) ? real : base, folder) &&
	    getenv("XDG_CONFIG_HOME"))
		return csn_fail(
			err, -EPERM, "trust",
			"the store of trusted policies %s lies beneath %s, whose policy it would "
			"vouch for; unset XDG_CONFIG_HOME",
			ret_path, folder);
	return 0;
}

static int check_store(const char *path, const struct stat *st, struct csn_error *err)
{
	if (!S_ISREG(st->st_mode) || st->st_uid != geteuid() || (st->st_mode & 077))
		return csn_fail(
			err, -EPERM, "trust",
			"%s is not believed: it must be a file of yours with mode 0600; remove it "
			"and run `caisson policy trust` again",
			path);
	if (st->st_size > STORE_MAX_BYTES)
		return csn_fail(err, -EFBIG, "trust", "%s is longer than 64 MiB; remove it", path);
	return 0;
}

static int parse_store(const char *path, int fd, size_t size, json_t **ret_list,
		       struct csn_error *err)
{
	_cleanup_json_ json_t *root = NULL;
	_cleanup_buf_ struct buf text;
	json_t *list;
	uint8_t *room;
	ssize_t n;

	buf_init(&text, STORE_MAX_BYTES);
	room = buf_reserve(&text, size + 1);
	n = room ? fd_read_all(fd, room, size) : -ENOMEM;
	if (n < 0)
		return csn_fail(err, (int)n, "trust", "cannot read %s: %s", path,
				strerror((int)-n));
	root = json_loadb((const char *)room, (size_t)n, JSON_REJECT_DUPLICATES, NULL);
	list = json_object_get(root, "trusted");
	if (json_integer_value(json_object_get(root, "version")) != STORE_VERSION ||
	    !json_is_array(list))
		return csn_fail(err, -EINVAL, "trust",
				"%s is damaged; remove it and run `caisson policy trust` again",
				path);
	*ret_list = json_incref(list);
	return 0;
}

/* The list of entries, empty if there is no store yet; a new reference. */
static int read_store(const char *path, json_t **ret_list, struct csn_error *err)
{
	_cleanup_fd_ int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;
	int r;

	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR)) {
		*ret_list = json_array();
		return *ret_list ? 0 : csn_fail(err, -ENOMEM, "trust", "out of memory");
	}
	if (fd < 0 || fstat(fd, &st) < 0)
		return csn_fail(err, -errno, "trust", "cannot read %s: %s", path, strerror(errno));
	r = check_store(path, &st, err);
	if (r < 0)
		return r;
	return parse_store(path, fd, (size_t)st.st_size, ret_list, err);
}

/* Where the store for the policy file `path` is, and what it lists; a new reference. */
static int open_store(const char *path, char ret_store[PATH_MAX], json_t **ret_list,
		      struct csn_error *err)
{
	int r = store_path(path, ret_store, err);

	return r < 0 ? r : read_store(ret_store, ret_list, err);
}

static const char *field(const json_t *entry, const char *name)
{
	const char *text = json_string_value(json_object_get(entry, name));

	return text ? text : "";
}

int trust_check(const char *path, const char *sha256, bool *ret_trusted, struct csn_error *err)
{
	_cleanup_json_ json_t *list = NULL;
	char store[PATH_MAX];
	json_t *entry;
	size_t i;
	int r = open_store(path, store, &list, err);

	if (r < 0)
		return r;
	*ret_trusted = false;
	json_array_foreach(list, i, entry)
		if (str_is(field(entry, "path"), path) && str_is(field(entry, "sha256"), sha256))
			*ret_trusted = true;
	return 0;
}

int trust_last(const char *path, struct buf *ret_text, bool *ret_known, struct csn_error *err)
{
	_cleanup_json_ json_t *list = NULL;
	char store[PATH_MAX];
	int r = open_store(path, store, &list, err);

	if (r < 0)
		return r;
	*ret_known = false;
	for (size_t i = json_array_size(list); i > 0 && !*ret_known; i--) {
		const json_t *entry = json_array_get(list, i - 1);

		if (!str_is(field(entry, "path"), path))
			continue;
		*ret_known = true;
		r = buf_add_text(ret_text, field(entry, "text"));
	}
	return r < 0 ? csn_fail(err, r, "trust", "out of memory") : 0;
}

/* Drops this path's same digest, then the oldest entries beyond the bounds. */
static void prune(json_t *list, const char *path, const char *sha256)
{
	size_t same = 0;

	for (size_t i = json_array_size(list); i > 0; i--) {
		const json_t *entry = json_array_get(list, i - 1);
		bool is_path = str_is(field(entry, "path"), path);

		same += is_path;
		if (is_path &&
		    (same >= VERSIONS_OF_A_FILE || str_is(field(entry, "sha256"), sha256)))
			json_array_remove(list, i - 1);
	}
	while (json_array_size(list) >= VERSIONS_OF_ALL)
		json_array_remove(list, 0);
}

/* mkdir -p with mode 0700 for what is missing. */
static int make_parents(const char *path)
{
	char part[PATH_MAX];

	snprintf(part, sizeof part, "%s", path);
	for (char *at = strchr(part + 1, '/'); at; at = strchr(at + 1, '/')) {
		*at = 0;
		if (mkdir(part, 0700) < 0 && errno != EEXIST)
			return -errno;
		*at = '/';
	}
	return 0;
}

static int write_store(const char *path, json_t *list, struct csn_error *err)
{
	_cleanup_json_ json_t *root =
		json_pack("{s:i, s:O}", "version", STORE_VERSION, "trusted", list);
	char temporary[PATH_MAX + 16];
	_cleanup_fd_ int fd = -1;
	char *text = NULL;
	size_t size;
	int r;

	if (!root || dump_json(root, JSON_INDENT(1), &text, &size) < 0)
		return csn_fail(err, -ENOMEM, "trust", "out of memory");
	snprintf(temporary, sizeof temporary, "%s.XXXXXX", path);
	r = make_parents(path);
	if (r == 0) {
		fd = mkostemp(temporary, O_CLOEXEC); /* mode 0600 */
		r = fd < 0 ? -errno : fd_write_all(fd, text, size);
	}
	free(text);
	if (r == 0 && (fsync(fd) < 0 || rename(temporary, path) < 0))
		r = -errno;
	if (r < 0 && fd >= 0)
		unlink(temporary);
	return r < 0 ? csn_fail(err, r, "trust", "cannot write %s: %s", path, strerror(-r)) : 0;
}

int trust_add(const char *path, const char *sha256, const char *text, struct csn_error *err)
{
	_cleanup_json_ json_t *list = NULL;
	char store[PATH_MAX], time[CLOCK_TEXT];
	int r = open_store(path, store, &list, err);

	if (r < 0)
		return r;
	prune(list, path, sha256);
	clock_format(clock_wall_ms(), time);
	r = json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:s}", "path", path, "sha256",
						  sha256, "time", time, "text", text));
	if (r < 0)
		return csn_fail(err, -EINVAL, "trust", "%s is no valid text", path);
	return write_store(store, list, err);
}
