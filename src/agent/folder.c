/* Entries of a directory; see folder.h. */
#include "agent/folder.h"

#include <dirent.h>
#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"

struct entry64 { /* struct linux_dirent64, which no header of libc's has */
	uint64_t inode;
	int64_t offset;
	unsigned short size;
	unsigned char type;
	char name[];
};

void folder_take(struct folder *folder, int fd)
{
	fd_cleanup(&folder->fd);
	folder->fd = fd;
	folder->at = 0;
	folder->end = 0;
}

void folder_done(struct folder *folder)
{
	folder_take(folder, -1);
}

bool folder_is_empty(const struct folder *folder)
{
	return folder->at == folder->end;
}

const char *folder_next(struct folder *folder, bool *ret_is_folder, int *ret_error)
{
	*ret_error = 0;
	for (;;) {
		const struct entry64 *entry;

		if (folder_is_empty(folder)) {
			long n = syscall(SYS_getdents64, folder->fd, folder->data,
					 sizeof folder->data);

			if (n <= 0) {
				*ret_error = n < 0 ? -errno : 0;
				return NULL;
			}
			folder->at = 0;
			folder->end = (size_t)n;
		}
		entry = (const struct entry64 *)((const char *)folder->data + folder->at);
		folder->at += entry->size;
		*ret_is_folder = entry->type == DT_DIR;
		if (!str_is(entry->name, ".") && !str_is(entry->name, ".."))
			return entry->name;
	}
}
