/*
 * Prepared ahead; see ahead.h. Everything that needs no mount was done by src/launch/launch.c: ids,
 * rights, filter, descriptors. Landlock opens the paths that it grants, and those appear when
 * somebody has said what is lent. So this process waits executed, with that one step left, and
 * what it reads comes from the monitor alone, over a socket that no command ever sees.
 *
 * A step that fails ends it here, as there.
 */
#include "agent/ahead.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "base/fd.h"
#include "os/agent_fds.h"
#include "os/landlock.h"

static int read_exactly(void *data, size_t size)
{
	for (char *at = data; size > 0;) {
		ssize_t n = read(AGENT_FD_ORDER, at, size);

		if (n <= 0 && !(n < 0 && errno == EINTR))
			return -EPIPE;
		at += n > 0 ? n : 0;
		size -= n > 0 ? (size_t)n : 0;
	}
	return 0;
}

static int take_rule(int ruleset_fd, int abi)
{
	char path[AGENT_RULE_PATH];
	struct agent_rule rule;
	int r = read_exactly(&rule, sizeof rule);

	if (r < 0)
		return r;
	if (rule.size == 0 || rule.size > sizeof path || rule.grant > LANDLOCK_SCRATCH)
		return -EBADMSG;
	r = read_exactly(path, rule.size);
	if (r < 0 || path[rule.size - 1])
		return r < 0 ? r : -EBADMSG;
	return landlock_allow_path(ruleset_fd, abi, path, (enum landlock_grant)rule.grant);
}

/* Its own program lies outside of the root; one in memory is on no mount and needs no rule. */
static int allow_search(int ruleset_fd, int abi)
{
	int r = landlock_allow(ruleset_fd, abi, AGENT_FD_SEARCH, LANDLOCK_READ);

	return r == -EBADFD || r == -EBADF ? 0 : r;
}

static int take_landlock(const struct agent_order *order)
{
	int abi = (int)order->landlock_abi;
	_cleanup_fd_ int ruleset_fd = landlock_new(abi, false);
	int r = ruleset_fd < 0 ? ruleset_fd : allow_search(ruleset_fd, abi);

	for (uint32_t i = 0; r >= 0 && i < order->count; i++)
		r = take_rule(ruleset_fd, abi);
	return r < 0 ? r : landlock_enter(ruleset_fd);
}

int ahead_prepare(void)
{
	struct csn_error err = { 0 };
	struct agent_order order;
	/* From now on others may enter: the root is made, and nothing of the host's is left. */
	int r = send(AGENT_FD_ORDER, "w", 1, MSG_NOSIGNAL) == 1 ? 0 : -errno;

	if (r >= 0)
		r = read_exactly(&order, sizeof order);
	if (r < 0)
		csn_fail(&err, r, "order", "the monitor ended, or needs it no more");
	else if (order.landlock_abi >= LANDLOCK_ABI_FILES) /* else the wall's report says so */
		r = take_landlock(&order);
	if (r < 0 && !err.code)
		csn_fail(&err, r, "landlock", "cannot restrict files: %s", strerror(-r));
	if (r < 0 && write(AGENT_FD_FAILURE, &err, sizeof err) < 0)
		return r; /* nobody is left to tell */
	close(AGENT_FD_ORDER);
	close(AGENT_FD_FAILURE);
	return r;
}
