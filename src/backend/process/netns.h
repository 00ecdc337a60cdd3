/*
 * netns - the sandbox's net namespace, made beside it
 *
 * Making one takes the kernel half a millisecond, a third of what it takes to build a wall. A
 * helper makes it while the sandbox's first process attaches its mounts, and passes it on:
 *
 *   monitor ── fork ──▶ helper: enters the sandbox's user namespace, makes a net namespace
 *                          └── its descriptor, by a socket ──▶ the sandbox joins it
 *
 * It belongs to the sandbox's user namespace, as if the sandbox had made it itself. The helper
 * runs nothing of anybody's and has ended before the sandbox executes its agent.
 */
#pragma once

/*
 * Makes it and waits for the helper, so that it gets the second processor at once; the monitor's
 * other work has time until the sandbox is ready. `pidfd`: the sandbox's first process; `socket`:
 * its end of a stream socket, where the namespace, or the errno of its failure as a byte, goes.
 * A negative errno when there can be no helper.
 */
int netns_make(int pidfd, int socket);
