/*
 * Paths as text: pure, never asks the file system
 *
 * For decisions on names only (a policy's mounts, messages). Whoever opens a file
 * resolves it beneath a descriptor instead; a path that was checked here and opened
 * later would be a race.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/*
 * Writes the absolute path `path` to `ret_path` without empty, "." and ".." parts
 * ("/a//b/../c" -> "/a/c"). -EINVAL if not absolute or if ".." leaves the root,
 * -ENAMETOOLONG if it does not fit. On failure the contents of `ret_path` mean nothing.
 */
int path_normalize(const char *path, char *ret_path, size_t size);

/* `base` + "/" + `path` unless `path` is absolute; normalized. */
int path_join(const char *base, const char *path, char *ret_path, size_t size);

/* Is `path` the folder `folder` or something beneath it? Both normalized, and both absolute or both
 * relative to the same folder (then not "": nothing is said about that one). */
bool path_is_beneath(const char *path, const char *folder);

/* The part of `path` beneath `folder` without a leading '/', "" if they are equal; for paths of
 * which path_is_beneath() is true. Points into `path`. */
const char *path_tail(const char *path, const char *folder);
