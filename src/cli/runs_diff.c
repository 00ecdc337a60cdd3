/*
 * caisson runs diff: what a run changed in its copy-on-write workspace
 *
 * A line for each name, and for small texts the changed lines. Names are always escaped;
 * contents are on a terminal, and raw elsewhere so that patch(1) can read them.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "cli/cow.h"
#include "monitor/differ.h"
#include "cli/out.h"

enum { DIFF_MAX = 4 << 20 };

/* Reads a regular file beneath `dir_fd`, at most what a diff can take. */
static int read_file(int dir_fd, const char *path, struct buf *ret_bytes)
{
	_cleanup_fd_ int fd = layer_open(dir_fd, path, 0);
	uint8_t *room = buf_reserve(ret_bytes, DIFFER_MAX_BYTES);
	struct stat st;
	ssize_t n;

	if (fd < 0)
		return fd;
	if (!room)
		return -ENOMEM;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return -EINVAL;
	n = fd_read_all(fd, room, DIFFER_MAX_BYTES);
	if (n < 0)
		return (int)n;
	buf_grew(ret_bytes, (size_t)n);
	return 0;
}

static void print_lines(const struct cli *cli, const struct buf *diff)
{
	const char *at = (const char *)diff->data + diff->start, *end = at + buf_size(diff), *next;
	bool is_terminal = isatty(STDOUT_FILENO);
	enum out_color color;
	struct buf line;

	for (; at < end; at = next) {
		next = memchr(at, '\n', (size_t)(end - at));
		next = next ? next + 1 : end;
		color = *at == '+'   ? OUT_GREEN
			: *at == '-' ? OUT_RED
			: *at == '@' ? OUT_DIM
				     : OUT_PLAIN;
		fputs(out_color(cli, stdout, color), stdout);
		buf_init(&line, 4 * DIFFER_MAX_BYTES + 64);
		if (is_terminal && escape_add(&line, at, (size_t)(next - at), true) == 0)
			fwrite(buf_at(&line), 1, buf_size(&line), stdout);
		else
			fwrite(at, 1, (size_t)(next - at), stdout);
		buf_done(&line);
		fputs(out_plain(cli, stdout), stdout);
	}
}

/* The texts before and after; an absent one is empty. */
static int read_texts(const struct cow *cow, const struct layer_entry *entry, struct buf texts[2])
{
	int r = 0;

	if (entry->change != LAYER_ADDED && S_ISREG(entry->old.st_mode))
		r = read_file(cow->lower_fd, entry->path, &texts[0]);
	if (r == 0 && entry->change != LAYER_DELETED)
		r = read_file(cow->upper_fd, entry->path, &texts[1]);
	if (r == 0 && !(differ_is_text(texts[0].data, buf_size(&texts[0])) &&
			differ_is_text(texts[1].data, buf_size(&texts[1]))))
		r = -EILSEQ;
	return r;
}

static int diff_texts(const struct cow *cow, const struct layer_entry *entry, struct buf *ret_diff)
{
	struct buf texts[2];
	int r;

	buf_init(&texts[0], DIFFER_MAX_BYTES);
	buf_init(&texts[1], DIFFER_MAX_BYTES);
	r = read_texts(cow, entry, texts);
	if (r == 0)
		r = differ_unified(
			&(struct differ_text){ (const char *)texts[0].data, buf_size(&texts[0]) },
			&(struct differ_text){ (const char *)texts[1].data, buf_size(&texts[1]) },
			ret_diff);
	buf_done(&texts[0]);
	buf_done(&texts[1]);
	return r;
}

static void print_contents(const struct cli *cli, const struct cow *cow,
			   const struct layer_entry *entry, const char *name)
{
	_cleanup_buf_ struct buf diff;
	int r;

	buf_init(&diff, DIFF_MAX);
	r = diff_texts(cow, entry, &diff);
	if (r == -EILSEQ) {
		printf("  not text, %lld bytes\n", (long long)entry->now.st_size);
	} else if (r == -E2BIG) {
		printf("  too long for a diff, %lld bytes\n", (long long)entry->now.st_size);
	} else if (r < 0) {
		printf("  cannot be read: %s\n", strerror(-r));
	} else if (buf_size(&diff) > 0) {
		printf("--- %s%s\n+++ %s%s\n", entry->change == LAYER_ADDED ? "/dev/null" : "a/",
		       entry->change == LAYER_ADDED ? "" : name,
		       entry->change == LAYER_DELETED ? "/dev/null" : "b/",
		       entry->change == LAYER_DELETED ? "" : name);
		print_lines(cli, &diff);
	}
}

static void print_link(const struct cow *cow, const struct layer_entry *entry)
{
	_cleanup_fd_ int fd = -1;
	char target[PATH_MAX];
	const char *name;
	ssize_t n;

	fd = layer_open_parent(cow->upper_fd, entry->path, &name);
	n = fd < 0 ? -1 : readlinkat(fd, name, target, sizeof target - 1);
	if (n < 0)
		return;
	target[n] = 0;
	fputs(" -> ", stdout);
	out_text(stdout, target);
	if (cow_link_leaves(entry->path, target))
		fputs(" (out of the workspace)", stdout);
}

static void print_entry(const struct cli *cli, const struct cow *cow,
			const struct layer_entry *entry)
{
	static const char letters[] = {
		[LAYER_ADDED] = 'A', [LAYER_MODIFIED] = 'M', [LAYER_DELETED] = 'D'
	};
	char *name = cow_path_text(entry);
	mode_t mode = entry->change == LAYER_DELETED ? entry->old.st_mode : entry->now.st_mode;

	if (!name)
		return;
	printf("%s%c %s%s", out_color(cli, stdout, OUT_BOLD), letters[entry->change], name,
	       out_plain(cli, stdout));
	if (entry->change != LAYER_DELETED && S_ISLNK(mode))
		print_link(cow, entry);
	if (entry->change == LAYER_MODIFIED && !S_ISLNK(mode) &&
	    (entry->now.st_mode ^ entry->old.st_mode) & 07777)
		printf(" (mode %03o, was %03o)", entry->now.st_mode & 07777u,
		       entry->old.st_mode & 07777u);
	if (entry->is_unreadable)
		fputs(" (cannot be read: what is in it is not shown)", stdout);
	putchar('\n');
	if (S_ISREG(mode) && !cli->options.names_only)
		print_contents(cli, cow, entry, name);
	free(name);
}

static json_t *entry_json(const struct cow *cow, const struct layer_entry *entry)
{
	bool is_gone = entry->change == LAYER_DELETED;
	char *name = cow_path_text(entry);
	json_t *value;

	value = json_pack("{s:s?, s:s, s:s, s:I, s:i, s:b}", "path", name, "change",
			  cow_change_name(entry), "kind", cow_kind_name(entry), "size",
			  (json_int_t)(is_gone ? entry->old.st_size : entry->now.st_size), "mode",
			  (int)((is_gone ? entry->old.st_mode : entry->now.st_mode) & 07777),
			  "guarded", cow_guard(cow, entry) != NULL);
	free(name);
	return value;
}

int cli_runs_diff(struct cli *cli)
{
	_cleanup_cow_ struct cow cow = COW_NONE;
	struct csn_error err = { 0 };
	json_t *list;
	size_t count = 0;

	if (cow_open(cli, &cow, &err) < 0)
		return cli_fail(cli, &err);
	list = json_array();
	for (size_t i = 0; i < cow.layer.count; i++) {
		const struct layer_entry *entry = &cow.layer.entries[i];

		if (!cow_is_named(&cow, entry))
			continue;
		count++;
		if (cli->options.json)
			json_array_append_new(list, entry_json(&cow, entry));
		else
			print_entry(cli, &cow, entry);
	}
	if (count == 0)
		cow_say_nothing(cli);
	if (cli->options.json)
		return out_json(json_pack("{s:s, s:s, s:o}", "run_id", cow.run.id, "workspace",
					  cow.workspace, "changes", list));
	json_decref(list);
	return CLI_OK;
}
