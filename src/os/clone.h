/*
 * clone - the bytes of a file that somebody may be writing, in another file
 *
 * Shared extents where the file system can (FICLONE); else data is copied and holes are left out:
 * a sandbox can make a file of a tebibyte for nothing.
 */
#pragma once

#include <sys/stat.h>

/*
 * Copies the regular file `from` to the empty file `to`, and starts again when it was written
 * meanwhile: *ret_stat is what it was. 0; -EAGAIN when it did not stay the same for three tries,
 * -EINVAL when it is no regular file, or another negative errno.
 */
int clone_file(int from, int to, struct stat *ret_stat);
