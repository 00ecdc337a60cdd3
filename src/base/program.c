/*
 * Programs by name. What is found is a name and no promise: whoever executes it meets whatever lies
 * there then, so this serves for views, sentences and advice, never for a decision of trust.
 */
#include "base/program.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

bool program_is(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && (st.st_mode & 0111);
}

bool program_find(const char *name, const char *folders, char *ret_path)
{
	size_t n;

	if (!*name || strchr(name, '/'))
		return false;
	for (; folders && *folders; folders += n + (folders[n] == ':')) {
		n = strcspn(folders, ":");
		if (folders[0] == '/' &&
		    (size_t)snprintf(ret_path, PATH_MAX, "%.*s/%s", (int)n, folders, name) <
			    PATH_MAX &&
		    program_is(ret_path))
			return true;
	}
	return false;
}

const char *program_variable(const char *const *environment, const char *name)
{
	size_t n = strlen(name);

	for (; environment && *environment; environment++)
		if (strncmp(*environment, name, n) == 0 && (*environment)[n] == '=')
			return *environment + n + 1;
	return NULL;
}
