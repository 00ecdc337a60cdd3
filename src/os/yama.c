/* Yama's switch, read anew each time: an administrator may turn it at any moment; see yama.h. */
#include "os/yama.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <unistd.h>

#include "base/fd.h"
#include "os/privs.h"

enum { ADMINISTRATORS = 2, NOBODY = 3 };

int yama_scope(void)
{
	_cleanup_fd_ int fd = open("/proc/sys/kernel/yama/ptrace_scope", O_RDONLY | O_CLOEXEC);
	char digit;

	if (fd < 0 || read(fd, &digit, 1) != 1 || digit < '0' || digit > '9')
		return -1;
	return digit - '0';
}

bool yama_permits(bool is_owner)
{
	int scope = yama_scope();

	if (scope >= NOBODY)
		return false;
	return scope < ADMINISTRATORS || is_owner || privs_has(CAP_SYS_PTRACE);
}
