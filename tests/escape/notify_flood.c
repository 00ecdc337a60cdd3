/*
 * Makes calls that are reported as fast as it can, from several threads, past the deadline.
 *
 * Would gain: a monitor that only answers and no longer looks at its clock; a record without bound.
 */
#include "inside.h"

#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>

static void *flood(void *unused)
{
	char name[64];

	for (unsigned i = 0;; i++) {
		snprintf(name, sizeof name, "/usr/flood-%u", i);
		mkdir(name, 0700);
		syscall(SYS_keyctl, (long)i, 0, 0, 0, 0);
	}
	return unused;
}

int main(void)
{
	pthread_t thread;

	for (int i = 0; i < 3; i++)
		if (pthread_create(&thread, NULL, flood, NULL) != 0)
			return 1;
	flood(NULL);
	return done();
}
