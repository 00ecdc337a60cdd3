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
	DEFAULT_COLUMNS = 80,
	MAX_COLUMNS = 100,
	GLUE = 0x1f, /* a blank that ends no line; no escaped text has one */
};

/* Columns from the left edge. */
struct margins {
	int first, rest, end;
};

void out_text(FILE *file, const char *text)
{
	_cleanup_buf_ struct buf buf;

	buf_init(&buf, ESCAPE_MAX);
	if (escape_add(&buf, text, strlen(text), false) == 0)
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

/* Columns up to `end`. */
static int word_width(const char *word, const char *end)
{
	int width = 0;

	for (; word < end; word++)
		width += (*word & 0xc0) != 0x80;
	return width;
}

int out_width(const char *text)
{
	return word_width(text, text + strlen(text));
}

/* One paragraph, up to `end`. */
static void wrap_paragraph(FILE *file, const char *text, const char *end,
			   const struct margins *margins)
{
	int column = fprintf(file, "%*s", margins->first, ""), start = column;
	const char *word_end;

	while (text < end) {
		word_end = text + strcspn(text, " \n");
		word_end = word_end > end ? end : word_end;
		if (column > start && column + 1 + word_width(text, word_end) > margins->end) {
			column = start = fprintf(file, "\n%*s", margins->rest, "") - 1;
		} else if (column > start) {
			fputc(' ', file);
			column++;
		}
		column += word_width(text, word_end);
		for (; text < word_end; text++)
			fputc(*text == GLUE ? ' ' : *text, file);
		text += text < end;
	}
	fputc('\n', file);
}

void out_wrap(FILE *file, const char *text, int indent, int width)
{
	const struct margins margins = { indent, indent, width };
	const char *end;

	while (*text) {
		end = strstr(text, "\n\n");
		wrap_paragraph(file, text, end ? end : text + strlen(text), &margins);
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

static void glue(char *text, const char *end)
{
	for (; text < end; text++)
		*text = *text == ' ' ? GLUE : *text;
}

/* The quote that ends the word which begins at `quote`, as str_shell_word() writes it. */
static char *quote_end(char *quote)
{
	char *end = strchr(quote + 1, '\'');

	while (end && end[1] == '\\' && end[2] && end[3] == '\'')
		end = strchr(end + 4, '\'');
	return end;
}

/* A flag and its path, as in " --mount /a:/b": one piece. */
static void glue_flag(char *text)
{
	char *blank = str_starts(text, " --") ? strchr(text + 1, ' ') : NULL;

	if (blank && blank[1] && strchr("/'$", blank[1]))
		*blank = GLUE;
}

/* `commands` in backquotes, and 'words' of them: not an apostrophe, before which stands no blank.
 */
static void glue_commands(char *text)
{
	const char before[] = { ' ', '$', GLUE, 0 };
	bool is_quote;
	char *end;

	for (char *at = text; *at; at++) {
		glue_flag(at);
		is_quote = *at == '\'' && at > text && strchr(before, at[-1]);
		end = *at == '`' ? strchr(at + 1, '`') : is_quote ? quote_end(at) : NULL;
		if (!end)
			continue;
		glue(at, end);
		at = end;
	}
}

static void glue_path(char *text, const char *path)
{
	_cleanup_buf_ struct buf escaped;

	buf_init(&escaped, LINE_BYTES);
	if (!path || !strchr(path, ' ') || escape_add(&escaped, path, strlen(path), false) < 0 ||
	    !buf_text(&escaped))
		return;
	while ((text = strstr(text, buf_text(&escaped)))) {
		glue(text, text + buf_size(&escaped));
		text += buf_size(&escaped);
	}
}

void out_tell(FILE *file, const struct out_told *told)
{
	struct margins margins = { told->indent, told->hang, columns_of(file) };
	_cleanup_buf_ struct buf line;
	char *text;

	buf_init(&line, LINE_BYTES);
	if (margins.end > 0 && buf_add_text(&line, told->label) == 0 &&
	    escape_add(&line, told->text, strlen(told->text), false) == 0 && buf_text(&line)) {
		text = (char *)buf_at(&line);
		for (size_t i = 0; i < ARRAY_SIZE(told->whole); i++)
			glue_path(text, told->whole[i]);
		glue_commands(text);
		wrap_paragraph(file, text, text + strlen(text), &margins);
		return;
	}
	fprintf(file, "%*s%s", told->indent, "", told->label);
	out_text(file, told->text);
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

void out_empty(const struct cli *cli, const char *text)
{
	if (!cli->options.quiet && !cli->options.json && isatty(STDOUT_FILENO) &&
	    isatty(STDERR_FILENO))
		fprintf(stderr, "caisson: %s\n", text);
}
