/* Paths as text; see path.h. */
#include "base/path.h"

#include <errno.h>
#include <string.h>

int path_normalize(const char *path, char *ret_path, size_t size)
{
	size_t n = 0;

	if (path[0] != '/')
		return -EINVAL;
	while (*path) {
		size_t part;

		path += strspn(path, "/");
		part = strcspn(path, "/");
		if (part == 2 && path[0] == '.' && path[1] == '.') {
			if (n == 0)
				return -EINVAL;
			while (ret_path[--n] != '/')
				;
		} else if (part > 0 && !(part == 1 && path[0] == '.')) {
			if (n + part + 2 > size)
				return -ENAMETOOLONG;
			ret_path[n++] = '/';
			memcpy(ret_path + n, path, part);
			n += part;
		}
		path += part;
	}
	if (size < 2)
		return -ENAMETOOLONG;
	if (n == 0)
		ret_path[n++] = '/';
	ret_path[n] = 0;
	return 0;
}

int path_join(const char *base, const char *path, char *ret_path, size_t size)
{
	char joined[8192];
	size_t a = strlen(base), b = strlen(path);

	if (path[0] == '/')
		return path_normalize(path, ret_path, size);
	if (a + b + 2 > sizeof joined)
		return -ENAMETOOLONG;
	memcpy(joined, base, a);
	joined[a] = '/';
	memcpy(joined + a + 1, path, b + 1);
	return path_normalize(joined, ret_path, size);
}

static bool is_root(const char *path)
{
	return path[0] == '/' && path[1] == 0;
}

bool path_is_beneath(const char *path, const char *folder)
{
	size_t n = strlen(folder);

	if (is_root(folder))
		return true;
	return strncmp(path, folder, n) == 0 && (path[n] == 0 || path[n] == '/');
}

const char *path_tail(const char *path, const char *folder)
{
	path += is_root(folder) ? 0 : strlen(folder);
	return path + strspn(path, "/");
}
