/*
 * The syscall filters: what each says to a call, on both architectures by interpretation
 * and on this one by the kernel. The table is written by hand from what the walls promise,
 * not from the profiles' text.
 */
#include "interpret.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define HIGH (UINT64_C(1) << 32)

/* Short names for return values. */
#define OK SECCOMP_RET_ALLOW
#define TOLD SECCOMP_RET_USER_NOTIF
#define ERR(error) (SECCOMP_RET_ERRNO | (error))
#define C "command"
#define R "command-reads"
#define L "landlock"
#define LR "landlock-reads"
#define B "base"
#define CA "command-alone"
#define CN "command-alone-net"
#define LA "landlock-alone"
#define CI "command-alone-inner"

static const struct row {
	const char *profile, *syscall;
	uint64_t args[6];
	uint32_t verdict;
} rows[] = {
	/* files */
	{ C, "openat", { 0, 0, O_RDONLY }, OK },
	{ C, "openat", { 0, 0, O_RDONLY | O_CLOEXEC | O_DIRECTORY }, OK },
	{ C, "openat", { 0, 0, O_WRONLY }, TOLD },
	{ C, "openat", { 0, 0, O_RDWR }, TOLD },
	{ C, "openat", { 0, 0, O_ACCMODE }, TOLD },
	{ C, "openat", { 0, 0, O_CREAT }, TOLD },
	{ C, "openat", { 0, 0, O_TRUNC }, TOLD },
	{ C, "openat", { 0, 0, 020000000 /* the bit of O_TMPFILE */ }, TOLD },
	{ C, "open", { 0, O_RDONLY }, OK },
	{ C, "open", { 0, O_WRONLY | O_APPEND }, TOLD },
	{ C, "creat", { 0 }, TOLD },
	{ C, "openat2", { 0 }, ERR(ENOSYS) },
	{ R, "openat", { 0, 0, O_RDONLY }, TOLD },
	{ R, "open", { 0, O_RDONLY }, TOLD },
	{ LR, "openat", { 0, 0, O_RDONLY }, TOLD },
	{ L, "openat", { 0, 0, O_RDONLY }, OK },
	{ L, "openat", { 0, 0, O_RDWR }, TOLD },
	{ C, "renameat2", { 0 }, TOLD },
	{ C, "unlinkat", { 0 }, TOLD },
	{ C, "unlink", { 0 }, TOLD },
	{ C, "symlinkat", { 0 }, TOLD },
	{ C, "linkat", { 0 }, TOLD },
	{ C, "mkdirat", { 0 }, TOLD },
	{ C, "truncate", { 0 }, TOLD },
	{ C, "ftruncate", { 0 }, OK },
	{ C, "fchmodat2", { 0 }, TOLD },
	{ C, "setxattr", { 0 }, TOLD },
	{ C, "utimensat", { 0 }, OK },
	{ C, "mknodat", { 0, 0, S_IFIFO | 0600 }, TOLD },
	{ C, "mknodat", { 0, 0, 0600 }, TOLD },
	{ C, "mknodat", { 0, 0, S_IFCHR | 0600 }, TOLD },
	{ C, "open_by_handle_at", { 0 }, TOLD },
	{ C, "newfstatat", { 0 }, OK },
	{ C, "statx", { 0 }, OK },
	{ C, "sync", { 0 }, ERR(EPERM) },
	/* processes */
	{ C, "clone", { CLONE_VM | CLONE_THREAD | SIGCHLD }, OK },
	{ C, "clone", { CLONE_NEWUSER | SIGCHLD }, TOLD },
	{ C, "clone", { CLONE_NEWNET }, TOLD },
	{ C, "clone3", { 0 }, ERR(ENOSYS) },
	{ C, "unshare", { CLONE_NEWUSER }, TOLD },
	{ C, "ptrace", { 0 }, TOLD },
	{ C, "process_vm_readv", { 0 }, TOLD },
	{ C, "pidfd_getfd", { 0 }, TOLD },
	{ C, "kill", { 1, 9 }, OK },
	{ C, "execve", { 0 }, OK },
	{ C, "prlimit64", { 0, 7 }, OK },
	{ C, "prlimit64", { 1, 7 }, TOLD },
	{ C, "sched_setscheduler", { 0 }, OK },
	{ C, "sched_setscheduler", { 1 }, TOLD },
	{ C, "sched_setattr", { 1 }, TOLD },
	{ C, "sched_setaffinity", { 1 }, TOLD },
	{ C, "setpriority", { 0, 0, 19 }, OK },
	{ C, "setpriority", { 0, 1, 19 }, TOLD },
	{ C, "setpriority", { 2, 0, 19 }, TOLD },
	{ C, "ioprio_set", { 1, 0 }, OK },
	{ C, "ioprio_set", { 1, 1 }, TOLD },
	{ C, "personality", { 0xffffffff }, OK },
	{ C, "personality", { 0x0040000 }, OK },
	{ C, "personality", { 0x0400000 /* READ_IMPLIES_EXEC */ }, TOLD },
	{ C, "prctl", { 15 /* PR_SET_NAME */ }, OK },
	{ C, "prctl", { 35 /* PR_SET_MM */ }, TOLD },
	{ C, "seccomp", { 1, 0 }, OK },
	{ C, "seccomp", { 1, SECCOMP_FILTER_FLAG_NEW_LISTENER | 32 }, TOLD },
	{ C, "setgroups", { 0 }, ERR(EPERM) },
	{ C, "setresuid", { -1, 1000, -1 } /* GNU make at each spawn */, OK },
	{ C, "landlock_restrict_self", { 0 }, OK },
	/* sockets */
	{ C, "socket", { AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0 }, OK },
	{ C, "socket", { AF_UNIX, SOCK_SEQPACKET, 0 }, OK },
	{ C, "socket", { AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0 }, TOLD },
	{ C, "socket", { AF_UNIX, SOCK_RAW /* becomes a datagram */, 0 }, TOLD },
	{ C, "socket", { AF_INET, SOCK_STREAM, 0 }, OK },
	{ C, "socket", { AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 17 }, OK },
	{ C, "socket", { AF_INET, SOCK_RAW, 1 }, TOLD },
	{ C, "socket", { AF_INET, SOCK_STREAM, 132 /* SCTP */ }, TOLD },
	{ C, "socket", { AF_INET, SOCK_STREAM, 262 /* MPTCP */ }, ERR(EPROTONOSUPPORT) },
	{ C, "socket", { AF_NETLINK, SOCK_RAW, 0 }, OK },
	{ C, "socket", { AF_NETLINK, SOCK_RAW, 9 }, TOLD },
	{ C, "socket", { AF_VSOCK, SOCK_STREAM, 0 }, TOLD },
	{ C, "socket", { AF_ALG, SOCK_SEQPACKET, 0 }, TOLD },
	{ C, "socket", { AF_PACKET, SOCK_RAW, 0 }, TOLD },
	{ C, "socketpair", { AF_UNIX, SOCK_STREAM, 0 }, OK },
	{ C, "socketpair", { AF_UNIX, SOCK_DGRAM, 0 }, TOLD },
	{ C, "connect", { 0 }, TOLD },
	{ C, "bind", { 0 }, TOLD },
	{ C, "sendto", { 3, 1, 1, 0, 0 }, OK },
	{ C, "sendto", { 3, 1, 1, 0, 0x1000 }, TOLD },
	{ C, "sendto", { 3, 1, 1, 0, HIGH }, TOLD },
	{ C, "sendmsg", { 0 }, TOLD },
	{ C, "sendmmsg", { 0 }, TOLD },
	{ L, "socket", { AF_INET, SOCK_STREAM, 0 }, TOLD },
	{ L, "socket", { AF_INET6, SOCK_DGRAM, 0 }, TOLD },
	{ L, "socket", { AF_UNIX, SOCK_STREAM, 0 }, OK },
	{ L, "socket", { AF_NETLINK, SOCK_RAW, 0 }, ERR(EAFNOSUPPORT) },
	{ L, "socket", { AF_NETLINK, SOCK_RAW, 9 }, TOLD },
	{ L, "shmat", { 0 }, TOLD },
	{ C, "shmat", { 0 }, OK },
	/* ioctl */
	{ C, "ioctl", { 0, TIOCSTI }, TOLD },
	{ C, "ioctl", { 0, TIOCLINUX }, TOLD },
	{ C, "ioctl", { 0, TCGETS }, OK },
	{ C, "ioctl", { 0, TIOCSWINSZ }, OK },
	{ C, "ioctl", { 0, FIONBIO }, OK },
	{ C, "ioctl", { 0, 0x40049409 /* FICLONE */ }, OK },
	{ C, "ioctl", { 0, TIOCSETD }, ERR(ENOTTY) },
	{ C, "ioctl", { 0, 0xdeadbeef }, ERR(ENOTTY) },
	/* the kernel at large */
	{ C, "mount", { 0 }, TOLD },
	{ C, "setns", { 0 }, TOLD },
	{ C, "bpf", { 0 }, TOLD },
	{ C, "keyctl", { 0 }, TOLD },
	{ C, "perf_event_open", { 0 }, TOLD },
	{ C, "io_uring_setup", { 0 }, ERR(ENOSYS) },
	{ C, "userfaultfd", { 0 }, ERR(EPERM) },
	{ C, "modify_ldt", { 0 }, TOLD },
	{ C, "reboot", { 0 }, TOLD },
	{ C, "statmount", { 0 }, ERR(ENOSYS) },
	/* nobody listens: what the monitor decides or does itself is refused, the rest goes on */
	{ CA, "openat", { 0, 0, O_RDWR | O_CREAT }, OK },
	{ CA, "open", { 0, O_RDWR | O_CREAT }, OK },
	{ CA, "unlinkat", { 0 }, OK },
	{ CA, "mknodat", { 0, 0, S_IFIFO | 0600 }, OK },
	{ CA, "mknodat", { 0, 0, S_IFCHR | 0600 }, ERR(EPERM) },
	{ CA, "openat", { 0, 0, O_RDWR | O_CREAT, 04755 }, ERR(EPERM) },
	{ CA, "openat", { 0, 0, O_RDWR, 04755 /* no mode */ }, OK },
	{ CA, "openat", { 0, 0, O_RDWR | 020000000, 02755 }, ERR(EPERM) },
	{ CA, "open", { 0, O_RDWR | O_CREAT, 04755 }, ERR(EPERM) },
	{ CA, "creat", { 0, 02755 }, ERR(EPERM) },
	{ CA, "mknodat", { 0, 0, 04755 }, ERR(EPERM) },
	{ LA, "openat", { 0, 0, O_RDWR | O_CREAT, 04755 }, ERR(EPERM) },
	{ LA, "mknodat", { 0, 0, S_IFREG | 02755 }, ERR(EPERM) },
	{ CA, "fchmodat", { 0, 0, 0755 }, OK },
	{ CA, "fchmodat", { 0, 0, 04755 }, ERR(EPERM) },
	{ CA, "connect", { 0 }, ERR(EACCES) },
	{ CA, "bind", { 0 }, OK },
	{ CA, "sendto", { 3, 1, 1, 0, 0x1000 }, OK },
	{ CA, "socket", { AF_UNIX, SOCK_DGRAM, 0 }, ERR(EACCES) },
	{ CA, "socketpair", { AF_UNIX, SOCK_DGRAM, 0 }, ERR(EACCES) },
	{ CA, "clone", { CLONE_NEWUSER }, ERR(EPERM) },
	{ CN, "connect", { 0 }, OK },
	{ CN, "socket", { AF_INET, SOCK_STREAM, 0 }, OK },
	{ CN, "socket", { AF_INET6, SOCK_DGRAM, 17 /* UDP */ }, OK },
	{ CN, "socket", { AF_INET, SOCK_RAW, 0 }, ERR(EPROTONOSUPPORT) },
	{ CN, "socket", { AF_UNIX, SOCK_STREAM, 0 }, ERR(EACCES) },
	{ CN, "socket", { AF_UNIX, SOCK_SEQPACKET, 0 }, ERR(EACCES) },
	{ CN, "socket", { AF_UNIX, SOCK_DGRAM, 0 }, ERR(EACCES) },
	{ CN, "socket", { AF_PACKET, SOCK_DGRAM, 0 }, ERR(EAFNOSUPPORT) },
	{ CN, "socketpair", { AF_UNIX, SOCK_STREAM, 0 }, OK },
	{ CN, "socketpair", { AF_UNIX, SOCK_DGRAM, 0 }, ERR(EACCES) },
	{ CN, "openat", { 0, 0, O_RDWR | O_CREAT, 04755 }, ERR(EPERM) },
	{ CA, "ptrace", { 0 }, ERR(EPERM) },
	{ CA, "process_vm_readv", { 0 }, ERR(EPERM) },
	{ CA, "seccomp", { 1, SECCOMP_FILTER_FLAG_NEW_LISTENER }, ERR(EPERM) },
	{ LA, "openat", { 0, 0, O_RDWR | O_CREAT }, OK },
	{ LA, "openat", { 0, 0, O_RDONLY | O_TRUNC }, ERR(EPERM) },
	{ LA, "openat", { 0, 0, O_ACCMODE | O_TRUNC }, ERR(EPERM) },
	{ LA, "openat", { 0, 0, O_RDONLY | O_TRUNC | O_CREAT, 0600 }, ERR(EPERM) },
	{ LA, "openat", { 0, 0, O_WRONLY | O_TRUNC | O_CREAT, 0600 }, OK },
	{ LA, "openat", { 0, 0, O_RDWR | O_TRUNC }, OK },
	{ LA, "openat", { 0, 0, O_RDONLY | O_CLOEXEC }, OK },
	{ LA, "open", { 0, O_RDONLY | O_TRUNC }, ERR(EPERM) },
	{ LA, "open", { 0, O_ACCMODE | O_TRUNC }, ERR(EPERM) },
	{ LA, "open", { 0, O_WRONLY | O_TRUNC | O_CREAT }, OK },
	{ LA, "creat", { 0, 0600 }, OK },
	{ LA, "connect", { 0 }, ERR(EACCES) },
	{ LA, "truncate", { 0 }, ERR(EPERM) },
	{ LA, "fchmod", { 0, 0600 }, ERR(EPERM) },
	{ LA, "fchmodat2", { 0 }, ERR(EPERM) },
	{ LA, "fchownat", { 0 }, ERR(EPERM) },
	{ LA, "utimensat", { 0 }, ERR(EPERM) },
	{ LA, "fsetxattr", { 0 }, ERR(EPERM) },
	{ LA, "lremovexattr", { 0 }, ERR(EPERM) },
	{ LA, "socket", { AF_INET, SOCK_STREAM, 0 }, ERR(EACCES) },
	{ LA, "shmat", { 0 }, ERR(EACCES) },
	/* a kernel of its own: an address leads nowhere but inside */
	{ CA, "connect", { 0 }, ERR(EACCES) },
	{ CI, "connect", { 0 }, OK },
	{ CI, "ptrace", { 0 }, ERR(EPERM) },
	/* the agent does what it must */
	{ B, "io_uring_setup", { 0 }, ERR(ENOSYS) },
	{ B, "userfaultfd", { 0 }, ERR(EPERM) },
	{ B, "openat2", { 0 }, OK },
	{ B, "clone3", { 0 }, OK },
	{ B, "seccomp", { 1, SECCOMP_FILTER_FLAG_NEW_LISTENER }, OK },
	{ B, "landlock_restrict_self", { 0 }, OK },
	{ B, "execveat", { 0 }, OK },
	{ B, "ioctl", { 0, TIOCSPTLCK }, OK },
	{ B, "mount", { 0 }, OK },
	{ B, "bpf", { 0 }, OK },
};

static int number_of(const struct profile_arch *arch, const char *name)
{
	for (int nr = 0; nr < PROFILE_NAMES_END; nr++)
		if (arch->names[nr] && strcmp(arch->names[nr], name) == 0)
			return nr;
	return -1;
}

static const struct sock_fprog *program_of(const struct profile_arch *arch, const char *name)
{
	for (const struct profile_program_entry *entry = arch->programs; entry->name; entry++)
		if (strcmp(entry->name, name) == 0)
			return &entry->program;
	return NULL;
}

static void check_verdict(const struct profile_arch *arch, const char *profile,
			  const struct seccomp_data *data, uint32_t wanted)
{
	uint32_t verdict = profile_interpret(program_of(arch, profile), data, NULL);

	if (verdict == wanted)
		return;
	printf("# %s %s: %d(%#llx, %#llx, %#llx, .., %#llx) arch %#x gives %#x, not %#x\n",
	       arch->name, profile, data->nr, data->args[0], data->args[1], data->args[2],
	       data->args[4], data->arch, verdict, wanted);
	CHECK(!"verdict");
}

static void test_table(void)
{
	for (unsigned a = 0; a < PROFILE_ARCHES; a++) {
		const struct profile_arch *arch = profile_arch_at(a);
		size_t absent = 0;

		for (size_t i = 0; i < COUNT(rows); i++) {
			struct seccomp_data data = { .arch = arch->audit_arch };

			data.nr = number_of(arch, rows[i].syscall);
			memcpy(data.args, rows[i].args, sizeof data.args);
			absent += data.nr < 0;
			if (data.nr >= 0)
				check_verdict(arch, rows[i].profile, &data, rows[i].verdict);
		}
		CHECK(absent == (arch->has_x32 ? 0 : 13));
	}
}

/* KERNEL: an int or a flag in a 64-bit register; the kernel drops its high half. */
static void test_high_bits(void)
{
	for (unsigned a = 0; a < PROFILE_ARCHES; a++) {
		const struct profile_arch *arch = profile_arch_at(a);

		for (size_t i = 0; i < COUNT(rows); i++) {
			struct seccomp_data data = { .arch = arch->audit_arch };

			data.nr = number_of(arch, rows[i].syscall);
			if (data.nr < 0)
				continue;
			for (int arg = 0; arg < 6; arg++)
				data.args[arg] =
					rows[i].args[arg] | (arg == 4 ? 0 : 0xffffffff00000000);
			check_verdict(arch, rows[i].profile, &data, rows[i].verdict);
		}
	}
}

static void check_doors(const struct profile_arch *arch, const char *profile)
{
	static const uint32_t foreign[] = {
		0, 0x40000003 /* i386 */, 0x40000028 /* arm */, 0xc00000b7, 0xc000003e, 0xffffffff
	};
	struct seccomp_data data = { .nr = 1 };

	for (size_t i = 0; i < COUNT(foreign); i++) {
		data.arch = foreign[i];
		if (data.arch != arch->audit_arch)
			check_verdict(arch, profile, &data, ERR(ENOSYS));
	}
	data.arch = arch->audit_arch;
	for (uint64_t nr = 0x40000000; arch->has_x32 && nr < 0x100000000; nr += 0x3fffff) {
		data.nr = (int)nr;
		check_verdict(arch, profile, &data, ERR(ENOSYS));
	}
}

static void test_other_doors(void)
{
	for (unsigned a = 0; a < PROFILE_ARCHES; a++)
		for (size_t i = 0; profile_arch_at(a)->programs[i].name; i++)
			check_doors(profile_arch_at(a), profile_arch_at(a)->programs[i].name);
}

/* Values at which one test can turn over, and their neighbours. Returns how many. */
static size_t add_values(const struct profile_test *test, uint64_t *values)
{
	size_t count = 0;

	values[count++] = HIGH;
	values[count++] = 0xffffffff;
	for (uint32_t bit = 1; test->kind == PROFILE_HAS && bit; bit <<= 1)
		if (bit & test->mask)
			values[count++] = bit;
	for (unsigned v = 0; v < test->value_count; v++) {
		values[count++] = test->values[v];
		values[count++] = test->values[v] + UINT64_C(1);
		values[count++] = test->values[v] - 1;
	}
	return count;
}

#define VALUES_PER_TEST (2 + 32 + 3 * PROFILE_VALUES_MAX)

/* The same for all lines of a syscall that look at this argument. */
static size_t collect_values(const struct profile_rule *rule, unsigned arg, uint64_t *values,
			     size_t max)
{
	size_t count = 0;
	int nr = rule->nr;

	values[count++] = 0;
	for (; rule->nr == nr; rule++) /* the default behind the last has nr -1 */
		for (unsigned t = 0; t < rule->test_count; t++) {
			CHECK(count + VALUES_PER_TEST < max);
			if (rule->tests[t].arg == arg)
				count += add_values(&rule->tests[t], values + count);
		}
	return count;
}

/* Every combination of such values; notes which lines decided. */
static void check_syscall(const struct profile_arch *arch, const struct profile_rules_entry *entry,
			  const struct profile_rule *rule, bool *hit)
{
	static uint64_t values[6][400];
	size_t counts[6], total = 1;

	for (unsigned arg = 0; arg < 6; arg++) {
		counts[arg] = collect_values(rule, arg, values[arg], COUNT(values[arg]));
		total *= counts[arg];
	}
	CHECK(total < 1000000);
	for (size_t i = 0; i < total; i++) {
		struct seccomp_data data = { .nr = rule->nr, .arch = arch->audit_arch };
		size_t rest = i;

		for (unsigned arg = 0; arg < 6; arg++) {
			data.args[arg] = values[arg][rest % counts[arg]];
			rest /= counts[arg];
		}
		check_verdict(arch, entry->name, &data, profile_expected(arch, entry->name, &data));
		hit[profile_decide_in(entry, &data, arch->has_x32) - entry->rules] = true;
	}
}

static void check_lines(const struct profile_arch *arch, const struct profile_rules_entry *entry)
{
	bool hit[1024] = { false };

	CHECK(entry->count > 10 && entry->count < COUNT(hit));
	for (size_t i = 0; i < entry->count; i++)
		if (i == 0 || entry->rules[i].nr != entry->rules[i - 1].nr)
			check_syscall(arch, entry, &entry->rules[i], hit);
	for (size_t i = 0; i < entry->count; i++) {
		if (!hit[i])
			printf("# %s: never decides: %s %s\n", entry->name, entry->rules[i].name,
			       entry->rules[i].when);
		CHECK(hit[i]);
		CHECK(entry->rules[i].reason[0] != 0);
	}
}

static void test_every_line(void)
{
	for (unsigned a = 0; a < PROFILE_ARCHES; a++)
		for (size_t i = 0; profile_arch_at(a)->rules[i].name; i++)
			check_lines(profile_arch_at(a), &profile_arch_at(a)->rules[i]);
}

static void check_numbers(const struct profile_arch *arch,
			  const struct profile_program_entry *entry)
{
	struct seccomp_data data = { .arch = arch->audit_arch };
	unsigned steps;

	CHECK(entry->program.len <= 320);
	for (data.nr = -2; data.nr < 1200; data.nr++) {
		check_verdict(arch, entry->name, &data, profile_expected(arch, entry->name, &data));
		profile_interpret(&entry->program, &data, &steps);
		CHECK(steps <= 40);
	}
	data.nr = 700;
	check_verdict(arch, entry->name, &data,
		      strcmp(entry->name, B) == 0     ? OK
		      : strstr(entry->name, "-alone") ? ERR(ENOSYS)
						      : TOLD);
}

/* Every number, also those that nobody named; and no call is slow. */
static void test_every_number(void)
{
	for (unsigned a = 0; a < PROFILE_ARCHES; a++)
		for (size_t i = 0; profile_arch_at(a)->programs[i].name; i++)
			check_numbers(profile_arch_at(a), &profile_arch_at(a)->programs[i]);
}

/* In a chain of filters an errno outranks a notification. */
static void check_beneath(const struct profile_arch *arch, const char *profile)
{
	struct seccomp_data data = { .arch = arch->audit_arch };

	for (data.nr = 0; data.nr < PROFILE_NAMES_END; data.nr++) {
		uint32_t verdict = profile_interpret(program_of(arch, B), &data, NULL);

		if (verdict != OK)
			check_verdict(arch, profile, &data, verdict);
	}
}

static void test_base_hides_nothing(void)
{
	for (unsigned a = 0; a < PROFILE_ARCHES; a++)
		for (size_t i = 0; profile_arch_at(a)->programs[i].name; i++)
			check_beneath(profile_arch_at(a), profile_arch_at(a)->programs[i].name);
}

/* Nothing known to libseccomp is left to the default by forgetting. */
static void test_nothing_is_forgotten(void)
{
	for (unsigned a = 0; a < PROFILE_ARCHES; a++) {
		const struct profile_arch *arch = profile_arch_at(a);

		for (int nr = 0; nr < PROFILE_NAMES_END; nr++) {
			struct seccomp_data data = { .nr = nr, .arch = arch->audit_arch };

			if (!arch->names[nr])
				continue;
			if (profile_decide_in(&arch->rules[1], &data, false)->nr != nr)
				printf("# %s: %s is not named\n", arch->name, arch->names[nr]);
			CHECK(profile_decide_in(&arch->rules[1], &data, false)->nr == nr);
		}
	}
}

static void test_lookup(void)
{
	struct seccomp_data data = { .nr = SYS_socket, .args = { AF_VSOCK } };
	const struct profile_rule *rule;
	size_t count = 0;

	CHECK(!profile_program("nonsense"));
	CHECK(!profile_rules("nonsense", &count) && count == 0);
	CHECK(!profile_rule_of("nonsense", SYS_mount));
	CHECK(!profile_decide("nonsense", &data));
	CHECK(profile_rules(C, &count) && count > 300);
	CHECK(!profile_rule_of(C, SYS_read));
	CHECK(!profile_rule_of(C, 700));
	data = (struct seccomp_data){ .nr = 700, .arch = PROFILE_NATIVE(profile_arch) };
	CHECK(profile_decide(C, &data)->nr == -1 && profile_decide(C, &data)->error == ENOSYS);
	data = (struct seccomp_data){ .nr = SYS_socket, .args = { AF_VSOCK } };
	rule = profile_rule_of(C, SYS_ptrace);
	CHECK(rule && rule->verdict == PROFILE_DENY && rule->error == EPERM);
	CHECK_STR(rule->name, "ptrace");
	CHECK_STR(profile_syscall_name(SYS_openat), "openat");
	CHECK(!profile_syscall_name(-1) && !profile_syscall_name(1 << 20));
	data.arch = PROFILE_NATIVE(profile_arch);
	rule = profile_decide(C, &data);
	CHECK(rule && rule->verdict == PROFILE_DENY && rule->error == EAFNOSUPPORT);
	data.args[0] = AF_UNIX | HIGH;
	data.args[1] = SOCK_DGRAM;
	rule = profile_decide(C, &data);
	CHECK(rule && rule->error == EACCES);
	data.arch = 0x40000003;
	CHECK(!profile_decide(C, &data));
}

static void load(const char *name)
{
	CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, profile_program(name)) != 0)
		SKIP("seccomp: the kernel refuses filters");
}

static int error_of(long nr, uint64_t a, uint64_t b, uint64_t c)
{
	errno = 0;
	return syscall(nr, a, b, c, 0, 0, 0) < 0 ? errno : 0;
}

/* Without a listener the kernel answers ENOSYS where it would notify. */
static void test_kernel(void)
{
	load(B);
	CHECK(error_of(SYS_kcmp, 0, 0, 0) == EPERM);
	CHECK(error_of(SYS_io_uring_setup, 0, 0, 0) == ENOSYS);
	CHECK(error_of(SYS_getppid, 0, 0, 0) == 0);
	load(C);
	CHECK(error_of(SYS_getppid, 0, 0, 0) == 0);
	CHECK(error_of(SYS_setgroups, 0, 0, 0) == EPERM);
	CHECK(error_of(SYS_ioctl, 0, TIOCSETD | HIGH, 0) == ENOTTY);
	CHECK(error_of(SYS_ioctl, 0, TIOCSTI, 0) == ENOSYS);
	CHECK(error_of(SYS_ioctl, 0, TIOCSTI | HIGH, 0) == ENOSYS);
	CHECK(error_of(SYS_socket, AF_UNIX | HIGH, SOCK_STREAM, 0) == 0);
	CHECK(error_of(SYS_socket, AF_UNIX | HIGH, SOCK_DGRAM, 0) == ENOSYS);
	CHECK(error_of(SYS_socket, AF_INET, SOCK_STREAM, 262) == EPROTONOSUPPORT);
	CHECK(error_of(SYS_prlimit64, HIGH, 7, 0) == 0);
	CHECK(error_of(SYS_prlimit64, 1, 7, 0) == ENOSYS);
	CHECK(error_of(SYS_openat, (uint64_t)AT_FDCWD, (uintptr_t) "/", O_RDONLY) == 0);
	CHECK(error_of(SYS_openat, (uint64_t)AT_FDCWD, (uintptr_t) "/", O_WRONLY | HIGH) == ENOSYS);
	CHECK(error_of(SYS_clone, CLONE_NEWUSER | HIGH, 0, 0) == ENOSYS);
	CHECK(error_of(SYS_getpid | 0x40000000, 0, 0, 0) == ENOSYS);
#if defined __x86_64__
	int status = 0;
	pid_t pid = fork();
	if (pid == 0) {
		long result = 20; /* getpid of i386 */
		__asm__ volatile("int $0x80" : "+a"(result) : : "memory");
		_exit(result == -ENOSYS ? 0 : 1);
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(status == 0 || WTERMSIG(status) == SIGSEGV); /* a kernel without i386 */
#endif
}

/* Landlock's variant, and fork and exec under it all. */
static void test_kernel_lives(void)
{
	int status;

	load(B);
	load(L);
	CHECK(error_of(SYS_socket, AF_NETLINK, SOCK_RAW, 0) == EAFNOSUPPORT);
	CHECK(error_of(SYS_socket, AF_INET, SOCK_STREAM, 0) == ENOSYS);
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		execl("/bin/true", "true", NULL);
		_exit(99);
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

static int compile(const char *text)
{
	char path[] = "/tmp/test_profile.XXXXXX";
	int fd = mkstemp(path), status = -1;

	CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	pid_t pid = fork();
	if (pid == 0) {
		dup2(open("/dev/null", O_WRONLY), 2);
		execl(PROFILE_COMPILER, PROFILE_COMPILER, "x86_64", "/dev/null", "/dev/null", path,
		      NULL);
		_exit(99);
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	unlink(path);
	close(fd);
	return WEXITSTATUS(status);
}

static void test_compiler_refuses(void)
{
	static const char *const bad[] = {
		"read allow\n",
		"read allow #\n",
		"read allow #  \n",
		"read perhaps # why\n",
		"raed allow # why\n",
		"read deny # why\n",
		"read deny EWHAT # why\n",
		"read allow EPERM # why\n",
		"open allow # why\n",
		"read allow on x86_64 # why\n",
		"open allow on mips # why\n",
		"ioctl allow when arg1 is 21505 # why\n",
		"ioctl allow when arg1 is TCGETS # why\n", /* nothing after it */
		"read allow # why\nread deny EPERM # never reached\n",
		"ioctl allow when arg6 is TCGETS # why\nioctl allow # why\n",
		"ioctl allow when arg1 is TCGETS TCSETS # why\nioctl allow # why\n",
		"ioctl allow when arg1 & S_IFMT is 0xffffffff # why\nioctl allow # why\n",
		"ioctl allow when arg1 is FIONBIO, FIONBIO # twice\nioctl deny EPERM # why\n",
		("ioctl allow when arg1 is FIONBIO # a\nioctl deny EPERM when arg1 is FIONBIO # "
		 "b\nioctl allow # c\n"),
		"read allow # why\ninclude base # too late\n",
		"include nonsense # why\n",
		"listener perhaps # why\n",
	};
	char text[512];

	CHECK(compile("default allow # why\nread allow # why\n") == 0);
	CHECK(compile("read allow # no default\n") == 1);
	for (size_t i = 0; i < COUNT(bad); i++) {
		snprintf(text, sizeof text, "default allow # why\n%s", bad[i]);
		if (compile(text) != 1)
			printf("# taken: %s", bad[i]);
		CHECK(compile(text) == 1);
	}
}

static const struct tap_test tests[] = {
	{ "calls get the promised verdict on both architectures", test_table },
	{ "high halves of arguments change nothing", test_high_bits },
	{ "x32 and foreign calls are ENOSYS", test_other_doors },
	{ "every line decides somewhere, as its program does", test_every_line },
	{ "every number gets what the rules say, in few steps", test_every_number },
	{ "the base filter hides nothing that is reported", test_base_hides_nothing },
	{ "no known syscall is left to the default", test_nothing_is_forgotten },
	{ "rules are found by name and number", test_lookup },
	{ "the kernel agrees", test_kernel },
	{ "programs run under both filters", test_kernel_lives },
	{ "the compiler refuses what it does not understand", test_compiler_refuses },
};

TAP_MAIN(tests)
