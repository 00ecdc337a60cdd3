/* See changes_out.h. A line's first character says what it is: names have a letter, contents none.
 */
#include "cli/changes_out.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/escape.h"
#include "cli/out.h"

enum { LINE_MAX_BYTES = 4 << 20 };

static enum out_color color_of(const char *line, size_t size)
{
	if (size > 1 && line[1] == ' ' && memchr("AMDR", *line, 4))
		return OUT_BOLD;
	return *line == '+'   ? OUT_GREEN
	       : *line == '-' ? OUT_RED
	       : *line == '@' ? OUT_DIM
			      : OUT_PLAIN;
}

static void print_line(const struct cli *cli, const char *line, size_t size)
{
	bool has_end = size > 0 && line[size - 1] == '\n';
	_cleanup_buf_ struct buf safe;

	buf_init(&safe, 4 * LINE_MAX_BYTES);
	fputs(out_color(cli, stdout, color_of(line, size)), stdout);
	if (escape_add(&safe, line, size - has_end, true) == 0)
		fwrite(buf_at(&safe), 1, buf_size(&safe), stdout);
	fputs(out_plain(cli, stdout), stdout);
	if (has_end)
		putchar('\n');
}

int changes_print_text(const struct cli *cli, const void *bytes, size_t size)
{
	const char *at = bytes, *end = at + size, *next;

	if (!isatty(STDOUT_FILENO))
		return size == 0 || fwrite(bytes, 1, size, stdout) == size ? 0 : -EIO;
	for (; at < end; at = next) {
		next = memchr(at, '\n', (size_t)(end - at));
		next = next ? next + 1 : end;
		print_line(cli, at, (size_t)(next - at));
	}
	return 0;
}

void changes_print_committed(const struct cli *cli, char letter, const char *name,
			     const char *reason)
{
	if (cli->options.json)
		return;
	if (reason)
		printf("  %s left out: %s\n", name, reason);
	else if (!cli->options.quiet)
		printf("%c %s\n", letter, name);
}

void changes_say_foreign(const struct cli *cli, uint64_t count, const char *const *names,
			 size_t named)
{
	if (count == 0 || cli->options.json || cli->options.quiet)
		return;
	fprintf(stderr,
		"caisson: %" PRIu64 " file%s of another owner or group cannot be changed in the "
		"copy: ",
		count, count == 1 ? "" : "s");
	for (size_t i = 0; names && i < named && names[i]; i++) {
		fputs(i ? ", " : "", stderr);
		out_text(stderr, names[i]);
	}
	fputs(count > named ? ", …\n" : "\n", stderr);
}
