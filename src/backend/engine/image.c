/*
 * Making and finding images; see image.h. The archive is written here: a few headers, and no
 * program of the host's has to be trusted to write it the same way twice.
 */
#include "backend/engine/image.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/engine/ask.h"
#include "backend/engine/keep.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"

enum {
	BLOCK = 512,
	ARCHIVE_MAX = 4 << 20,
	COPY_MAX = 256 << 10,
	IMPORT_MS = 60000,
	INSPECT_MS = 10000,
	ARENA_QUOTA = 256 << 10
};

/* ---- the archive ----------------------------------------------------------------------------- */

/* POSIX.1-1988 ustar. */
struct header {
	char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], sum[8], type, link[100];
	char magic[6], version[2], user[32], group[32], major[8], minor[8], prefix[155], pad[12];
};

_Static_assert(sizeof(struct header) == BLOCK, "a header is one block");

enum entry { ENTRY_FILE = '0', ENTRY_LINK = '2', ENTRY_FOLDER = '5' };

/* Owned by root, and of no time: the same bytes every day. */
static int add_header(struct buf *archive, const char *name, enum entry type, size_t size,
		      const char *link)
{
	/* Where it is covered by a scratch file system, that has its mode. */
	unsigned mode = type == ENTRY_FILE ? 0644 : str_is(name, "tmp") ? 01777 : 0755;

	struct header header = { .type = (char)type, .magic = "ustar", .version = { '0', '0' } };
	unsigned sum = 0;

	if (strlen(name) >= sizeof header.name || strlen(link) >= sizeof header.link)
		return -ENAMETOOLONG;
	snprintf(header.name, sizeof header.name, "%s", name);
	snprintf(header.link, sizeof header.link, "%s", link);
	snprintf(header.mode, sizeof header.mode, "%07o", mode);
	snprintf(header.uid, sizeof header.uid, "%07o", 0u);
	snprintf(header.gid, sizeof header.gid, "%07o", 0u);
	snprintf(header.size, sizeof header.size, "%011o", (unsigned)size);
	snprintf(header.mtime, sizeof header.mtime, "%011o", 0u);
	memset(header.sum, ' ', sizeof header.sum);
	for (size_t i = 0; i < sizeof header; i++)
		sum += ((const unsigned char *)&header)[i];
	snprintf(header.sum, sizeof header.sum, "%06o", sum);
	return buf_add(archive, &header, sizeof header);
}

static int add_file(struct buf *archive, const char *name, const void *data, size_t size)
{
	static const char zeros[BLOCK];
	int r = add_header(archive, name, ENTRY_FILE, size, "");

	if (r >= 0)
		r = buf_add(archive, data, size);
	if (r >= 0 && size % BLOCK)
		r = buf_add(archive, zeros, BLOCK - size % BLOCK);
	return r;
}

/* A small file of the host's /etc that everybody may read. */
static int add_copy(struct buf *archive, const char *name, const char *source)
{
	_cleanup_fd_ int fd = open(source, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	_cleanup_buf_ struct buf text;
	struct stat st;
	ssize_t n;

	buf_init(&text, COPY_MAX);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || !(st.st_mode & S_IROTH))
		return 0;
	if (!buf_reserve(&text, COPY_MAX))
		return -ENOMEM;
	n = fd_read_all(fd, buf_at(&text), COPY_MAX);
	return n < 0 || n == COPY_MAX ? 0 : add_file(archive, name, buf_at(&text), (size_t)n);
}

/* Who the commands are: where the engine maps no ids they have those that the kernel sees. */
static int add_names(struct buf *archive, const char *name, struct image_user user)
{
	char text[512];

	if (str_is(name, "etc/passwd"))
		snprintf(text, sizeof text,
			 "root:x:0:0:root:/root:/usr/sbin/nologin\n"
			 "sandbox:x:%u:%u:sandbox:/tmp/home:/bin/bash\n"
			 "nobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n",
			 (unsigned)user.uid, (unsigned)user.gid);
	else
		snprintf(text, sizeof text,
			 "root:x:0:\nsandbox:x:%u:\ntty:x:5:\nnogroup:x:65534:\n",
			 (unsigned)user.gid);
	return add_file(archive, name, text, strlen(text));
}

static int add_item(struct buf *archive, const struct rootfs_item *item, struct image_user user)
{
	const char *at = item->at;

	if (str_is(at, "dev") || str_starts(at, "dev/") || str_starts(at, "proc"))
		return 0;
	if (item->kind == ROOTFS_FOLDER)
		return add_header(archive, at, ENTRY_FOLDER, 0, "");
	if (item->kind == ROOTFS_LINK)
		return add_header(archive, at, ENTRY_LINK, 0, item->source);
	if (item->kind == ROOTFS_COPY)
		return add_copy(archive, at, item->source);
	if (item->kind != ROOTFS_FILE)
		return 0;
	return str_is(at, "etc/passwd") || str_is(at, "etc/group")
		       ? add_names(archive, at, user)
		       : add_file(archive, at, item->source, strlen(item->source));
}

int image_archive(const struct rootfs *rootfs, struct image_user user, struct buf *ret_archive)
{
	static const char *const folders[] = { "proc", "sys", "dev", "run", "run/caisson", "tmp" };
	static const char end[2 * BLOCK];
	int r = 0;

	for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(folders); i++)
		r = add_header(ret_archive, folders[i], ENTRY_FOLDER, 0, "");
	for (size_t i = 0; r >= 0 && i < rootfs->count; i++)
		r = add_item(ret_archive, &rootfs->items[i], user);
	return r < 0 ? r : buf_add(ret_archive, end, sizeof end);
}

/* FNV-1a, twice: a name for what only root of this machine can change. */
static void name_of(const struct buf *archive, char *ret_name, size_t size)
{
	uint64_t a = UINT64_C(0xcbf29ce484222325), b = UINT64_C(0x9ae16a3b2f90404f);

	for (size_t i = 0; i < buf_size(archive); i++) {
		a = (a ^ buf_at(archive)[i]) * UINT64_C(0x100000001b3);
		b = (b ^ a) * UINT64_C(0x100000001b3) + 1;
	}
	snprintf(ret_name, size, IMAGE_NAME ":%016llx%016llx", (unsigned long long)a,
		 (unsigned long long)b);
}

/* ---- the engine ------------------------------------------------------------------------------ */

struct command {
	struct arena arena;
	struct piped_program client;
	struct ask ask;
};

static int command_make(struct command *command, const struct engine *engine,
			const char *const *words)
{
	size_t count, more = 0;
	int r;

	while (words[more])
		more++;
	arena_init(&command->arena, ARENA_QUOTA);
	r = engine_client(engine, &command->arena, more, &command->client, &count);
	if (r < 0)
		return r;
	for (size_t i = 0; i < more; i++)
		((char **)(uintptr_t)command->client.argv)[count++] = (char *)(uintptr_t)words[i];
	command->ask = (struct ask){ .path = command->client.path,
				     .argv = command->client.argv,
				     .env = command->client.env,
				     .timeout_ms = INSPECT_MS };
	return 0;
}

/* Its id and its volumes. -ENOENT: there is none; -errno: the engine did not say. */
static int inspect(const struct engine *engine, const char *name, struct buf *answer,
		   char complaint[ASK_COMPLAINT])
{
	const char *const words[] = { "image", "inspect", "--format", "{{.Id}} {{json .Config}}",
				      name,    NULL };
	struct command command;
	int r = command_make(&command, engine, words);

	complaint[0] = 0;
	if (r >= 0)
		r = ask_run(&command.ask, answer, complaint);
	arena_done(&command.arena);
	return r > 0 ? -ENOENT : r;
}

static void take_id(struct buf *answer, char ret_id[IMAGE_ID_MAX])
{
	const char *text = buf_text(answer);

	snprintf(ret_id, IMAGE_ID_MAX, "%.*s", text ? (int)strcspn(text, " \n") : 0,
		 text ? text : "");
}

static void take_volumes(struct buf *answer, struct arena *arena, struct image *image)
{
	const char *text = buf_text(answer), *start = text ? strchr(text, '{') : NULL, *at;
	json_t *config = start ? json_loads(start, JSON_DISABLE_EOF_CHECK, NULL) : NULL;
	json_t *volumes = json_object_get(config, "Volumes"), *unused;
	size_t count = 0;

	image->volumes = arena_array(arena, json_object_size(volumes) + 1, sizeof(char *));
	json_object_foreach(volumes, at, unused)
		if (image->volumes && at[0] == '/' && !strpbrk(at, ":,"))
			image->volumes[count++] = arena_text(arena, at);
	json_decref(config);
}

static int import(const struct engine *engine, const struct buf *archive, const char *name,
		  struct csn_error *err)
{
	const char *const words[] = { "import", "--change", "LABEL " IMAGE_LABEL "=1",
				      "-",      name,       NULL };
	char complaint[ASK_COMPLAINT] = "";
	struct command command;
	int r;

	if (isatty(STDERR_FILENO))
		fprintf(stderr, "caisson: making the image %s for %s, once\n", name, engine->name);
	r = command_make(&command, engine, words);
	if (r >= 0) {
		command.ask.input = archive;
		command.ask.timeout_ms = IMPORT_MS;
		r = ask_run(&command.ask, NULL, complaint);
	}
	arena_done(&command.arena);
	if (r == 0)
		return 0;
	if (strstr(complaint, "no space left"))
		return csn_fail(err, -ENOSPC, "image",
				"the image store of %s is full: `%s system df` says by what",
				engine->name, engine->name);
	return csn_fail(err, r < 0 ? r : -EIO, "image", "%s cannot make the image %s: %s",
			engine->name, name, *complaint ? complaint : "no answer");
}

static bool is_kept(const struct engine *engine, const char *name, struct image *image)
{
	char file[64];
	json_t *kept;
	const char *id;

	snprintf(file, sizeof file, "%s-image", engine->name);
	kept = keep_read(file);
	id = json_string_value(json_object_get(kept, "id"));
	if (id && str_is(json_string_value(json_object_get(kept, "name")), name))
		snprintf(image->id, sizeof image->id, "%s", id);
	json_decref(kept);
	return image->id[0];
}

static void keep(const struct engine *engine, const struct image *image)
{
	json_t *object = json_pack("{s:s, s:s}", "name", image->name, "id", image->id);
	char file[64];

	snprintf(file, sizeof file, "%s-image", engine->name);
	keep_write(file, object);
	json_decref(object);
}

void image_forget(const struct engine *engine)
{
	char file[64];

	snprintf(file, sizeof file, "%s-image", engine->name);
	keep_forget(file);
}

int image_skeleton(const struct engine *engine, const struct rootfs *rootfs, struct image_user user,
		   struct image *ret_image, struct csn_error *err)
{
	_cleanup_buf_ struct buf archive, answer;
	char complaint[ASK_COMPLAINT];
	uint64_t start_ms = clock_now_ms();
	int r;

	*ret_image = (struct image){ .id = "" };
	buf_init(&archive, ARCHIVE_MAX);
	buf_init(&answer, ASK_OUTPUT_MAX);
	r = image_archive(rootfs, user, &archive);
	if (r < 0)
		return csn_fail(err, r, "image", "cannot write the archive of the root: %s",
				strerror(-r));
	name_of(&archive, ret_image->name, sizeof ret_image->name);
	if (is_kept(engine, ret_image->name, ret_image))
		return 0;
	r = inspect(engine, ret_image->name, &answer, complaint);
	if (r == -ENOENT) {
		r = import(engine, &archive, ret_image->name, err);
		if (r < 0)
			return r;
		buf_clear(&answer);
		r = inspect(engine, ret_image->name, &answer, complaint);
	}
	if (r < 0)
		return csn_fail(err, r, "image", "%s image inspect: %s", engine->name,
				*complaint ? complaint : strerror(-r));
	take_id(&answer, ret_image->id);
	keep(engine, ret_image);
	ret_image->made_ms = clock_now_ms() - start_ms;
	return 0;
}

int image_named(const struct engine *engine, const char *name, struct arena *arena,
		struct image *ret_image, struct csn_error *err)
{
	_cleanup_buf_ struct buf answer;
	char complaint[ASK_COMPLAINT];
	int r;

	*ret_image = (struct image){ .id = "" };
	buf_init(&answer, ASK_OUTPUT_MAX);
	if (name[0] == '-' || strlen(name) >= sizeof ret_image->name)
		return csn_fail(err, -EINVAL, "image", "container.image: %.80s is no image's name",
				name);
	snprintf(ret_image->name, sizeof ret_image->name, "%s", name);
	r = inspect(engine, name, &answer, complaint);
	if (r < 0)
		return csn_fail(err, r, "image",
				"%s has no image %s, and nothing is pulled for a run (%s): `%s "
				"pull %s` first",
				engine->name, name, *complaint ? complaint : strerror(-r),
				engine->name, name);
	take_id(&answer, ret_image->id);
	take_volumes(&answer, arena, ret_image);
	return 0;
}
