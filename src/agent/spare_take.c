/*
 * The leader's side: it waits for what it is to run; see spare.h and spare_message.h. The message
 * is the agent's, which is trusted; it is bounded all the same, since a wrong count would be found
 * by the process of a command.
 */
#include <errno.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/child.h"
#include "agent/spare.h"
#include "agent/spare_message.h"

static int take_fds(struct child *child, struct msghdr *header, const struct spare_head *head)
{
	struct cmsghdr *rights = CMSG_FIRSTHDR(header);
	size_t count = head->has_tty ? SPARE_FDS : SPARE_FDS - 1;
	int fds[SPARE_FDS] = { -1, -1, -1, -1, -1 };

	if (!rights || rights->cmsg_level != SOL_SOCKET || rights->cmsg_type != SCM_RIGHTS ||
	    rights->cmsg_len != CMSG_LEN(count * sizeof(int)))
		return -EPROTO;
	memcpy(fds, CMSG_DATA(rights), count * sizeof(int));
	memcpy(child->fds, fds, sizeof child->fds);
	child->failure_fd = fds[3];
	child->tty_fd = fds[4];
	return 0;
}

/* The place behind `count` texts of the message gets a NULL. */
static char **take_texts(struct spare_room *room, size_t *at_text, char **at, const char *end,
			 uint32_t count)
{
	char **texts = room->texts + *at_text;

	if (count >= SPARE_TEXTS - *at_text)
		return NULL;
	for (uint32_t i = 0; i < count; i++) {
		char *zero = memchr(*at, 0, (size_t)(end - *at));

		if (!zero)
			return NULL;
		texts[i] = *at;
		*at = zero + 1;
	}
	texts[count] = NULL;
	*at_text += count + 1;
	return texts;
}

static int take_message(struct child *child, const struct spare_head *head, struct spare_room *room,
			const char *end)
{
	char *at = room->bytes + sizeof *head;
	size_t at_text = 0;
	char **fixed = take_texts(room, &at_text, &at, end, SPARE_FIXED_TEXTS);

	child->argv = fixed ? take_texts(room, &at_text, &at, end, head->args) : NULL;
	child->env = child->argv ? take_texts(room, &at_text, &at, end, head->variables) : NULL;
	if (!child->env || head->args == 0)
		return -EPROTO;
	child->workspace = head->has_workspace ? fixed[0] : NULL;
	child->cwd = fixed[1];
	child->path = fixed[2];
	child->ref = head->ref;
	child->open_files = head->open_files;
	return 0;
}

int spare_receive(struct child *child)
{
	struct spare_room *room = child->room;
	union {
		char bytes[CMSG_SPACE(sizeof(int[SPARE_FDS]))];
		struct cmsghdr align;
	} control = { 0 };
	struct iovec part = { room->bytes, sizeof room->bytes };
	struct msghdr header = { .msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = control.bytes,
				 .msg_controllen = sizeof control };
	struct spare_head head;
	ssize_t n;
	int r;

	prctl(PR_SET_NAME, "caisson-spare", 0, 0, 0); /* for people who look; exec takes it away */
	do
		n = recvmsg(child->command_fd, &header, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n == 0)
		_exit(0);
	if (n < (ssize_t)sizeof head || header.msg_flags & (MSG_TRUNC | MSG_CTRUNC))
		return n < 0 ? -errno : -EPROTO;
	memcpy(&head, room->bytes, sizeof head);
	r = take_fds(child, &header, &head);
	return r < 0 ? r : take_message(child, &head, room, room->bytes + n);
}
