/* Landlock; see landlock.h. Rights by ABI are a table: what a kernel does not know is not asked
 * for. */
#include "os/landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <linux/openat2.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "os/sys.h"

#define READ_FILE LANDLOCK_ACCESS_FS_READ_FILE
#define WRITE_FILE LANDLOCK_ACCESS_FS_WRITE_FILE
#define EXECUTE LANDLOCK_ACCESS_FS_EXECUTE
#define READ_DIR LANDLOCK_ACCESS_FS_READ_DIR
#define REFER (UINT64_C(1) << 13)     /* ABI 2 */
#define TRUNCATE (UINT64_C(1) << 14)  /* ABI 3 */
#define IOCTL_DEV (UINT64_C(1) << 15) /* ABI 5 */
#define ON_FILES (READ_FILE | WRITE_FILE | EXECUTE | TRUNCATE | IOCTL_DEV)
#define REMOVE (LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE)
#define MAKE \
	(LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_SYM)

/* As the kernel has it since ABI 6; a shorter size is passed to older ones. */
struct ruleset_attr {
	uint64_t fs;
	uint64_t net;
	uint64_t scoped;
};

enum { NET_BIND = 1, NET_CONNECT = 2, SCOPE_ABSTRACT = 1, SCOPE_SIGNAL = 2 };

/* Flags of ABI 7: no line in the machine's audit log for what is denied before the next exec, nor
 * for domains that a program makes inside. After an exec there is none unless asked for. */
enum { LOG_SAME_EXEC_OFF = 1, LOG_SUBDOMAINS_OFF = 4 };

/* Every right of ABI 1 (bits 0 to 12), then what later ones added. */
static uint64_t known_rights(int abi)
{
	uint64_t rights = (UINT64_C(1) << 13) - 1;

	rights |= abi >= 2 ? REFER : 0;
	rights |= abi >= 3 ? TRUNCATE : 0;
	rights |= abi >= 5 ? IOCTL_DEV : 0;
	return rights;
}

static size_t attr_size(int abi)
{
	if (abi >= LANDLOCK_ABI_SCOPE)
		return sizeof(struct ruleset_attr);
	return abi >= LANDLOCK_ABI_NET ? offsetof(struct ruleset_attr, scoped)
				       : offsetof(struct ruleset_attr, net);
}

#define WRITE (READ_FILE | READ_DIR | EXECUTE | WRITE_FILE | TRUNCATE | REFER | MAKE | REMOVE)

/* A file may be moved or linked to where no more may be done with it than where it was. So scratch
 * has one right more, which is good for nothing there, where devices cannot be made: what comes
 * from elsewhere stays out. tests/escape/unix_socket_rw.py */
static const uint64_t grants[] = {
	[LANDLOCK_LIST] = READ_DIR,
	[LANDLOCK_READ] = READ_FILE | READ_DIR | EXECUTE,
	[LANDLOCK_DEVICE] = READ_FILE | READ_DIR | WRITE_FILE | TRUNCATE | IOCTL_DEV,
	[LANDLOCK_WRITE] = WRITE,
	[LANDLOCK_KEEP] = WRITE,
	[LANDLOCK_SCRATCH] =
		WRITE | IOCTL_DEV | LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO,
};

int landlock_abi(void)
{
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

	return abi < 0 ? 0 : (int)abi;
}

int landlock_new(int abi, bool tcp)
{
	struct ruleset_attr attr = { .fs = known_rights(abi) };
	long fd;

	attr.net = tcp ? NET_BIND | NET_CONNECT : 0;
	attr.scoped = SCOPE_ABSTRACT | SCOPE_SIGNAL;
	fd = syscall(SYS_landlock_create_ruleset, &attr, attr_size(abi), 0);
	return fd < 0 ? -errno : (int)fd;
}

int landlock_allow(int ruleset_fd, int abi, int fd, enum landlock_grant grant)
{
	struct landlock_path_beneath_attr rule = { .parent_fd = fd };
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	rule.allowed_access = grants[grant] & known_rights(abi);
	if (grant == LANDLOCK_KEEP && abi < LANDLOCK_ABI_IOCTL)
		rule.allowed_access &= ~REFER;
	if (!S_ISDIR(st.st_mode))
		rule.allowed_access &= ON_FILES;
	if (syscall(SYS_landlock_add_rule, ruleset_fd, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0)
		return -errno;
	return 0;
}

int landlock_allow_path(int ruleset_fd, int abi, const char *path, enum landlock_grant grant)
{
	_cleanup_fd_ int fd = open(path, O_PATH | O_CLOEXEC);

	if (fd < 0)
		return errno == ENOENT || errno == EACCES ? 0 : -errno;
	return landlock_allow(ruleset_fd, abi, fd, grant);
}

int landlock_allow_plain(int ruleset_fd, int abi, const char *path, enum landlock_grant grant)
{
	_cleanup_fd_ int fd = sys_openat2(AT_FDCWD, path, O_PATH | O_NOFOLLOW, RESOLVE_NO_SYMLINKS);
	struct stat st;

	if (fd == -ENOENT || fd == -EACCES || fd == -ELOOP || fd == -ENOTDIR)
		return 0;
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	/* O_PATH with O_NOFOLLOW opens the link itself. */
	return S_ISLNK(st.st_mode) ? 0 : landlock_allow(ruleset_fd, abi, fd, grant);
}

int landlock_enter(int ruleset_fd)
{
	uint32_t flags =
		landlock_abi() >= LANDLOCK_ABI_LOG ? LOG_SAME_EXEC_OFF | LOG_SUBDOMAINS_OFF : 0;

	return syscall(SYS_landlock_restrict_self, ruleset_fd, flags) < 0 ? -errno : 0;
}

/*
 * A domain in which files play no part forbids renames and links from folder to folder all the
 * same, once another domain of the process knows files: REFER is what every layer denies by
 * default, also one that does not handle it. So this one handles it and grants it everywhere.
 */
static int refer_everywhere(int ruleset_fd)
{
	struct landlock_path_beneath_attr rule = { .allowed_access = REFER };
	_cleanup_fd_ int root = open("/", O_PATH | O_CLOEXEC);

	if (root < 0)
		return -errno;
	rule.parent_fd = root;
	return syscall(SYS_landlock_add_rule, ruleset_fd, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0
		       ? -errno
		       : 0;
}

int landlock_scope(int abi)
{
	struct ruleset_attr attr = { .fs = REFER, .scoped = SCOPE_ABSTRACT | SCOPE_SIGNAL };
	_cleanup_fd_ int fd = -1;
	int r;

	if (abi < LANDLOCK_ABI_SCOPE)
		return 0;
	fd = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof attr, 0);
	if (fd < 0)
		return -errno;
	r = refer_everywhere(fd);
	return r < 0 ? r : landlock_enter(fd);
}
