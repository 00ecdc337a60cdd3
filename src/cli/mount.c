/*
 * caisson mount: one more file or folder for a sandbox that runs
 *
 * Relative names are ours, and links in them are followed here: the monitor compares with the real
 * paths of the policy's mount_roots.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "cli/call.h"
#include "policy/policy.h"

static int lend(const struct cli *cli, csn_sandbox *sandbox, csn_error *err)
{
	csn_mount_request request = { 0 };
	struct plan_mount mount;
	char text[2 * PATH_MAX], host[PATH_MAX];

	if (strlen(cli->args[1]) >= sizeof text)
		return call_misuse(err, "the mount is longer than paths can be");
	memcpy(text, cli->args[1], strlen(cli->args[1]) + 1);
	if (policy_split_mount(text, &mount) < 0)
		return call_misuse(err, "expected HOST:AT[:ro|rw], AT an absolute path");
	/* What is not there is told by the monitor, with what else speaks against it. */
	request.host = realpath(mount.host, host) ? host : mount.host;
	request.at = mount.at;
	request.writable = mount.access == ACCESS_RW;
	return csn_mount(sandbox, &request, err) < 0 ? -1 : CLI_OK;
}

int cli_mount(struct cli *cli)
{
	return call_verb(cli, lend);
}
