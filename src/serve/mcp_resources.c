/*
 * Resources: the records of this server's own sandboxes
 *
 * Other runs are not shown: a client hands resources to its model, and what was done in other
 * projects is none of its business. A name is one of a list, and an id one of our own, so nothing
 * that comes from outside becomes a path.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "serve/mcp.h"
#include "serve/mcp_text.h"

enum { RESOURCE_BYTES = 4 << 20 };

static const struct {
	const char *name, *path, *type, *what;
} files[] = {
	{ "events", "logs/events.jsonl", "application/jsonl",
	  "what the sandbox did and was denied, as a hash chain" },
	{ "result", "result.json", "application/json", "the account, once it has ended" },
	{ "manifest", "manifest.json", "application/json", "digests, once it has ended" },
};

static const char scheme[] = "caisson://runs/";

/* A descriptor, or -1: not (yet) there. */
static int open_file(const struct mcp *mcp, const char *id, size_t file)
{
	_cleanup_fd_ int root = -1, run = -1, fd = -1;
	struct stat st;

	root = open(mcp->config->run_root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root >= 0)
		run = openat(root, id, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (run >= 0)
		fd = openat(run, files[file].path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return -1;
	return fd_take(&fd);
}

static json_t *describe(const char *id, size_t file)
{
	char uri[128], name[128];

	snprintf(uri, sizeof uri, "%s%.63s/%s", scheme, id, files[file].name);
	snprintf(name, sizeof name, "%s of %.63s", files[file].name, id);
	return json_pack("{s:s, s:s, s:s, s:s}", "uri", uri, "name", name, "description",
			 files[file].what, "mimeType", files[file].type);
}

void mcp_resources_list(struct mcp *mcp, const json_t *id, const json_t *params)
{
	char ids[MCP_BOX_PAST][MCP_BOX_ID];
	unsigned count = mcp->config->run_root ? mcp_box_records(&mcp->box, ids) : 0;
	json_t *list = json_array();

	(void)params;
	for (unsigned i = 0; i < count; i++)
		for (size_t file = 0; file < ARRAY_SIZE(files); file++) {
			_cleanup_fd_ int fd = open_file(mcp, ids[i], file);

			if (fd >= 0)
				json_array_append_new(list, describe(ids[i], file));
		}
	mcp_rpc_answer(mcp, id, json_pack("{s:o}", "resources", list));
}

void mcp_resources_templates(struct mcp *mcp, const json_t *id, const json_t *params)
{
	(void)params;
	mcp_rpc_answer(mcp, id,
		       json_pack("{s:[{s:s, s:s, s:s}]}", "resourceTemplates", "uriTemplate",
				 "caisson://runs/{id}/{file}", "name", "record of a sandbox",
				 "description",
				 "file: events, result or manifest; id: as Sandbox says"));
}

/* The end of what is longer. */
static json_t *read_file(int fd)
{
	char *text = malloc(RESOURCE_BYTES);
	json_t *string = NULL;
	struct stat st;
	off_t from = 0;
	ssize_t n;

	if (fstat(fd, &st) == 0 && st.st_size > RESOURCE_BYTES)
		from = st.st_size - RESOURCE_BYTES;
	n = text ? pread(fd, text, RESOURCE_BYTES, from) : -1;
	if (n >= 0)
		string = mcp_string(text, (size_t)n);
	free(text);
	return string;
}

/* Is `uri` that file of that record? */
static bool is_uri(const char *uri, const char *id, size_t file)
{
	char own[128];

	snprintf(own, sizeof own, "%s%.63s/%s", scheme, id, files[file].name);
	return str_is(uri, own);
}

void mcp_resources_read(struct mcp *mcp, const json_t *id, const json_t *params)
{
	const char *uri = json_string_value(json_object_get(params, "uri"));
	char ids[MCP_BOX_PAST][MCP_BOX_ID];
	unsigned count = mcp->config->run_root ? mcp_box_records(&mcp->box, ids) : 0;

	for (unsigned i = 0; uri && i < count; i++)
		for (size_t file = 0; file < ARRAY_SIZE(files); file++) {
			_cleanup_fd_ int fd = -1;
			json_t *text;

			if (!is_uri(uri, ids[i], file))
				continue;
			fd = open_file(mcp, ids[i], file);
			text = fd < 0 ? NULL : read_file(fd);
			if (!text)
				break;
			mcp_rpc_answer(mcp, id,
				       json_pack("{s:[{s:s, s:s, s:o}]}", "contents", "uri", uri,
						 "mimeType", files[file].type, "text", text));
			return;
		}
	mcp_rpc_error(mcp, id, MCP_NO_RESOURCE, "there is no resource %.200s",
		      uri ? uri : "without a uri");
}
