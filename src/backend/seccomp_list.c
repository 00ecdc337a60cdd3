/*
 * The profile as an engine's list; see seccomp_list.h. First a name's lines are judged: if one of
 * them lets a call pass, the name passes. The rest answers as its line says; what no line names is
 * ENOSYS, as in the profile.
 */
#include "backend/seccomp_list.h"

#include <errno.h>

#include "base/str.h"
#include "os/profile.h"

#if defined __x86_64__
static const char architecture[] = "SCMP_ARCH_X86_64";
#elif defined __aarch64__
static const char architecture[] = "SCMP_ARCH_AARCH64";
#else
#error "no name of this architecture: add it"
#endif

/* What the agent asks for itself. Commands stay without them by their own filter. */
static const char *const agents[] = {
	"clone3",  /* a process with its pidfd in one step */
	"openat2", /* paths of the file verbs, resolved beneath a folder */
};

static bool is_agents(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(agents); i++)
		if (str_is(agents[i], name))
			return true;
	return false;
}

/* The errno of a name of which no call passes, 0 if one does. */
static int refusal_of(const struct profile_rule *rules, size_t count, const char *name)
{
	int error = 0;

	for (size_t i = 0; i < count; i++) {
		if (!str_is(rules[i].name, name))
			continue;
		if (rules[i].verdict == PROFILE_ALLOW || rules[i].verdict == PROFILE_WATCH ||
		    rules[i].error == 0)
			return 0;
		error = rules[i].error;
	}
	return is_agents(name) ? 0 : error;
}

/* The names answered with `error`; those that pass for 0. NULL: memory is short, and a list that
 * lacks a name would be another one. */
static json_t *names_of(const struct profile_rule *rules, size_t count, int error)
{
	json_t *names = json_array();
	const char *last = "";

	for (size_t i = 0; names && i < count; i++) {
		if (str_is(rules[i].name, last))
			continue; /* lines of one name stand together */
		last = rules[i].name;
		if (refusal_of(rules, count, last) != error ||
		    json_array_append_new(names, json_string(last)) == 0)
			continue;
		json_decref(names);
		names = NULL;
	}
	return names;
}

static bool add_group(json_t *groups, const struct profile_rule *rules, size_t count, int error)
{
	json_t *names = names_of(rules, count, error);
	json_t *group;

	if (names && json_array_size(names) == 0) {
		json_decref(names);
		return true;
	}
	if (error == 0)
		group = json_pack("{s:o, s:s}", "names", names, "action", "SCMP_ACT_ALLOW");
	else
		group = json_pack("{s:o, s:s, s:i}", "names", names, "action", "SCMP_ACT_ERRNO",
				  "errnoRet", error);
	return group && json_array_append_new(groups, group) == 0;
}

json_t *seccomp_list(const char *profile)
{
	static const int errors[] = { 0, EPERM, EACCES, EAFNOSUPPORT };
	json_t *groups = json_array();
	size_t count = 0;
	const struct profile_rule *rules = profile_rules(profile, &count);

	for (size_t i = 0; groups && i < ARRAY_SIZE(errors); i++)
		if (!add_group(groups, rules, count, errors[i])) {
			json_decref(groups);
			groups = NULL;
		}
	return json_pack("{s:s, s:i, s:[s], s:o}", "defaultAction", "SCMP_ACT_ERRNO",
			 "defaultErrnoRet", ENOSYS, "architectures", architecture, "syscalls",
			 groups);
}
