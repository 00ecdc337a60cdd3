/*
 * command - a wall of somebody else's: any program of the host's that ends in an agent
 *
 * A trusted policy file names it: `command: {argv: [...], enforces: [...], observes: [...]}`. The
 * program gets the frames on its standard input and output, and is either a prefix that ends in
 * `caisson-agent --stdio` (ssh, unshare, a container's exec) or answers the frames itself. What it
 * enforces is its author's word; a plan that needs more is refused. What it says is hostile.
 */
#pragma once

#include "backend/backend.h"

extern const struct backend command_backend;
