/*
 * Asking an engine what it is; see facts.h. What it answers decides what is refused, so nothing is
 * guessed: an answer that lacks a word means the engine lacks the thing.
 *
 * An engine elsewhere (another machine, a virtual one, the host of the container we are in) knows
 * other files by the names that we would mount. Its own words give it away: the address of the
 * client, the kernel and the name of its machine.
 */
#include "backend/engine/facts.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "backend/engine/ask.h"
#include "backend/engine/keep.h"
#include "base/program.h"
#include "base/str.h"

extern char **environ;

enum { ARENA_QUOTA = 256 << 10, INFO_MS = 10000, CLIENT_ARGS = 4 };

const struct engine engine_docker = { .name = "docker", .package = "docker.io or docker-ce" };
const struct engine engine_podman = { .name = "podman", .is_podman = true, .package = "podman" };

/* Where a client finds its daemon, its images and its configuration. */
static const char *const variables[] = {
	"DOCKER_HOST",
	"DOCKER_CONTEXT",
	"DOCKER_CONFIG",
	"DOCKER_TLS_VERIFY",
	"DOCKER_CERT_PATH",
	"XDG_RUNTIME_DIR",
	"XDG_CONFIG_HOME",
	"XDG_DATA_HOME",
	"CONTAINER_HOST",
	"CONTAINERS_CONF",
	"CONTAINERS_STORAGE_CONF",
	"DBUS_SESSION_BUS_ADDRESS",
	NULL,
};

static const char *variable(const char *name)
{
	const char *value = program_variable((const char *const *)environ, name);

	return value ? value : "";
}

int engine_client(const struct engine *engine, struct arena *arena, size_t more,
		  struct piped_program *ret_client, size_t *ret_count)
{
	char **env = piped_env(NULL, variables, arena), path[PATH_MAX];
	char **argv = arena_array(arena, more + CLIENT_ARGS, sizeof *argv);

	if (!env || !argv)
		return -ENOMEM;
	if (!program_find(engine->name, piped_path(env), path))
		return -ENOENT;
	argv[0] = arena_text(arena, path);
	if (!argv[0])
		return -ENOMEM;
	*ret_client = (struct piped_program){ .path = argv[0], .argv = argv, .env = env };
	*ret_count = 1;
	return 0;
}

/* ---- what it says ---------------------------------------------------------------------------- */

static bool says(const json_t *object, const char *key)
{
	return json_is_true(json_object_get(object, key));
}

static const char *word(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

static bool lists(const json_t *array, const char *start)
{
	size_t i;
	json_t *item;

	json_array_foreach(array, i, item) {
		const char *text = json_string_value(item);

		if (text && str_starts(text, start))
			return true;
	}
	return false;
}

static int elsewhere(char ret_cause[256], const char *where, const char *what)
{
	snprintf(ret_cause, 256,
		 "its engine is elsewhere (%s %.60s): it cannot bind-mount the agent and the "
		 "workspace of this machine",
		 where, what);
	return -ENOTSUP;
}

static int read_docker(const json_t *info, struct engine_facts *facts, char ret_cause[256])
{
	const json_t *options = json_object_get(info, "SecurityOptions");
	struct utsname here;

	uname(&here);
	if (!str_is(word(info, "KernelVersion"), here.release))
		return elsewhere(ret_cause, "its kernel is", word(info, "KernelVersion"));
	if (!str_is(word(info, "Name"), here.nodename))
		return elsewhere(ret_cause, "its machine is", word(info, "Name"));
	snprintf(facts->version, sizeof facts->version, "%s", word(info, "ServerVersion"));
	facts->is_rootless = lists(options, "name=rootless");
	facts->has_userns = lists(options, "name=userns");
	facts->has_selinux = lists(options, "name=selinux");
	facts->holds_memory = says(info, "MemoryLimit");
	facts->holds_processes = says(info, "PidsLimit");
	facts->holds_cpu = says(info, "CpuCfsQuota");
	facts->has_groups_v1 = str_is(word(info, "CgroupVersion"), "1");
	return 0;
}

/* crun takes no machine on which both generations of control groups are mounted; runc does. */
static void choose_runtime(const json_t *host, struct engine_facts *facts)
{
	char path[PATH_MAX];

	if (str_is(word(host, "cgroupVersion"), "v1") &&
	    str_is(word(json_object_get(host, "ociRuntime"), "name"), "crun") &&
	    program_find("runc", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin", path))
		snprintf(facts->runtime, sizeof facts->runtime, "runc");
}

static int read_podman(const json_t *info, struct engine_facts *facts, char ret_cause[256])
{
	const json_t *host = json_object_get(info, "host"), *groups;
	const json_t *security = json_object_get(host, "security");
	bool holds;

	if (says(host, "serviceIsRemote"))
		return elsewhere(ret_cause, "it says", "serviceIsRemote");
	snprintf(facts->version, sizeof facts->version, "%s",
		 word(json_object_get(info, "version"), "Version"));
	facts->is_rootless = says(security, "rootless");
	facts->has_selinux = says(security, "selinuxEnabled");
	groups = json_object_get(host, "cgroupControllers");
	/* An ordinary user may not make groups of the first generation, whatever is listed. */
	facts->has_groups_v1 = str_is(word(host, "cgroupVersion"), "v1");
	holds = !facts->is_rootless || !facts->has_groups_v1;
	facts->holds_memory = holds && lists(groups, "memory");
	facts->holds_processes = holds && lists(groups, "pids");
	facts->holds_cpu = holds && (lists(groups, "cpu"));
	choose_runtime(host, facts);
	return 0;
}

/* ---- where it is ----------------------------------------------------------------------------- */

static int check_address(const char *address, char ret_cause[256])
{
	if (!*address || str_starts(address, "unix://") || address[0] == '/')
		return 0;
	return elsewhere(ret_cause, "its address is", address);
}

static int check_variables(const struct engine *engine, char ret_cause[256])
{
	return check_address(variable(engine->is_podman ? "CONTAINER_HOST" : "DOCKER_HOST"),
			     ret_cause);
}

/* A context of the caller's names an address too. */
static int check_context(const struct engine *engine, const json_t *info, char ret_cause[256])
{
	const char *context = word(json_object_get(info, "ClientInfo"), "Context");
	_cleanup_arena_ struct arena arena;
	_cleanup_buf_ struct buf answer;
	struct piped_program client;
	struct ask ask = { .timeout_ms = INFO_MS };
	size_t n;

	arena_init(&arena, ARENA_QUOTA);
	buf_init(&answer, 4096);
	if (engine->is_podman || !*context || str_is(context, "default") ||
	    *variable("DOCKER_HOST"))
		return 0;
	if (engine_client(engine, &arena, 8, &client, &n) < 0)
		return -ENOTSUP;
	for (size_t i = 0; i < 4; i++)
		((char **)(uintptr_t)client.argv)[n++] = (char *)(uintptr_t)((const char *[]){
			"context", "inspect", "--format", "{{.Endpoints.docker.Host}}" }[i]);
	ask.path = client.path;
	ask.argv = client.argv;
	ask.env = client.env;
	if (ask_run(&ask, &answer, NULL) != 0 || !buf_text(&answer))
		return elsewhere(ret_cause, "its context is", context);
	return check_address(buf_text(&answer), ret_cause);
}

/* ---- the answer, kept ------------------------------------------------------------------------ */

static void add_file(struct buf *key, const char *path)
{
	struct stat st = { 0 };

	if (*path && stat(path, &st) == 0)
		buf_printf(key, "%s %llu %lld.%ld\n", path, (unsigned long long)st.st_ino,
			   (long long)st.st_ctim.tv_sec, st.st_ctim.tv_nsec);
}

/* A daemon that was started again has another socket. */
static int make_key(const struct engine *engine, const char *program, struct buf *key)
{
	const char *host = variable("DOCKER_HOST"), *config = variable("DOCKER_CONFIG");
	char path[PATH_MAX];

	add_file(key, program);
	for (size_t i = 0; variables[i]; i++)
		buf_printf(key, "%s=%s\n", variables[i], variable(variables[i]));
	if (engine->is_podman) {
		add_file(key, variable("CONTAINERS_CONF"));
		add_file(key, "/etc/containers/containers.conf");
	} else {
		add_file(key, str_starts(host, "unix://") ? host + strlen("unix://")
							  : "/var/run/docker.sock");
		snprintf(path, sizeof path, "%s%s/config.json", *config ? config : variable("HOME"),
			 *config ? "" : "/.docker");
		add_file(key, path);
	}
	return buf_text(key) ? 0 : -ENOMEM;
}

static const struct {
	const char *key;
	size_t at;
} flags[] = {
	{ "rootless", offsetof(struct engine_facts, is_rootless) },
	{ "userns", offsetof(struct engine_facts, has_userns) },
	{ "selinux", offsetof(struct engine_facts, has_selinux) },
	{ "memory", offsetof(struct engine_facts, holds_memory) },
	{ "processes", offsetof(struct engine_facts, holds_processes) },
	{ "cpu", offsetof(struct engine_facts, holds_cpu) },
	{ "groups-v1", offsetof(struct engine_facts, has_groups_v1) },
};

static bool read_kept(const struct engine *engine, struct buf *key, struct engine_facts *facts)
{
	json_t *kept = keep_read(engine->name);
	bool is_same = str_is(word(kept, "key"), buf_text(key));

	for (size_t i = 0; is_same && i < ARRAY_SIZE(flags); i++)
		*(bool *)((char *)facts + flags[i].at) = says(kept, flags[i].key);
	snprintf(facts->version, sizeof facts->version, "%s", word(kept, "version"));
	snprintf(facts->runtime, sizeof facts->runtime, "%s", word(kept, "runtime"));
	json_decref(kept);
	return is_same;
}

static void keep_facts(const struct engine *engine, struct buf *key,
		       const struct engine_facts *facts)
{
	json_t *object = json_pack("{s:s, s:s, s:s}", "key", buf_text(key), "version",
				   facts->version, "runtime", facts->runtime);

	for (size_t i = 0; i < ARRAY_SIZE(flags); i++)
		json_object_set_new(
			object, flags[i].key,
			json_boolean(*(const bool *)((const char *)facts + flags[i].at)));
	keep_write(engine->name, object);
	json_decref(object);
}

static int cannot_ask(const struct engine *engine, int r, const char *complaint,
		      char ret_cause[256], char ret_fix[256])
{
	if (r == -ETIMEDOUT)
		snprintf(ret_cause, 256, "%s info gave no answer for %d s", engine->name,
			 INFO_MS / 1000);
	else
		snprintf(ret_cause, 256, "%s info: %.150s", engine->name,
			 *complaint ? complaint : "no answer");
	snprintf(ret_fix, 256,
		 engine->is_podman ? "`podman info` says more"
				   : "Start its daemon, and see that you may use it: `docker info` "
				     "says more");
	return -ENOTSUP;
}

static int ask_info(const struct engine *engine, const struct piped_program *client,
		    struct engine_facts *facts, char ret_cause[256], char ret_fix[256])
{
	char *argv[] = { client->argv[0], (char *)"info", (char *)"--format",
			 (char *)(uintptr_t)(engine->is_podman ? "json" : "{{json .}}"), NULL };
	struct ask ask = { client->path, argv, client->env, NULL, INFO_MS };
	char complaint[ASK_COMPLAINT] = "";
	_cleanup_buf_ struct buf answer;
	json_t *info;
	int r;

	buf_init(&answer, ASK_OUTPUT_MAX);
	r = ask_run(&ask, &answer, complaint);
	info = r == 0 ? json_loadb((const char *)buf_at(&answer), buf_size(&answer), 0, NULL)
		      : NULL;
	if (!info || (!engine->is_podman && !*word(info, "ServerVersion"))) {
		json_decref(info);
		return cannot_ask(engine, r, complaint, ret_cause, ret_fix);
	}
	r = check_context(engine, info, ret_cause);
	if (r >= 0)
		r = engine->is_podman ? read_podman(info, facts, ret_cause)
				      : read_docker(info, facts, ret_cause);
	json_decref(info);
	return r;
}

int engine_facts(const struct engine *engine, bool is_fresh, struct engine_facts *ret_facts,
		 char ret_cause[256], char ret_fix[256])
{
	_cleanup_arena_ struct arena arena;
	_cleanup_buf_ struct buf key;
	struct piped_program client;
	size_t count;
	int r;

	*ret_facts = (struct engine_facts){ .version = "" };
	ret_cause[0] = ret_fix[0] = 0;
	arena_init(&arena, ARENA_QUOTA);
	buf_init(&key, 16 << 10);
	snprintf(ret_fix, 256, "Take an engine on this machine, or another wall");
	r = check_variables(engine, ret_cause);
	if (r < 0)
		return r;
	r = engine_client(engine, &arena, 4, &client, &count);
	if (r < 0) {
		snprintf(ret_cause, 256, "there is no %s on this machine", engine->name);
		snprintf(ret_fix, 256, "Install it: the package is %s", engine->package);
		return -ENOTSUP;
	}
	r = make_key(engine, client.path, &key);
	if (r < 0 || is_fresh || !read_kept(engine, &key, ret_facts)) {
		r = ask_info(engine, &client, ret_facts, ret_cause, ret_fix);
		if (r < 0)
			return r;
		keep_facts(engine, &key, ret_facts);
	}
	ret_fix[0] = 0;
	return 0;
}
