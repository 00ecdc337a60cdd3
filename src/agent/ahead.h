/* ahead - the last step of the lockdown of an agent that was executed before it was asked for */
#pragma once

/*
 * Waits for the order (os/agent_fds.h), takes Landlock on by it and closes both descriptors. 0, or
 * a negative errno when the monitor is gone or a part of it failed, which it is told: nothing may
 * be served then. Nothing from inside the sandbox was read before.
 */
int ahead_prepare(void);
