/*
 * local - no wall: the caller's own command under clocks and output caps
 *
 * Only for a trusted policy file that names tier local; every result says `local`.
 */
#pragma once

#include "backend/backend.h"

extern const struct backend local_backend;
