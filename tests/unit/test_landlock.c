/*
 * Landlock: what each grant lets through, by operation; what each ABI adds; signals and
 * sockets across a scope. Everything is tried, nothing is read back.
 */
#include "os/landlock.h"

#include "base/str.h"
#include "own_space.h"

#include <arpa/inet.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>

/* ---- files --------------------------------------------------------------------------------- */

static char top[] = "/tmp/test_landlock.XXXXXX";

static void make_tree(void)
{
	CHECK(mkdtemp(top) && chdir(top) == 0);
	CHECK(mkdir("in", 0755) == 0 && mkdir("in/sub", 0755) == 0 && mkdir("in/empty", 0755) == 0);
	CHECK(mkdir("out", 0755) == 0);
	put_text("in/file", "inside");
	put_text("in/old", "inside");
	put_text("in/script", "#!/bin/sh\n");
	put_text("out/file", "outside");
	CHECK(chmod("in/script", 0755) == 0);
}

static void remove_tree(void)
{
	static const char *const names[] = { "in/file",      "in/old",    "in/new",   "in/renamed",
					     "in/script",    "in/socket", "in/fifo",  "in/made",
					     "in/sub/moved", "in/link",   "out/file", "in/sub",
					     "in/empty",     "in",        "out" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		remove(names[i]);
	rmdir(top);
}

static int closed(int fd)
{
	if (fd < 0)
		return errno;
	close(fd);
	return 0;
}

static int of(int result)
{
	return result < 0 ? errno : 0;
}

static int list_folder(void)
{
	return closed(open("in", O_RDONLY | O_DIRECTORY));
}

static int read_file(void)
{
	return closed(open("in/file", O_RDONLY));
}

static int write_file(void)
{
	return closed(open("in/file", O_WRONLY));
}

static int cut_file(void)
{
	return of(truncate("in/file", 1));
}

static int create_file(void)
{
	return closed(open("in/new", O_WRONLY | O_CREAT, 0644));
}

static int make_folder(void)
{
	return of(mkdir("in/made", 0755));
}

static int remove_folder(void)
{
	return of(rmdir("in/empty"));
}

static int remove_file(void)
{
	return of(unlink("in/old"));
}

static int make_link(void)
{
	return of(symlink("file", "in/link"));
}

static int move_file(void)
{
	return of(rename("in/file", "in/sub/moved"));
}

static int make_fifo(void)
{
	return of(mkfifo("in/fifo", 0644));
}

static int make_socket(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = "in/socket" };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	return of(bind(fd, (struct sockaddr *)&address, sizeof address));
}

static int read_outside(void)
{
	return closed(open("out/file", O_RDONLY));
}

static int write_outside(void)
{
	return closed(open("out/file", O_WRONLY));
}

static int create_outside(void)
{
	return closed(open("out/new", O_WRONLY | O_CREAT, 0644));
}

static int execute_file(void)
{
	int pipe_fds[2], error = 0;
	pid_t pid;

	CHECK(pipe2(pipe_fds, O_CLOEXEC) == 0);
	pid = fork();
	if (pid == 0) {
		execl("in/script", "script", NULL);
		error = errno;
		_exit(write(pipe_fds[1], &error, sizeof error) < 0);
	}
	close(pipe_fds[1]);
	if (read(pipe_fds[0], &error, sizeof error) < 0)
		error = errno;
	close(pipe_fds[0]);
	waitpid(pid, NULL, 0);
	return error;
}

enum {
	L = 1 << LANDLOCK_LIST,
	R = 1 << LANDLOCK_READ,
	D = 1 << LANDLOCK_DEVICE,
	W = 1 << LANDLOCK_WRITE,
	K = 1 << LANDLOCK_KEEP,
	S = 1 << LANDLOCK_SCRATCH
};

static const struct {
	const char *name;
	int (*run)(void);
	unsigned grants; /* of folder `in`, with which it works */
} operations[] = {
	{ "list", list_folder, L | R | D | W | K | S },
	{ "read", read_file, R | D | W | K | S },
	{ "execute", execute_file, R | W | K | S },
	{ "write", write_file, D | W | K | S },
	{ "truncate", cut_file, D | W | K | S },
	{ "create", create_file, W | K | S },
	{ "mkdir", make_folder, W | K | S },
	{ "rmdir", remove_folder, W | K | S },
	{ "unlink", remove_file, W | K | S },
	{ "symlink", make_link, W | K | S },
	{ "fifo", make_fifo, S },
	{ "socket", make_socket, S },
	{ "move", move_file, W | K | S },
	{ "read outside", read_outside, 0 },
	{ "write outside", write_outside, 0 },
	{ "create outside", create_outside, 0 },
};

static int current_abi(void)
{
	int abi = landlock_abi();

	if (abi < LANDLOCK_ABI_FILES)
		SKIP("landlock: the kernel has none");
	return abi;
}

/* Takes on a domain with one grant; also the loader and the shell, for what is executed. */
static void enter_with(int abi, const char *path, enum landlock_grant grant)
{
	int ruleset = landlock_new(abi, false);

	CHECK(ruleset >= 0 && fcntl(ruleset, F_GETFD) == FD_CLOEXEC);
	if (path)
		CHECK(landlock_allow_path(ruleset, abi, path, grant) == 0);
	CHECK(landlock_allow_path(ruleset, abi, "/usr", LANDLOCK_READ) == 0);
	CHECK(landlock_allow_path(ruleset, abi, "/no/such/place", LANDLOCK_READ) == 0);
	CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	CHECK(landlock_enter(ruleset) == 0);
	close(ruleset);
}

static int abi_under_test;
static enum landlock_grant grant_under_test;

static void try_operations(void)
{
	enter_with(abi_under_test, "in", grant_under_test);
	for (size_t i = 0; i < ARRAY_SIZE(operations); i++) {
		bool may = operations[i].grants >> grant_under_test & 1;
		int error = operations[i].run();
		bool is_denied = error == EACCES || error == EXDEV;

		if (may ? error != 0 : !is_denied)
			printf("# grant %d, %s: %s\n", grant_under_test, operations[i].name,
			       strerror(error));
		if (may ? error != 0 : !is_denied)
			_exit(1);
	}
}

static void grants(void)
{
	abi_under_test = current_abi();
	if (abi_under_test < 3)
		SKIP("landlock: ABI %d does not know truncate", abi_under_test);
	for (int grant = LANDLOCK_LIST; grant <= LANDLOCK_SCRATCH; grant++) {
		snprintf(top, sizeof top, "/tmp/test_landlock.XXXXXX");
		make_tree();
		grant_under_test = grant;
		int status = status_of(try_operations);
		remove_tree();
		CHECK(status == 0);
	}
}

/* A file may be granted too: of the rights only those that a file can have. */
static void try_one_file(void)
{
	enter_with(abi_under_test, "in/file", LANDLOCK_SCRATCH);
	if (read_file() != 0 || write_file() != 0 || remove_file() != EACCES ||
	    list_folder() != EACCES || read_outside() != EACCES)
		_exit(1);
}

static void one_file(void)
{
	int status;

	abi_under_test = current_abi();
	make_tree();
	status = status_of(try_one_file);
	remove_tree();
	CHECK(status == 0);
}

/* ---- what each ABI adds -------------------------------------------------------------------- */

static int ioctl_null(void)
{
	struct winsize size;
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	int error = fd < 0 ? errno : of(ioctl(fd, TIOCGWINSZ, &size));

	if (fd >= 0)
		close(fd);
	return error;
}

/* As if the kernel knew no more than `abi_under_test`: what is not handled is not denied. */
static void try_abi(void)
{
	int abi = abi_under_test, ruleset = landlock_new(abi, true);
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	CHECK(ruleset >= 0 && fd >= 0);
	CHECK(landlock_allow_path(ruleset, abi, "in", LANDLOCK_WRITE) == 0);
	CHECK(landlock_allow_path(ruleset, abi, "out", LANDLOCK_READ) == 0);
	CHECK(landlock_allow_path(ruleset, abi, "/dev/null", LANDLOCK_WRITE) == 0);
	CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && landlock_enter(ruleset) == 0);
	CHECK(read_outside() == 0 && write_outside() == EACCES && create_outside() == EACCES);
	CHECK(read_file() == 0 && write_file() == 0 && create_file() == 0);
	CHECK(move_file() == (abi >= 2 ? 0 : EXDEV));
	CHECK(of(truncate("out/file", 1)) == (abi >= 3 ? EACCES : 0));
	CHECK(of(bind(fd, (struct sockaddr *)&address, sizeof address)) ==
	      (abi >= LANDLOCK_ABI_NET ? EACCES : 0));
	address.sin_port = htons(9);
	CHECK(of(connect(fd, (struct sockaddr *)&address, sizeof address)) ==
	      (abi >= LANDLOCK_ABI_NET ? EACCES : ECONNREFUSED));
	CHECK(ioctl_null() == (abi >= 5 ? EACCES : ENOTTY));
	CHECK(of(kill(getppid(), 0)) == (abi >= LANDLOCK_ABI_SCOPE ? EPERM : 0));
}

static void abis(void)
{
	for (int abi = 1; abi <= current_abi(); abi++) {
		snprintf(top, sizeof top, "/tmp/test_landlock.XXXXXX");
		make_tree();
		abi_under_test = abi;
		int status = status_of(try_abi);
		remove_tree();
		if (status != 0)
			printf("# as ABI %d\n", abi);
		CHECK(status == 0);
	}
}

/* A rule on a link would be a rule on what it leads to, and untrusted code makes links. */
static void try_links(void)
{
	int abi = current_abi(), ruleset = landlock_new(abi, false);

	CHECK(symlink("../out", "in/link") == 0 && symlink("loop", "in/loop") == 0);
	CHECK(symlink("out", "way") == 0);
	CHECK(landlock_allow_plain(ruleset, abi, "in/link", LANDLOCK_WRITE) == 0);
	CHECK(landlock_allow_plain(ruleset, abi, "in/loop", LANDLOCK_WRITE) == 0);
	CHECK(landlock_allow_plain(ruleset, abi, "way/file", LANDLOCK_WRITE) == 0);
	CHECK(landlock_allow_plain(ruleset, abi, "missing", LANDLOCK_WRITE) == 0);
	CHECK(landlock_allow_plain(ruleset, abi, "in", LANDLOCK_WRITE) == 0);
	CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && landlock_enter(ruleset) == 0);
	CHECK(read_file() == 0 && create_file() == 0);
	CHECK(read_outside() == EACCES && write_outside() == EACCES);
}

static void links(void)
{
	snprintf(top, sizeof top, "/tmp/test_landlock.XXXXXX");
	make_tree();
	int status = status_of(try_links);
	unlink("in/link");
	unlink("in/loop");
	unlink("way");
	remove_tree();
	CHECK(status == 0);
}

/* Without `tcp` a process binds as before; with the grant of a device it asks devices. */
static void tcp_and_devices(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	enter_with(current_abi(), "/dev/null", LANDLOCK_DEVICE);
	CHECK(bind(fd, (struct sockaddr *)&address, sizeof address) == 0);
	CHECK(ioctl_null() == ENOTTY);
}

/* A domain is taken on by who may not gain privilege, and by nobody else. */
static void needs_no_new_privs(void)
{
	int ruleset = landlock_new(current_abi(), false);

	be_ordinary();
	CHECK(landlock_enter(ruleset) == -EPERM);
	CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && landlock_enter(ruleset) == 0);
	CHECK(landlock_enter(-1) == -EBADF);
}

/* ---- scopes -------------------------------------------------------------------------------- */

static struct sockaddr_un abstract = { .sun_family = AF_UNIX };
static socklen_t abstract_size;

static int listen_abstract(const char *name)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(abstract.sun_path + 1, sizeof abstract.sun_path - 1, "test_landlock.%s.%d", name,
		 getpid());
	abstract_size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
				    strlen(abstract.sun_path + 1));
	CHECK(bind(fd, (struct sockaddr *)&abstract, abstract_size) == 0 && listen(fd, 5) == 0);
	return fd;
}

static int connect_abstract(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int error = of(connect(fd, (struct sockaddr *)&abstract, abstract_size));

	close(fd);
	return error;
}

static void try_scope(void)
{
	pid_t child;

	CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	CHECK(landlock_scope(abi_under_test) == 0);
	CHECK(of(kill(getppid(), 0)) == (abi_under_test >= LANDLOCK_ABI_SCOPE ? EPERM : 0));
	CHECK(connect_abstract() == (abi_under_test >= LANDLOCK_ABI_SCOPE ? EPERM : 0));
	/* within it all is as before, files everywhere too */
	child = fork();
	if (child == 0) {
		pause();
		_exit(0);
	}
	CHECK(kill(child, SIGKILL) == 0 && waitpid(child, NULL, 0) == child);
	listen_abstract("own");
	CHECK(connect_abstract() == 0);
	CHECK(read_outside() == 0 && write_outside() == 0);
}

/* A layer that knows no files denies moves from folder to folder, beneath one that does. */
static void try_scope_beside_files(void)
{
	enter_with(abi_under_test, "in", LANDLOCK_WRITE);
	CHECK(landlock_scope(abi_under_test) == 0);
	CHECK(move_file() == 0 && of(link("in/old", "in/sub/linked")) == 0);
	CHECK(read_outside() == EACCES && of(rename("in/old", "out/new")) == EACCES);
}

static void moves_in_scopes(void)
{
	int status;

	abi_under_test = current_abi();
	if (abi_under_test < LANDLOCK_ABI_SCOPE)
		SKIP("landlock: the kernel has no scopes");
	make_tree();
	status = status_of(try_scope_beside_files);
	remove("in/sub/linked");
	remove_tree();
	CHECK(status == 0);
}

static void scopes(void)
{
	int status;

	listen_abstract("host");
	for (int abi = LANDLOCK_ABI_SCOPE - 1; abi <= LANDLOCK_ABI_SCOPE; abi++) {
		if (current_abi() < LANDLOCK_ABI_SCOPE)
			SKIP("landlock: the kernel has no scopes");
		snprintf(top, sizeof top, "/tmp/test_landlock.XXXXXX");
		make_tree();
		abi_under_test = abi;
		status = status_of(try_scope);
		remove_tree();
		CHECK(status == 0);
	}
}

AS_BOTH(grants)
AS_BOTH(one_file)
AS_BOTH(abis)
AS_BOTH(scopes)
AS_BOTH(moves_in_scopes)

static const struct tap_test tests[] = {
	BOTH_ROWS(grants, "each grant lets through what it names"),
	BOTH_ROWS(one_file, "a single file is granted"),
	BOTH_ROWS(abis, "each ABI denies what it knows"),
	BOTH_ROWS(scopes, "signals and abstract sockets stay inside a scope"),
	BOTH_ROWS(moves_in_scopes, "a scope denies no move from folder to folder"),
	{ "TCP is denied on demand, devices answer", tcp_and_devices },
	{ "a domain needs no_new_privs (ordinary user)", needs_no_new_privs },
	{ "links that untrusted code may have made are not followed", links },
};

TAP_MAIN(tests)
