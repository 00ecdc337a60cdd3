/* program - programs of this machine by their names, as execvp() would find them; opens nothing */
#pragma once

#include <stdbool.h>

/* Is there an executable regular file, behind links too? */
bool program_is(const char *path);

/*
 * The first program called `name` (no slash in it) in a list of folders such as PATH, to
 * `ret_path` (PATH_MAX bytes, unspecified if false). A folder that is not absolute is passed over:
 * what it means changes with the caller's place. `folders` may be NULL.
 */
bool program_find(const char *name, const char *folders, char *ret_path);

/* The value of a variable in a list of "NAME=VALUE" (NULL-terminated, or NULL), NULL if it has
 * none. Borrowed. */
const char *program_variable(const char *const *environment, const char *name);
