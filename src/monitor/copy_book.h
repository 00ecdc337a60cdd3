/*
 * copy_book - what commits of one layer wrote to the workspace
 *
 * A commit refuses a file that somebody changed since the sandbox began. What an earlier commit
 * of the same layer wrote was changed since then too, by ourselves: the book holds which file
 * that was, by its inode and its ctime, which nobody can set back. A file that is not as the book
 * has it was changed by somebody else.
 *
 * It lies in the run's folder, which no sandbox sees. Its lock makes commits of a layer one at a
 * time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/error.h"

struct copy_book_line;

struct copy_book {
	int fd;                       /* owned, locked */
	struct buf bytes;             /* the whole file as it was opened */
	struct copy_book_line *lines; /* owned; by path, of equal ones the last counts */
	size_t count;
};

#define COPY_BOOK_NONE ((struct copy_book){ .fd = -1 })

/* Opens the book in a run's `cow` folder, makes it if `makes`; else no book is an empty one. -EBUSY
 * while another commit has it. On failure the caller still has to call copy_book_done(). */
int copy_book_open(struct copy_book *book, int cow_fd, bool makes, struct csn_error *err);
void copy_book_done(struct copy_book *book);

/* Did we leave this file under this name, and nobody touched it since? */
bool copy_book_has(const struct copy_book *book, const char *path, const struct stat *st);

/* Notes what stands under a name now. A line that cannot be written makes a later commit refuse
 * that name, and say so: no error. */
void copy_book_add(struct copy_book *book, const char *path, const struct stat *st);
