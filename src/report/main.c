/*
 * caisson-report: one report of a job's worker, as a line on the descriptor that it was given
 *
 *   caisson-report EVENT [KEY=VALUE…]      caisson-report usage cost_usd=0.02 tokens=150
 *
 * It runs inside the wall, with no more rights than the worker, and knows nothing: what it writes
 * is checked outside, as whatever the worker writes itself. A number, true, false and null stay
 * what they are, all else is text. A line is one write of at most PIPE_BUF bytes, so that two
 * writers do not mix.
 */
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct line {
	char text[PIPE_BUF];
	size_t size;
	bool is_full;
};

static void put(struct line *line, const char *text, size_t size)
{
	if (size > sizeof line->text - line->size) {
		line->is_full = true;
		return;
	}
	memcpy(line->text + line->size, text, size);
	line->size += size;
}

static void put_text(struct line *line, const char *text, size_t size)
{
	put(line, "\"", 1);
	for (size_t i = 0; i < size; i++) {
		unsigned char c = (unsigned char)text[i];
		char escaped[8];

		if (c == '"' || c == '\\')
			snprintf(escaped, sizeof escaped, "\\%c", c);
		else if (c < 0x20)
			snprintf(escaped, sizeof escaped, "\\u%04x", c);
		else
			snprintf(escaped, sizeof escaped, "%c", c);
		put(line, escaped, strlen(escaped));
	}
	put(line, "\"", 1);
}

/* As JSON has numbers: -12.5e3, and no 0x10, 007 or nan. */
static bool is_number(const char *text)
{
	const char *at = text + (*text == '-');
	size_t whole = strspn(at, "0123456789"), more;

	if (whole == 0 || (*at == '0' && whole > 1))
		return false;
	at += whole;
	if (*at == '.') {
		more = strspn(++at, "0123456789");
		if (more == 0)
			return false;
		at += more;
	}
	if (*at == 'e' || *at == 'E') {
		at++;
		at += *at == '-' || *at == '+';
		more = strspn(at, "0123456789");
		if (more == 0)
			return false;
		at += more;
	}
	return *at == 0;
}

static bool is_literal(const char *text)
{
	return !strcmp(text, "true") || !strcmp(text, "false") || !strcmp(text, "null");
}

static bool put_pair(struct line *line, const char *pair)
{
	const char *value = strchr(pair, '=');

	if (!value || value == pair)
		return false;
	put(line, ",", 1);
	put_text(line, pair, (size_t)(value - pair));
	put(line, ":", 1);
	value++;
	if (is_number(value) || is_literal(value))
		put(line, value, strlen(value));
	else
		put_text(line, value, strlen(value));
	return true;
}

static int complain(const char *what)
{
	fprintf(stderr,
		"caisson-report: %s\nusage: caisson-report EVENT [KEY=VALUE…], as "
		"caisson-report usage cost_usd=0.02 tokens=150\n",
		what);
	return 2;
}

static int descriptor(void)
{
	const char *text = getenv("CAISSON_REPORT_FD");
	int fd = 0;

	if (!text || !*text)
		return 3;
	for (; *text >= '0' && *text <= '9' && fd < 100000; text++)
		fd = 10 * fd + (*text - '0');
	return *text ? -1 : fd;
}

int main(int argc, char **argv)
{
	struct line line = { .size = 0 };

	if (argc < 2 || argv[1][0] == '-')
		return complain("an event is missing");
	put(&line, "{\"event\":", 9);
	put_text(&line, argv[1], strlen(argv[1]));
	for (int i = 2; i < argc; i++)
		if (!put_pair(&line, argv[i]))
			return complain("what follows the event are KEY=VALUE");
	put(&line, "}\n", 2);
	if (line.is_full)
		return complain("a report of this command is at most 4096 bytes; write longer ones "
				"to the descriptor yourself");
	if (write(descriptor(), line.text, line.size) != (ssize_t)line.size) {
		perror("caisson-report: nobody takes reports on descriptor CAISSON_REPORT_FD");
		return 1;
	}
	return 0;
}
