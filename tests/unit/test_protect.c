/* Protected names: frozen where they are, placeholders where they are not, and gone afterwards. */
#include "monitor/protect.h"

#include <signal.h>

#include "base/clock.h"
#include "monitor/protect_walk.h"
#include "workspace.h"

static struct protect protect;
static bool may_freeze_links = true;

static int open_names(const char **names)
{
	int r;

	plan.workspace.protect = names;
	err = (struct csn_error){ 0 };
	r = protect_look(&plan, may_freeze_links, &arena, &protect, &err);
	return r < 0 ? r : protect_make(&protect, &plan, &arena, &err);
}
#define OPEN(...) open_names((const char *[]){ __VA_ARGS__, NULL })

static void close_names(void)
{
	protect_clean(&protect, 0);
	protect_done(&protect);
	CHECK(protect.workspace_fd == -1);
}

static void present(void)
{
	make_workspace();
	make_folder(".git");
	make_folder(".git/hooks");
	put_text(".git/config", "x");
	put_text(".envrc", "x");
	CHECK(OPEN(".git/hooks", ".git/config", ".envrc") == 0);
	expect_list((const char *const *)protect.frozen, ".envrc .git/config .git/hooks ");
	expect_list((const char *const *)protect.not_enforced, "");
	CHECK(protect.placeholder_count == 0);
	close_names();
	CHECK(exists(".git/hooks") && exists(".git/config") && exists(".envrc"));
}

/* What is absent could be created and run on the host later: an empty folder takes its place. */
static void absent(void)
{
	struct stat st;

	make_workspace();
	make_folder(".git");
	CHECK(OPEN(".git/hooks", ".envrc", "a/b/c") == 0);
	expect_list((const char *const *)protect.frozen, ".envrc .git/hooks a ");
	expect_list((const char *const *)protect.not_enforced, "");
	CHECK(protect.placeholder_count == 3);
	CHECK(stat(".git/hooks", &st) == 0 && S_ISDIR(st.st_mode) && (st.st_mode & 0222) == 0);
	CHECK(exists(".envrc") && exists("a") && !exists("a/b"));
	close_names();
	CHECK(!exists(".git/hooks") && !exists(".envrc") && !exists("a") && exists(".git"));
}

/* Two names beneath one that is absent: its placeholder holds them both. */
static void absent_together(void)
{
	make_workspace();
	CHECK(OPEN(".git/hooks", ".git/config") == 0);
	expect_list((const char *const *)protect.frozen, ".git ");
	expect_list((const char *const *)protect.not_enforced, "");
	close_names();
	CHECK(!exists(".git"));
}

/* Only an empty folder is ours: what somebody put there meanwhile stays. */
static void used_meanwhile(void)
{
	make_workspace();
	CHECK(OPEN(".envrc", "hooks", "gone", "swapped") == 0);
	CHECK(chmod("hooks", 0755) == 0);
	put_text("hooks/post-commit", "x");
	CHECK(rmdir(".envrc") == 0);
	put_text(".envrc", "x");
	CHECK(rmdir("gone") == 0);
	make_folder("elsewhere");
	CHECK(rmdir("swapped") == 0 && symlink("elsewhere", "swapped") == 0);
	close_names();
	CHECK(exists("hooks/post-commit") && exists(".envrc") && exists("elsewhere"));
}

/* The folder of a placeholder was moved away and a link put there: nothing of the host's goes. */
static void moved_meanwhile(void)
{
	make_workspace();
	make_folder("dir");
	make_folder("victim");
	make_folder("victim/name");
	CHECK(OPEN("dir/name") == 0);
	CHECK(rename("dir", "away") == 0 && symlink("victim", "dir") == 0);
	close_names();
	CHECK(exists("victim/name") && !exists("away/name"));
}

/* The folder of a placeholder is another one by the time it is made: that name is not held. */
static void moved_before_the_making(void)
{
	const char *names[] = { "dir/name", NULL };

	make_workspace();
	make_folder("dir");
	plan.workspace.protect = names;
	CHECK(protect_look(&plan, true, &arena, &protect, &err) == 0);
	CHECK(rename("dir", "away") == 0);
	make_folder("dir");
	CHECK(protect_make(&protect, &plan, &arena, &err) == 0 && exists("away/name"));
	protect_recheck(&protect);
	expect_list((const char *const *)protect.not_enforced, "dir/name ");
	close_names();
	CHECK(!exists("away/name") && !exists("dir/name"));
}

/* As a program of another run in the same workspace can, as fast as it can. */
static pid_t start_mover(void)
{
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid > 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(60);
	for (;;) {
		rename("a/b", "b");
		rename("b", "a/b");
	}
}

/* `..` of a folder that is moved during the walk is above the workspace: nothing is made there. */
static void moved_during_the_walk(void)
{
	static char inner[128];
	uint64_t end_ms;
	pid_t mover;

	make_workspace();
	snprintf(inner, sizeof inner, "%s/inner", workspace);
	make_folder("inner");
	CHECK(chdir(inner) == 0);
	plan.workspace.host = inner;
	make_folder("a");
	make_folder("a/b");
	put_text(".git", "gitdir: a/b/../../outside\n");
	mover = start_mover();
	end_ms = clock_now_ms() + 700;
	while (clock_now_ms() < end_ms) {
		CHECK(OPEN(".git/hooks") == 0);
		CHECK(!exists("../outside"));
		close_names();
		arena_done(&arena);
		arena_init(&arena, 8 << 20);
	}
	CHECK(kill(mover, SIGKILL) == 0 && waitpid(mover, NULL, 0) == mover);
}

/* The same, at the one instant that matters: the walk has come to a link in a/b. */
static int move_at_link(void *context, const struct protect_point *point)
{
	struct stat *parent = context;

	if (point->kind == PROTECT_LINK)
		CHECK(rename("a/b", "b") == 0);
	return point->kind == PROTECT_ABSENT ? fstat(point->parent_fd, parent) : 0;
}

static void moved_at_a_link(void)
{
	static const char *const none[] = { NULL };
	struct stat parent = { 0 }, own;
	struct protect_walk walk = { .plan = &plan,
				     .frozen = none,
				     .may_freeze_links = true,
				     .freeze = move_at_link,
				     .context = &parent };

	make_workspace();
	make_folder("a");
	make_folder("a/b");
	CHECK(symlink("../../outside", "a/b/link") == 0);
	walk.workspace_fd = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(protect_walk(&walk, "a/b/link") == 1);
	CHECK(stat(".", &own) == 0 && own.st_dev == parent.st_dev && own.st_ino == parent.st_ino);
}

/* Each folder on the way is held open: there is an end to it, and it is told. */
static void deep_names(void)
{
	char path[256] = "";
	size_t size = 0;

	make_workspace();
	for (int i = 0; i < 64; i++, size += 2) {
		snprintf(path + size, sizeof path - size, "d/");
		make_folder(path);
	}
	snprintf(path + size, sizeof path - size, "x");
	CHECK(OPEN(path) == 0 && exists(path));
	CHECK(!protect.not_enforced[0] && protect.placeholder_count == 1);
	close_names();
	CHECK(!exists(path));
	CHECK(mkdir(path, 0755) == 0);
	snprintf(path + size, sizeof path - size, "x/y");
	CHECK(OPEN(path) == 0 && !exists(path));
	CHECK(protect.not_enforced[0] && !protect.not_enforced[1] && !protect.frozen[0]);
	close_names();
}

static void make_links(void)
{
	make_workspace();
	make_folder("real");
	put_text("real/config", "x");
	CHECK(symlink("real", ".git") == 0 && symlink("real/config", ".envrc") == 0);
	CHECK(symlink("nowhere", "dangling") == 0 && symlink("/", "root") == 0);
}

/* The link cannot be replaced, and what it leads to is frozen; outside nothing is made. */
static void links(void)
{
	make_links();
	CHECK(OPEN(".git/config", ".envrc", "dangling", "root/etc/passwd", "root/new") == 0);
	expect_list((const char *const *)protect.frozen,
		    ".envrc .git dangling nowhere real/config root ");
	expect_list((const char *const *)protect.not_enforced, "");
	CHECK(protect.placeholder_count == 1 && !exists("/new") && exists("nowhere"));
	close_names();
	CHECK(!exists("nowhere") && exists("dangling"));
}

/* Not by a wall that can mount nothing over one: said, not enforced in silence. */
static void links_that_stay(void)
{
	make_links();
	may_freeze_links = false;
	CHECK(OPEN(".git/config", ".envrc", "dangling", "root/etc/passwd", "root/new") == 0);
	expect_list((const char *const *)protect.frozen, "");
	expect_list((const char *const *)protect.not_enforced,
		    ".envrc .git/config dangling root/etc/passwd root/new ");
	CHECK(protect.placeholder_count == 0 && !exists("/new") && !exists("nowhere"));
	close_names();
}

static void link_to(const char *target, const char *frozen, const char *not_enforced)
{
	CHECK(symlink(target, "hooks") == 0);
	CHECK(OPEN("hooks/deep") == 0);
	expect_list((const char *const *)protect.frozen, frozen);
	expect_list((const char *const *)protect.not_enforced, not_enforced);
	close_names();
	CHECK(unlink("hooks") == 0);
}

/* Each way back into the workspace is walked, and a chain has an end. */
static void ways_back(void)
{
	char path[256];

	make_workspace();
	make_folder("a");
	make_folder("a/b");
	CHECK(symlink("b/../../c", "a/again") == 0);
	link_to("a/b", "a/b/deep hooks ", "");
	link_to("./a//b/.", "a/b/deep hooks ", "");
	link_to("a/again/../x", "a/again c hooks ", "");
	snprintf(path, sizeof path, "%s/a", workspace);
	link_to(path, "a/deep hooks ", "");
	snprintf(path, sizeof path, "../%s/a", strrchr(workspace, '/') + 1);
	link_to(path, "a/deep hooks ", "");
	/* What is absolute goes through links of the workspace, too. */
	snprintf(path, sizeof path, "%s/a/again/../a", workspace);
	link_to(path, "a/again c hooks ", "");
	snprintf(path, sizeof path, "%s/none/../a", workspace);
	link_to(path, "hooks none ", "");
	link_to("/none/x", "hooks ", "");
	link_to("/proc/self/cwd", "hooks ", "hooks/deep ");
	link_to("hooks", "hooks ", "hooks/deep ");
	link_to("..", "hooks ", "");
	/* The workspace itself, or what holds it. */
	CHECK(symlink(workspace, "whole") == 0 && symlink("..", "above") == 0);
	CHECK(OPEN("whole", "above") == 0);
	expect_list((const char *const *)protect.frozen, "above whole ");
	expect_list((const char *const *)protect.not_enforced, "above whole ");
	close_names();
}

/* What is outside, and lent for writing, is open. */
static void lent_outside(void)
{
	struct plan_mount mounts[] = { { .host = "/usr", .at = "/usr", .access = ACCESS_RO },
				       { .host = "/var/tmp", .at = "/x", .access = ACCESS_RW } };

	make_workspace();
	plan.mounts = mounts;
	plan.mount_count = ARRAY_SIZE(mounts);
	link_to("/usr/lib", "hooks ", "");
	link_to("/var/tmp/none", "hooks ", "hooks/deep ");
	plan.mounts = NULL;
	plan.mount_count = 0;
}

/* A worktree or a submodule: .git is a file, and may lead into the workspace. */
static void git_files(void)
{
	char text[256];

	make_workspace();
	put_text(".git", "gitdir: /none/worktrees/x\n");
	CHECK(OPEN(".git/hooks", ".git/config") == 0);
	expect_list((const char *const *)protect.frozen, ".git ");
	expect_list((const char *const *)protect.not_enforced, "");
	close_names();
	make_folder("main");
	make_folder("main/git");
	make_folder("main/git/worktrees");
	make_folder("main/git/worktrees/x");
	put_text("main/git/config", "x");
	put_text(".git", "gitdir: main/git");
	CHECK(OPEN(".git/hooks", ".git/config") == 0);
	expect_list((const char *const *)protect.frozen, ".git main/git/config main/git/hooks ");
	expect_list((const char *const *)protect.not_enforced, "");
	close_names();
	put_text("main/git/worktrees/x/commondir", "../..\n");
	for (int i = 0; i < 3; i++) {
		const char *above[] = { ".", workspace, ".." };

		snprintf(text, sizeof text, "gitdir: %s%s/main/git/worktrees/x\n", above[i],
			 i == 2 ? strrchr(workspace, '/') : "");
		put_text(".git", text);
		CHECK(OPEN(".git/hooks", ".git/config") == 0);
		expect_list((const char *const *)protect.frozen,
			    ".git main/git/config main/git/hooks "
			    "main/git/worktrees/x/commondir ");
		expect_list((const char *const *)protect.not_enforced, "");
		close_names();
	}
}

/* git reads hooks and configuration where a commondir of the very .git says. */
static void common_folder(void)
{
	make_workspace();
	make_folder(".git");
	make_folder("other");
	put_text(".git/commondir", "../other\n");
	CHECK(OPEN(".git/hooks") == 0);
	expect_list((const char *const *)protect.frozen, ".git/commondir other/hooks ");
	close_names();
}

static void behind_a_file(void)
{
	make_workspace();
	put_text("file", "x");
	CHECK(OPEN("file/name") == 0);
	/* A frozen file cannot become a folder. */
	expect_list((const char *const *)protect.frozen, "file ");
	expect_list((const char *const *)protect.not_enforced, "");
	close_names();
	CHECK(OPEN("file/name", "file") == 0);
	expect_list((const char *const *)protect.frozen, "file ");
	expect_list((const char *const *)protect.not_enforced, "");
	close_names();
}

static void odd_names(void)
{
	char name[400];

	make_workspace();
	memset(name, 'n', sizeof name - 1);
	name[sizeof name - 1] = 0;
	CHECK(OPEN("", "/", "a//b", name) == 0);
	expect_list((const char *const *)protect.frozen, "a ");
	CHECK(protect.not_enforced[0] && protect.not_enforced[2] && !protect.not_enforced[3]);
	close_names();
	CHECK(!exists("a"));
}

static void modes(void)
{
	make_workspace();
	plan.workspace.access = ACCESS_RO; /* nothing can be written: nothing to do */
	CHECK(OPEN(".envrc") == 0 && protect.placeholder_count == 0 && !exists(".envrc"));
	expect_list((const char *const *)protect.frozen, "");
	protect_clean(&protect, 0);
	protect_done(&protect);
	plan.workspace.access = ACCESS_COW; /* nothing reaches the host; commit refuses it */
	CHECK(OPEN(".envrc") == 0 && !exists(".envrc"));
	expect_list((const char *const *)protect.frozen, "");
	close_names();
}

/* The policy file in force is read-only in every mode that writes, and only if it lies there. */
static void policy_file(void)
{
	char path[128];

	make_workspace();
	put_text("caisson.yaml", "x");
	snprintf(path, sizeof path, "%s/caisson.yaml", workspace);
	plan.policy_path = path;
	plan.workspace.access = ACCESS_COW;
	CHECK(OPEN(".envrc") == 0);
	expect_list((const char *const *)protect.frozen, "caisson.yaml ");
	close_names();
	plan.workspace.access = ACCESS_RW;
	CHECK(OPEN(".envrc") == 0);
	expect_list((const char *const *)protect.frozen, ".envrc caisson.yaml ");
	close_names();
	plan.policy_path = "/etc/caisson.yaml";
	CHECK(OPEN(".envrc") == 0);
	expect_list((const char *const *)protect.frozen, ".envrc ");
	close_names();
	snprintf(path, sizeof path, "%s-beside/caisson.yaml", workspace); /* begins alike */
	plan.policy_path = path;
	CHECK(OPEN(".envrc") == 0);
	expect_list((const char *const *)protect.frozen, ".envrc ");
	close_names();
}

static void missing_workspace(void)
{
	make_workspace();
	plan.workspace.host = "/no/such/folder";
	CHECK(OPEN(".envrc") == -ENOENT && strstr(err.text, "/no/such/folder"));
	plan.workspace.host = NULL;
	CHECK(OPEN(".envrc") == 0 && protect.workspace_fd == -1);
}

/* What the caller may not create in is listed. */
static void unwritable(void)
{
	make_workspace();
	make_folder("closed");
	CHECK(chmod("closed", 0555) == 0);
	CHECK(OPEN("closed/name") == 0);
	expect_list((const char *const *)protect.not_enforced, "closed/name ");
	expect_list((const char *const *)protect.frozen, "");
	close_names();
}

static void unwritable_user(void)
{
	be_ordinary();
	unwritable();
}

static void too_many(void)
{
	static char texts[PROTECT_MAX + 1][16];
	const char *names[PROTECT_MAX + 2] = { NULL };

	make_workspace();
	for (int i = 0; i <= PROTECT_MAX; i++) {
		snprintf(texts[i], sizeof texts[i], "name-%d", i);
		names[i] = texts[i];
	}
	CHECK(open_names(names) < 0 && err.text[0]);
	close_names();
	CHECK(!exists("name-0") && !exists("name-63") && !exists("name-64"));
	names[PROTECT_MAX] = NULL;
	CHECK(open_names(names) == 0 && protect.placeholder_count == PROTECT_MAX);
	close_names();
	CHECK(!exists("name-0") && !exists("name-63"));
}

AS_BOTH(present)
AS_BOTH(absent)
AS_BOTH(absent_together)
AS_BOTH(used_meanwhile)
AS_BOTH(moved_meanwhile)
AS_BOTH(links)
AS_BOTH(git_files)

static const struct tap_test tests[] = {
	BOTH_ROWS(present, "what is there is frozen"),
	BOTH_ROWS(absent, "what is not there gets a placeholder, for a while"),
	BOTH_ROWS(absent_together, "names beneath one that is not there share its placeholder"),
	BOTH_ROWS(used_meanwhile, "only our own empty folders are removed"),
	BOTH_ROWS(moved_meanwhile, "a placeholder is found where its folder went"),
	{ "a placeholder elsewhere than its name does not hold it", moved_before_the_making },
	{ "nothing is made outside while folders are moved", moved_during_the_walk },
	{ "nothing is made outside where a folder was moved", moved_at_a_link },
	{ "deep names", deep_names },
	BOTH_ROWS(links, "links are frozen, and what they lead to"),
	{ "links that the wall cannot freeze are listed as not enforced", links_that_stay },
	{ "ways out of the workspace and back in", ways_back },
	{ "what is lent for writing is open", lent_outside },
	BOTH_ROWS(git_files, "a .git that is a file, and what it names"),
	{ "a commondir", common_folder },
	{ "names behind files", behind_a_file },
	{ "odd names", odd_names },
	{ "ro and cow need no placeholders", modes },
	{ "the policy file in force is frozen", policy_file },
	{ "no workspace", missing_workspace },
	{ "what cannot be made is listed (ordinary user)", unwritable_user },
	{ "names have a limit", too_many },
};

TAP_MAIN(tests)
