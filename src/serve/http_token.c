/*
 * Tokens; see http_token.h. The attacks: one that is guessed byte by byte (so digests are compared,
 * all of them, in constant time), one that others can read (so the file's mode is judged), one that
 * is in a log (so it is printed once, in a URL's fragment, which no browser sends).
 */
#include "serve/http_token.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "audit/sha.h"
#include "base/clock.h"
#include "base/fd.h"

enum { FILE_MAX = 64 << 10, LEAST = 16, RANDOM_BYTES = 32 };

_Static_assert((int)TOKEN_HEX == (int)SHA_HEX, "a digest does not fit");

void tokens_init(struct tokens *tokens)
{
	*tokens = (struct tokens){ 0 };
	pthread_mutex_init(&tokens->lock, NULL);
}

void tokens_done(struct tokens *tokens)
{
	pthread_mutex_destroy(&tokens->lock);
}

static void digest(const char *text, size_t size, char *ret_hex)
{
	sha_parts(&(struct sha_part){ text, size }, 1, ret_hex);
}

static int add(struct tokens *tokens, const char *text, size_t size, struct csn_error *err)
{
	if (size < LEAST)
		return csn_fail(err, -EINVAL, "token",
				"a token has at least %d characters; `openssl rand -hex 32` makes "
				"one",
				LEAST);
	for (size_t i = 0; i < size; i++)
		if (text[i] <= ' ' || text[i] > '~')
			return csn_fail(err, -EINVAL, "token",
					"a token is letters, digits and signs of ASCII, without "
					"blanks, one a line");
	if (tokens->count == TOKENS_MAX)
		return csn_fail(err, -E2BIG, "token", "there are more than %d tokens", TOKENS_MAX);
	/* Never filled: at the first request its allowance is full. */
	digest(text, size, tokens->items[tokens->count++].sha256);
	return 0;
}

static int check_file(int fd, const char *path, struct csn_error *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return csn_fail(err, -EINVAL, "token", "%.200s is no regular file", path);
	if ((st.st_uid != geteuid() && st.st_uid != 0) || (st.st_mode & 077))
		return csn_fail(err, -EPERM, "token",
				"%.200s can be read or was written by others; make it yours alone: "
				"chmod 600",
				path);
	return 0;
}

int tokens_read(struct tokens *tokens, const char *path, struct csn_error *err)
{
	_cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	char text[FILE_MAX];
	ssize_t n;
	int r;

	if (fd < 0)
		return csn_fail(err, -errno, "token", "cannot open %.200s: %m", path);
	r = check_file(fd, path, err);
	if (r < 0)
		return r;
	n = fd_read_all(fd, text, sizeof text - 1);
	if (n < 0)
		return csn_fail(err, (int)n, "token", "cannot read %.200s: %s", path,
				strerror((int)-n));
	text[n] = 0;
	for (char *line = text; r == 0 && *line; line += strspn(line, "\r\n")) {
		size_t size = strcspn(line, "\r\n");

		if (size > 0 && *line != '#')
			r = add(tokens, line, size, err);
		line += size;
	}
	explicit_bzero(text, sizeof text);
	if (r == 0 && tokens->count == 0)
		return csn_fail(err, -EINVAL, "token", "there is no token in %.200s", path);
	return r;
}

int tokens_make(struct tokens *tokens, char *ret_text, struct csn_error *err)
{
	uint8_t random[RANDOM_BYTES];

	if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
		return csn_fail(err, -EIO, "token", "the kernel gives no random bytes: %m");
	/* The digest of random bytes is as good as they are, and is text already. */
	digest((const char *)random, sizeof random, ret_text);
	explicit_bzero(random, sizeof random);
	return add(tokens, ret_text, strlen(ret_text), err);
}

/* Every byte is looked at, whatever the first ones say. */
static bool is_same(const char *a, const char *b)
{
	unsigned char differs = 0;

	for (size_t i = 0; i < TOKEN_HEX - 1; i++)
		differs |= (unsigned char)(a[i] ^ b[i]);
	return differs == 0;
}

struct token *tokens_find(struct tokens *tokens, const char *text)
{
	struct token *found = NULL;
	char hex[TOKEN_HEX];

	digest(text, strlen(text), hex);
	for (unsigned i = 0; i < tokens->count; i++)
		if (is_same(tokens->items[i].sha256, hex))
			found = &tokens->items[i];
	return found;
}

bool token_may_ask(struct tokens *tokens, struct token *token, uint64_t rate)
{
	uint64_t now_us = clock_now_us();
	bool may;

	pthread_mutex_lock(&tokens->lock);
	token->allowance += (double)(now_us - token->filled_us) * (double)rate / 1e6;
	if (token->allowance > (double)rate)
		token->allowance = (double)rate;
	token->filled_us = now_us;
	may = token->allowance >= 1;
	if (may)
		token->allowance -= 1;
	pthread_mutex_unlock(&tokens->lock);
	return may;
}

bool token_take(struct tokens *tokens, unsigned *count, uint64_t most)
{
	bool may;

	pthread_mutex_lock(&tokens->lock);
	may = *count < most;
	*count += may;
	pthread_mutex_unlock(&tokens->lock);
	return may;
}

void token_give(struct tokens *tokens, unsigned *count)
{
	pthread_mutex_lock(&tokens->lock);
	(*count)--;
	pthread_mutex_unlock(&tokens->lock);
}
