/*
 * etf - the tags of Erlang's external term format
 *
 * Names and numbers as in "External Term Format" of the Erlang documentation, all that
 * plain data uses and all that is refused by name. For this room only.
 */
#pragma once

enum etf {
	ETF_VERSION = 131,
	ETF_DIST_HEADER = 68,
	ETF_DIST_FRAGMENT = 69,
	ETF_NEW_FLOAT = 70,
	ETF_BIT_BINARY = 77,
	ETF_COMPRESSED = 80,
	ETF_ATOM_CACHE = 82,
	ETF_NEW_PID = 88,
	ETF_NEW_PORT = 89,
	ETF_NEWER_REFERENCE = 90,
	ETF_SMALL_INTEGER = 97,
	ETF_INTEGER = 98,
	ETF_FLOAT = 99,
	ETF_ATOM = 100,
	ETF_REFERENCE = 101,
	ETF_PORT = 102,
	ETF_PID = 103,
	ETF_SMALL_TUPLE = 104,
	ETF_LARGE_TUPLE = 105,
	ETF_NIL = 106,
	ETF_STRING = 107,
	ETF_LIST = 108,
	ETF_BINARY = 109,
	ETF_SMALL_BIG = 110,
	ETF_LARGE_BIG = 111,
	ETF_NEW_FUN = 112,
	ETF_EXPORT = 113,
	ETF_NEW_REFERENCE = 114,
	ETF_SMALL_ATOM = 115,
	ETF_MAP = 116,
	ETF_FUN = 117,
	ETF_ATOM_UTF8 = 118,
	ETF_SMALL_ATOM_UTF8 = 119,
	ETF_V4_PORT = 120,
	ETF_LOCAL = 121,
};
