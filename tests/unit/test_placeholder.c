/* Placeholders: told by mark, note and lock; never anything of somebody else's. */
#include "monitor/placeholder.h"

#include <sys/file.h>

#include "base/fd.h"
#include "workspace.h"

static struct placeholder made = { .fd = -1 };
static struct placeholder_note note;

static int make(const char *name)
{
	err = (struct csn_error){ 0 };
	made = (struct placeholder){ .fd = -1 };
	made.parent_fd = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	snprintf(made.name, sizeof made.name, "%s", name);
	note = (struct placeholder_note){ 0 };
	return placeholder_make(&made, &note);
}

static int take_away(void)
{
	made.fd = fd_close(made.fd);
	return placeholder_remove(made.parent_fd, made.name, &note, 0);
}

static void made_and_removed(void)
{
	struct stat st;

	make_workspace();
	CHECK(make("name") == 1 && note.state == PLACEHOLDER_HELD && made.fd >= 0);
	CHECK(stat("name", &st) == 0 && placeholder_is_marked(&st) && (st.st_mode & 0222) == 0);
	CHECK(st.st_ino == note.ino && st.st_dev == note.dev);
	CHECK(take_away() == 0 && !exists("name"));
	CHECK(take_away() == 0); /* there is nothing to do any more */
}

/* Killed between mkdir() and the note: the mark is all there is. */
static void killed_between(void)
{
	make_workspace();
	CHECK(make("name") == 1);
	note = (struct placeholder_note){ .state = PLACEHOLDER_MEANT };
	CHECK(take_away() == 0 && !exists("name"));
	/* Or before mkdir(), and then somebody made a folder of his own. */
	make_folder("name");
	CHECK(take_away() == 0 && exists("name"));
	CHECK(chmod("name", 0555) == 0 && take_away() == 0 && exists("name"));
	CHECK(chmod("name", 01755) == 0 && take_away() == 0 && exists("name"));
}

static void somebodys_own(void)
{
	struct stat st;

	make_workspace();
	make_folder("folder");
	put_text("file", "x");
	CHECK(symlink("folder", "link") == 0);
	CHECK(make("folder") == 0 && note.state == PLACEHOLDER_NONE);
	CHECK(take_away() == 0 && exists("folder"));
	CHECK(make("file") == 0 && take_away() == 0 && exists("file"));
	CHECK(make("link") == 0 && take_away() == 0 && exists("link") && exists("folder"));
	/* A marked folder of another user is his. */
	CHECK(mkdir("other", 01555) == 0 && stat("other", &st) == 0 && placeholder_is_marked(&st));
	st.st_uid++;
	CHECK(!placeholder_is_marked(&st));
}

/* Replaced by another empty folder while it stood there. */
static void replaced(void)
{
	make_workspace();
	CHECK(make("name") == 1);
	CHECK(rename("name", "away") == 0 && mkdir("name", 01555) == 0);
	CHECK(take_away() == 0 && exists("name") && exists("away"));
	CHECK(rmdir("name") == 0 && rename("away", "name") == 0 && chmod("name", 0755) == 0);
	CHECK(take_away() == 0 && exists("name")); /* somebody took it for his own */
	CHECK(chmod("name", 01500) == 0 && take_away() == 0 && !exists("name"));
}

static void filled(void)
{
	make_workspace();
	CHECK(make("name") == 1 && chmod("name", 0755) == 0);
	put_text("name/file", "x");
	CHECK(chmod("name", 01500) == 0);
	CHECK(take_away() == 0 && exists("name/file"));
}

/* Two runs share it: the first one to go leaves it, the last one takes it along. */
static void shared(void)
{
	struct placeholder_note first;
	struct placeholder one;

	make_workspace();
	CHECK(make("name") == 1);
	one = made;
	first = note;
	CHECK(make("name") == 1 && note.ino == first.ino);
	one.fd = fd_close(one.fd);
	CHECK(placeholder_remove(one.parent_fd, "name", &first, 20) == -EBUSY && exists("name"));
	CHECK(take_away() == 0 && !exists("name"));
}

/* One that is just being removed is waited for, and made anew. */
static void being_removed(void)
{
	int fd, status;
	pid_t pid;

	make_workspace();
	CHECK(make("name") == 1);
	made.fd = fd_close(made.fd);
	fd = open("name", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(flock(fd, LOCK_EX | LOCK_NB) == 0);
	pid = fork();
	if (pid == 0) {
		usleep(30000);
		_exit(rmdir("name") < 0);
	}
	fd_close(fd); /* the child has it still */
	CHECK(make("name") == 1 && exists("name"));
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	CHECK(take_away() == 0 && !exists("name"));
}

/* Another user may open what is open to all, and lock it for as long as he likes. */
static void held_by_another(void)
{
	struct stat st;
	int fd;

	make_workspace();
	CHECK(make("name") == 1 && stat("name", &st) == 0 && (st.st_mode & 077) == 0);
	made.fd = fd_close(made.fd);
	fd = open("name", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(flock(fd, LOCK_EX | LOCK_NB) == 0);
	/* There, not ours to remove, and no reason to leave the name unprotected. */
	CHECK(make("name") == 0 && note.state == PLACEHOLDER_NONE);
	CHECK(take_away() == 0 && exists("name"));
	fd_close(fd);
	CHECK(make("name") == 1 && take_away() == 0 && !exists("name"));
}

static void no_right(void)
{
	be_ordinary();
	make_workspace();
	make_folder("closed");
	CHECK(chmod("closed", 0555) == 0 && chdir("closed") == 0);
	CHECK(make("name") == -EACCES && note.state == PLACEHOLDER_NONE);
}

AS_BOTH(made_and_removed)
AS_BOTH(killed_between)

static const struct tap_test tests[] = {
	BOTH_ROWS(made_and_removed, "made, noted, removed"),
	BOTH_ROWS(killed_between, "the mark tells it before the note does"),
	{ "what is somebody's own stays", somebodys_own },
	{ "another folder in its place stays", replaced },
	{ "what is not empty stays", filled },
	{ "two runs share it, the last one removes it", shared },
	{ "one that is being removed is made anew", being_removed },
	{ "one that is locked for ever is there all the same", held_by_another },
	{ "without the right there is none (ordinary user)", no_right },
};

TAP_MAIN(tests)
