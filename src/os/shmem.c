/*
 * Files in memory: found by stat(2) through the descriptors, told apart by inode number.
 *
 * All memfds, shared anonymous mappings and System V segments of a machine are on one mount
 * inside the kernel, whose device number a memfd of our own shows; a tmpfs with a place in the
 * tree is another device and has its own count. Nothing here opens the files or follows names.
 *
 * /proc/PID/fd of a process that is not dumpable is root's. Its fdinfo is for whoever may trace
 * it, as the owner of its user namespace may: that names the mount of each descriptor, and those
 * of the kernel's own mount are fetched as copies, nothing else.
 */
#include "os/shmem.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/linux.h"
#include "base/str.h"
#include "os/sys.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8U /* vm.memfd_noexec=2 refuses memfds without it; Linux 6.3 */
#endif

#ifndef PIDFD_THREAD
#define PIDFD_THREAD O_EXCL /* Linux 6.9 */
#endif

enum {
	DIRENTS = 8192,
	TEXT = 16384,            /* a line of maps has a path of at most a page, escaped */
	MAPPINGS_TEXT = 8 << 20, /* some eight thousand mappings in smaps */
};

struct dirent64_raw { /* linux_dirent64 of getdents64(2) */
	uint64_t ino;
	int64_t off;
	uint16_t size;
	uint8_t type;
	char name[];
};

uint64_t shmem_host_bytes(uint64_t *ret_swap_bytes)
{
	struct sysinfo info;

	*ret_swap_bytes = UINT64_MAX / 4;
	if (sysinfo(&info) < 0)
		return UINT64_MAX / 4;
	*ret_swap_bytes = ((uint64_t)info.totalswap - info.freeswap) * info.mem_unit;
	return (uint64_t)info.sharedram * info.mem_unit;
}

/* The number that follows a name in a small file of /proc; `none` if it is not there. */
static uint64_t number_in(int dir_fd, const char *path, const char *name, uint64_t none)
{
	_cleanup_fd_ int fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC);
	char text[512], *line;
	uint64_t number;
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);

	if (n <= 0)
		return none;
	text[n] = 0;
	line = strstr(text, name);
	if (!line)
		return none;
	line += strlen(name);
	line += strspn(line, " \t");
	line[strspn(line, "0123456789")] = 0;
	return str_parse_u64(line, UINT32_MAX, &number) < 0 ? none : number;
}

/* The kernel's own mount of memory files, by a file of our own. */
static int find_mount(dev_t *ret_dev, uint64_t *ret_mount)
{
	_cleanup_fd_ int fd = memfd_create("caisson", MFD_CLOEXEC | MFD_NOEXEC_SEAL);
	struct stat st;
	char path[40];

	if (fd < 0)
		fd = memfd_create("caisson", MFD_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	snprintf(path, sizeof path, "/proc/self/fdinfo/%d", fd);
	*ret_mount = number_in(-1, path, "mnt_id:", UINT64_MAX);
	*ret_dev = st.st_dev;
	return 0;
}

/* The inode's place in the table, or the free one where it belongs. */
static size_t place_of(const struct shmem_look *look, uint64_t inode)
{
	size_t at = (inode * UINT64_C(0x9e3779b97f4a7c15)) >> 32;

	while (look->inodes[at % (SHMEM_FILES * 2)] &&
	       look->inodes[at % (SHMEM_FILES * 2)] != inode)
		at++;
	return at % (SHMEM_FILES * 2);
}

static bool has_file(const struct shmem_look *look, uint64_t inode)
{
	return inode && look->inodes[place_of(look, inode)] == inode;
}

static void add_file(struct shmem_look *look, uint64_t inode, uint64_t bytes)
{
	if (has_file(look, inode))
		return;
	if (look->files < SHMEM_FILES)
		look->inodes[place_of(look, inode)] = inode;
	look->files++;
	look->bytes += bytes;
}

/* Calls `each` for every entry of a folder; false from it ends that. */
static int for_entries(int dir_fd, bool (*each)(int dir_fd, const char *name, void *data),
		       void *data)
{
	_Alignas(uint64_t) char entries[DIRENTS];
	const struct dirent64_raw *entry;
	long n;

	while ((n = syscall(SYS_getdents64, dir_fd, entries, sizeof entries)) > 0) {
		for (long at = 0; at < n; at += entry->size) {
			entry = (const struct dirent64_raw *)(entries + at);
			if (entry->name[0] != '.' && !each(dir_fd, entry->name, data))
				return 0;
		}
	}
	return n < 0 ? -errno : 0;
}

/* A walk over all descriptors; `each` is called with the folder and the name of each one. */
struct descriptor_walk {
	void (*each)(struct descriptor_walk *walk, int dir_fd, const char *name);
	struct shmem_look *look;
	struct shmem_hidden *hidden;
	uint32_t descriptors;
	bool is_cut;
	bool is_blind;
	pid_t first_tid; /* of this process, whose descriptors were looked at; 0: nobody's yet */
	uint64_t mount;  /* the kernel's own of memory files, as fdinfo names it */
	int pidfd;       /* where the folder is fdinfo, the thread; else -1 */
};

static bool each_descriptor(int dir_fd, const char *name, void *data)
{
	struct descriptor_walk *walk = data;

	if (walk->descriptors == SHMEM_DESCRIPTORS) {
		walk->is_cut = true;
		return false;
	}
	walk->descriptors++;
	walk->each(walk, dir_fd, name);
	return true;
}

/* Threads nearly always share one table. Where the kernel does not tell, each one is read. */
static bool is_same_table(const struct descriptor_walk *walk, pid_t tid)
{
	return walk->first_tid && syscall(SYS_kcmp, walk->first_tid, tid, KCMP_FILES, 0, 0) == 0;
}

static int for_folder(struct descriptor_walk *walk, int task_fd, const char *tid, const char *name)
{
	_cleanup_fd_ int fd = -1;
	char path[48];

	snprintf(path, sizeof path, "%.20s/%s", tid, name);
	fd = openat(task_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : for_entries(fd, each_descriptor, walk);
}

/* A thread that forbade the look at its descriptors; tests/escape/memory_undumpable.py */
static int for_closed(struct descriptor_walk *walk, int task_fd, const char *name, pid_t tid)
{
	_cleanup_fd_ int pidfd = (int)syscall(SYS_pidfd_open, tid, PIDFD_THREAD);
	int r;

	if (pidfd < 0)
		pidfd = sys_pidfd_open(tid);
	if (pidfd < 0)
		return pidfd == -ESRCH ? -ESRCH : -EACCES;
	walk->pidfd = pidfd;
	r = for_folder(walk, task_fd, name, "fdinfo");
	walk->pidfd = -1;
	return r;
}

static bool each_thread(int task_fd, const char *name, void *data)
{
	struct descriptor_walk *walk = data;
	uint64_t tid;
	int r;

	if (str_parse_u64(name, INT32_MAX, &tid) < 0 || is_same_table(walk, (pid_t)tid))
		return true;
	r = for_folder(walk, task_fd, name, "fd");
	if (r == -EACCES)
		r = for_closed(walk, task_fd, name, (pid_t)tid);
	walk->is_blind |= r == -EACCES || r == -EPERM;
	if (r >= 0 && !walk->first_tid)
		walk->first_tid = (pid_t)tid;
	return !walk->is_cut;
}

/* With hidepid=2 a process that may not be looked at is not even listed. */
static bool is_hidden(pid_t pid, int error)
{
	return error == EACCES || error == EPERM ||
	       (error == ENOENT && (kill(pid, 0) == 0 || errno == EPERM));
}

static void for_descriptors(const struct shmem_tree *tree, struct descriptor_walk *walk)
{
	char path[32];

	for (int i = 0; i < tree->count && !walk->is_cut; i++) {
		_cleanup_fd_ int fd = -1;

		walk->first_tid = 0;
		snprintf(path, sizeof path, "%d/task", tree->pids[i]);
		fd = openat(tree->proc_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd >= 0)
			for_entries(fd, each_thread, walk);
		else
			walk->is_blind |= is_hidden(tree->pids[i], errno);
	}
}

/* What is cached will do: a remote file system that hangs must not hang the monitor. */
static int stat_cached(int dir_fd, const char *name, struct statx *ret_stat)
{
	return statx(dir_fd, name, AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT,
		     STATX_TYPE | STATX_INO | STATX_BLOCKS, ret_stat);
}

/* `name` is in fdinfo: a copy of the descriptor, if it is of a file in memory. */
static void look_at_copy(struct descriptor_walk *walk, int dir_fd, const char *name)
{
	_cleanup_fd_ int fd = -1;
	struct stat st;
	uint64_t number;

	if (walk->mount == UINT64_MAX) {
		walk->is_blind = true;
		return;
	}
	if (number_in(dir_fd, name, "mnt_id:", UINT64_MAX) != walk->mount ||
	    str_parse_u64(name, INT32_MAX, &number) < 0)
		return;
	fd = sys_pidfd_getfd(walk->pidfd, (int)number);
	walk->is_blind |= fd == -EPERM;
	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_dev == walk->look->dev)
		add_file(walk->look, st.st_ino, (uint64_t)st.st_blocks * 512);
}

static void look_at_file(struct descriptor_walk *walk, int dir_fd, const char *name)
{
	struct statx st;

	if (walk->pidfd >= 0)
		look_at_copy(walk, dir_fd, name);
	else if (stat_cached(dir_fd, name, &st) == 0 && S_ISREG(st.stx_mode) &&
		 makedev(st.stx_dev_major, st.stx_dev_minor) == walk->look->dev)
		add_file(walk->look, st.stx_ino, st.stx_blocks * 512);
}

int shmem_look(const struct shmem_tree *tree, struct shmem_look *ret_look)
{
	struct descriptor_walk walk = { .each = look_at_file, .look = ret_look, .pidfd = -1 };
	int r;

	memset(ret_look, 0, sizeof *ret_look);
	r = find_mount(&ret_look->dev, &walk.mount);
	if (r < 0)
		return r;
	for_descriptors(tree, &walk);
	ret_look->is_cut = walk.is_cut;
	ret_look->is_blind = walk.is_blind;
	return 0;
}

/* A pass over the mappings of processes. */
struct mapping_walk {
	const struct shmem_look *look;
	struct shmem_look *loose;    /* takes what is of no file of the look; NULL: not wanted */
	char dev[24], apart_dev[24]; /* as the kernel writes them */
	bool is_counted;             /* the mapping that lines are about is of a file of the look */
	size_t text_bytes;
	bool is_loose;          /* it went to `loose` */
	uint64_t counted_bytes; /* proportional memory of the ones and the others */
	uint64_t loose_bytes;
};

static uint64_t word_hex(char **at, const char *ends)
{
	const char *word = strsep(at, ends);
	uint64_t value = 0;

	for (; word && *word; word++) {
		unsigned digit = (unsigned)(*word <= '9' ? *word - '0' : *word - 'a' + 10);

		value = value << 4 | (digit & 15);
	}
	return value;
}

struct mapping {
	uint64_t size;
	uint64_t offset;
	uint64_t inode;
	const char *dev;
	bool is_shared;
	bool is_sysv;
};

/*
 * "7f00-7f01 rw-s 00000000 00:01 68683   /memfd:x (deleted)"
 *
 * A System V segment's inode number is its id, which its maker chooses: it may well be the number
 * of some memfd. No other file on the kernel's mount has such a name.
 */
static int parse_mapping(char *line, struct mapping *ret_mapping)
{
	uint64_t start = word_hex(&line, "-");
	const char *inode, *rights;

	ret_mapping->size = word_hex(&line, " ") - start;
	rights = strsep(&line, " ");
	ret_mapping->is_shared = rights && strlen(rights) == 4 && rights[3] == 's';
	ret_mapping->offset = word_hex(&line, " ");
	ret_mapping->dev = strsep(&line, " ");
	inode = strsep(&line, " ");
	if (!inode)
		return -EINVAL;
	ret_mapping->is_sysv = line && str_starts(line + strspn(line, " "), "/SYSV");
	return str_parse_u64(inode, UINT64_MAX, &ret_mapping->inode);
}

/* A part of a file once, though a fork's mapping is another mapping of it. */
static void add_loose(struct shmem_look *loose, const struct mapping *mapping)
{
	uint64_t key = mapping->inode * UINT64_C(0xff51afd7ed558ccd) ^
		       mapping->offset * UINT64_C(0xc4ceb9fe1a85ec53) ^
		       mapping->size * UINT64_C(0x9e3779b97f4a7c15) ^ UINT64_C(1) << 63;

	add_file(loose, key, mapping->size);
}

static void take_mapping(struct mapping_walk *walk, char *line)
{
	const struct shmem_look *look = walk->look;
	struct mapping mapping;
	bool is_ours;

	walk->is_counted = walk->is_loose = false;
	if (parse_mapping(line, &mapping) < 0)
		return;
	is_ours = str_is(mapping.dev, walk->dev);
	walk->is_counted =
		str_is(mapping.dev, walk->apart_dev) ||
		(is_ours && (mapping.is_sysv ? look->has_sysv : has_file(look, mapping.inode)));
	walk->is_loose = walk->loose && is_ours && mapping.is_shared && !walk->is_counted;
	if (walk->is_loose)
		add_loose(walk->loose, &mapping);
}

/* "Pss:                 123 kB"; attributes begin with a capital, mappings with their address. */
static void take_line(struct mapping_walk *walk, char *line)
{
	uint64_t kib;

	if (line[0] < 'A' || line[0] > 'Z') {
		if (line[0])
			take_mapping(walk, line);
		return;
	}
	if (!(walk->is_counted || walk->is_loose) || !str_starts(line, "Pss:"))
		return;
	line += strlen("Pss:");
	line += strspn(line, " ");
	line[strspn(line, "0123456789")] = 0;
	if (str_parse_u64(line, UINT64_MAX >> 20, &kib) == 0)
		*(walk->is_loose ? &walk->loose_bytes : &walk->counted_bytes) += kib << 10;
}

static int read_mappings(struct mapping_walk *walk, int proc_fd, pid_t pid)
{
	char path[32], text[TEXT], *at, *line;
	_cleanup_fd_ int fd = -1;
	bool is_skipping = false; /* the rest of a line that does not fit: a path may be long */
	size_t kept = 0;
	ssize_t n;

	snprintf(path, sizeof path, "%d/smaps", pid);
	fd = openat(proc_fd, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	walk->is_counted = walk->is_loose = false;
	while ((n = read(fd, text + kept, sizeof text - kept - 1)) > 0) {
		walk->text_bytes += (size_t)n;
		text[kept + (size_t)n] = 0;
		at = text;
		while ((line = strsep(&at, "\n")) && at) {
			if (!is_skipping)
				take_line(walk, line);
			is_skipping = false;
		}
		kept = line ? strlen(line) : 0; /* a line that goes on in the next piece */
		if (walk->text_bytes > MAPPINGS_TEXT)
			return -EFBIG;
		if (kept == sizeof text - 1 && !is_skipping) {
			take_line(walk, text); /* its beginning says whose the pages are */
			is_skipping = true;
		}
		kept = is_skipping ? 0 : kept;
		memmove(text, line ? line : text, kept);
	}
	return n < 0 ? -errno : 0;
}

static void print_dev(dev_t dev, char *ret_text, size_t size)
{
	snprintf(ret_text, size, "%02x:%02x", major(dev), minor(dev));
}

int shmem_overlap(const struct shmem_look *look, const struct shmem_tree *tree, dev_t apart_dev,
		  uint64_t *ret_bytes)
{
	struct mapping_walk walk = { .look = look };
	int r;

	print_dev(look->dev, walk.dev, sizeof walk.dev);
	if (apart_dev)
		print_dev(apart_dev, walk.apart_dev, sizeof walk.apart_dev);
	for (int i = 0; i < tree->count; i++) {
		r = read_mappings(&walk, tree->proc_fd, tree->pids[i]);
		if (r < 0 && r != -ESRCH && r != -ENOENT)
			return r;
	}
	*ret_bytes = walk.counted_bytes;
	return 0;
}

/* "scm_fds: 3" of a local socket's fdinfo; Linux 5.10. */
static void look_at_socket(struct descriptor_walk *walk, int dir_fd, const char *name)
{
	char path[48];
	struct statx st;

	if (walk->hidden->has_queue)
		return;
	if (walk->pidfd >= 0) {
		walk->hidden->has_queue = number_in(dir_fd, name, "scm_fds:", 0) > 0;
		return;
	}
	if (stat_cached(dir_fd, name, &st) < 0 || !S_ISSOCK(st.stx_mode))
		return;
	snprintf(path, sizeof path, "../fdinfo/%.20s", name);
	walk->hidden->has_queue = number_in(dir_fd, path, "scm_fds:", 0) > 0;
}

void shmem_hidden(struct shmem_look *look, const struct shmem_tree *tree,
		  struct shmem_hidden *ret_hidden)
{
	struct descriptor_walk walk = { .each = look_at_socket, .hidden = ret_hidden, .pidfd = -1 };
	struct mapping_walk mappings = { .look = look, .loose = look };
	uint64_t held = look->bytes, size;

	*ret_hidden = (struct shmem_hidden){ 0 };
	for_descriptors(tree, &walk);
	print_dev(look->dev, mappings.dev, sizeof mappings.dev);
	for (int i = 0; i < tree->count; i++)
		read_mappings(&mappings, tree->proc_fd, tree->pids[i]);
	size = look->bytes - held;
	ret_hidden->loose_bytes = size > mappings.loose_bytes ? size - mappings.loose_bytes : 0;
}
