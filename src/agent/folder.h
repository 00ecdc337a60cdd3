/*
 * folder - the entries of an open directory, a buffer at a time
 *
 * By the raw call: libc's readdir() wants a descriptor of its own and hides when it asks the
 * kernel, and a step of a job must know how much it does.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct folder {
	int fd; /* owned; -1: none */
	size_t at, end;
	uint64_t data[4096]; /* struct linux_dirent64 after each other */
};

/* Takes the descriptor; what was open before is closed. -1: none. */
void folder_take(struct folder *folder, int fd);
void folder_done(struct folder *folder);

/* Must the kernel be asked for the next one? */
bool folder_is_empty(const struct folder *folder);

/* The next name but "." and "..", good until the next call; `ret_is_folder` is a hint. NULL at the
 * end with 0, or with -errno. */
const char *folder_next(struct folder *folder, bool *ret_is_folder, int *ret_error);
