/* A layer and a workspace made by hand: what is listed, in which order, and what is never followed.
 */
#include "os/layer.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#include "tap.h"

static char top[] = "/tmp/test_layer.XXXXXX";

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *place)
{
	(void)st, (void)kind, (void)place;
	return remove(path);
}

static void remove_trees(void)
{
	nftw(top, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* Two folders beneath a new one of this test's own. */
static void make_trees(int *ret_upper, int *ret_lower)
{
	CHECK(mkdtemp(top) && chdir(top) == 0);
	CHECK(mkdir("upper", 0755) == 0 && mkdir("lower", 0755) == 0);
	*ret_upper = open("upper", O_RDONLY | O_DIRECTORY);
	*ret_lower = open("lower", O_RDONLY | O_DIRECTORY);
	CHECK(*ret_upper >= 0 && *ret_lower >= 0);
}

static void write_file(int dir_fd, const char *path, const char *text)
{
	int fd = openat(dir_fd, path, O_WRONLY | O_CREAT, 0644);

	CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
}

static void expect(const struct layer *layer, const char *wanted)
{
	static const char letters[] = { 'A', 'M', 'D' };
	char text[4096] = "";

	for (size_t i = 0; i < layer->count; i++)
		snprintf(text + strlen(text), sizeof text - strlen(text), "%c%s ",
			 letters[layer->entries[i].change], layer->entries[i].path);
	CHECK_STR(text, wanted);
}

static void lists_in_order(void)
{
	struct layer layer;
	int upper, lower;

	make_trees(&upper, &lower);
	write_file(lower, "same", "x");
	write_file(upper, "same", "x");
	write_file(lower, "changed", "x");
	write_file(upper, "changed", "y");
	CHECK(mkdirat(lower, "tree", 0755) == 0 && mkdirat(lower, "tree/in", 0755) == 0);
	write_file(lower, "tree/in/file", "x");
	write_file(upper, "tree", "now a file");
	CHECK(mkdirat(upper, "new", 0755) == 0);
	write_file(upper, "new/file", "x");
	CHECK(layer_read(upper, lower, &layer, NULL) == 0);
	expect(&layer, "Mchanged Anew Anew/file Dtree/in/file Dtree/in Dtree Atree ");
	layer_done(&layer);
	remove_trees();
}

static void whiteouts_and_opaque_folders(void)
{
	struct layer layer;
	int upper, lower;

	make_trees(&upper, &lower);
	write_file(lower, "gone", "x");
	CHECK(mknodat(upper, "gone", S_IFCHR | 0600, makedev(0, 0)) == 0);
	CHECK(mknodat(upper, "never-was", S_IFCHR | 0600, makedev(0, 0)) == 0);
	CHECK(mkdirat(lower, "opaque", 0755) == 0 && mkdirat(lower, "opaque/deep", 0755) == 0);
	write_file(lower, "opaque/hidden", "x");
	write_file(lower, "opaque/deep/hidden", "x");
	CHECK(mkdirat(upper, "opaque", 0755) == 0 && mkdirat(upper, "opaque/deep", 0755) == 0);
	if (setxattr("upper/opaque", "user.overlay.opaque", "y", 1, 0) < 0) {
		remove_trees();
		SKIP("xattr: /tmp has no user attributes");
	}
	CHECK(layer_read(upper, lower, &layer, NULL) == 0);
	expect(&layer, "Dgone Dopaque/hidden Dopaque/deep/hidden ");
	layer_done(&layer);
	remove_trees();
}

static void links_are_never_followed(void)
{
	struct layer layer;
	const char *name;
	int upper, lower;

	make_trees(&upper, &lower);
	CHECK(symlinkat("/etc", lower, "out") == 0 && symlinkat("/etc", upper, "link") == 0);
	CHECK(layer_read(upper, lower, &layer, NULL) == 0);
	expect(&layer, "Alink ");
	layer_done(&layer);
	CHECK(layer_open(lower, "out/passwd", 0) == -ELOOP);
	CHECK(layer_open(lower, "out", O_DIRECTORY) < 0);
	CHECK(layer_open(lower, "../upper/link", 0) == -EXDEV);
	CHECK(layer_open(lower, "/etc/passwd", 0) == -EXDEV);
	CHECK(layer_open_parent(lower, "out/passwd", &name) < 0);
	CHECK(layer_open_parent(lower, "../x", &name) == -EXDEV);
	CHECK(layer_open_parent(lower, "file", &name) >= 0);
	CHECK_STR(name, "file");
	remove_trees();
}

static void foreign_layers_are_refused(void)
{
	struct csn_error err = { 0 };
	struct layer layer;
	int upper, lower;

	make_trees(&upper, &lower);
	CHECK(mkdirat(upper, "moved", 0755) == 0);
	if (setxattr("upper/moved", "user.overlay.redirect", "/etc", 4, 0) < 0) {
		remove_trees();
		SKIP("xattr: /tmp has no user attributes");
	}
	CHECK(layer_read(upper, lower, &layer, &err) == -EPROTO && strstr(err.text, "redirect"));
	remove_trees();
}

static void depth_is_bounded(void)
{
	struct csn_error err = { 0 };
	struct layer layer;
	int upper, lower;

	make_trees(&upper, &lower);
	CHECK(fchdir(upper) == 0);
	for (int i = 0; i <= LAYER_MAX_DEPTH; i++)
		CHECK(mkdir("d", 0755) == 0 && chdir("d") == 0);
	CHECK(layer_read(upper, lower, &layer, &err) == -E2BIG && strstr(err.text, "too deep"));
	remove_trees();
}

static const struct tap_test tests[] = {
	{ "lists in the order of applying", lists_in_order },
	{ "whiteouts and opaque folders", whiteouts_and_opaque_folders },
	{ "links are never followed", links_are_never_followed },
	{ "foreign layers are refused", foreign_layers_are_refused },
	{ "depth is bounded", depth_is_bounded },
};

TAP_MAIN(tests)
