/* Notes of what must be gone: written before it is made, settled when nobody locks them. */
#include "monitor/pending.h"

#include "base/fd.h"
#include "monitor/scratch.h"
#include "workspace.h"

static char root[96], id[RUN_ID_SIZE], note[200];
static struct pending pending = PENDING_NONE;
static struct protect protect = { .workspace_fd = -1 };

static void make_root(void)
{
	make_workspace();
	CHECK(mkdir("runs", 0700) == 0);
	snprintf(root, sizeof root, "%s/runs", workspace);
	CHECK(record_make_id(id, sizeof id) == 0);
	snprintf(note, sizeof note, "%s/.pending/%s", root, id);
}

static void look(const char *name)
{
	static const char *names[2];

	names[0] = name;
	plan.workspace.protect = names;
	CHECK(protect_look(&plan, true, &arena, &protect, &err) == 0);
	CHECK(pending_open(&pending, root, id, &protect, false) == 0 && exists(note));
}

static void make(const char *name)
{
	look(name);
	CHECK(protect_make(&protect, &plan, &arena, &err) == 0 && exists(name));
}

/* What the end of a process closes. */
static void die(void)
{
	protect_done(&protect);
	pending_done(&pending);
}

static void whole_life(void)
{
	make_root();
	make(".envrc");
	pending_made(&pending, &protect);
	CHECK(pending_sweep(root, NULL) == 0 && exists(".envrc") && exists(note)); /* it lives */
	protect_clean(&protect, 0);
	pending_remove(&pending);
	die();
	CHECK(!exists(".envrc") && !exists("runs/.pending"));
	CHECK(pending_sweep(root, NULL) == 0);
}

static void lost_before_the_mkdir(void)
{
	make_root();
	look(".envrc");
	die();
	CHECK(pending_sweep(root, NULL) == 1 && !exists(note) && !exists("runs/.pending"));
}

static void lost_before_the_second_note(void)
{
	make_root();
	make("dir");
	die();
	CHECK(pending_sweep(root, NULL) == 1 && !exists("dir") && !exists("runs/.pending"));
}

/* Somebody took it for his own by another mode: a note alone does not make it ours. */
static void lost_without_mark(void)
{
	make_root();
	make("dir");
	protect.notes[0].mode = S_IFDIR | 0755;
	CHECK(chmod("dir", 0755) == 0);
	pending_made(&pending, &protect);
	die();
	CHECK(pending_sweep(root, NULL) == 1 && exists("dir"));
}

/* Another run relies on it: the note stays until that one is over. */
static void shared(void)
{
	struct placeholder other = { .fd = -1, .name = "dir" };
	struct placeholder_note held = { 0 };

	make_root();
	make("dir");
	die();
	other.parent_fd = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	CHECK(placeholder_make(&other, &held) == 1);
	CHECK(pending_sweep(root, NULL) == 0 && exists("dir") && exists(note));
	fd_close(other.fd);
	CHECK(pending_sweep(root, NULL) == 1 && !exists("dir") && !exists(note));
}

static void users_own_by_now(void)
{
	make_root();
	make("dir");
	pending_made(&pending, &protect);
	die();
	CHECK(rmdir("dir") == 0);
	make_folder("dir");
	CHECK(pending_sweep(root, NULL) == 1 && exists("dir") && !exists(note));
}

static void scratch(void)
{
	char path[SCRATCH_PATH];
	int fd;

	make_root();
	plan.workspace.access = ACCESS_RO;
	CHECK(protect_look(&plan, true, &arena, &protect, &err) == 0);
	CHECK(pending_open(&pending, root, id, &protect, true) == 0);
	scratch_name(path, id);
	CHECK(scratch_make(path, geteuid(), &fd, &err) == 0);
	die();
	CHECK(pending_sweep(root, NULL) == 0 && exists(path)); /* its lock is held */
	fd_close(fd);
	CHECK(pending_sweep(root, NULL) == 1 && !exists(path) && !exists(note));
}

static void no_root(void)
{
	make_workspace();
	CHECK(protect_look(&plan, true, &arena, &protect, &err) == 0);
	CHECK(record_make_id(id, sizeof id) == 0);
	CHECK(pending_open(&pending, "/no/such/root", id, &protect, true) == -ENOENT);
	CHECK(pending.dir_fd == -1 && pending_sweep("/no/such/root", NULL) == 0);
	pending_remove(&pending);
	pending_made(&pending, &protect);
}

/* Somebody sweeps all the time: a note that could be written stays until its run goes. */
static void swept_meanwhile(void)
{
	int written = 0;
	pid_t pid;

	make_root();
	plan.workspace.access = ACCESS_RO;
	CHECK(protect_look(&plan, true, &arena, &protect, &err) == 0);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pending_sweep(root, NULL);
	}
	for (int i = 0; i < 300; i++) {
		int r = pending_open(&pending, root, id, &protect, true);

		CHECK(r == 0 || r == -ENOENT); /* swept each time */
		if (r < 0)
			continue;
		usleep(i % 8 * 50);
		written += exists(note);
		CHECK(exists(note));
		pending_remove(&pending);
		pending_done(&pending);
	}
	CHECK(written > 200);
	CHECK(kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid);
}

static void forge(const char *text, size_t size)
{
	int fd;

	CHECK(mkdir("runs/.pending", 0700) == 0 || errno == EEXIST);
	fd = open(note, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	CHECK(fd >= 0 && write(fd, text, size) == (ssize_t)size);
	fd_close(fd);
}

/* A note is a hint where to look, whatever it says. */
static void forged(void)
{
	static char text[4096];
	struct stat st;
	size_t n;

	make_root();
	make_folder("mine");
	make_folder("real");
	CHECK(mkdir("real/marked", 01555) == 0 && symlink("real", "link") == 0);
	CHECK(stat("mine", &st) == 0);
	n = (size_t)snprintf(text, sizeof text, "p %s/mine", workspace) + 1;
	n += (size_t)snprintf(text + n, sizeof text - n, "p %s/link/marked", workspace) + 1;
	n += (size_t)snprintf(text + n, sizeof text - n, "p real/marked") + 1;
	n += (size_t)snprintf(text + n, sizeof text - n, "p %s/real/../real/marked", "") + 1;
	n += (size_t)snprintf(text + n, sizeof text - n, "p /..") + 1;
	n += (size_t)snprintf(text + n, sizeof text - n, "p /") + 1;
	n += (size_t)snprintf(text + n, sizeof text - n, "h %ju 1 %u %u %s/mine",
			      (uintmax_t)st.st_dev, st.st_mode, st.st_uid, workspace) +
	     1;
	n += (size_t)snprintf(text + n, sizeof text - n, "h x y z") + 1;
	n += (size_t)snprintf(text + n, sizeof text - n, "h 1 2 3 4") + 1;
	n += (size_t)snprintf(text + n, sizeof text - n, "h") + 1;
	n += (size_t)snprintf(text + n, sizeof text - n, "what is this") + 1;
	n += (size_t)snprintf(text + n, sizeof text - n, "p %s/real/marked", workspace); /* cut */
	forge(text, n);
	CHECK(pending_sweep(root, NULL) == 1);
	CHECK(exists("mine") && exists("real/marked") && exists("link") && !exists(note));
	n = (size_t)snprintf(text, sizeof text, "p %s/real/marked", workspace) + 1;
	forge(text, n); /* the same line, whole */
	CHECK(pending_sweep(root, NULL) == 1 && !exists("real/marked"));
}

static void odd_files(void)
{
	make_root();
	forge("", 0);
	CHECK(pending_sweep(root, NULL) == 1 && !exists(note));
	CHECK(mkdir("runs/.pending", 0700) == 0 && mkfifo(note, 0600) == 0);
	CHECK(pending_sweep(root, NULL) == 0 && exists(note));
	CHECK(unlink(note) == 0 && symlink("/etc/passwd", note) == 0);
	CHECK(pending_sweep(root, NULL) == 0 && exists(note));
	put_text("runs/.pending/no-id", "p /");
	CHECK(pending_sweep(root, NULL) == 0 && exists("runs/.pending/no-id"));
}

AS_BOTH(whole_life)
AS_BOTH(lost_before_the_second_note)

static const struct tap_test tests[] = {
	BOTH_ROWS(whole_life, "written, locked, removed"),
	{ "lost before the placeholder was made", lost_before_the_mkdir },
	BOTH_ROWS(lost_before_the_second_note, "lost before its inode was noted"),
	{ "an inode without the mark is not enough", lost_without_mark },
	{ "another run relies on it", shared },
	{ "what is the user's own by now stays", users_own_by_now },
	{ "a scratch folder is settled too", scratch },
	{ "one that is being made can be swept, and is made again", swept_meanwhile },
	{ "no run root, no note", no_root },
	{ "a forged note does no harm", forged },
	{ "files that are no notes stay", odd_files },
};

TAP_MAIN(tests)
