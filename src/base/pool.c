/* Asking a pool; see pool.h. */
#include "base/pool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/place.h"

#define STAGE "pool"

enum { ANSWER_S = 20 };

extern char **environ;

int pool_place(struct csn_error *err)
{
	_cleanup_fd_ int place = place_open(err);
	_cleanup_fd_ int fd = -1;
	struct stat st;

	if (place < 0)
		return place;
	if (mkdirat(place, "pools", 0700) < 0 && errno != EEXIST)
		return csn_fail(err, -errno, STAGE, "cannot make a folder for pools: %m");
	fd = openat(place, "pools", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return csn_fail(err, -errno, STAGE, "cannot open the folder of pools: %m");
	if (st.st_uid != geteuid() || st.st_mode & 077)
		return csn_fail(err, -EPERM, STAGE, "the folder of pools is open to others");
	return fd_take(&fd);
}

static int add_texts(struct buf *buf, const char *const *texts, uint32_t *ret_count)
{
	int r = 0;

	for (*ret_count = 0; r >= 0 && texts[*ret_count]; ++*ret_count)
		r = buf_add(buf, texts[*ret_count], strlen(texts[*ret_count]) + 1);
	return *ret_count > POOL_WORDS ? -E2BIG : r;
}

/* umask() tells by changing it, and the program that we are a part of may have threads. */
static uint32_t own_umask(void)
{
	_cleanup_fd_ int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	char text[256];
	ssize_t size = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
	const char *at;
	uint32_t mask = 0;

	text[size > 0 ? size : 0] = 0;
	at = strstr(text, "\nUmask:\t");
	if (!at)
		return POOL_NO_UMASK;
	for (at += strlen("\nUmask:\t"); *at >= '0' && *at <= '7'; at++)
		mask = (mask << 3 | (uint32_t)(*at - '0')) & 0777;
	return mask;
}

static void add_inherited(struct pool_head *head)
{
	struct rlimit limit;

	for (int i = 0; i < POOL_LIMITS; i++) {
		if (getrlimit(i, &limit) < 0)
			limit.rlim_cur = limit.rlim_max = RLIM_INFINITY;
		head->limits[i].soft = limit.rlim_cur;
		head->limits[i].hard = limit.rlim_max;
	}
	head->umask = own_umask();
}

static int send_request(int fd, enum pool_wish wish, const char *const *words)
{
	struct pool_head head = { .magic = POOL_MAGIC, .wish = wish };
	char cwd[4096];
	struct buf buf;
	int r;

	if (!getcwd(cwd, sizeof cwd))
		return -errno;
	add_inherited(&head);
	buf_init(&buf, POOL_BYTES);
	r = add_texts(&buf, words, &head.words);
	if (r >= 0)
		r = add_texts(&buf, (const char *const *)environ, &head.variables);
	if (r >= 0)
		r = buf_add(&buf, cwd, strlen(cwd) + 1);
	head.size = (uint32_t)buf_size(&buf);
	if (r >= 0 && send(fd, &head, sizeof head, MSG_NOSIGNAL) != sizeof head)
		r = -EPIPE;
	for (size_t at = 0; r >= 0 && at < head.size;) {
		ssize_t n = send(fd, (const char *)buf_at(&buf) + at, head.size - at, MSG_NOSIGNAL);

		r = n < 0 && errno != EINTR ? -errno : 0;
		at += n > 0 ? (size_t)n : 0;
	}
	buf_done(&buf);
	return r;
}

/* `count` texts from *at on, as a list that ends with NULL; NULL: there are fewer. */
static char **take_texts(char **at, const char *end, uint32_t count)
{
	char **list = calloc((size_t)count + 1, sizeof *list);

	for (uint32_t i = 0; list && i < count; i++) {
		if (*at >= end) {
			free(list);
			return NULL;
		}
		list[i] = *at;
		*at += strlen(*at) + 1;
	}
	return list;
}

bool pool_is_head(const struct pool_head *head)
{
	return memcmp(head->magic, POOL_MAGIC, sizeof head->magic) == 0 && head->size > 0 &&
	       head->size <= POOL_BYTES && head->words <= POOL_WORDS &&
	       head->variables <= POOL_WORDS && head->umask <= POOL_NO_UMASK;
}

int pool_parse(const struct pool_head *head, char *texts, struct pool_texts *ret_texts)
{
	struct pool_texts made = { 0 };
	char *at = texts, *end = texts + head->size;

	made.words = take_texts(&at, end, head->words);
	made.variables = made.words ? take_texts(&at, end, head->variables) : NULL;
	made.cwd = at;
	if (!made.variables || at >= end || *at != '/') {
		pool_texts_done(&made);
		return -EBADMSG;
	}
	*ret_texts = made;
	return 0;
}

void pool_texts_done(struct pool_texts *texts)
{
	free(texts->words);
	free(texts->variables);
	*texts = (struct pool_texts){ 0 };
}

/* Why not: 0, or the negative errno of what comes with a refusal. */
static int read_why(int fd, const char *fallback, struct csn_error *err)
{
	struct csn_error why;
	size_t size = 0;
	ssize_t n;

	while (size < sizeof why && (n = read(fd, (char *)&why + size, sizeof why - size)) > 0)
		size += (size_t)n;
	if (size < sizeof why || why.code <= 0)
		return csn_fail(err, -EIO, STAGE, "%s", fallback);
	why.stage[sizeof why.stage - 1] = why.text[sizeof why.text - 1] = 0;
	return csn_fail_lines(err, -why.code, why.stage, "%s", why.text);
}

static int is_same_user(int fd)
{
	struct ucred peer;
	socklen_t size = sizeof peer;

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == geteuid();
}

/* How long a read waits; 0: for ever. */
static void be_patient(int fd, int seconds)
{
	const struct timeval time = { .tv_sec = seconds };

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
}

int pool_ask(const char *name, enum pool_wish wish, const char *const *words, int *ret_fd,
	     struct csn_error *err)
{
	_cleanup_fd_ int place = pool_place(err);
	_cleanup_fd_ int fd = -1;
	char answer = 0;
	ssize_t n;

	if (place < 0)
		return 0;
	fd = place_connect(place, name, err);
	if (fd < 0)
		return 0;
	if (!is_same_user(fd) || send_request(fd, wish, words) < 0) {
		csn_fail(err, -EPIPE, STAGE, "the pool %.64s takes no request", name);
		return 0;
	}
	if (wish == POOL_STOP) {
		*ret_fd = fd_take(&fd);
		return 1;
	}
	be_patient(fd, ANSWER_S);
	do
		n = read(fd, &answer, 1);
	while (n < 0 && errno == EINTR);
	if (n == 1 && answer == POOL_TAKEN) {
		be_patient(fd, 0);
		*ret_fd = fd_take(&fd);
		return 1;
	}
	if (n == 1 && answer == POOL_FAILED)
		return read_why(fd, "the prepared sandbox did not start", err);
	read_why(fd, "the pool ended", err);
	return 0;
}
