/* A commit whose workspace is edited after it was compared: what a test from outside cannot time.
 */
#include "monitor/copy_commit.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "tap.h"

static char top[] = "/tmp/test_copy.XXXXXX";

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *place)
{
	(void)st, (void)kind, (void)place;
	return remove(path);
}

static void remove_trees(void)
{
	nftw(top, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);

	CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
}

static void expect(const char *path, const char *text)
{
	char bytes[64] = "";
	int fd = open(path, O_RDONLY);

	CHECK(fd >= 0 && read(fd, bytes, sizeof bytes - 1) >= 0);
	close(fd);
	CHECK_STR(bytes, text);
}

struct told {
	int applied, left;
	const char *reason;
};

static void tell(void *data, const struct layer_entry *entry, const char *reason)
{
	struct told *told = data;

	(void)entry;
	told->applied += !reason;
	told->left += !!reason;
	told->reason = reason ? reason : told->reason;
}

/* <top>/run/cow/upper over <top>/ws; what each test fills. */
static void begin(void)
{
	static const char *const folders[] = { "run", "run/cow", "run/cow/upper", "ws", "ws/d" };

	CHECK(mkdtemp(top) && chdir(top) == 0);
	for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
		CHECK(mkdir(folders[i], 0755) == 0);
	put("ws/a", "old\n");
	put("ws/gone", "old\n");
}

/* Compares; then somebody edits; then it is applied. */
static struct told commit(void (*edit)(void), bool is_forced)
{
	char workspace[64];
	const struct copy_facts facts = { .run_id = "20260102-030405-abcdef123456",
					  .workspace = workspace };
	struct copy copy = COPY_NONE;
	struct copy_book book = COPY_BOOK_NONE;
	struct told told = { 0 };
	struct csn_error err;
	const struct copy_commit work = {
		.copy = &copy, .book = &book, .is_forced = is_forced, .tell = tell, .data = &told
	};
	int run_fd = open("run", O_RDONLY | O_DIRECTORY);

	snprintf(workspace, sizeof workspace, "%s/ws", top);
	CHECK(copy_open(&copy, run_fd, &facts, &err) == 0);
	CHECK(copy_book_open(&book, copy.cow_fd, true, &err) == 0);
	if (edit)
		edit();
	copy_commit_all(&work);
	CHECK(access("ws/.caisson-20260102-030405-abcdef123456", F_OK) < 0);
	copy_book_done(&book);
	copy_done(&copy);
	close(run_fd);
	return told;
}

static void write_a(void)
{
	put("ws/a", "mine\n");
}

static void replace_a(void)
{
	put("ws/other", "mine\n");
	CHECK(rename("ws/other", "ws/a") == 0);
}

static void write_new(void)
{
	put("ws/new", "mine\n");
}

static void write_gone(void)
{
	put("ws/gone", "mine\n");
}

static void an_edit_in_between_is_kept(void)
{
	struct told told;

	begin();
	put("run/cow/upper/a", "theirs\n");
	told = commit(write_a, false);
	CHECK(told.applied == 0 && told.left == 1 &&
	      strstr(told.reason, "changed in the workspace"));
	expect("ws/a", "mine\n");
	told = commit(replace_a, false);
	CHECK(told.applied == 0 && told.left == 1);
	told = commit(write_a, true);
	CHECK(told.applied == 1);
	expect("ws/a", "theirs\n");
	remove_trees();
}

static void a_new_name_in_between_is_kept(void)
{
	struct told told;

	begin();
	put("run/cow/upper/new", "theirs\n");
	told = commit(write_new, false);
	CHECK(told.left == 1 && strstr(told.reason, "changed in the workspace"));
	expect("ws/new", "mine\n");
	CHECK(unlink("run/cow/upper/new") == 0 && symlink("a", "run/cow/upper/new") == 0);
	CHECK(unlink("ws/new") == 0);
	CHECK(commit(write_new, false).left == 1);
	expect("ws/new", "mine\n");
	remove_trees();
}

static void what_changed_is_not_deleted(void)
{
	begin();
	if (mknod("run/cow/upper/gone", S_IFCHR, makedev(0, 0)) < 0)
		SKIP("whiteouts: %s", strerror(errno));
	CHECK(commit(write_gone, false).left == 1);
	expect("ws/gone", "mine\n");
	CHECK(commit(NULL, false).applied == 1 && access("ws/gone", F_OK) < 0);
	remove_trees();
}

static void an_unwritable_top_is_no_hindrance(void)
{
	if (geteuid() == 0 && setresuid(65533, 65533, 65533) < 0)
		SKIP("users: %s", strerror(errno));
	begin();
	CHECK(mkdir("run/cow/upper/d", 0755) == 0);
	put("run/cow/upper/d/in", "theirs\n");
	put("ws/d/in", "old\n");
	CHECK(chmod("ws", 0555) == 0);
	CHECK(commit(NULL, false).applied == 1);
	CHECK(chmod("ws", 0755) == 0);
	expect("ws/d/in", "theirs\n");
	CHECK(access("ws/d/.caisson-20260102-030405-abcdef123456", F_OK) < 0);
	remove_trees();
}

static const struct tap_test tests[] = {
	{ "an edit in between is kept", an_edit_in_between_is_kept },
	{ "a new name in between is kept", a_new_name_in_between_is_kept },
	{ "what changed is not deleted", what_changed_is_not_deleted },
	{ "an unwritable top is no hindrance", an_unwritable_top_is_no_hindrance },
};

TAP_MAIN(tests)
