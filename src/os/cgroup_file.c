/*
 * The text files of a control group: "one write, one command". Numbers that are missing or
 * malformed read as CGROUP_UNKNOWN: which counters exist depends on kernel and controller.
 */
#include "os/cgroup_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "os/cgroup.h"

const char *const cgroup_controller_names[] = {
	[CGROUP_MEMORY] = "memory",
	[CGROUP_PIDS] = "pids",
	[CGROUP_CPU] = "cpu",
};

int cgroup_file_write(int dir_fd, const char *name, const char *text)
{
	_cleanup_fd_ int fd = openat(dir_fd, name, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	return write(fd, text, strlen(text)) < 0 ? -errno : 0;
}

int cgroup_file_write_u64(int dir_fd, const char *name, uint64_t value, const char *none)
{
	char text[24];

	if (value == CGROUP_UNLIMITED)
		return cgroup_file_write(dir_fd, name, none);
	snprintf(text, sizeof text, "%llu", (unsigned long long)value);
	return cgroup_file_write(dir_fd, name, text);
}

int cgroup_file_read(int dir_fd, const char *name, char *ret_text, size_t size)
{
	_cleanup_fd_ int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = read(fd, ret_text, size - 1);
	if (n < 0)
		return -errno;
	ret_text[n] = 0;
	return (int)n;
}

static uint64_t number(char *text)
{
	uint64_t value;

	text[strcspn(text, " \n")] = 0;
	return str_parse_u64(text, CGROUP_UNKNOWN - 1, &value) < 0 ? CGROUP_UNKNOWN : value;
}

uint64_t cgroup_file_u64(int dir_fd, const char *name)
{
	char text[64];

	if (cgroup_file_read(dir_fd, name, text, sizeof text) < 0)
		return CGROUP_UNKNOWN;
	return number(text);
}

uint64_t cgroup_file_key(int dir_fd, const char *name, const char *key)
{
	char text[CGROUP_TEXT], *line;
	size_t key_size = strlen(key);

	if (cgroup_file_read(dir_fd, name, text, sizeof text) < 0)
		return CGROUP_UNKNOWN;
	for (line = text; line && *line; line = line ? line + 1 : NULL) {
		if (strncmp(line, key, key_size) == 0 && line[key_size] == ' ')
			return number(line + key_size + 1);
		line = strchr(line, '\n');
	}
	return CGROUP_UNKNOWN;
}

bool cgroup_text_has(const char *text, const char *word)
{
	size_t size = strlen(word), here;

	while (*text) {
		here = strcspn(text, " ,\n");
		if (here == size && strncmp(text, word, size) == 0)
			return true;
		text += here + (text[here] != 0);
	}
	return false;
}

bool cgroup_id_is_valid(const char *id)
{
	size_t size = strspn(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				 "0123456789_-");

	return size > 0 && size < CGROUP_ID && id[size] == 0;
}
