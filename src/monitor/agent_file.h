/*
 * agent_file - the executables that go inside: the first process, and that of its searches
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"

/*
 * Opens caisson-agent or caisson-search beside this program, or beneath its prefix's libexec. An
 * executable descriptor of the installed file; a sealed copy in memory where the sandbox's own id
 * could write that file (a build tree, rootless). 0 or -errno with a sentence.
 */
int agent_file_open(const char *name, int *ret_fd, struct csn_error *err);

/* The folder of that file, absolute, to `ret_path` (PATH_MAX bytes); false where it is missing. */
bool agent_file_folder(const char *name, char *ret_path);
