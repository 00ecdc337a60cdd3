/* The media that there are; see media.h. */
#include "medium/media.h"

#include <string.h>

static const char *const lua_argv[] = { "caisson-lua", NULL };

const struct medium media[] = {
	{ "lua", "caisson-lua", lua_argv, surface_lua, surface_lua_refused,
	  "Lua 5.4. Globals persist between evals, and a local at the top level is one. The last\n"
	  "expression is the value; print is captured. Gates are functions; one that fails raises\n"
	  "its sentence as an error. After done(value) nothing more runs.\n" },
};
const unsigned media_count = sizeof media / sizeof *media;

const struct medium *media_find(const char *name, size_t size)
{
	for (unsigned i = 0; i < media_count; i++)
		if (strlen(media[i].name) == size && memcmp(media[i].name, name, size) == 0)
			return &media[i];
	return NULL;
}
