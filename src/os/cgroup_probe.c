/*
 * Which controllers may this process use, and beneath which directory?
 *
 * /proc/self/mountinfo says what is mounted where, /proc/self/cgroup which group we are in;
 * together they name our own directory in each hierarchy, in containers too, where the mount
 * shows only a part. Groups are made beneath it: a caller's own limits go on holding.
 * v2 hands controllers only to children of groups without processes, so there the nearest
 * group above us that hands them down, or has no process, serves; else our own once it was
 * emptied. A group with a limit of its own, or one that was delegated, is not left: the limit
 * would be shed, and what lies above a delegation belongs to somebody else.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/xattr.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"
#include "os/cgroup.h"
#include "os/cgroup_file.h"
#include "os/cgroup_manager.h"

enum { LINE = 4096, V2 = CGROUP_CONTROLLERS, HIERARCHIES = CGROUP_CONTROLLERS + 1 };

/* Per hierarchy, the last one is v2: its mount, the part it shows, our group in it. */
struct seen {
	bool is_scope;
	bool is_mounted[HIERARCHIES];
	char mount[HIERARCHIES][CGROUP_PATH];
	char root[HIERARCHIES][CGROUP_PATH];
	char self[HIERARCHIES][CGROUP_PATH];
};

__attribute__((format(printf, 3, 4))) static void refuse(struct cgroup_probe *probe, int controller,
							 const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(probe->reason[controller], CGROUP_REASON, format, args);
	va_end(args);
}

static void refuse_all(struct cgroup_probe *probe, const char *sentence)
{
	for (int i = 0; i < CGROUP_CONTROLLERS; i++)
		refuse(probe, i, "%s", sentence);
}

/* mountinfo writes blanks and backslashes as three octal digits. */
static int unescape(const char *text, char *ret_text, size_t size)
{
	size_t out = 0;

	for (; *text; out++) {
		if (out + 1 >= size)
			return -ENAMETOOLONG;
		if (text[0] == '\\' && text[1] && text[2] && text[3]) {
			ret_text[out] = (char)((text[1] - '0') << 6 | (text[2] - '0') << 3 |
					       (text[3] - '0'));
			text += 4;
		} else {
			ret_text[out] = *text++;
		}
	}
	ret_text[out] = 0;
	return 0;
}

/* The first mount of a hierarchy counts; later ones are binds of the same thing. */
static void note_mount(struct seen *seen, int which, const char *root, const char *mount)
{
	if (seen->is_mounted[which])
		return;
	if (unescape(root, seen->root[which], CGROUP_PATH) < 0 ||
	    unescape(mount, seen->mount[which], CGROUP_PATH) < 0)
		return;
	seen->is_mounted[which] = true;
}

/* "36 35 98:0 /root /mount opts [optional ...] - type source superopts" */
static void read_mount(struct seen *seen, char *line)
{
	char *tail = strstr(line, " - "), *root = NULL, *mount = NULL, *type, *options;

	if (!tail)
		return;
	*tail = 0;
	tail += 3;
	for (int i = 0; i < 5; i++) {
		root = mount;
		mount = strsep(&line, " "); /* NULL when there are no more */
	}
	type = strsep(&tail, " ");
	strsep(&tail, " ");
	options = strsep(&tail, " ");
	if (!root || !mount || !options)
		return;
	if (str_is(type, "cgroup2"))
		note_mount(seen, V2, root, mount);
	for (int i = 0; i < CGROUP_CONTROLLERS && str_is(type, "cgroup"); i++)
		if (cgroup_text_has(options, cgroup_controller_names[i]))
			note_mount(seen, i, root, mount);
}

/* "4:memory:/group", "1:cpu,cpuacct:/group", "0::/group" */
static void read_self(struct seen *seen, char *line)
{
	char *names = strchr(line, ':'), *group = names ? strchr(names + 1, ':') : NULL;

	if (!group || strlen(group + 1) >= CGROUP_PATH)
		return;
	names++;
	*group++ = 0;
	group[strcspn(group, "\n")] = 0;
	if (!*names)
		memcpy(seen->self[V2], group, strlen(group) + 1);
	for (int i = 0; i < CGROUP_CONTROLLERS && *names; i++)
		if (cgroup_text_has(names, cgroup_controller_names[i]))
			memcpy(seen->self[i], group, strlen(group) + 1);
}

/* Lines that do not fit are left out: no path of ours is that long. */
static int each_line(const char *path, struct seen *seen, void (*take)(struct seen *, char *))
{
	char line[LINE];
	bool is_whole = true;
	FILE *file = fopen(path, "re");

	if (!file)
		return -errno;
	while (fgets(line, sizeof line, file)) {
		bool ends = strchr(line, '\n') != NULL;

		if (is_whole && ends)
			take(seen, line);
		is_whole = ends;
	}
	fclose(file);
	return 0;
}

/* The directory of our own group in a hierarchy. */
static int own_dir(const struct seen *seen, int which, char *ret_path)
{
	const char *root = seen->root[which], *self = seen->self[which], *tail = self;

	if (!*self || strstr(self, "/.."))
		return -ENOENT; /* outside our cgroup namespace */
	if (!str_is(root, "/")) {
		if (!path_is_beneath(self, root))
			return -ENOENT;
		tail = self + strlen(root);
	}
	if (str_is(tail, "/"))
		tail = "";
	if (snprintf(ret_path, CGROUP_PATH, "%s%s", seen->mount[which], tail) >= CGROUP_PATH)
		return -ENAMETOOLONG;
	return 0;
}

/* Opening is the question: the kernel's answer covers owner, capability and read-only mounts. */
static int may_write(const char *dir, const char *name)
{
	char path[CGROUP_PATH + 64];
	_cleanup_fd_ int fd = -1;

	snprintf(path, sizeof path, "%s/%s", dir, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	return fd < 0 ? -errno : 0;
}

static int take_base(struct cgroup_probe *probe, int controller, const char *dir)
{
	int r = may_write(dir, "cgroup.procs"), n;

	if (r == 0) {
		r = may_write(dir, "caisson/cgroup.procs");
		r = r == -ENOENT ? 0 : r;
	}
	if (r == -EROFS)
		refuse(probe, controller,
		       "%.100s is mounted read-only: give the container a writable cgroup mount",
		       dir);
	else if (r < 0)
		refuse(probe, controller,
		       "group %.100s is not ours (%s): run as root or have it handed over by chown",
		       dir, strerror(-r));
	if (r < 0)
		return r;
	n = snprintf(probe->base[controller], CGROUP_PATH, "%s/caisson", dir);
	if (n >= CGROUP_PATH) {
		refuse(probe, controller, "the path of our group is too long: %.100s", dir);
		return -ENAMETOOLONG;
	}
	probe->has[controller] = true;
	return 0;
}

static void probe_v1(const struct seen *seen, struct cgroup_probe *probe)
{
	char dir[CGROUP_PATH];
	const char *name;

	probe->layout = CGROUP_V1;
	for (int i = 0; i < CGROUP_CONTROLLERS; i++) {
		name = cgroup_controller_names[i];
		if (!seen->is_mounted[i])
			refuse(probe, i,
			       "%s is not mounted: mount -t cgroup -o %s cgroup /sys/fs/cgroup/%s",
			       name, name, name);
		else if (own_dir(seen, i, dir) < 0)
			refuse(probe, i, "the mount of %s does not show our own group", name);
		else
			take_base(probe, i, dir);
	}
}

static int read_words(const char *dir, const char *name, char *ret_text, size_t size)
{
	char path[CGROUP_PATH + 64];

	snprintf(path, sizeof path, "%s/%s", dir, name);
	return cgroup_file_read(AT_FDCWD, path, ret_text, size);
}

static bool has_controller(const char *dir, const char *file)
{
	char text[CGROUP_TEXT];

	if (read_words(dir, file, text, sizeof text) < 0)
		return false;
	for (int i = 0; i < CGROUP_CONTROLLERS; i++)
		if (cgroup_text_has(text, cgroup_controller_names[i]))
			return true;
	return false;
}

/* Only the root of the whole hierarchy has no type; it may hold processes and hand down too. */
static bool can_hand_down(const char *dir)
{
	char text[CGROUP_TEXT];

	if (read_words(dir, "cgroup.type", text, sizeof text) == -ENOENT ||
	    has_controller(dir, "cgroup.subtree_control"))
		return true;
	return has_controller(dir, "cgroup.controllers") &&
	       read_words(dir, "cgroup.procs", text, sizeof text) == 0;
}

/* systemd marks what it delegated; the group says so when it limits what is in it. */
static bool is_border(const char *dir)
{
	static const char *const marks[] = { "user.delegate", "trusted.delegate" };
	static const char *const limits[] = { "memory.max", "memory.high", "cpu.max" };
	char text[CGROUP_TEXT];

	for (size_t i = 0; i < ARRAY_SIZE(marks); i++)
		if (getxattr(dir, marks[i], text, sizeof text) == 1 && text[0] == '1')
			return true;
	for (size_t i = 0; i < ARRAY_SIZE(limits); i++)
		if (read_words(dir, limits[i], text, sizeof text) > 0 && !str_starts(text, "max"))
			return true;
	return false;
}

static bool is_ours(const char *dir)
{
	return may_write(dir, "cgroup.procs") == 0 && may_write(dir, "cgroup.subtree_control") == 0;
}

/* From our own group upwards, as far as we may; *ret_dir holds the own group at first. */
static bool find_parent(const struct seen *seen, char *dir)
{
	char own[CGROUP_PATH];
	char *slash;

	memcpy(own, dir, CGROUP_PATH);
	while (is_ours(dir)) {
		if (can_hand_down(dir))
			return true;
		slash = strrchr(dir, '/');
		if (strlen(dir) <= strlen(seen->mount[V2]) || !slash || seen->is_scope ||
		    is_border(dir))
			break;
		*slash = 0;
	}
	memcpy(dir, own, CGROUP_PATH);
	return false;
}

/* What a user without a group of his own is told. */
static void refuse_undelegated(struct cgroup_probe *probe, const char *dir)
{
	char path[CGROUP_MANAGER_PATH];

	probe->manager_may_help =
		may_write(dir, "cgroup.procs") != -EROFS && cgroup_manager_find(path) == 0;
	refuse_all(probe,
		   may_write(dir, "cgroup.procs") == -EROFS
			   ? "the cgroup mount is read-only: give the container a writable one"
		   : probe->manager_may_help
			   ? "no delegation: each run asks the user manager for a scope"
			   : "no delegation: run under `systemd-run --user --scope -p "
			     "Delegate=yes`");
}

static bool has_any(const struct cgroup_probe *probe)
{
	for (int i = 0; i < CGROUP_CONTROLLERS; i++)
		if (probe->has[i])
			return true;
	return false;
}

/* Once moved to the leaf we are still in the group that it was made for. */
static void leave_leaf(char *dir)
{
	char *name = strrchr(dir, '/');

	if (name && str_is(name + 1, CGROUP_LEAF))
		*name = 0;
}

static void probe_v2(const struct seen *seen, struct cgroup_probe *probe)
{
	char dir[CGROUP_PATH], words[CGROUP_TEXT];

	probe->layout = CGROUP_V2;
	if (own_dir(seen, V2, dir) < 0) {
		refuse_all(probe, "the cgroup mount does not show our own group");
		return;
	}
	leave_leaf(dir);
	probe->needs_leaf = !find_parent(seen, dir);
	if (probe->needs_leaf && !is_ours(dir)) {
		refuse_undelegated(probe, dir);
		return;
	}
	if (read_words(dir, "cgroup.controllers", words, sizeof words) < 0)
		words[0] = 0;
	for (int i = 0; i < CGROUP_CONTROLLERS; i++) {
		const char *name = cgroup_controller_names[i];

		if (cgroup_text_has(words, name))
			take_base(probe, i, dir);
		else
			refuse(probe, i,
			       "%s is not handed down to %.100s: `systemctl edit user@.service`, "
			       "[Service] Delegate=cpu memory pids",
			       name, dir);
	}
	/* One hierarchy: the groups stand there for all, or, if none can be had, nowhere. */
	for (int i = 0; i < CGROUP_CONTROLLERS && has_any(probe); i++)
		snprintf(probe->base[i], CGROUP_PATH, "%.*s/caisson", CGROUP_PATH - 9, dir);
}

/* Is a hierarchy of this type mounted here, and our own group to be seen in it? */
static bool take_usual(struct seen *seen, int which, const char *mount, long type)
{
	char own[CGROUP_PATH];
	struct statfs fs;
	struct stat st;

	if (statfs(mount, &fs) < 0 || (long)fs.f_type != type)
		return false;
	snprintf(seen->mount[which], CGROUP_PATH, "%s", mount);
	snprintf(seen->root[which], CGROUP_PATH, "/");
	seen->is_mounted[which] = own_dir(seen, which, own) == 0 && stat(own, &st) == 0;
	return seen->is_mounted[which];
}

/* The mounts where nearly every system has them: reading mountinfo takes the kernel 70 us, and
 * these questions together a tenth of it. */
static bool take_usual_mounts(struct seen *seen)
{
	char mount[CGROUP_PATH];
	int found = 0;

	if (take_usual(seen, V2, "/sys/fs/cgroup", CGROUP2_SUPER_MAGIC))
		return true;
	for (int i = 0; i < CGROUP_CONTROLLERS; i++) {
		snprintf(mount, sizeof mount, "/sys/fs/cgroup/%s", cgroup_controller_names[i]);
		found += take_usual(seen, i, mount, CGROUP_SUPER_MAGIC);
	}
	return found == CGROUP_CONTROLLERS;
}

static void probe_seen(const struct seen *seen, struct cgroup_probe *ret_probe)
{
	for (int i = 0; i < CGROUP_CONTROLLERS; i++) {
		if (seen->is_mounted[i]) {
			probe_v1(seen, ret_probe);
			return;
		}
	}
	if (seen->is_mounted[V2])
		probe_v2(seen, ret_probe);
	else
		refuse_all(ret_probe, "no control groups: mount -t cgroup2 cgroup2 /sys/fs/cgroup");
}

void cgroup_probe_from(const struct cgroup_sources *sources, struct cgroup_probe *ret_probe)
{
	struct seen seen = { .is_scope = sources->is_scope };

	*ret_probe = (struct cgroup_probe){ .layout = CGROUP_NONE };
	if (each_line(sources->mountinfo, &seen, read_mount) < 0 ||
	    each_line(sources->self_cgroup, &seen, read_self) < 0) {
		refuse_all(ret_probe, "/proc is not readable: mount it");
		return;
	}
	probe_seen(&seen, ret_probe);
}

static void probe_self(bool is_scope, struct cgroup_probe *ret_probe)
{
	const struct cgroup_sources self = { "/proc/self/mountinfo", "/proc/self/cgroup",
					     is_scope };
	struct seen seen = { .is_scope = is_scope };

	if (each_line(self.self_cgroup, &seen, read_self) < 0 || !take_usual_mounts(&seen)) {
		cgroup_probe_from(&self, ret_probe);
		return;
	}
	*ret_probe = (struct cgroup_probe){ .layout = CGROUP_NONE };
	probe_seen(&seen, ret_probe);
}

void cgroup_probe(struct cgroup_probe *ret_probe)
{
	probe_self(false, ret_probe);
}

void cgroup_probe_scope(struct cgroup_probe *ret_probe)
{
	probe_self(true, ret_probe);
}
