/*
 * Can the command be made with musl from this machine's jansson, libyaml and libcrypto? It is
 * built, run and its symbols are reviewed when the build is configured (tools/musl-link); if
 * anything is not as expected here, the command is made with the compiler's own C library.
 */
#define OPENSSL_SUPPRESS_DEPRECATED
#include <jansson.h>
#include <openssl/sha.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

static int json_works(void)
{
	json_t *value =
		json_loads("{\"b\": 1.25, \"a\": [-7, \"\\u00e4\"]}", JSON_REJECT_DUPLICATES, NULL);
	json_t *more = json_pack("{s:s, s:i}", "c", "d", "e", 5);
	char *text = value && more && json_object_update(value, more) == 0
			     ? json_dumps(value, JSON_SORT_KEYS | JSON_COMPACT)
			     : NULL;
	int works = text &&
		    strcmp(text, "{\"a\":[-7,\"\xc3\xa4\"],\"b\":1.25,\"c\":\"d\",\"e\":5}") == 0;
	json_error_t error;

	works = works && !json_loads("{\n1", 0, &error) && error.line == 2 &&
		strstr(error.text, "near '1'");
	free(text);
	json_decref(more);
	json_decref(value);
	return works;
}

static int yaml_works(void)
{
	static const unsigned char text[] = "a: [1, \"b\\n\"] # c\n";
	yaml_parser_t parser;
	yaml_event_t event;
	int events = 0, ended = 0;

	if (!yaml_parser_initialize(&parser))
		return 0;
	yaml_parser_set_input_string(&parser, text, sizeof text - 1);
	while (!ended && yaml_parser_parse(&parser, &event)) {
		ended = event.type == YAML_STREAM_END_EVENT;
		events++;
		yaml_event_delete(&event);
	}
	yaml_parser_delete(&parser);
	return ended && events == 11;
}

static int sha_works(void)
{
	unsigned char hash[SHA256_DIGEST_LENGTH], git[SHA_DIGEST_LENGTH];
	SHA256_CTX context;
	SHA_CTX older;

	SHA256_Init(&context);
	SHA256_Update(&context, "abc", 3);
	SHA256_Final(hash, &context);
	SHA1_Init(&older);
	SHA1_Update(&older, "abc", 3);
	SHA1_Final(git, &older);
	return memcmp(hash, "\xba\x78\x16\xbf", 4) == 0 && memcmp(git, "\xa9\x99\x3e\x36", 4) == 0;
}

int main(void)
{
	return json_works() && yaml_works() && sha_works() ? EXIT_SUCCESS : EXIT_FAILURE;
}
