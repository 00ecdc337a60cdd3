/* Scratch folders in /tmp: made, locked, removed, and swept when nobody lives in them. */
#include "monitor/scratch.h"

#include "audit/audit.h"
#include "base/fd.h"
#include "workspace.h"

static char id[RUN_ID_SIZE], path[SCRATCH_PATH];

static int make(void)
{
	int fd = -1;

	CHECK(record_make_id(id, sizeof id) == 0);
	scratch_name(path, id);
	CHECK(scratch_make(path, geteuid(), &fd, &err) == 0 && fd >= 0);
	return fd;
}

static void made_and_removed(void)
{
	struct stat st;
	int fd;

	make_workspace();
	fd = make();
	CHECK(stat(path, &st) == 0 && (st.st_mode & 0777) == 0700);
	CHECK(scratch_make(path, geteuid(), &fd, &err) == -EEXIST && err.text[0]);
	scratch_remove(path);
	CHECK(!exists(path));
}

static void swept(void)
{
	char inside[SCRATCH_PATH + 8];
	int fd;

	make_workspace();
	fd = make();
	CHECK(!scratch_sweep_one(id) && exists(path)); /* somebody lives in it */
	snprintf(inside, sizeof inside, "%s/deep", path);
	make_folder(inside);
	CHECK(chmod(inside, 0) == 0 && chmod(path, 0) == 0); /* whatever its program did to it */
	fd_close(fd);
	CHECK(scratch_sweep_one(id) && !exists(path));
	CHECK(scratch_sweep_one(id)); /* there is none */
	fd_close(make());
	CHECK(scratch_sweep(NULL) >= 1 && !exists(path));
}

static void swept_user(void)
{
	be_ordinary();
	swept();
}

/* Somebody sweeps all the time: what is made exists nevertheless, once it is locked. */
static void being_made(void)
{
	char home[SCRATCH_PATH + 8];
	int fd, made = 0;
	pid_t pid;

	make_workspace();
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			scratch_sweep(NULL);
	}
	for (int i = 0; i < 300; i++) {
		CHECK(record_make_id(id, sizeof id) == 0);
		scratch_name(path, id);
		if (scratch_make(path, geteuid(), &fd, &err) == -EBUSY)
			continue; /* swept each time */
		snprintf(home, sizeof home, "%s/home", path);
		made += exists(home);
		CHECK(exists(home));
		fd_close(fd);
	}
	CHECK(made > 200);
	CHECK(kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid);
	scratch_sweep(NULL);
	CHECK(!exists(path));
}

static void not_ours(void)
{
	make_workspace();
	CHECK(record_make_id(id, sizeof id) == 0);
	scratch_name(path, id);
	/* A link of that name leads to somebody's folder. */
	make_folder("victim");
	make_folder("victim/sub");
	CHECK(symlink(workspace, path) == 0);
	CHECK(!scratch_sweep_one(id) && exists("victim/sub") && exists(path));
	CHECK(unlink(path) == 0);
	put_text(path, "x");
	CHECK(!scratch_sweep_one(id) && exists(path));
	CHECK(unlink(path) == 0);
	CHECK(!scratch_sweep_one("../etc") && !scratch_sweep_one("") && !scratch_sweep_one("x"));
}

/* Another user's folder of that name, with whatever he put in it. */
static void another_users(void)
{
	if (geteuid() != 0)
		SKIP("root: the tests were started by an ordinary user");
	make_workspace();
	fd_close(make());
	CHECK(chown(path, 12345, 12345) == 0);
	CHECK(!scratch_sweep_one(id) && exists(path));
	CHECK(chown(path, 1879048192 + 77, 1879048192 + 77) == 0); /* of a sandbox that root ran */
	CHECK(scratch_sweep_one(id) && !exists(path));
}

static const struct tap_test tests[] = {
	{ "made, private, removed", made_and_removed },
	{ "swept when nobody holds its lock", swept },
	{ "swept when nobody holds its lock (ordinary user)", swept_user },
	{ "one that is being made can be swept, and is made again", being_made },
	{ "links and files of that name stay", not_ours },
	{ "another user's stays", another_users },
};

TAP_MAIN(tests)
