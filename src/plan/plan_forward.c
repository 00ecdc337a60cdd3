/* Forwards of a plan: the text of one, which policy files, flags and records share, in its parts.
 */
#include <errno.h>
#include <string.h>

#include "base/str.h"
#include "plan/plan.h"

static const char unix_form[] = "unix:", tcp_form[] = "tcp:127.0.0.1:";

static int read_port(const char *text, uint16_t *ret_port)
{
	uint64_t port;

	if (str_parse_u64(text, UINT16_MAX, &port) < 0 || port == 0)
		return -EINVAL;
	*ret_port = (uint16_t)port;
	return 0;
}

static int copy_part(const char *text, size_t n, char *ret_part, size_t size)
{
	if (n == 0 || n >= size)
		return -EINVAL;
	memcpy(ret_part, text, n);
	ret_part[n] = 0;
	return 0;
}

static int read_at(const char *text, struct plan_forward *forward)
{
	if (text[0] != '/')
		return read_port(text, &forward->at_port);
	return copy_part(text, strlen(text), forward->at, sizeof forward->at);
}

int plan_forward_read(const char *text, struct plan_forward *ret_forward)
{
	bool is_tcp = str_starts(text, tcp_form);
	const char *host = text + (is_tcp ? sizeof tcp_form : sizeof unix_form) - 1;
	struct plan_forward forward = { .host_port = 0 };
	const char *colon;
	char port[8];
	int r;

	if (!is_tcp && !str_starts(text, unix_form))
		return -EINVAL;
	colon = strrchr(host, ':');
	if (!colon)
		return -EINVAL;
	if (is_tcp) {
		r = copy_part(host, (size_t)(colon - host), port, sizeof port);
		r = r < 0 ? r : read_port(port, &forward.host_port);
	} else {
		r = copy_part(host, (size_t)(colon - host), forward.host, sizeof forward.host);
	}
	if (r >= 0)
		r = read_at(colon + 1, &forward);
	if (r >= 0)
		*ret_forward = forward;
	return r;
}

bool plan_forwards_ports(const struct plan *plan)
{
	for (const char **text = plan->forwards; *text; text++) {
		struct plan_forward forward;

		if (plan_forward_read(*text, &forward) == 0 && forward.at_port)
			return true;
	}
	return false;
}
