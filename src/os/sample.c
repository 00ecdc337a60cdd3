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
#include "os/sysv.h"

enum {
	TEXT = 4096,
	DIRENTS = 4096,
	SHARED_MATTERS = 8 << 20, /* above it a process's shared part is looked into */
	FILES_US = 1000000,       /* descriptors are gone through this often, */
	FILES_PART = 32,          /* or when this part of the limit has come or gone, */
	FILES_REST = 16,          /* for this many times what it took they rest */
	BLIND_LOOKS = 2,          /* a fork of the agent's may not be looked at until it execs */
	SYSV_MS = 100,            /* the answer takes less than one, where a processor is free */
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

/* What a process has mapped, file pages left out; `ret_shared` (may be NULL): of that shared. */
static uint64_t cheap_bytes(int proc_fd, pid_t pid, uint64_t *ret_shared)
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
	shared = line_bytes(text, "\nRssShmem:");
	if (ret_shared)
		*ret_shared = shared;
	return bytes + shared;
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
	uint64_t shared;
	int r;

	for (int i = 1; i < walk->count; i++) {
		r = exact_bytes(walk->proc_fd, walk->pids[i], &exact);
		if (r < 0 && r != -ESRCH && r != -ENOENT) {
			shared = 0;
			exact.bytes += cheap_bytes(walk->proc_fd, walk->pids[i], &shared);
			exact.shared_bytes += shared;
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

/* The dearer counts of one call. */
struct count {
	const struct walk *walk;
	struct shmem_tree pids; /* without the root */
	uint64_t limit;
	uint64_t host_bytes;  /* files in memory of this machine */
	uint64_t cheap_bytes; /* the first count */
	struct sample_files *files;
	struct sample_tree *tree;
	uint64_t exact_bytes;  /* the second count, once it was made, */
	uint64_t shared_bytes; /* and what of it is mapped */
	bool was_exact, was_looked;
};

static void count_exactly(struct count *count)
{
	struct exact exact;

	if (count->was_exact)
		return;
	exact = exact_sum(count->walk);
	count->was_exact = true;
	count->shared_bytes = exact.shared_bytes;
	count->exact_bytes = exact.bytes;
	count->tree->is_exact = exact.is_exact;
	count->tree->mem_bytes = exact.bytes + count->tree->file_bytes;
}

/* Can the tree be above the limit with `more`? */
static bool may_exceed(const struct count *count, uint64_t more)
{
	return more > count->limit || count->tree->mem_bytes > count->limit - more;
}

/* With the files of the last look, and less what that look found to be counted twice. */
static uint64_t estimate(const struct count *count)
{
	const struct sample_files *files = count->files;
	uint64_t bytes = count->tree->mem_bytes + files->bytes + files->sysv_bytes +
			 files->hidden_bytes,
		 less = files->overlap_bytes;

	if (!count->was_exact) {
		bytes += files->exact_bytes;
		less += files->cheap_bytes;
	}
	return bytes > less ? bytes - less : 0;
}

/* Is it worth while to go through the descriptors? */
static bool is_due(const struct count *count)
{
	const struct sample_files *files = count->files;
	uint64_t now = clock_now_us(), change = count->host_bytes - files->host_bytes;

	if (count->host_bytes < files->host_bytes)
		change = files->host_bytes - count->host_bytes;
	if (!files->looked_us || change >= count->limit || estimate(count) > count->limit)
		return true;
	if (files->blind_looks && !files->was_blind && now >= files->rest_us)
		return true;
	return now >= files->rest_us &&
	       (change >= count->limit / FILES_PART || now - files->looked_us >= FILES_US);
}

/* False: the tree may have seen to it that there is no answer. */
static bool look_at_sysv(const struct count *count, struct shmem_look *look)
{
	struct sample_files *files = count->files;
	struct sysv_use use = { 0 };
	int r;

	if (!files->has_ipc)
		return true;
	r = sysv_use(count->walk->pids[0], SYSV_MS, &use);
	look->has_sysv = r >= 0;
	if (r >= 0) {
		files->sysv_resident_bytes = use.resident_bytes;
		files->sysv_bytes = use.resident_bytes + use.swapped_bytes;
	} else if (r == -EPERM || r == -EACCES || r == -EINVAL || r == -ENOSYS) {
		files->is_sysv_refused = true;
		files->has_ipc = false;
	}
	return r >= 0 || r == -ESRCH || files->is_sysv_refused;
}

/* What a process hides now it may have shown before: then the larger number stands. */
static void look_at_files(struct count *count, struct shmem_look *look)
{
	struct sample_files *files = count->files;

	if (shmem_look(&count->pids, look) < 0)
		return;
	count->was_looked = true;
	look->is_blind |= !look_at_sysv(count, look);
	count->tree->is_cut |= look->is_cut;
	if (!look->is_blind || look->bytes > files->bytes)
		files->bytes = look->bytes;
	files->blind_looks = look->is_blind ? files->blind_looks + 1 : 0;
	files->was_blind |= files->blind_looks == BLIND_LOOKS;
	files->host_bytes = count->host_bytes;
}

/* What is counted as memory of processes and once more with the files. */
static void take_off_overlap(struct count *count, const struct shmem_look *look)
{
	dev_t apart_dev = count->files->apart_dev;
	uint64_t twice;

	if ((look->files == 0 && !look->has_sysv && !apart_dev) ||
	    shmem_overlap(look, &count->pids, apart_dev, &twice) < 0)
		return;
	twice = twice < count->shared_bytes ? twice : count->shared_bytes;
	count->tree->mem_bytes -= twice;
	count->shared_bytes -= twice;
	count->files->overlap_bytes = twice;
}

/* On the machine since the first look, and neither found in the tree nor counted by the caller. */
static uint64_t unaccounted(const struct count *count)
{
	const struct sample_files *files = count->files;
	uint64_t known = files->least_bytes + files->bytes + files->sysv_resident_bytes +
			 files->apart_bytes + count->shared_bytes;

	return count->host_bytes > known ? count->host_bytes - known : 0;
}

/* The most that the tree may have where no look finds it. */
static uint64_t hiding_room(struct count *count, struct shmem_look *look)
{
	struct sample_files *files = count->files;
	uint64_t now = clock_now_us();
	struct shmem_hidden hidden;

	if (files->blind_looks >= BLIND_LOOKS)
		return UINT64_MAX;
	shmem_hidden(look, &count->pids, &hidden);
	if (!hidden.has_queue)
		files->queued_us = 0;
	else if (!files->queued_us)
		files->queued_us = now;
	if (files->queued_us && now - files->queued_us >= FILES_US)
		return UINT64_MAX;
	return hidden.loose_bytes;
}

/*
 * Other programs' files may be in that sum: only a tree that has where to hide them, and keeps it
 * so, is held to account. tests/escape/memory_queued.py, memory_shared.py, memory_undumpable.py
 */
static void look_for_hidden(struct count *count, struct shmem_look *look)
{
	struct sample_files *files = count->files;
	uint64_t most;

	files->hidden_bytes = 0;
	if (may_exceed(count, unaccounted(count)))
		count_exactly(count);
	if (!may_exceed(count, unaccounted(count))) {
		files->queued_us = 0;
		return;
	}
	most = hiding_room(count, look);
	files->hidden_bytes = unaccounted(count) < most ? unaccounted(count) : most;
}

/* What the next counts may leave out, and when the next look may be. */
static void end_look(const struct count *count, uint64_t start_us)
{
	struct sample_files *files = count->files;

	if (count->was_exact) {
		files->cheap_bytes = count->cheap_bytes;
		files->exact_bytes = count->exact_bytes;
	}
	files->looked_us = clock_now_us();
	files->rest_us = files->looked_us + (files->looked_us - start_us) * FILES_REST;
}

static void look_and_count(struct count *count)
{
	struct sample_files *files = count->files;
	struct sample_tree *tree = count->tree;
	uint64_t start = clock_now_us();
	struct shmem_look look;

	files->overlap_bytes = files->cheap_bytes = files->exact_bytes = 0;
	look_at_files(count, &look);
	tree->file_bytes = files->bytes + files->sysv_bytes;
	tree->mem_bytes += tree->file_bytes;
	if (may_exceed(count, 0))
		count_exactly(count);
	/* Only where it decides whether something was counted twice. */
	if (count->was_looked && may_exceed(count, 0) &&
	    tree->mem_bytes - count->shared_bytes <= count->limit)
		take_off_overlap(count, &look);
	if (count->was_looked) {
		look_for_hidden(count, &look);
		end_look(count, start);
	}
	tree->file_bytes += files->hidden_bytes;
	tree->mem_bytes += files->hidden_bytes;
}

/* Adds memory files, found and hidden ones, to the sum of the processes. */
static void count_files(struct count *count)
{
	const struct sample_files *files = count->files;

	if (is_due(count)) {
		look_and_count(count);
		return;
	}
	count->tree->mem_bytes = estimate(count);
	count->tree->file_bytes = files->bytes + files->sysv_bytes + files->hidden_bytes;
}

static void count_more(const struct walk *walk, uint64_t limit, struct sample_files *files,
		       struct sample_tree *tree)
{
	struct count count = { .walk = walk, .limit = limit, .files = files, .tree = tree };
	uint64_t swap_bytes;

	count.cheap_bytes = tree->mem_bytes;
	count.pids = (struct shmem_tree){ walk->proc_fd, walk->pids + 1, walk->count - 1 };
	if (may_exceed(&count, 0))
		count_exactly(&count);
	if (!files)
		return;
	count.host_bytes = shmem_host_bytes(&swap_bytes);
	if (!files->least_bytes || count.host_bytes < files->least_bytes)
		files->least_bytes = count.host_bytes;
	if (may_exceed(&count, count.host_bytes + swap_bytes))
		count_files(&count);
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
		tree.mem_bytes += cheap_bytes(proc_fd, walk.pids[i], NULL);
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
