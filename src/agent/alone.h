/*
 * alone - an agent that somebody else's program started: `caisson-agent --stdio`
 *
 * Behind `ssh`, `unshare` or a container's exec there is no launcher of ours. The agent then does
 * for itself what needs no help: descriptors as agent_fds.h has them, no privilege and no new one,
 * no core dumps, the base filter. No namespace, no Landlock rules and no listener come of it: that
 * part of the wall is the program's.
 */
#pragma once

/* Before anything is read. `home` (NULL: none) is a folder to make where nobody could make it
 * before, a new scratch. 0, or -errno after a sentence on stderr: half a lockdown runs nothing.
 */
int alone_prepare(const char *home);
