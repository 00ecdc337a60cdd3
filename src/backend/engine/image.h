/*
 * image - what a container's root is made from
 *
 * Without an image of the policy's it is a skeleton: the folders, links and small files that the
 * process wall makes itself. /usr and what else is shown of the host is mounted, not copied, so the
 * image is some 30 KiB, is made in less than a second without a registry, and programs are never
 * older than the host's. Its tag is a hash of all that is in it: when one of these files changes
 * there is another.
 */
#pragma once

#include "backend/engine/facts.h"
#include "base/buf.h"
#include "launch/rootfs.h"

#define IMAGE_NAME "localhost/caisson-root"
#define IMAGE_LABEL "caisson.image"

enum { IMAGE_NAME_MAX = 512, IMAGE_ID_MAX = 80 };

struct image {
	char name[IMAGE_NAME_MAX];
	char id[IMAGE_ID_MAX]; /* the engine's digest; "" unknown */
	const char **volumes;  /* of one of the policy's: see engine_box; the arena's, or NULL */
	uint64_t made_ms;      /* spent on making it */
};

/* Who its /etc/passwd says the commands are. */
struct image_user {
	uid_t uid;
	gid_t gid;
};

/*
 * The skeleton's image, made if the engine does not have it, with a line on stderr where that is a
 * terminal. 0 or -errno with a sentence.
 */
int image_skeleton(const struct engine *engine, const struct rootfs *rootfs, struct image_user user,
		   struct image *ret_image, struct csn_error *err);

/* The policy's image. -ENOENT with a sentence: the engine has none of that name, and nothing is
 * pulled. */
int image_named(const struct engine *engine, const char *name, struct arena *arena,
		struct image *ret_image, struct csn_error *err);

/* What was kept of it is not believed any more: the next start looks. */
void image_forget(const struct engine *engine);

/* The skeleton as a tar archive, the same bytes for the same items. 0 or -errno. */
int image_archive(const struct rootfs *rootfs, struct image_user user, struct buf *ret_archive);
