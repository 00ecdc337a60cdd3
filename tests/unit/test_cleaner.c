/* The cleaner: sleeps while its monitor lives, and does the work when it is gone. */
#include "monitor/cleaner.h"

#include <sys/ptrace.h>

#include "base/fd.h"
#include "os/sys.h"
#include "workspace.h"

static struct protect protect = { .workspace_fd = -1 };
static struct cleaner cleaner = CLEANER_NONE;
static struct cleaner_work work = { .id = "29991231-235959-unit", .protect = &protect };

static void look(void)
{
	static const char *names[] = { ".envrc", "dir/hooks", NULL };

	make_workspace();
	make_folder("dir");
	plan.workspace.protect = names;
	CHECK(protect_look(&plan, true, &arena, &protect, &err) == 0);
}

static void start(void)
{
	look();
	CHECK(cleaner_is_needed(&work) && cleaner_start(&work, &cleaner) == 0 && cleaner.pid > 0);
	CHECK(protect_make(&protect, &plan, &arena, &err) == 0);
	CHECK(exists(".envrc") && exists("dir/hooks"));
}

/* The monitor's end, as far as the cleaner sees it. */
static void die(void)
{
	protect_done(&protect);
	fd_close(cleaner.socket);
}

static void wait_for_it(void)
{
	int status;

	CHECK(waitpid(cleaner.pid, &status, 0) == cleaner.pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void not_needed(void)
{
	make_workspace();
	plan.workspace.protect = NULL;
	CHECK(protect_look(&plan, true, &arena, &protect, &err) == 0);
	CHECK(!cleaner_is_needed(&work));
	cleaner_stop(&cleaner); /* there is none */
	cleaner_watch(&cleaner, 1, false);
	cleaner_clean(&work, NULL);
}

static void let_go(void)
{
	start();
	cleaner_stop(&cleaner);
	CHECK(cleaner.pid == -1 && exists(".envrc")); /* it was told that all is done */
	cleaner_clean(&work, NULL);
	CHECK(!exists(".envrc") && !exists("dir/hooks"));
}

static void monitor_died(void)
{
	start();
	die();
	wait_for_it();
	CHECK(!exists(".envrc") && !exists("dir/hooks") && exists("dir"));
}

/* Before anything was made, and between two of them. */
static void monitor_died_early(void)
{
	look();
	CHECK(cleaner_start(&work, &cleaner) == 0);
	CHECK(placeholder_make(&protect.placeholders[1], &protect.notes[1]) == 1);
	CHECK(exists("dir/hooks"));
	make_folder(".envrc"); /* somebody's own, where ours was meant to be */
	die();
	wait_for_it();
	CHECK(exists(".envrc") && !exists("dir/hooks"));
}

/* A wall whose end takes a while: a tracer holds it there. */
static pid_t make_wall(void)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		fd_close(cleaner.socket); /* a real one executes something */
		protect_done(&protect);
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		raise(SIGSTOP);
		for (;;)
			pause();
	}
	CHECK(waitpid(pid, &status, 0) == pid && WIFSTOPPED(status));
	CHECK(ptrace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_TRACEEXIT | PTRACE_O_EXITKILL) == 0);
	CHECK(ptrace(PTRACE_CONT, pid, 0, 0) == 0);
	return pid;
}

static void wall_ends_first(void)
{
	int status, pidfd;
	pid_t wall;

	start();
	wall = make_wall();
	pidfd = sys_pidfd_open(wall);
	CHECK(pidfd >= 0);
	cleaner_watch(&cleaner, pidfd, false);
	fd_close(pidfd);
	die();
	CHECK(waitpid(wall, &status, 0) == wall && WIFSTOPPED(status)); /* killed, not gone yet */
	CHECK(status >> 8 == (SIGTRAP | PTRACE_EVENT_EXIT << 8));
	usleep(200000);
	CHECK(exists(".envrc") && exists("dir/hooks"));
	CHECK(ptrace(PTRACE_CONT, wall, 0, 0) == 0);
	CHECK(waitpid(wall, &status, 0) == wall && WIFSIGNALED(status));
	wait_for_it();
	CHECK(!exists(".envrc") && !exists("dir/hooks"));
}

AS_BOTH(monitor_died)

static const struct tap_test tests[] = {
	{ "nothing to remove, no cleaner", not_needed },
	{ "told that all is done it removes nothing", let_go },
	BOTH_ROWS(monitor_died, "when its monitor dies it removes what was made"),
	{ "whatever the monitor had come to", monitor_died_early },
	{ "nothing is removed before the wall has ended", wall_ends_first },
};

TAP_MAIN(tests)
