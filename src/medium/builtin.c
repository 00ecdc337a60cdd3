/* The table of builtin.h. */
#include "medium/builtin.h"

#define PATH "{\"type\": \"string\", \"minLength\": 1, \"maxLength\": 4095}"

const struct builtin builtins[] = {
	{ "done", { "value" }, NULL, false, BUILTIN_DONE, "ends the session with a value" },
	{ "echo", { "value" }, NULL, false, BUILTIN_ECHO, "gives its value back" },
	{ "list_dir",
	  { "path" },
	  "{\"type\": \"object\", \"properties\": {\"path\": " PATH "}, "
	  "\"additionalProperties\": false}",
	  true,
	  BUILTIN_LIST_DIR,
	  "names, types and sizes in a folder of the workspace; default: itself" },
	{ "read_file",
	  { "path" },
	  "{\"type\": \"object\", \"properties\": {\"path\": " PATH "}, "
	  "\"required\": [\"path\"], \"additionalProperties\": false}",
	  true,
	  BUILTIN_READ_FILE,
	  "a file of the workspace, at most 1 MiB" },
	{ "search",
	  { "pattern", "path" },
	  "{\"type\": \"object\", \"properties\": {\"pattern\": " PATH ", \"path\": " PATH "}, "
	  "\"required\": [\"pattern\"], \"additionalProperties\": false}",
	  true,
	  BUILTIN_SEARCH,
	  "lines of the workspace that match a regular expression: path, line, text; at most 200" },
};
const size_t builtin_count = sizeof builtins / sizeof *builtins;
