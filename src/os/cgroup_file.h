/*
 * cgroup_file - the small text files of a control group
 *
 * One write is one command to the kernel, one read is one answer; nothing is buffered,
 * nothing allocated, so all of it works after fork. Shared by the cgroup_*.c files only.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CGROUP_TEXT = 4096 }; /* the longest answer that is read, with its NUL */

/* Where processes of a group go that is to hand controllers down. */
#define CGROUP_LEAF "caisson-main"

/* The kernel's name of a controller, by enum cgroup_controller. */
extern const char *const cgroup_controller_names[];

/* Writes `text` to `name` in the directory. 0 or a negative errno. */
int cgroup_file_write(int dir_fd, const char *name, const char *text);

/* The same for a number; CGROUP_UNLIMITED is written as `none`. */
int cgroup_file_write_u64(int dir_fd, const char *name, uint64_t value, const char *none);

/* Reads up to `size` - 1 bytes and ends them with NUL. The length, or a negative errno. */
int cgroup_file_read(int dir_fd, const char *name, char *ret_text, size_t size);

/* The number in `name`, or the one after `key` where each line is "key number". */
uint64_t cgroup_file_u64(int dir_fd, const char *name);
uint64_t cgroup_file_key(int dir_fd, const char *name, const char *key);

/* Is `word` one of the words of `text`, which are separated by blanks, commas or newlines? */
bool cgroup_text_has(const char *text, const char *word);

/* May `id` be the name of a group? */
bool cgroup_id_is_valid(const char *id);
