/*
 * Sampling: the tree by /proc/PID/task/TID/children, memory by statm, scratch by fstatfs.
 *
 * A child belongs to the thread that forked it, so every thread's list is read. The tree is
 * walked with a fixed list instead of recursion: its shape is up to hostile code.
 * statm's "resident" is private + file + shared memory and its "shared" file + shared memory;
 * shared memory alone is in status, which costs three times as much and is therefore read only
 * where "shared" is large enough to matter.
 *
 * Three counts, each dearer than the one before and made only if that one is above the limit:
 * statm with memory files added; proportional memory (smaps_rollup) with the same; and that less
 * what is in both, mapped parts of those files (smaps).
 */
#include "os/sample.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "os/shmem.h"

enum {
	TEXT = 4096,
	DIRENTS = 4096,
	SHARED_MATTERS = 8 << 20, /* above it a process's shared part is looked into */
	FILES_US = 1000000,       /* descriptors are gone through this often, */
	FILES_PART = 32,          /* or when this part of the limit has come or gone, */
	FILES_REST = 16,          /* for this many times what it took they rest */
};

/* The tree so far: `seen` of `count` were looked at. pids[0] is the root. */
struct walk {
	int proc_fd;
	int seen;
	int count;
	uint32_t threads;
	bool is_cut;
	pid_t pids[SAMPLE_PROCESSES + 1];
};

static int read_text(int proc_fd, const char *path, char *ret_text)
{
	_cleanup_fd_ int fd = openat(proc_fd, path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = read(fd, ret_text, TEXT - 1);
	if (n < 0)
		return -errno;
	ret_text[n] = 0;
	return (int)n;
}

static void add_child(struct walk *walk, const char *word)
{
	uint64_t pid;

	if (str_parse_u64(word, INT32_MAX, &pid) < 0 || pid == 0)
		return;
	if (walk->count > SAMPLE_PROCESSES)
		walk->is_cut = true;
	else
		walk->pids[walk->count++] = (pid_t)pid;
}

/* A thread's list: numbers, each followed by a blank; read in pieces. */
static int add_children(struct walk *walk, pid_t pid, const char *tid)
{
	char path[64], text[TEXT], *at, *word;
	_cleanup_fd_ int fd = -1;
	size_t kept = 0;
	ssize_t n;

	snprintf(path, sizeof path, "%d/task/%.20s/children", pid, tid);
	fd = openat(walk->proc_fd, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	while (!walk->is_cut && (n = read(fd, text + kept, sizeof text - kept - 1)) > 0) {
		text[kept + (size_t)n] = 0;
		at = text;
		while ((word = strsep(&at, " ")) && at)
			add_child(walk, word);
		kept = word ? strlen(word) : 0; /* a number that goes on in the next piece */
		if (kept > 16)
			return -EINVAL;
		memmove(text, word ? word : text, kept);
	}
	return 0;
}

struct dirent64_raw { /* linux_dirent64 of getdents64(2) */
	uint64_t ino;
	int64_t off;
	uint16_t size;
	uint8_t type;
	char name[];
};

/* All threads of one process. The first failure is the answer for the root only. */
static int add_threads(struct walk *walk, pid_t pid)
{
	_Alignas(uint64_t) char entries[DIRENTS];
	const struct dirent64_raw *entry;
	_cleanup_fd_ int fd = -1;
	char path[32];
	long n;
	int r = 0;

	snprintf(path, sizeof path, "%d/task", pid);
	fd = openat(walk->proc_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	while ((n = syscall(SYS_getdents64, fd, entries, sizeof entries)) > 0) {
		for (long at = 0; at < n; at += entry->size) {
			entry = (const struct dirent64_raw *)(entries + at);
			if (entry->name[0] == '.')
				continue;
			if (++walk->threads > SAMPLE_THREADS) {
				walk->is_cut = true;
				return r;
			}
			r = add_children(walk, pid, entry->name);
		}
	}
	return r;
}

static uint64_t word_pages(char **at)
{
	static const uint64_t most = UINT64_MAX >> 20;
	const char *word = strsep(at, " \n");
	uint64_t pages;

	if (!word || str_parse_u64(word, most, &pages) < 0)
		return 0;
	return pages;
}

/* "Name:   123 kB" lines of status and smaps_rollup; 0 if there is none. */
static uint64_t line_bytes(const char *text, const char *name)
{
	const char *line = strstr(text, name);
	char number[24];
	uint64_t kib;
	size_t size;

	if (!line)
		return 0;
	line += strlen(name);
	line += strspn(line, " \t");
	size = strspn(line, "0123456789");
	if (size >= sizeof number)
		return 0;
	memcpy(number, line, size);
	number[size] = 0;
	return str_parse_u64(number, UINT64_MAX >> 20, &kib) < 0 ? 0 : kib << 10;
}

/* What a process has mapped, file pages left out. */
static uint64_t cheap_bytes(int proc_fd, pid_t pid)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), resident, shared, bytes;
	char path[32], text[TEXT], *at = text;

	snprintf(path, sizeof path, "%d/statm", pid);
	if (read_text(proc_fd, path, text) < 0)
		return 0;
	word_pages(&at);
	resident = word_pages(&at);
	shared = word_pages(&at);
	bytes = resident > shared ? (resident - shared) * page : 0;
	if (shared * page <= SHARED_MATTERS)
		return bytes;
	snprintf(path, sizeof path, "%d/status", pid);
	if (read_text(proc_fd, path, text) < 0)
		return bytes;
	return bytes + line_bytes(text, "\nRssShmem:");
}

/* The same with every page divided by the number of processes that map it. */
struct exact {
	uint64_t bytes; /* all of it */
	uint64_t shared_bytes;
	bool is_exact;
};

static int exact_bytes(int proc_fd, pid_t pid, struct exact *exact)
{
	char path[32], text[TEXT];
	uint64_t shared;
	int r;

	snprintf(path, sizeof path, "%d/smaps_rollup", pid);
	r = read_text(proc_fd, path, text);
	if (r < 0)
		return r;
	shared = line_bytes(text, "\nPss_Shmem:");
	exact->bytes += line_bytes(text, "\nPss_Anon:") + shared + line_bytes(text, "\nSwapPss:");
	exact->shared_bytes += shared;
	return 0;
}

/* A process that went away or may not be read so closely counts as before. */
static struct exact exact_sum(const struct walk *walk)
{
	struct exact exact = { .is_exact = true };
	int r;

	for (int i = 1; i < walk->count; i++) {
		r = exact_bytes(walk->proc_fd, walk->pids[i], &exact);
		if (r < 0 && r != -ESRCH && r != -ENOENT) {
			exact.bytes += cheap_bytes(walk->proc_fd, walk->pids[i]);
			exact.is_exact = false;
		}
	}
	return exact;
}

static int walk_tree(struct walk *walk, pid_t root)
{
	int r;

	walk->pids[0] = root;
	walk->count = 1;
	r = add_threads(walk, root);
	if (r < 0) /* the thread's directory was there, its list was not */
		return r == -ENOENT ? -ENOTSUP : r;
	walk->threads = 0;
	for (walk->seen = 1; walk->seen < walk->count && !walk->is_cut; walk->seen++)
		add_threads(walk, walk->pids[walk->seen]);
	return 0;
}

/* Is it worth while to go through the descriptors? `sum` is what is known of the tree. */
static bool is_due(const struct sample_files *files, uint64_t sum, uint64_t host, uint64_t limit)
{
	uint64_t now = clock_now_us();
	uint64_t change =
		host > files->host_bytes ? host - files->host_bytes : files->host_bytes - host;

	if (!files->looked_us || sum > limit || change >= limit)
		return true;
	return now >= files->rest_us &&
	       (change >= limit / FILES_PART || now - files->looked_us >= FILES_US);
}

/* The root is not of the tree. */
static struct shmem_tree files_of(const struct walk *walk)
{
	return (struct shmem_tree){ walk->proc_fd, walk->pids + 1, walk->count - 1 };
}

static void look_at_files(const struct walk *walk, uint64_t host, struct sample_files *files,
			  struct shmem_look *look)
{
	const struct shmem_tree tree = files_of(walk);
	uint64_t start = clock_now_us(), now;

	if (shmem_look(&tree, look) < 0)
		return;
	now = clock_now_us();
	files->bytes = look->bytes;
	files->is_blind = look->is_blind;
	files->host_bytes = host;
	files->looked_us = now;
	files->rest_us = now + (now - start) * FILES_REST;
}

/* What is counted as memory of processes and once more with the files; 0 if it cannot be told. */
static uint64_t counted_twice(const struct walk *walk, const struct shmem_look *look,
			      const struct sample_files *files)
{
	const struct shmem_tree tree = files_of(walk);
	uint64_t bytes;

	if ((look->files == 0 && !files->apart_dev) ||
	    shmem_overlap(look, &tree, files->apart_dev, &bytes) < 0)
		return 0;
	return bytes;
}

static uint64_t count_exactly(const struct walk *walk, struct sample_tree *tree)
{
	struct exact exact = exact_sum(walk);

	tree->is_exact = exact.is_exact;
	tree->mem_bytes = exact.bytes + tree->file_bytes;
	return exact.shared_bytes;
}

/* `host_bytes`: all memory files of this machine. Can the tree be above the limit with them? */
static bool may_exceed(const struct sample_tree *tree, uint64_t limit, uint64_t host_bytes)
{
	return host_bytes > limit || tree->mem_bytes > limit - host_bytes;
}

/* The dearer counts, while the ones before leave it open whether the limit was exceeded. */
static void count_more(const struct walk *walk, uint64_t limit, struct sample_files *files,
		       struct sample_tree *tree)
{
	uint64_t host_bytes = files ? shmem_host_bytes() : 0, shared = 0, twice;
	bool is_counted = tree->mem_bytes > limit;
	struct shmem_look look;

	if (is_counted)
		shared = count_exactly(walk, tree);
	if (!files || !may_exceed(tree, limit, host_bytes))
		return;
	look.files = 0;
	look.is_cut = false;
	if (is_due(files, tree->mem_bytes + files->bytes, host_bytes, limit))
		look_at_files(walk, host_bytes, files, &look);
	tree->is_cut |= look.is_cut;
	tree->file_bytes = files->bytes;
	tree->mem_bytes += tree->file_bytes;
	if (!is_counted && tree->mem_bytes > limit)
		shared = count_exactly(walk, tree);
	if (tree->mem_bytes <= limit || tree->mem_bytes - shared > limit)
		return;
	twice = counted_twice(walk, &look, files);
	tree->mem_bytes -= twice < shared ? twice : shared;
}

int sample_tree(pid_t root, uint64_t exact_above_bytes, struct sample_files *files,
		struct sample_tree *ret_tree)
{
	_cleanup_fd_ int proc_fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct walk walk = { .proc_fd = proc_fd };
	struct sample_tree tree = { 0 };
	int r;

	if (proc_fd < 0)
		return -errno;
	if (root <= 0)
		return -EINVAL;
	r = walk_tree(&walk, root);
	if (r < 0)
		return r;
	tree.processes = (uint32_t)(walk.count - 1);
	tree.threads = walk.threads;
	tree.is_cut = walk.is_cut;
	for (int i = 1; i < walk.count; i++)
		tree.mem_bytes += cheap_bytes(proc_fd, walk.pids[i]);
	count_more(&walk, exact_above_bytes, files, &tree);
	*ret_tree = tree;
	return 0;
}

int sample_scratch(int fd, struct sample_scratch *ret_scratch)
{
	struct statfs stat;
	uint64_t block;

	if (fstatfs(fd, &stat) < 0)
		return -errno;
	block = (uint64_t)stat.f_bsize;
	*ret_scratch = (struct sample_scratch){
		.size_bytes = stat.f_blocks * block,
		.free_bytes = stat.f_bavail * block,
		.inodes = stat.f_files,
		.free_inodes = stat.f_ffree,
		.is_full = (stat.f_blocks > 0 && stat.f_bavail == 0) ||
			   (stat.f_files > 0 && stat.f_ffree == 0),
	};
	return 0;
}
