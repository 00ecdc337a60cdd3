/*
 * A plan's value of a key, as YAML: for notes, refusals, explain and render alike, so that
 * whatever Caisson prints about a setting can be pasted into a policy file.
 */
#include "policy/keys.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/str.h"

/* Does YAML, or our own reading of it, take this plain word for the text it is? */
static bool is_plain_word(const char *text)
{
	static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				      "0123456789_./-";
	static const char *const words[] = { "null",  "Null", "NULL",  "true", "false", "True",
					     "False", "TRUE", "FALSE", "yes",  "no",    "on",
					     "off",   "Yes",  "No",    "On",   "Off",   NULL };

	return text[0] && text[0] != '-' && text[0] != '.' && !text[strspn(text, allowed)] &&
	       !plan_has(words, text);
}

/* The code point at `s`, whose text is known to be UTF-8; sets its length. */
static uint32_t code_point(const unsigned char *s, size_t *ret_length)
{
	static const unsigned char masks[] = { 0, 0x7F, 0x1F, 0x0F, 0x07 };
	size_t n = s[0] < 0x80 ? 1 : s[0] < 0xE0 ? 2 : s[0] < 0xF0 ? 3 : 4;
	uint32_t c = s[0] & masks[n];

	for (size_t i = 1; i < n; i++)
		c = c << 6 | (s[i] & 0x3Fu);
	*ret_length = n;
	return c;
}

/* Characters that YAML's reader refuses or folds, and those that upset a terminal. */
static bool must_escape(uint32_t c)
{
	return c < 0x20 || (c >= 0x7F && c <= 0xA0) || c == 0x2028 || c == 0x2029 ||
	       (c >= 0x200E && c <= 0x200F) || (c >= 0x202A && c <= 0x202E) || c == 0xFEFF ||
	       c == 0xFFFE || c == 0xFFFF;
}

int key_show_text(const char *text, struct buf *buf)
{
	const unsigned char *s = (const unsigned char *)text;
	int code;

	if (is_plain_word(text))
		return buf_add_text(buf, text);
	if (*text && !str_is_utf8(text, strlen(text)))
		return -EILSEQ;
	code = buf_add_byte(buf, '"');
	while (code == 0 && *s) {
		size_t n;
		uint32_t c = code_point(s, &n);

		if (c == '"' || c == '\\')
			code = buf_printf(buf, "\\%c", (char)c);
		else if (must_escape(c))
			code = buf_printf(buf, "\\u%04" PRIX32, c);
		else
			code = buf_add(buf, s, n);
		s += n;
	}
	return code < 0 ? code : buf_add_byte(buf, '"');
}

static int show_version(const struct key *key, const struct plan *plan, enum key_how how,
			struct buf *buf)
{
	(void)key;
	(void)plan;
	(void)how;
	return buf_add_text(buf, "1");
}

static int show_tier(const struct key *key, const struct plan *plan, enum key_how how,
		     struct buf *buf)
{
	(void)key;
	(void)how;
	return buf_add_text(buf, plan_tier_name(plan->tier));
}

static int show_choice(const struct key *key, const struct plan *plan, enum key_how how,
		       struct buf *buf)
{
	(void)how;
	return buf_add_text(buf, key->choices[key_number(key, plan)]);
}

static int show_bool(const struct key *key, const struct plan *plan, enum key_how how,
		     struct buf *buf)
{
	(void)how;
	return buf_add_text(buf, key_number(key, plan) ? "true" : "false");
}

static int show_number(const struct key *key, const struct plan *plan, enum key_how how,
		       struct buf *buf)
{
	uint64_t number = key_number(key, plan);
	char text[64];

	(void)how;
	if (number == PLAN_UNLIMITED)
		return buf_add_text(buf, "none");
	if (number == 0)
		return buf_add_text(buf, "0");
	if (key->kind == KIND_TIME)
		str_format_duration(number, text, sizeof text);
	else if (key->kind == KIND_SIZE)
		str_format_size(number, text, sizeof text);
	else if (key->kind == KIND_CPUS && number % 1000)
		return buf_printf(buf, "%" PRIu64 ".%03" PRIu64, number / 1000, number % 1000);
	else
		return buf_printf(buf, "%" PRIu64, key->kind == KIND_CPUS ? number / 1000 : number);
	return buf_add_text(buf, text);
}

static int show_text(const struct key *key, const struct plan *plan, enum key_how how,
		     struct buf *buf)
{
	const char *text = key_text(key, plan);

	(void)how;
	return text ? key_show_text(text, buf) : buf_add_text(buf, "null");
}

static int show_list(const struct key *key, const struct plan *plan, enum key_how how,
		     struct buf *buf)
{
	const char **list;
	int code;

	(void)how;
	if (key->choices)
		return buf_printf(buf, "[%s]", key_number(key, plan) ? key->choices[0] : "");
	list = key_list(key, plan);
	code = buf_add_byte(buf, '[');
	for (size_t i = 0; code == 0 && list[i]; i++) {
		code = buf_add_text(buf, i ? ", " : "");
		if (code == 0)
			code = key_show_text(list[i], buf);
	}
	return code < 0 ? code : buf_add_byte(buf, ']');
}

static int show_env(const struct key *key, const struct plan *plan, enum key_how how,
		    struct buf *buf)
{
	const char **list = key_list(key, plan);
	int code = buf_add_byte(buf, '{');

	for (size_t i = 0; code == 0 && list[i]; i++) {
		const char *equals = strchr(list[i], '=');

		code = buf_printf(buf, "%s%.*s: ", i ? ", " : "", (int)(equals - list[i]), list[i]);
		if (code == 0)
			code = how == SHOW_NAMES ? buf_add_text(buf, "...")
						 : key_show_text(equals + 1, buf);
	}
	return code < 0 ? code : buf_add_byte(buf, '}');
}

static int show_mounts(const struct key *key, const struct plan *plan, enum key_how how,
		       struct buf *buf)
{
	int code = buf_add_byte(buf, '[');

	(void)key;
	(void)how;
	for (size_t i = 0; code == 0 && i < plan->mount_count; i++) {
		const struct plan_mount *mount = &plan->mounts[i];

		code = buf_add_text(buf, i ? ", {host: " : "{host: ");
		if (code == 0)
			code = key_show_text(mount->host, buf);
		if (code == 0)
			code = buf_add_text(buf, ", at: ");
		if (code == 0)
			code = key_show_text(mount->at, buf);
		if (code == 0)
			code = buf_printf(buf, ", mode: %s}", plan_access_name(mount->access));
	}
	return code < 0 ? code : buf_add_byte(buf, ']');
}

static int show_argv(const char **argv, struct buf *buf)
{
	int code = buf_add_text(buf, ", command: [");

	for (size_t i = 0; code == 0 && argv[i]; i++) {
		code = buf_add_text(buf, i ? ", " : "");
		if (code == 0)
			code = key_show_text(argv[i], buf);
	}
	return code < 0 ? code : buf_add_byte(buf, ']');
}

static int show_gate(const struct plan_gate *gate, struct buf *buf)
{
	char time[64];
	int code = buf_printf(buf, "{name: %s", gate->name);

	str_format_duration(gate->timeout_ms, time, sizeof time);
	if (code == 0 && gate->argv)
		code = show_argv(gate->argv, buf);
	if (code == 0 && gate->schema) /* JSON is YAML */
		code = buf_printf(buf, ", schema: %s", gate->schema);
	if (code == 0)
		code = buf_printf(buf, ", timeout: %s, rate: %" PRIu64, time, gate->rate);
	if (code == 0 && gate->is_ephemeral)
		code = buf_add_text(buf, ", ephemeral: true");
	return code < 0 ? code : buf_add_byte(buf, '}');
}

static int show_gates(const struct key *key, const struct plan *plan, enum key_how how,
		      struct buf *buf)
{
	int code = buf_add_byte(buf, '[');

	(void)key;
	(void)how;
	for (size_t i = 0; code == 0 && i < plan->gate_count; i++) {
		code = buf_add_text(buf, i ? ", " : "");
		if (code == 0)
			code = show_gate(&plan->gates[i], buf);
	}
	return code < 0 ? code : buf_add_byte(buf, ']');
}

static int (*const shows[KIND_COUNT_])(const struct key *, const struct plan *, enum key_how,
				       struct buf *) = {
	[KIND_VERSION] = show_version, [KIND_TIER] = show_tier,   [KIND_CHOICE] = show_choice,
	[KIND_BOOL] = show_bool,       [KIND_TIME] = show_number, [KIND_SIZE] = show_number,
	[KIND_COUNT] = show_number,    [KIND_CPUS] = show_number, [KIND_TEXT] = show_text,
	[KIND_LIST] = show_list,       [KIND_ENV] = show_env,     [KIND_MOUNTS] = show_mounts,
	[KIND_GATES] = show_gates,
};

int key_show(const struct key *key, const struct plan *plan, enum key_how how, struct buf *buf)
{
	if (!shows[key->kind] || (key->width == 0 && key->kind != KIND_VERSION))
		return -ENOENT;
	return shows[key->kind](key, plan, how, buf);
}
