/*
 * copy_bare - what makes any folder a repository of git's
 *
 * A folder with HEAD, objects and refs is a repository to git, whatever its name is, and git that
 * is called in it runs programs that its config and hooks name.
 */
#pragma once

#include "monitor/copy.h"

/*
 * May the path, relative to the workspace, be part of such a folder that runs something: config or
 * hooks beside a HEAD, or a HEAD beside those? Looks into the layer and the workspace, at the few
 * folders only that such a name stands in; one that cannot be looked at counts.
 */
bool copy_is_bare(const struct copy *copy, const char *path);
