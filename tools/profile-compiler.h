/*
 * profile-compiler - turns profiles/NAME.profile into C at build time
 *
 * parse: text to rules. emit: rules to BPF. names: the tables of constants, errnos and
 * syscalls. It runs on the machine that builds and is no part of what is installed.
 */
#pragma once

#include "os/profile.h"

#include <stdio.h>

#define SOURCE_RULES_MAX 1024
#define SOURCE_TESTS_MAX 256
#define SOURCE_FILES_MAX 8
#define SYSCALLS_END 512

/* An architecture that programs are made for. */
struct target {
	const char *name;   /* as meson says it: "x86_64", "aarch64" */
	const char *marker; /* as the profiles say it after "on" */
	uint32_t scmp_arch; /* libseccomp's token, which is the kernel's AUDIT_ARCH */
	bool has_x32;       /* numbers from 0x40000000 enter by another door */
};

/* A parsed profile. The texts are owned; rules and tests point into them. */
struct source {
	char *texts[SOURCE_FILES_MAX];
	unsigned text_count;
	struct profile_rule rules[SOURCE_RULES_MAX]; /* sorted by nr when parsed */
	unsigned origins[SOURCE_RULES_MAX];          /* index of the text each came from */
	size_t rule_count;
	struct profile_test tests[SOURCE_TESTS_MAX];
	size_t test_count;
	struct profile_rule otherwise; /* the default; its name is NULL until it is said */
	bool has_listener;
};

/* The target of that name, NULL if there is none. */
const struct target *target_of(const char *name);

/* Is there a target with this marker? */
bool marker_is_known(const char *marker);

/* The number of a syscall, or -1: absent there. */
int syscall_number(const struct target *target, const char *name);

/* The name of a number, written to `ret_name` ("" if none). */
void syscall_name(const struct target *target, int nr, char *ret_name, size_t size);

/* One word of a condition or an errno, from a table. False if it is not there. */
bool constant_value(const char *word, uint32_t *ret_value);
bool error_value(const char *word, int *ret_value);

/* Reads a profile and what it includes. Complains with file and line; false on failure. */
bool source_parse(struct source *source, const struct target *target, const char *path);
void source_done(struct source *source);

/* Makes the program, at most BPF_MAXINSNS long. False, with a complaint, on failure. */
bool source_emit(const struct source *source, const struct target *target,
		 struct sock_filter *ret_code, size_t *ret_count);
