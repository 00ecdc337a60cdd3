/*
 * Forwards: endpoints of the host's that code inside reaches at a place of its own.
 *
 * A socket's path is followed here, once, by the same rules as a mount's: a link in the project
 * that leads out of it is refused, since what runs there could have made it. Whoever connects opens
 * the real path without following any.
 */
#include <errno.h>
#include <string.h>

#include "base/path.h"
#include "base/str.h"
#include "policy/decide.h"

static int not_one(struct decision *d, const char *text, const char *where)
{
	char shown[121];

	str_escape(text, false, shown, sizeof shown);
	return csn_fail(d->err, -EINVAL, "policy", "%.80s: %s is no forward, expected %s", where,
			shown, policy_keys[KEY_FORWARDS].expected);
}

static int find_socket(struct decision *d, const char *text, const char *folder, const char *where,
		       char path[POLICY_PATH_MAX])
{
	char typed[POLICY_PATH_MAX];
	const char *flaw;
	int code = path_join(folder, text, path, POLICY_PATH_MAX);

	if (code < 0)
		return csn_fail(d->err, -EINVAL, "policy", "%.120s: %.200s is not a usable path",
				where, text);
	memcpy(typed, path, sizeof typed);
	flaw = decide_socket_flaw(d->facts, typed);
	if (!flaw) {
		code = decide_real(d, WANT_SOCKET, where, path);
		if (code < 0)
			return code;
		flaw = decide_socket_flaw(d->facts, path);
	}
	if (flaw)
		return csn_fail(d->err, -EPERM, "policy", "%.120s: %.200s %s", where, typed, flaw);
	return 0;
}

int decide_forward(struct decision *d, const char *text, const char *folder, const char *where,
		   const char **ret_text)
{
	struct plan_forward forward;
	char host[POLICY_PATH_MAX], at[POLICY_PATH_MAX] = "";
	const char *made;
	int code;

	if (plan_forward_read(text, &forward) < 0 || !text_is_forward(text))
		return not_one(d, text, where);
	if (forward.at[0] && path_normalize(forward.at, at, sizeof at) < 0)
		return not_one(d, text, where);
	if (!forward.at[0])
		memcpy(at, strrchr(text, ':') + 1, strlen(strrchr(text, ':')));
	if (forward.host_port) {
		made = arena_printf(&d->plan->arena, "tcp:127.0.0.1:%u:%s", forward.host_port, at);
	} else {
		code = find_socket(d, forward.host, folder, where, host);
		if (code < 0)
			return code;
		made = arena_printf(&d->plan->arena, "unix:%s:%s", host, at);
	}
	if (!made)
		return decide_no_memory(d);
	*ret_text = made;
	return 0;
}

/* What the file grants already may be asked for again. */
int decide_take_forwards(struct decision *d)
{
	int code = 0;

	for (const char *const *text = d->request->forwards; code == 0 && text && *text; text++) {
		const char *made;

		code = decide_forward(d, *text, d->facts->cwd, "--forward", &made);
		if (code == 0 && !plan_has(d->plan->forwards, made)) {
			d->by_flag[KEY_FORWARDS] = "--forward";
			code = decide_add_text(d, &d->plan->forwards, made);
		}
	}
	return code;
}

int decide_forwards_fit(struct decision *d)
{
	const char **list = d->plan->forwards;
	size_t count = 0;

	for (; list[count]; count++) {
		const char *at = strrchr(list[count], ':');

		for (size_t i = 0; i < count; i++)
			if (str_is(strrchr(list[i], ':'), at))
				return csn_fail(d->err, -EINVAL, "policy",
						"two forwards stand at %.100s: give each a place "
						"of its own",
						at + 1);
	}
	if (count > PLAN_FORWARDS)
		return csn_fail(d->err, -E2BIG, "policy", "more than %d forwards", PLAN_FORWARDS);
	return 0;
}
