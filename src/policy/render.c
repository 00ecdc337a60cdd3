/*
 * A plan as the policy file that would produce it: `policy show --effective`.
 *
 * Rules that have done their work (strict_when, overrides) are not in a plan and so not
 * here; what they led to is. Reading the text back as a trusted file gives the same plan.
 */
#include "policy/keys.h"
#include "policy/policy.h"

#include <string.h>

#include "base/str.h"

static int render_key(const struct key *key, const struct plan *plan, struct buf *buf)
{
	size_t n = key_section(key);
	int code = buf_printf(buf, "%s%s: ", n ? "  " : "", key->path + (n ? n + 1 : 0));

	if (code == 0)
		code = key_show(key, plan, SHOW_VALUES, buf);
	return code < 0 ? code : buf_add_byte(buf, '\n');
}

int policy_render(const struct plan *plan, struct buf *ret_yaml)
{
	const char *section = "";
	size_t length = 0;
	int code = 0;

	for (size_t id = 0; code == 0 && id < KEY_COUNT; id++) {
		const struct key *key = &policy_keys[id];
		size_t n = key_section(key);

		if (key->width == 0 && key->kind != KIND_VERSION)
			continue;
		if (n && (n != length || memcmp(section, key->path, n) != 0))
			code = buf_printf(ret_yaml, "%.*s:\n", (int)n, key->path);
		section = key->path;
		length = n;
		if (code == 0)
			code = render_key(key, plan, ret_yaml);
	}
	return code;
}
