/*
 * What stays of a run on the disk when it is over: its output in the record, and no more records
 * than there are bounds for.
 */
#include <fcntl.h>
#include <unistd.h>

#include "base/fd.h"
#include "monitor/run_private.h"

void run_save_output(struct run *run)
{
	static const char *const names[] = { "logs/stdout", "logs/stderr" };
	const struct sink *sinks[] = { &run->out, &run->err };

	for (int i = 0; i < 2 && run->record.dir_fd >= 0 && !run->setup->owner; i++) {
		_cleanup_fd_ int fd = -1;

		if (sinks[i]->total == 0)
			continue;
		fd = openat(run->record.dir_fd, names[i],
			    O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (fd < 0 || sink_save(sinks[i], fd) < 0)
			run->record.chain.is_incomplete = true;
	}
}

/* Old records go by themselves; a running, a kept or an unfinished one never does. */
void run_retain(const struct run *run)
{
	struct retention bounds = { .runs = 200,
				    .age_ms = UINT64_C(7) * 24 * 3600 * 1000,
				    .bytes = UINT64_C(1) << 30 };
	_cleanup_fd_ int root_fd = -1;

	if (record_open_root(run->setup->run_root, &root_fd, NULL) >= 0 &&
	    record_retain_is_due(root_fd, run->sandbox_id, &bounds))
		record_retain(root_fd, &bounds, NULL);
}
