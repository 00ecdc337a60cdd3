/*
 * Starting a program that speaks frames on its standard streams; see piped.h. What it says is
 * hostile, and what it complains of is bounded by a seal: nobody has to read it for it to go on.
 */
#include "backend/piped.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "backend/channels.h"
#include "base/fd.h"
#include "base/program.h"
#include "base/str.h"
#include "launch/launch.h"
#include "os/sys.h"

extern char **environ;

enum { COMPLAINTS_SIZE = 64 << 10, ENV_MORE_MAX = 32 };

static const char folders[] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/* What a program of the caller's needs to find his configuration; nothing of it goes inside. */
static const char *const passed[] = { "HOME", "USER", "LOGNAME", "LANG" };

static int make_complaints(void)
{
	_cleanup_fd_ int fd = memfd_create("complaints", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 || ftruncate(fd, COMPLAINTS_SIZE) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) < 0)
		return -errno;
	return fd_take(&fd);
}

/* Adds NAME=VALUE if the caller has it. */
static int pass(const char *name, char **env, size_t *count, struct arena *arena)
{
	const char *value = program_variable((const char *const *)environ, name);

	if (!value)
		return 0;
	env[*count] = arena_printf(arena, "%s=%s", name, value);
	return env[(*count)++] ? 0 : -ENOMEM;
}

char **piped_env(const char *last_folder, const char *const *more, struct arena *arena)
{
	char **env = arena_array(arena, ARRAY_SIZE(passed) + ENV_MORE_MAX + 2, sizeof *env);
	size_t count = 1;
	int r = 0;

	if (!env)
		return NULL;
	env[0] = arena_printf(arena, "PATH=%s%s%s", folders, last_folder ? ":" : "",
			      last_folder ? last_folder : "");
	if (!env[0])
		return NULL;
	for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(passed); i++)
		r = pass(passed[i], env, &count, arena);
	for (size_t i = 0; r >= 0 && more && more[i] && i < ENV_MORE_MAX; i++)
		r = pass(more[i], env, &count, arena);
	return r < 0 ? NULL : env;
}

const char *piped_path(char *const *env)
{
	return env[0] + strlen("PATH=");
}

int piped_launch(const struct piped *piped, struct launch *launch, struct wall *wall)
{
	const struct piped_program *program = piped->program;
	const struct backend_start *how = piped->how;
	struct channels channels = CHANNELS_NONE;
	int r = channels_make(&channels, wall, false);

	if (r >= 0)
		wall->complaints = r = make_complaints();
	if (r >= 0) {
		channels_fill(&channels, piped->plan, how, launch);
		launch->program = program->path;
		launch->agent_argv = program->argv;
		launch->env = program->env;
		launch->stderr_fd = wall->complaints;
		wall->pid = r = sys_clone(0, &wall->pidfd, how->clone_group);
	}
	if (wall->pid == 0) {
		close(wall->life);
		launch_run(launch, piped->steps);
	}
	channels_done(&channels);
	return r;
}

int piped_start(const struct piped_program *program, const struct plan *plan,
		const struct backend_start *how, struct wall *ret_wall, struct csn_error *err)
{
	const struct piped piped = { program, plan, how, launch_command_steps };
	struct launch *launch = launch_new();
	struct wall wall = WALL_NONE;
	int r = launch ? 0 : -ENOMEM;

	wall.kernel_uid = geteuid();
	if (r >= 0)
		r = piped_launch(&piped, launch, &wall);
	free(launch);
	if (r < 0) {
		wall_done(&wall);
		return csn_fail(err, r, "start", "cannot start %s: %s", program->path,
				strerror(-r));
	}
	*ret_wall = wall;
	return 0;
}
