/*
 * The command line of a container; see argv.h. In the order in which a reader asks: what it is, who
 * it is, what it may, how much, and what it sees.
 */
#include "backend/engine/argv.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/path.h"
#include "base/str.h"

enum { SHM_MOST = 64 << 20, SHM_SHARE = 8, FILES_LEAST = 256, PROCESSES_MOST = 16384 };

struct line {
	struct arena *arena;
	char **items;
	size_t count;
	int result;
};

static void add(struct line *line, const char *word)
{
	if (word)
		line->items[line->count++] = (char *)(uintptr_t)word;
	else
		line->result = -ENOMEM;
}

static void add_words(struct line *line, const char *const *words)
{
	for (; *words; words++)
		add(line, *words);
}

/* "--name=value". */
#define ADD(line, ...) add(line, arena_printf((line)->arena, __VA_ARGS__))

/* How it is started: attached by pipes, named and labelled for whoever cleans up, kept nowhere. */
static void add_manner(struct line *line, const struct engine_box *box)
{
	static const char *const both[] = { "run",
					    "--rm",
					    "--interactive",
					    "--pull=never",
					    "--log-driver=none",
					    "--sig-proxy=false",
					    "--no-healthcheck",
					    NULL };
	static const char *const of_podman[] = { "--http-proxy=false", "--read-only-tmpfs=false",
						 "--image-volume=ignore", NULL };

	if (box->facts->runtime[0])
		ADD(line, "--runtime=%s", box->facts->runtime);
	add_words(line, both);
	if (box->engine->is_podman)
		add_words(line, of_podman);
	ADD(line, "--name=" ENGINE_PREFIX "%s", box->how->sandbox_id);
	ADD(line, "--label=" ENGINE_LABEL "=%s", box->how->sandbox_id);
	ADD(line, "--label=" ENGINE_LABEL_KEEP "=%s", box->keep);
	if (box->how->run_root)
		ADD(line, "--label=" ENGINE_LABEL_RECORD "=%s/%s", box->how->run_root,
		    box->how->sandbox_id);
}

/* What it may: nothing that a limit does not name. */
static void add_walls(struct line *line, const struct engine_box *box)
{
	static const char *const all[] = { "--read-only",
					   "--cap-drop=ALL",
					   "--security-opt=no-new-privileges",
					   "--ipc=private",
					   "--cgroupns=private",
					   "--hostname=caisson",
					   "--workdir=/",
					   NULL };

	/* Named, since a configuration can make the host's own the default. */
	bool is_lent = box->plan->network == NETWORK_ENGINE;
	const char *lent = box->engine->is_podman ? "private" : "bridge";

	add_words(line, all);
	ADD(line, "--network=%s", is_lent ? lent : "none");
	ADD(line, "--security-opt=seccomp=%s/seccomp%s.json", box->keep,
	    is_lent || plan_forwards_ports(box->plan) ? "-net" : "");
	/* A label would have to be written on the caller's own files. */
	if (box->facts->has_selinux)
		add(line, "--security-opt=label=disable");
	if (box->engine->is_podman && box->facts->is_rootless)
		ADD(line, "--userns=keep-id:uid=%u,gid=%u", (unsigned)box->uid, (unsigned)box->gid);
	ADD(line, "--user=%u:%u", (unsigned)box->uid, (unsigned)box->gid);
}

/*
 * podman asks for as many processes and files as the kernel has room for, which is more than it may
 * give itself where root is not almighty (a container, a small machine): it then starts nothing. A
 * number that all may have is no wall: the engine's pids controller is. Where there is none, and
 * the ids are the container's own, it is the limit itself.
 */
static void add_processes(struct line *line, const struct engine_box *box)
{
	uint64_t limit = box->plan->limits.processes, count = PROCESSES_MOST;

	if (!box->engine->is_podman)
		return;
	if (!box->facts->holds_processes && box->facts->is_rootless && limit < count)
		count = limit + box->how->own_processes;
	ADD(line, "--ulimit=nproc=%llu:%llu", (unsigned long long)count, (unsigned long long)count);
}

static void add_limits(struct line *line, const struct engine_box *box)
{
	const struct plan_limits *limits = &box->plan->limits;
	const struct engine_facts *facts = box->facts;
	uint64_t files = limits->open_files < FILES_LEAST ? FILES_LEAST : limits->open_files;

	if (facts->holds_processes && limits->processes != PLAN_UNLIMITED)
		ADD(line, "--pids-limit=%llu",
		    (unsigned long long)limits->processes + box->how->own_processes);
	else
		add(line, "--pids-limit=-1");
	if (facts->holds_memory && limits->mem_bytes != PLAN_UNLIMITED) {
		ADD(line, "--memory=%llu", (unsigned long long)limits->mem_bytes);
		ADD(line, "--memory-swap=%llu", (unsigned long long)limits->mem_bytes);
	}
	if (facts->holds_cpu && limits->cpu_milli != PLAN_UNLIMITED)
		ADD(line, "--cpus=%llu.%03u", (unsigned long long)(limits->cpu_milli / 1000),
		    (unsigned)(limits->cpu_milli % 1000));
	/* 1, not 0: for 0 a pipe in core_pattern is started all the same. */
	add(line, "--ulimit=core=1:1");
	if (limits->open_files != PLAN_UNLIMITED)
		ADD(line, "--ulimit=nofile=%llu:%llu", (unsigned long long)files,
		    (unsigned long long)files);
	add_processes(line, box);
}

/* Scratch: /dev/shm has a part of it, the rest is one file system. */
static void add_scratch(struct line *line, const struct engine_box *box)
{
	uint64_t size = box->plan->limits.scratch_bytes, shm = size / SHM_SHARE;
	const char *at = box->plan->scratch_at;
	char bound[32] = "";

	if (size == PLAN_UNLIMITED || shm > SHM_MOST)
		shm = SHM_MOST;
	if (size != PLAN_UNLIMITED)
		snprintf(bound, sizeof bound, ",size=%llu", (unsigned long long)(size - shm));
	ADD(line, "--shm-size=%llu", (unsigned long long)shm);
	ADD(line, "--tmpfs=/tmp:rw,exec,nosuid,nodev,mode=1777%s", bound);
	if (!str_is(at, "/tmp") && !path_is_beneath(at, "/tmp"))
		ADD(line, "--tmpfs=%s:rw,exec,nosuid,nodev,mode=1777%s", at, bound);
	for (const char *const *volume = box->volumes; volume && *volume; volume++)
		ADD(line, "--tmpfs=%s:ro,noexec,nosuid,nodev,size=4k", *volume);
}

static void add_bind(struct line *line, const char *source, const char *at, bool is_writable)
{
	ADD(line, "--mount=type=bind,source=%s,target=%s%s,bind-propagation=rprivate", source, at,
	    is_writable ? "" : ",readonly");
}

static void add_binds(struct line *line, const struct binds *binds)
{
	for (size_t i = 0; i < binds->count; i++)
		add_bind(line, binds->items[i].source, binds->items[i].at,
			 binds->items[i].is_writable);
}

static void add_view(struct line *line, const struct engine_box *box)
{
	add_scratch(line, box);
	add_binds(line, box->own);
	add_binds(line, box->binds);
	add_bind(line, box->agent, ENGINE_AGENT "/caisson-agent", false);
	if (box->search)
		add_bind(line, box->search, ENGINE_AGENT "/caisson-search", false);
}

int engine_argv(const struct engine_box *box, struct arena *arena, struct piped_program *client,
		size_t count)
{
	struct line line = { .arena = arena,
			     .items = (char **)(uintptr_t)client->argv,
			     .count = count };

	add_manner(&line, box);
	add_walls(&line, box);
	add_limits(&line, box);
	add_view(&line, box);
	add(&line, "--entrypoint=" ENGINE_AGENT "/caisson-agent");
	add(&line, box->image);
	add(&line, "--stdio");
	add(&line, "/tmp/home");
	line.items[line.count] = NULL;
	return line.result;
}
