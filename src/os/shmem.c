/*
 * Files in memory: found by stat(2) through the descriptors, told apart by inode number.
 *
 * All memfds, shared anonymous mappings and System V segments of a machine are on one mount
 * inside the kernel, whose device number a memfd of our own shows; a tmpfs with a place in the
 * tree is another device and has its own count. Nothing here opens the files or follows names.
 */
#include "os/shmem.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8U /* vm.memfd_noexec=2 refuses memfds without it; Linux 6.3 */
#endif

enum {
	DIRENTS = 8192,
	TEXT = 16384,         /* a line of smaps has a path of at most a page, escaped */
	SMAPS_TEXT = 8 << 20, /* some eight thousand mappings */
};

struct dirent64_raw { /* linux_dirent64 of getdents64(2) */
	uint64_t ino;
	int64_t off;
	uint16_t size;
	uint8_t type;
	char name[];
};

uint64_t shmem_host_bytes(void)
{
	struct sysinfo info;

	if (sysinfo(&info) < 0)
		return UINT64_MAX;
	return ((uint64_t)info.sharedram + info.totalswap - info.freeswap) * info.mem_unit;
}

static int find_dev(dev_t *ret_dev)
{
	_cleanup_fd_ int fd = memfd_create("caisson", MFD_CLOEXEC | MFD_NOEXEC_SEAL);
	struct stat st;

	if (fd < 0)
		fd = memfd_create("caisson", MFD_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
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

/* What is cached will do: a remote file system that hangs must not hang the monitor. */
static void look_at_descriptor(struct shmem_look *look, int dir_fd, const char *name)
{
	struct statx st;

	if (statx(dir_fd, name, AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT,
		  STATX_TYPE | STATX_INO | STATX_BLOCKS, &st) < 0)
		return;
	if (S_ISREG(st.stx_mode) && makedev(st.stx_dev_major, st.stx_dev_minor) == look->dev)
		add_file(look, st.stx_ino, st.stx_blocks * 512);
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

static bool each_descriptor(int dir_fd, const char *name, void *data)
{
	struct shmem_look *look = data;

	if (look->descriptors == SHMEM_DESCRIPTORS) {
		look->is_cut = true;
		return false;
	}
	look->descriptors++;
	look_at_descriptor(look, dir_fd, name);
	return true;
}

struct thread_walk {
	struct shmem_look *look;
	pid_t first_tid; /* whose descriptors were looked at; 0: nobody's yet */
};

/* Threads nearly always share one table. Where the kernel does not tell, each one is read. */
static bool is_same_table(const struct thread_walk *walk, pid_t tid)
{
	return walk->first_tid && syscall(SYS_kcmp, walk->first_tid, tid, KCMP_FILES, 0, 0) == 0;
}

static bool each_thread(int task_fd, const char *name, void *data)
{
	struct thread_walk *walk = data;
	_cleanup_fd_ int fd = -1;
	char path[40];
	uint64_t tid;

	if (str_parse_u64(name, INT32_MAX, &tid) < 0 || is_same_table(walk, (pid_t)tid))
		return true;
	snprintf(path, sizeof path, "%.20s/fd", name);
	fd = openat(task_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || for_entries(fd, each_descriptor, walk->look) < 0)
		walk->look->is_blind |= errno == EACCES || errno == EPERM;
	else if (!walk->first_tid)
		walk->first_tid = (pid_t)tid;
	return !walk->look->is_cut;
}

int shmem_look(const struct shmem_tree *tree, struct shmem_look *ret_look)
{
	char path[32];
	int r;

	memset(ret_look, 0, sizeof *ret_look);
	r = find_dev(&ret_look->dev);
	for (int i = 0; i < tree->count && r == 0 && !ret_look->is_cut; i++) {
		struct thread_walk walk = { .look = ret_look };
		_cleanup_fd_ int fd = -1;

		snprintf(path, sizeof path, "%d/task", tree->pids[i]);
		fd = openat(tree->proc_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd >= 0)
			for_entries(fd, each_thread, &walk);
	}
	return r;
}

/* One pass over smaps: is the mapping that its lines are about of a file that was counted? */
struct overlap {
	const struct shmem_look *look;
	char dev[24], apart_dev[24]; /* as smaps writes them */
	bool is_counted;
	size_t text_bytes;
	uint64_t bytes;
};

/* "7f00-7f01 rw-s 00000000 00:01 68683   /memfd:x (deleted)" */
static void take_mapping(struct overlap *overlap, char *line)
{
	const char *dev = NULL, *inode = NULL;
	uint64_t number;

	for (int i = 0; i < 5; i++) {
		dev = inode;
		inode = strsep(&line, " ");
	}
	overlap->is_counted = false;
	if (!inode || str_parse_u64(inode, UINT64_MAX, &number) < 0)
		return;
	overlap->is_counted = str_is(dev, overlap->apart_dev) ||
			      (str_is(dev, overlap->dev) && has_file(overlap->look, number));
}

/* "Pss:                 123 kB"; attributes begin with a capital, mappings with their address. */
static void take_line(struct overlap *overlap, char *line)
{
	uint64_t kib;

	if (line[0] < 'A' || line[0] > 'Z') {
		if (line[0])
			take_mapping(overlap, line);
		return;
	}
	if (!overlap->is_counted || !str_starts(line, "Pss:"))
		return;
	line += strlen("Pss:");
	line += strspn(line, " ");
	line[strspn(line, "0123456789")] = 0;
	if (str_parse_u64(line, UINT64_MAX >> 20, &kib) == 0)
		overlap->bytes += kib << 10;
}

static int overlap_of(struct overlap *overlap, int proc_fd, pid_t pid)
{
	char path[32], text[TEXT], *at, *line;
	_cleanup_fd_ int fd = -1;
	size_t kept = 0;
	ssize_t n;

	snprintf(path, sizeof path, "%d/smaps", pid);
	fd = openat(proc_fd, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	overlap->is_counted = false;
	while ((n = read(fd, text + kept, sizeof text - kept - 1)) > 0) {
		overlap->text_bytes += (size_t)n;
		text[kept + (size_t)n] = 0;
		at = text;
		while ((line = strsep(&at, "\n")) && at)
			take_line(overlap, line);
		kept = line ? strlen(line) : 0; /* a line that goes on in the next piece */
		if (overlap->text_bytes > SMAPS_TEXT || kept == sizeof text - 1)
			return -EFBIG;
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
	struct overlap overlap = { .look = look };
	int r;

	print_dev(look->dev, overlap.dev, sizeof overlap.dev);
	if (apart_dev)
		print_dev(apart_dev, overlap.apart_dev, sizeof overlap.apart_dev);
	for (int i = 0; i < tree->count; i++) {
		r = overlap_of(&overlap, tree->proc_fd, tree->pids[i]);
		if (r < 0 && r != -ESRCH && r != -ENOENT)
			return r;
	}
	*ret_bytes = overlap.bytes;
	return 0;
}
