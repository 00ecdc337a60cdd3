/*
 * trust - which policy files the caller has looked at and accepted
 *
 * $XDG_CONFIG_HOME/caisson/trusted, mode 0600: one JSON object {"version":1,"trusted":[…]},
 * newest last, each entry with path, sha256, time and the file's text, so that the next
 * question can show a difference. Path and digest must both match: the same bytes in another
 * folder grant other files. Nothing beneath the file's own folder may be the store, or a
 * repository could bring its own trust along.
 */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "base/error.h"

/* Is this path with this digest trusted? 0 with *ret_trusted, or a store that cannot be believed.
 */
int trust_check(const char *path, const char *sha256, bool *ret_trusted, struct csn_error *err);

/* The text of the newest trusted version of `path`; empty and *ret_known false if there is none. */
int trust_last(const char *path, struct buf *ret_text, bool *ret_known, struct csn_error *err);

/* Adds an entry, drops the oldest of this path beyond 16 and of all beyond 256. */
int trust_add(const char *path, const char *sha256, const char *text, struct csn_error *err);
