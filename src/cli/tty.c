/* The caller's terminal; see tty.h. Nothing is kept in it that a signal could leave behind: who
 * makes it raw takes his signals from a descriptor. */
#include "cli/tty.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/str.h"

bool tty_is_wanted(const struct cli_options *options)
{
	if (options->tty && str_is(options->tty, "always"))
		return true;
	if ((options->tty && str_is(options->tty, "never")) || options->stdin_file ||
	    options->result || options->json || options->detach)
		return false;
	return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && isatty(STDERR_FILENO);
}

static int make_raw(const struct tty *tty, int fd)
{
	struct termios raw = tty->saved;

	cfmakeraw(&raw);
	return tcsetattr(fd, TCSANOW, &raw);
}

void tty_enter(struct tty *tty, int fd)
{
	tty->fd = -1;
	if (fd >= 0 && tcgetattr(fd, &tty->saved) == 0 && make_raw(tty, fd) == 0)
		tty->fd = fd;
}

void tty_again(const struct tty *tty)
{
	if (tty->fd >= 0)
		make_raw(tty, tty->fd);
}

void tty_leave(struct tty *tty)
{
	if (tty->fd >= 0)
		tcsetattr(tty->fd, TCSADRAIN, &tty->saved);
	tty->fd = -1;
}

void tty_size(int fd, uint16_t *ret_rows, uint16_t *ret_columns)
{
	struct winsize size = { .ws_row = 24, .ws_col = 80 };

	if (fd < 0 || ioctl(fd, TIOCGWINSZ, &size) < 0 || !size.ws_row || !size.ws_col)
		size = (struct winsize){ .ws_row = 24, .ws_col = 80 };
	*ret_rows = size.ws_row;
	*ret_columns = size.ws_col;
}

int tty_unless_closed(int fd)
{
	int flags = fcntl(fd, F_GETFL);
	int wrong = fd == STDIN_FILENO ? O_WRONLY : O_RDONLY;

	return flags < 0 || (flags & O_ACCMODE) == wrong ? -1 : fd;
}
