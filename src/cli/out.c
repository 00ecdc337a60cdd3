/* Escaping, colours, wrapping, JSON: everything that the commands print goes through here. */
#include "cli/out.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "audit/dump.h"
#include "base/str.h"

enum {
	ESCAPE_MAX = 64 << 20,
	LINE_BYTES = 64 << 10,
	MIN_COLUMNS = 40,
	DEFAULT_COLUMNS = 96,
	MAX_COLUMNS = 100
};

int out_escape(struct buf *buf, const void *data, size_t size, bool keeps_lines)
{
	const unsigned char *at = data;
	unsigned code = 0;
	size_t length;
	int r = 0;

	for (; size > 0 && r == 0; at += length, size -= length) {
		length = str_decode(at, size, &code);
		if (length == 0) {
			length = 1;
			r = buf_printf(buf, "\\x%02x", at[0]);
		} else if ((keeps_lines && (code == '\n' || code == '\t')) ||
			   !str_is_unsafe(code)) {
			r = buf_add(buf, at, length);
		} else if (code == '\n') {
			r = buf_add_text(buf, "\\n");
		} else if (code < 0x100) {
			r = buf_printf(buf, "\\x%02x", code);
		} else {
			r = buf_printf(buf, "\\u{%x}", code);
		}
	}
	return r;
}

void out_text(FILE *file, const char *text)
{
	_cleanup_buf_ struct buf buf;

	buf_init(&buf, ESCAPE_MAX);
	if (out_escape(&buf, text, strlen(text), false) == 0)
		fwrite(buf_at(&buf), 1, buf_size(&buf), file);
}

static bool has_color(const struct cli *cli, FILE *file)
{
	const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");

	return !cli->options.no_color && !(no_color && *no_color) && term &&
	       !str_is(term, "dumb") && isatty(fileno(file));
}

const char *out_color(const struct cli *cli, FILE *file, enum out_color color)
{
	static const char *const codes[] = {
		[OUT_PLAIN] = "\033[0m", [OUT_BOLD] = "\033[1m",   [OUT_DIM] = "\033[2m",
		[OUT_RED] = "\033[31m",  [OUT_GREEN] = "\033[32m", [OUT_YELLOW] = "\033[33m",
	};

	return has_color(cli, file) ? codes[color] : "";
}

const char *out_plain(const struct cli *cli, FILE *file)
{
	return out_color(cli, file, OUT_PLAIN);
}

int out_width(const char *text)
{
	int width = 0;

	for (; *text; text++)
		width += (*text & 0xc0) != 0x80;
	return width;
}

/* One paragraph, up to `end`. */
static void wrap_paragraph(FILE *file, const char *text, const char *end, int indent, int width)
{
	int column = 0, word_width;
	const char *word_end;
	char word[256];

	while (text < end) {
		word_end = text + strcspn(text, " \n");
		word_end = word_end > end ? end : word_end;
		snprintf(word, sizeof word, "%.*s", (int)(word_end - text), text);
		word_width = out_width(word);
		if (column > 0 && column + 1 + word_width > width) {
			fputc('\n', file);
			column = 0;
		}
		column += column == 0 ? fprintf(file, "%*s", indent, "") : (fputc(' ', file), 1);
		fputs(word, file);
		column += word_width;
		text = word_end + (word_end < end);
	}
	fputc('\n', file);
}

void out_wrap(FILE *file, const char *text, int indent, int width)
{
	const char *end;

	while (*text) {
		end = strstr(text, "\n\n");
		wrap_paragraph(file, text, end ? end : text + strlen(text), indent, width);
		if (end)
			fputc('\n', file);
		text = end ? end + 2 : "";
	}
}

/* Columns of a terminal, as many as are good to read; 0: it is none. */
static int columns_of(FILE *file)
{
	struct winsize size = { 0 };

	if (!isatty(fileno(file)))
		return 0;
	if (ioctl(fileno(file), TIOCGWINSZ, &size) < 0 || size.ws_col < MIN_COLUMNS)
		return DEFAULT_COLUMNS;
	return size.ws_col > MAX_COLUMNS ? MAX_COLUMNS : size.ws_col;
}

void out_wrap_text(FILE *file, const char *label, const char *text, int indent)
{
	int columns = columns_of(file);
	_cleanup_buf_ struct buf line;

	buf_init(&line, LINE_BYTES);
	if (columns > 0 && buf_printf(&line, "%s: ", label) == 0 &&
	    out_escape(&line, text, strlen(text), false) == 0 && buf_text(&line)) {
		out_wrap(file, buf_text(&line), indent, columns);
		return;
	}
	fprintf(file, "%*s%s: ", indent, "", label);
	out_text(file, text);
	fputc('\n', file);
}

int out_json(json_t *value)
{
	char *text = NULL;
	size_t size;
	int r = value ? dump_json(value, JSON_INDENT(2), &text, &size) : -ENOMEM;

	json_decref(value);
	if (r < 0) {
		fprintf(stderr, "caisson: out of memory\n");
		return CLI_FAILED;
	}
	fwrite(text, 1, size, stdout);
	fputc('\n', stdout);
	free(text);
	return CLI_OK;
}
