/*
 * Interrupts its own reported calls by a timer of one millisecond.
 *
 * Would gain: calls that start again for ever, with a monitor that answers each time.
 */
#include "inside.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>

static volatile sig_atomic_t alarms;

static void count(int number)
{
	(void)number;
	alarms++;
}

int main(void)
{
	struct sigaction action = { .sa_handler = count, .sa_flags = SA_RESTART };
	struct itimerval timer = { { 0, 1000 }, { 0, 1000 } };
	const char *scratch = getenv("TMPDIR");
	char name[200];

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &timer, NULL);
	for (int i = 0; i < 500; i++) {
		snprintf(name, sizeof name, "%s/storm-%d", scratch ? scratch : "/tmp", i);
		if (mkdir(name, 0700) < 0 || rmdir(name) < 0)
			return 1;
	}
	ATTEMPT("a reported call", syscall(SYS_keyctl, 0L, 0, 0, 0, 0));
	CONTROL("the timer fired", alarms > 0 ? 0 : -1);
	return done();
}
