/*
 * Which folders of the host are never lent, and which places inside collide.
 *
 * All of it is text about real paths: a link called `data` that points to `/` would pass
 * every comparison here, so links are followed first, by the resolver among the facts. Whoever
 * mounts opens the real path without following a link: one that is put there later is an error.
 */
#include "policy/decide.h"

#include <errno.h>
#include <string.h>

#include "base/path.h"
#include "base/str.h"

int decide_add_text(struct decision *d, const char ***list, const char *text)
{
	struct arena *arena = &d->plan->arena;
	const char **copy;
	size_t count = 0;

	while ((*list)[count])
		count++;
	copy = arena_array(arena, count + 2, sizeof *copy);
	text = arena_text(arena, text);
	if (!copy || !text)
		return decide_no_memory(d);
	if (count)
		memcpy(copy, *list, count * sizeof *copy);
	copy[count] = text;
	*list = copy;
	return 0;
}

static int not_there(struct decision *d, const char *where, const char *path, int code)
{
	if (code == -ENOENT || code == -ENOTDIR)
		return csn_fail(d->err, -ENOENT, "policy",
				"%.120s: %.200s does not exist; create it, or name another", where,
				path);
	return csn_fail(d->err, code, "policy", "%.120s: %.200s cannot be used: %s", where, path,
			strerror(-code));
}

/* Why a path that resolved to `real` is not lent; NULL if nothing speaks against it yet. */
static const char *real_flaw(struct decision *d, enum decide_want want, const char *path,
			     const struct policy_real *real)
{
	const char *project = d->facts->project;

	if (!str_is_utf8(real->path, strlen(real->path)))
		return "leads to a name that is not UTF-8; rename it";
	/* Whoever may write in the project could turn a folder into a link to anything. */
	if (path_is_beneath(path, project) && !path_is_beneath(real->path, project))
		return "leads out of the project by a symbolic link; name the place it means "
		       "instead";
	if (want == WANT_ROOT)
		return NULL;
	if (want == WANT_SOCKET)
		return real->kind == POLICY_SPECIAL ? NULL : "is not a socket";
	/* Whoever listens on a socket acts with his own rights, and a device is no file. */
	if (real->kind == POLICY_SPECIAL)
		return "is a socket, a device or a pipe; only folders and files are lent";
	if (want == WANT_FOLDER && real->kind != POLICY_FOLDER)
		return "is a file; name a folder";
	return NULL;
}

int decide_real(struct decision *d, enum decide_want want, const char *where,
		char path[POLICY_PATH_MAX])
{
	struct policy_real real = { .path = "" };
	const char *flaw;
	int code;

	if (!d->facts->resolve)
		return 0;
	code = d->facts->resolve(path, &real);
	if (code == -ENOENT && want == WANT_ROOT)
		return 0;
	if (code < 0)
		return not_there(d, where, path, code);
	flaw = real_flaw(d, want, path, &real);
	if (flaw)
		return csn_fail(d->err, -EPERM, "policy", "%.120s: %.200s %s", where, path, flaw);
	memcpy(path, real.path, POLICY_PATH_MAX);
	return 0;
}

/* Kernel views and the sockets of the machine's services: nothing in them is a file to lend. */
static bool is_kernel_view(const char *host)
{
	static const char *const views[] = { "/proc", "/sys", "/dev", "/run", "/var/run" };

	if (path_is_beneath(host, "/dev/shm") && !str_is(host, "/dev/shm"))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(views); i++)
		if (path_is_beneath(host, views[i]))
			return true;
	return false;
}

/* Whoever can speak to one of these is root on the host. */
static bool is_service_socket(const char *host)
{
	static const char *const names[] = { "docker.sock",     "podman.sock",
					     "containerd.sock", "crio.sock",
					     "buildkitd.sock",  "system_bus_socket",
					     "libvirt-sock",    NULL };
	const char *slash = strrchr(host, '/');

	return slash && plan_has(names, slash + 1);
}

static bool is_home(const struct policy_facts *facts, const char *host)
{
	return str_is(host, "/home") || str_is(host, "/root") ||
	       (facts->home && path_is_beneath(facts->home, host));
}

/* Why neither a workspace nor a mount may be `host`; NULL if it may. */
static const char *host_flaw(const struct policy_facts *facts, const char *host)
{
	if (str_is(host, "/"))
		return "is the root of the file system";
	if (is_home(facts, host))
		return "is or contains a home directory";
	if (is_kernel_view(host))
		return "belongs to the kernel or to the machine's services";
	if (is_service_socket(host))
		return "is a socket of a privileged service";
	if (facts->run_root && path_is_beneath(host, facts->run_root))
		return "lies in the run root, among the records of other runs";
	if (facts->place && path_is_beneath(host, facts->place))
		return "lies among the sockets of sandboxes that stay";
	return NULL;
}

const char *decide_socket_flaw(const struct policy_facts *facts, const char *path)
{
	if (is_service_socket(path))
		return "is a socket of a privileged service: whoever speaks to it is root";
	if (facts->place && path_is_beneath(path, facts->place))
		return "is the socket of a sandbox that stays: whoever speaks to it is you";
	return NULL;
}

static const char *workspace_flaw(const struct policy_facts *facts, const char *host)
{
	static const char *const folders[] = { "/bin",   "/boot",   "/etc",  "/lib",
					       "/lib32", "/lib64",  "/sbin", "/usr",
					       "/var",   "/libx32", "/opt" };
	const char *flaw = host_flaw(facts, host);

	for (size_t i = 0; !flaw && i < ARRAY_SIZE(folders); i++)
		if (path_is_beneath(folders[i], host))
			flaw = "is a system directory";
	return flaw;
}

const char *decide_mount_flaw(const struct policy_facts *facts, const struct plan_mount *mount)
{
	const char *flaw = host_flaw(facts, mount->host);

	if (!flaw && facts->run_root && path_is_beneath(facts->run_root, mount->host))
		flaw = "contains the run root, with the records of other runs";
	/* Who connects there as the caller is believed to be him: `down`, `exec`, `mount`. */
	if (!flaw && facts->place && path_is_beneath(facts->place, mount->host))
		flaw = "contains the sockets of sandboxes that stay";
	/* What may not be mounted over inside is what may not be written outside. */
	if (!flaw && mount->access == ACCESS_RW && !text_is_inside(mount->host))
		flaw = "is part of the system; mount it ro";
	return flaw;
}

int decide_add_mount(struct decision *d, const struct plan_mount *mount, const char *where)
{
	struct plan *plan = d->plan;
	const char *flaw = decide_mount_flaw(d->facts, mount);
	struct plan_mount *mounts, copy = { .access = mount->access };

	if (flaw)
		return csn_fail(d->err, -EPERM, "policy",
				"%.120s: %.200s %s; mount the one folder that is needed, such as "
				"mounts: [{host: data, at: /data}]",
				where, mount->host, flaw);
	mounts = arena_array(&plan->arena, plan->mount_count + 1, sizeof *mounts);
	copy.host = arena_text(&plan->arena, mount->host);
	copy.at = arena_text(&plan->arena, mount->at);
	if (!mounts || !copy.host || !copy.at)
		return decide_no_memory(d);
	if (plan->mount_count)
		memcpy(mounts, plan->mounts, plan->mount_count * sizeof *mounts);
	mounts[plan->mount_count++] = copy;
	plan->mounts = mounts;
	return 0;
}

static int check_workspace(struct decision *d)
{
	struct plan_workspace *workspace = &d->plan->workspace;
	const char *flaw = workspace_flaw(d->facts, workspace->host);
	char name[201];

	str_escape(workspace->host, false, name, sizeof name);
	if (flaw)
		return csn_fail_lines(
			d->err, -EPERM, "policy",
			"the workspace %s %s; go into a project's folder, or name one "
			"with --workspace DIR or in the policy file:\n%sworkspace: {path: DIR}",
			name, flaw, d->policy ? "" : "version: 1\n");
	if (str_is(workspace->at, "host"))
		workspace->at = workspace->host;
	str_escape(workspace->at, false, name, sizeof name);
	if (!text_is_inside(workspace->at))
		return csn_fail_lines(
			d->err, -EINVAL, "policy",
			"the workspace cannot be at %s inside, where the system is; use "
			"--at /workspace or in the policy file:\n"
			"workspace: {at: /workspace}",
			name);
	if (str_is(workspace->at, d->plan->scratch_at))
		return csn_fail(d->err, -EINVAL, "policy",
				"workspace and scratch space are both at %.200s; move one, such as "
				"--at /workspace",
				workspace->at);
	return 0;
}

/* What a mount at `at` would cover, or NULL. */
static const char *covered(const struct plan *plan, size_t index)
{
	const char *at = plan->mounts[index].at;

	if (path_is_beneath(plan->workspace.at, at))
		return "the workspace";
	if (path_is_beneath(plan->scratch_at, at))
		return "the scratch space";
	for (size_t i = 0; i < index; i++)
		if (path_is_beneath(plan->mounts[i].at, at))
			return "another mount";
	return NULL;
}

int decide_places(struct decision *d)
{
	int code = 0;

	if (d->request->lends_itself)
		d->plan->workspace.host = NULL;
	else
		code = check_workspace(d);

	for (size_t i = 0; code == 0 && i < d->plan->mount_count; i++) {
		const char *what = covered(d->plan, i);

		if (what)
			code = csn_fail(d->err, -EINVAL, "policy",
					"the mount at %.200s would cover %s; choose another place "
					"(what contains another mount comes first in the list)",
					d->plan->mounts[i].at, what);
	}
	return code;
}
