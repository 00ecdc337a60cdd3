/* reach_out - tries what a monitor that cannot read its memory might let through. */
#include "../inside.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>

int main(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = "sock" };

	ATTEMPT("the host's socket",
		connect(socket(AF_UNIX, SOCK_STREAM, 0), (void *)&address, sizeof address));
	ATTEMPT("a system file", open("/usr/lib/os-release", O_WRONLY));
	ATTEMPT("its own memory's file", open("/proc/self/mem", O_RDWR));
	return done();
}
