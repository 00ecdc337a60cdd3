/*
 * SHA-256 for the chain and the manifest. libcrypto marks these calls as deprecated in
 * favour of EVP, which loads providers (a millisecond); they are the same code beneath.
 */
#define OPENSSL_SUPPRESS_DEPRECATED
#include "audit/sha.h"

#include <errno.h>
#include <stdio.h>
#include <openssl/sha.h>
#include <unistd.h>

static void finish(SHA256_CTX *context, char *ret_hex)
{
	static const char digits[] = "0123456789abcdef";
	unsigned char hash[SHA256_DIGEST_LENGTH];

	SHA256_Final(hash, context);
	for (size_t i = 0; i < sizeof hash; i++) {
		ret_hex[2 * i] = digits[hash[i] >> 4];
		ret_hex[2 * i + 1] = digits[hash[i] & 15];
	}
	ret_hex[SHA_HEX - 1] = 0;
}

void sha_parts(const struct sha_part *parts, size_t count, char *ret_hex)
{
	SHA256_CTX context;

	SHA256_Init(&context);
	for (size_t i = 0; i < count; i++)
		SHA256_Update(&context, parts[i].data, parts[i].size);
	finish(&context, ret_hex);
}

int sha_fd_within(int fd, const struct sha_limit *limit, uint64_t *ret_size, char *ret_hex)
{
	unsigned char data[16384];
	SHA256_CTX context;
	uint64_t size = 0;

	SHA256_Init(&context);
	for (;;) {
		ssize_t n = read(fd, data, sizeof data);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		size += (uint64_t)n;
		if (size > limit->bytes)
			return -EFBIG;
		if (limit->is_over && limit->is_over(limit->data))
			return -ECANCELED;
		SHA256_Update(&context, data, (size_t)n);
	}
	finish(&context, ret_hex);
	*ret_size = size;
	return 0;
}

int sha_fd(int fd, uint64_t max, uint64_t *ret_size, char *ret_hex)
{
	return sha_fd_within(fd, &(struct sha_limit){ .bytes = max }, ret_size, ret_hex);
}

/* A name that git gives, not a defence: whoever forges it makes a file look unmodified. */
void sha_git_blob(const void *data, size_t size, uint8_t *ret_hash)
{
	char head[32];
	int length = snprintf(head, sizeof head, "blob %zu", size);
	SHA_CTX context;

	SHA1_Init(&context);
	SHA1_Update(&context, head, (size_t)length + 1);
	SHA1_Update(&context, data, size);
	SHA1_Final(ret_hash, &context);
}
