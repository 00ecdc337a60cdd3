/* inside - what attacks in C share: one line of JSON for each attempt, as inside.py prints it. */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Tells how `name` went. `result` below 0: refused, with errno. A control has to work. */
__attribute__((unused)) static void say(const char *name, long result, bool is_control)
{
	printf("{\"attempt\": \"%s\", \"got\": %s, \"errno\": ", name,
	       result < 0 ? "false" : "true");
	if (result < 0)
		printf("\"%s\"", strerrorname_np(errno) ? strerrorname_np(errno) : "?");
	else
		printf("null");
	printf("%s}\n", is_control ? ", \"control\": true" : "");
	fflush(stdout);
}

#define ATTEMPT(name, call) say(name, (long)(call), false)
#define CONTROL(name, call) say(name, (long)(call), true)

/* The last line: the attack was not cut short. */
static int done(void)
{
	puts("{\"done\": true}");
	return 0;
}
