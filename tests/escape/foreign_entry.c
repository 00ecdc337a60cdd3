/*
 * Enters the kernel by the doors of other ABIs: int 0x80 (32 bit numbers) and x32.
 *
 * Would gain: a filter written for one table of numbers means other calls by another table.
 */
#include "inside.h"

#include <sys/syscall.h>

#ifdef __x86_64__
#define X32 0x40000000L

static long old_door(long number, long a, long b, long c)
{
	long result;

	__asm__ volatile("int $0x80"
			 : "=a"(result)
			 : "a"(number), "b"(a), "c"(b), "d"(c)
			 : "memory");
	if (result < 0 && result > -4096) {
		errno = (int)-result;
		return -1;
	}
	return result;
}

int main(void)
{
	CONTROL("the usual door", syscall(SYS_getpid));
	ATTEMPT("int 0x80: getpid", old_door(20, 0, 0, 0));
	ATTEMPT("int 0x80: unshare(CLONE_NEWUSER)", old_door(310, 0x10000000, 0, 0));
	ATTEMPT("int 0x80: socket(AF_VSOCK)", old_door(359, 40, 1, 0));
	ATTEMPT("int 0x80: mount", old_door(21, 0, 0, 0));
	ATTEMPT("int 0x80: ptrace", old_door(26, 0, 0, 0));
	ATTEMPT("x32: getpid", syscall(X32 | SYS_getpid));
	ATTEMPT("x32: unshare", syscall(X32 | SYS_unshare, 0x10000000));
	ATTEMPT("x32: execve", syscall(X32 | 520, NULL, NULL, NULL));
	ATTEMPT("x32: ptrace", syscall(X32 | 521, 0, 0, 0));
	ATTEMPT("x32: ioctl", syscall(X32 | 514, 0, 0x5412, ""));
	ATTEMPT("x32: process_vm_readv", syscall(X32 | 539, 1, 0, 0, 0, 0, 0));
	return done();
}
#else
int main(void)
{
	errno = ENOSYS;
	ATTEMPT("no other door on this architecture", -1);
	return done();
}
#endif
