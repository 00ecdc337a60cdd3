/*
 * caisson down, caisson ps: sandboxes that stay, by name
 *
 * The kernel tells who listens on a socket and the lock beside it whether he lives, so nothing is
 * asked of a monitor that may be stopped.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/place.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/out.h"
#include "monitor/stay_ask.h"

enum { DOWN_MS = 20000, SANDBOXES = 4096 };

static int end_one(int place, const char *name, struct csn_error *err)
{
	_cleanup_fd_ int fd = place_connect(place, name, err);

	return fd < 0 ? fd : stay_ask_end(fd, DOWN_MS, err);
}

int cli_down(struct cli *cli)
{
	struct csn_error err = { 0 };
	_cleanup_fd_ int place = place_open(&err);
	int r = place;

	signal(SIGPIPE, SIG_IGN); /* it may go while we ask */
	for (int i = 0; r >= 0 && i < cli->arg_count; i++)
		r = end_one(place, cli->args[i], &err);
	return r < 0 ? cli_fail(cli, &err) : CLI_OK;
}

struct sandbox {
	char name[PLACE_NAME_MAX + 1];
	const char *state;
	pid_t pid; /* of its monitor, 0: it does not answer */
	int64_t started_ms;
};

/* The monitor of a name whose lock is held; false: it went meanwhile. */
static bool look_at(int place, const char *name, struct sandbox *ret_sandbox)
{
	char file[PLACE_NAME_MAX + 8];
	struct csn_error err;
	_cleanup_fd_ int fd = place_connect(place, name, &err);
	struct ucred peer;
	socklen_t size = sizeof peer;
	struct stat st;

	snprintf(file, sizeof file, "%.*s.lock", PLACE_NAME_MAX, name);
	if (fstatat(place, file, &st, AT_SYMLINK_NOFOLLOW) < 0 || fd == -ENOENT)
		return false;
	if (fd < 0 || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
		peer.pid = 0;
	snprintf(ret_sandbox->name, sizeof ret_sandbox->name, "%.*s", PLACE_NAME_MAX, name);
	ret_sandbox->pid = peer.pid;
	ret_sandbox->state = peer.pid ? "up" : "silent";
	ret_sandbox->started_ms = (int64_t)st.st_ctim.tv_sec * 1000 + st.st_ctim.tv_nsec / 1000000;
	return true;
}

static int by_age(const void *a, const void *b)
{
	const struct sandbox *x = a, *y = b;

	return x->started_ms < y->started_ms ? -1 : x->started_ms > y->started_ms;
}

/* All that live, oldest first; removes what dead ones left. Their number, or -errno. */
static int find_all(int place, struct sandbox *ret_sandboxes, size_t max)
{
	int fd = openat(place, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	size_t count = 0;

	if (!dir) {
		int r = -errno;

		fd_close(fd);
		return r;
	}
	while (count < max && (entry = readdir(dir))) {
		char *dot = strrchr(entry->d_name, '.');

		if (!dot || !str_is(dot, ".lock"))
			continue;
		*dot = 0;
		if (place_is_name(entry->d_name) && place_is_alive(place, entry->d_name) &&
		    look_at(place, entry->d_name, &ret_sandboxes[count]))
			count++;
	}
	closedir(dir);
	qsort(ret_sandboxes, count, sizeof *ret_sandboxes, by_age);
	return (int)count;
}

static void print_text(const struct sandbox *sandboxes, int count)
{
	int64_t now_ms = clock_wall_ms();

	for (int i = 0; i < count; i++) {
		const struct sandbox *sandbox = &sandboxes[i];
		uint64_t age_ms =
			now_ms > sandbox->started_ms ? (uint64_t)(now_ms - sandbox->started_ms) : 0;
		char age[32];

		str_format_duration(age_ms / 1000 * 1000, age, sizeof age);
		printf("%-24s  %-6s  %8s", sandbox->name, sandbox->state, age);
		if (sandbox->pid)
			printf("  pid %d", (int)sandbox->pid);
		putchar('\n');
	}
}

static int print_json(const struct sandbox *sandboxes, int count)
{
	json_t *list = json_array();

	for (int i = 0; i < count; i++) {
		char started[CLOCK_TEXT];

		clock_format(sandboxes[i].started_ms, started);
		json_array_append_new(list,
				      json_pack("{s:s, s:s, s:i, s:s}", "name", sandboxes[i].name,
						"state", sandboxes[i].state, "pid",
						(int)sandboxes[i].pid, "started", started));
	}
	return out_json(json_pack("{s:o}", "sandboxes", list));
}

int cli_ps(struct cli *cli)
{
	struct csn_error err = { 0 };
	_cleanup_fd_ int place = place_open(&err);
	struct sandbox *sandboxes = calloc(SANDBOXES, sizeof *sandboxes);
	int count = place, status = CLI_OK;

	if (place >= 0)
		count = sandboxes ? find_all(place, sandboxes, SANDBOXES) : -ENOMEM;
	if (count < 0 && !err.code)
		csn_fail(&err, count, "ps", "cannot list the sandboxes: %s", strerror(-count));
	if (count < 0)
		status = cli_fail(cli, &err);
	else if (cli->options.json)
		status = print_json(sandboxes, count);
	else
		print_text(sandboxes, count);
	free(sandboxes);
	return status;
}
