/*
 * git_index - one entry of a git index, without git
 *
 * Pure: bytes in, an object's name out. Versions 2 and 3, as git's documentation of the index
 * format describes them; everything else is not read rather than guessed.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { GIT_SHA1 = 20 };

/*
 * The SHA-1 of the blob that the index holds for `path` (relative to the work tree), all zeros
 * while it is in conflict. 1; 0: the index has no such path; -EBADMSG: damaged, version 4, or
 * with an extension that one must understand (split, sparse). The trailing checksum is not
 * verified.
 */
int git_index_find(const void *data, size_t size, const char *path, uint8_t ret_sha1[GIT_SHA1]);
