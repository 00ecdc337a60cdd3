/*
 * Names that profiles may use. Syscall numbers come from libseccomp, which knows every
 * architecture; calls newer than the library are added here, their numbers being the same
 * on all architectures since 424. Constants come from the headers; the ones used are the
 * same on x86-64 and arm64 (O_DIRECTORY and its neighbours are not, so they are not here;
 * glibc's __O_TMPFILE holds O_DIRECTORY too, so the kernel's bit is written out).
 */
#include "profile-compiler.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <linux/ioprio.h>
#include <linux/netlink.h>
#include <linux/random.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <sched.h>
#include <seccomp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define ENTRY(constant)                         \
	{                                       \
#constant, (uint32_t)(constant) \
	}

/* Not in every libc: the kernel's include/linux/net.h and asm-generic/termbits.h. */
#define SOCK_TYPE_MASK 0xf
#ifndef IPPROTO_MPTCP
#define IPPROTO_MPTCP 262
#endif

static const struct {
	const char *word;
	uint32_t value;
} constants[] = {
	ENTRY(0),
	ENTRY(0xffffffff),
	ENTRY(O_WRONLY),
	ENTRY(O_RDWR),
	ENTRY(O_ACCMODE),
	ENTRY(O_CREAT),
	ENTRY(O_TRUNC),
	{ "__O_TMPFILE", 020000000 },
	ENTRY(S_IFMT),
	ENTRY(S_IFREG),
	ENTRY(S_IFIFO),
	ENTRY(CLONE_NEWNS),
	ENTRY(CLONE_NEWCGROUP),
	ENTRY(CLONE_NEWUTS),
	ENTRY(CLONE_NEWIPC),
	ENTRY(CLONE_NEWUSER),
	ENTRY(CLONE_NEWPID),
	ENTRY(CLONE_NEWNET),
	ENTRY(ADDR_NO_RANDOMIZE),
	ENTRY(PR_SET_MM),
	ENTRY(SECCOMP_FILTER_FLAG_NEW_LISTENER),
	ENTRY(PRIO_PROCESS),
	ENTRY(IOPRIO_WHO_PROCESS),
	ENTRY(AF_UNIX),
	ENTRY(AF_INET),
	ENTRY(AF_INET6),
	ENTRY(AF_NETLINK),
	ENTRY(SOCK_STREAM),
	ENTRY(SOCK_DGRAM),
	ENTRY(SOCK_SEQPACKET),
	ENTRY(SOCK_TYPE_MASK),
	ENTRY(IPPROTO_TCP),
	ENTRY(IPPROTO_UDP),
	ENTRY(IPPROTO_ICMP),
	ENTRY(IPPROTO_ICMPV6),
	ENTRY(IPPROTO_MPTCP),
	ENTRY(NETLINK_ROUTE),
	{ "TCGETS2", 0x802c542a },
	{ "TCSETS2", 0x402c542b },
	{ "TCSETSW2", 0x402c542c },
	{ "TCSETSF2", 0x402c542d },
	ENTRY(TCGETS),
	ENTRY(TCSETS),
	ENTRY(TCSETSW),
	ENTRY(TCSETSF),
	ENTRY(TCGETA),
	ENTRY(TCSETA),
	ENTRY(TCSETAW),
	ENTRY(TCSETAF),
	ENTRY(TCSBRK),
	ENTRY(TCSBRKP),
	ENTRY(TCXONC),
	ENTRY(TCFLSH),
	ENTRY(TIOCOUTQ),
	ENTRY(TIOCEXCL),
	ENTRY(TIOCNXCL),
	ENTRY(TIOCGWINSZ),
	ENTRY(TIOCSWINSZ),
	ENTRY(TIOCSCTTY),
	ENTRY(TIOCNOTTY),
	ENTRY(TIOCGPGRP),
	ENTRY(TIOCSPGRP),
	ENTRY(TIOCGSID),
	ENTRY(TIOCGPTN),
	ENTRY(TIOCSPTLCK),
	ENTRY(TIOCGPTLCK),
	ENTRY(TIOCGPTPEER),
	ENTRY(TIOCPKT),
	ENTRY(TIOCGPKT),
	ENTRY(TIOCSTI),
	ENTRY(TIOCLINUX),
	ENTRY(FIONREAD),
	ENTRY(FIONBIO),
	ENTRY(FIOASYNC),
	ENTRY(FIOCLEX),
	ENTRY(FIONCLEX),
	ENTRY(FIOQSIZE),
	ENTRY(FICLONE),
	ENTRY(FICLONERANGE),
	ENTRY(FIDEDUPERANGE),
	ENTRY(FIGETBSZ),
	ENTRY(FS_IOC_FIEMAP),
	ENTRY(FS_IOC_GETFLAGS),
	ENTRY(FS_IOC_GETVERSION),
	ENTRY(FS_IOC_FSGETXATTR),
	ENTRY(SIOCGIFCONF),
	ENTRY(SIOCGIFNAME),
	ENTRY(SIOCGIFINDEX),
	ENTRY(SIOCGIFFLAGS),
	ENTRY(SIOCGIFADDR),
	ENTRY(SIOCGIFDSTADDR),
	ENTRY(SIOCGIFBRDADDR),
	ENTRY(SIOCGIFNETMASK),
	ENTRY(SIOCGIFHWADDR),
	ENTRY(SIOCGIFMTU),
	ENTRY(SIOCATMARK),
	ENTRY(S_ISUID),
	ENTRY(S_ISGID),
	ENTRY(RLIMIT_CORE),
	ENTRY(RNDGETENTCNT),
};

static const struct {
	const char *word;
	int value;
} errors[] = {
	{ "NOTHING", 0 }, /* the call seems to succeed and does nothing */
	ENTRY(EPERM),     ENTRY(EACCES),     ENTRY(ENOSYS),       ENTRY(ENOTTY),
	ENTRY(EINVAL),    ENTRY(EOPNOTSUPP), ENTRY(EAFNOSUPPORT), ENTRY(EPROTONOSUPPORT),
};

/* Newer than the libseccomp of the oldest system that builds this. */
static const struct {
	const char *name;
	int nr;
} new_syscalls[] = {
	{ "cachestat", 451 },         { "fchmodat2", 452 },        { "map_shadow_stack", 453 },
	{ "futex_wake", 454 },        { "futex_wait", 455 },       { "futex_requeue", 456 },
	{ "statmount", 457 },         { "listmount", 458 },        { "lsm_get_self_attr", 459 },
	{ "lsm_set_self_attr", 460 }, { "lsm_list_modules", 461 }, { "mseal", 462 },
	{ "setxattrat", 463 },        { "getxattrat", 464 },       { "listxattrat", 465 },
	{ "removexattrat", 466 },     { "open_tree_attr", 467 },   { "file_getattr", 468 },
	{ "file_setattr", 469 },      { "listns", 470 },
};

static const struct target targets[] = {
	{ "x86_64", "x86_64", SCMP_ARCH_X86_64, true },
	{ "aarch64", "aarch64", SCMP_ARCH_AARCH64, false },
};

const struct target *target_of(const char *name)
{
	for (size_t i = 0; i < COUNT(targets); i++)
		if (strcmp(targets[i].name, name) == 0)
			return &targets[i];
	return NULL;
}

bool marker_is_known(const char *marker)
{
	for (size_t i = 0; i < COUNT(targets); i++)
		if (strcmp(targets[i].marker, marker) == 0)
			return true;
	return false;
}

int syscall_number(const struct target *target, const char *name)
{
	int nr;

	for (size_t i = 0; i < COUNT(new_syscalls); i++)
		if (strcmp(new_syscalls[i].name, name) == 0)
			return new_syscalls[i].nr;
	nr = seccomp_syscall_resolve_name_arch(target->scmp_arch, name);
	return nr < 0 ? -1 : nr; /* pseudo numbers of other architectures are negative */
}

void syscall_name(const struct target *target, int nr, char *ret_name, size_t size)
{
	char *name;

	ret_name[0] = 0;
	for (size_t i = 0; i < COUNT(new_syscalls); i++)
		if (new_syscalls[i].nr == nr)
			snprintf(ret_name, size, "%s", new_syscalls[i].name);
	if (ret_name[0])
		return;
	name = seccomp_syscall_resolve_num_arch(target->scmp_arch, nr);
	snprintf(ret_name, size, "%s", name ? name : "");
	free(name);
}

bool constant_value(const char *word, uint32_t *ret_value)
{
	for (size_t i = 0; i < COUNT(constants); i++) {
		if (strcmp(constants[i].word, word) != 0)
			continue;
		*ret_value = constants[i].value;
		return true;
	}
	return false;
}

bool error_value(const char *word, int *ret_value)
{
	for (size_t i = 0; i < COUNT(errors); i++) {
		if (strcmp(errors[i].word, word) != 0)
			continue;
		*ret_value = errors[i].value;
		return true;
	}
	return false;
}
