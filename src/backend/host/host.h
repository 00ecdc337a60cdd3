/*
 * host - the wall of a program that opened the sandbox, which answers the frames itself
 *
 * libcaisson passes a second stream with `caisson monitor --wall-fd`, and what its caller declares
 * (csn_wall in caisson.h). No process is started: the wall is code of whoever asked for the
 * sandbox, so it needs nobody's trust, and reaches no tier above auto on its word. What it says is
 * checked as anything hostile.
 */
#pragma once

#include "backend/backend.h"

extern const struct backend host_backend;
