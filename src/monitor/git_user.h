/*
 * git_user - the caller's name and address, as git would find them
 *
 * For `env.git_identity`: commits made inside carry the caller's name. Looked up in the order
 * of git-config(1): the system's file, the caller's two, the workspace's; then the variables
 * that outrank them. Files that a file includes are not followed.
 */
#pragma once

#include <stddef.h>

struct git_user {
	char name[256]; /* UTF-8 without control characters; "": unknown */
	char email[256];
};

/* Takes over what a configuration file says; any bytes will do. Values that it does not name, or
 * that do not fit, stay. */
void git_user_parse(const char *text, size_t size, struct git_user *user);

/* Finds them for a caller with this environment; `workspace` (a host folder) may be NULL. */
void git_user_find(const char *const *environment, const char *workspace,
		   struct git_user *ret_user);
