/* A real agent for a client to talk to, made ready as a monitor would; no wall. */
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "caisson.h"
#include "os/agent_fds.h"
#include "tap.h"
#include "wire/emit.h"

static pid_t client_agent; /* its process */

/* build/tests/unit/test_NAME -> build/PROGRAM */
static void program_path(const char *program, char *ret_path, size_t size)
{
	ssize_t n = readlink("/proc/self/exe", ret_path, size - 1);

	CHECK(n > 0);
	for (int up = 0; up < 3; up++) {
		while (n > 0 && ret_path[n - 1] != '/')
			n--;
		CHECK(n-- > 0);
	}
	snprintf(ret_path + n, size - (size_t)n, "/%s", program);
}

static void send_init(int fd, const char *workspace)
{
	struct emit emit;
	struct buf out;

	buf_init(&out, 1 << 16);
	emit = emit_begin(&out);
	emit_tuple(&emit, 2);
	emit_atom(&emit, "init");
	emit_map(&emit, 2);
	emit_atom(&emit, "workspace");
	emit_text(&emit, workspace);
	emit_atom(&emit, "profile");
	emit_text(&emit, "none");
	CHECK(emit_end(&emit) == 0);
	CHECK(write(fd, buf_at(&out), buf_size(&out)) == (ssize_t)buf_size(&out));
	buf_done(&out);
}

static inline int start_agent(const char *workspace)
{
	char path[4096], search[4096];
	int pair[2];

	program_path("src/agent/caisson-agent", path, sizeof path);
	program_path("caisson-search", search, sizeof search);
	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
	client_agent = fork();
	if (client_agent == 0) {
		int null = open("/dev/null", O_RDWR);

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(pair[1], 100);
		for (int fd = AGENT_FD_LISTENERS; fd < AGENT_FD_END; fd++)
			dup2(null, fd);
		dup2(100, AGENT_FD_IN);
		dup2(100, AGENT_FD_OUT);
		close_range(AGENT_FD_END, ~0U, 0);
		open(search, O_RDONLY); /* AGENT_FD_SEARCH, the lowest that is free */
		execl(path, "caisson-agent", NULL);
		_exit(127);
	}
	close(pair[1]);
	send_init(pair[0], workspace);
	return pair[0];
}

static inline csn_sandbox *open_agent(void)
{
	csn_error err = { 0 };
	csn_sandbox *sandbox = csn_adopt(start_agent("/tmp"), &err);

	printf("# %s\n", err.text);
	CHECK(sandbox);
	return sandbox;
}
