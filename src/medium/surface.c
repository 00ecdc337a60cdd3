/* The tables of surface.h: nothing in them reads, starts or loads anything outside of the code. */
#include "medium/surface.h"

#include <string.h>

const struct surface_part surface_lua[] = {
	{ NULL, "assert error getmetatable ipairs load next pairs pcall print rawequal rawget "
		"rawlen rawset select setmetatable tonumber tostring type xpcall" },
	{ "coroutine", "close create isyieldable resume running status wrap yield" },
	{ "math", "abs acos asin atan ceil cos deg exp floor fmod huge log max maxinteger min "
		  "mininteger modf pi rad random randomseed sin sqrt tan tointeger type ult" },
	{ "string", "byte char find format gmatch gsub len lower match pack packsize rep reverse "
		    "sub unpack upper" },
	{ "table", "concat insert move pack remove sort unpack" },
	{ "utf8", "char charpattern codepoint codes len offset" },
	{ NULL, NULL },
};

const struct surface_part surface_lua_refused[] = {
	{ NULL, "collectgarbage dofile loadfile require warn" },
	{ "string", "dump" },
	{ "debug", "*" },
	{ "io", "*" },
	{ "os", "*" },
	{ "package", "*" },
	{ NULL, NULL },
};

bool surface_names(const char *names, const char *name)
{
	size_t size = strlen(name);

	while (names && *names) {
		size_t n = strcspn(names, " ");

		if ((n == size && memcmp(names, name, n) == 0) || (n == 1 && *names == '*'))
			return true;
		names += n + (names[n] == ' ');
	}
	return false;
}
