/*
 * Requests and answers as files; see approvals.h. What is read here was written by a process with
 * the same uid, or by one that got hold of the folder: it is bounded and checked like any file.
 */
#include "audit/approvals.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "audit/dump.h"
#include "audit/files.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"

enum {
	OPEN_DIR = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
	FILE_MAX = APPROVAL_TERMS_MAX + (16 << 10),
	NAME_SIZE = 64,
	BOOT_ID = 37, /* with its NUL */
	ID_DIGITS = APPROVAL_ID - 1,
	LEFT_S = 3600,
};

static const char stage[] = "approval";

/* In the order of enum approval_state. */
static const struct {
	const char *suffix, *name;
} states[] = {
	[APPROVAL_WAITING] = { ".request", "waiting" },
	[APPROVAL_GIVEN] = { ".yes", "approved" },
	[APPROVAL_DENIED] = { ".no", "denied" },
};

const char *approval_state_name(enum approval_state state)
{
	return states[state].name;
}

void approval_done(struct approval *approval)
{
	json_decref(approval->terms);
	json_decref(approval->asked);
	json_decref(approval->answered);
	*approval = (struct approval){ 0 };
}

bool approval_is_id(const char *text)
{
	return strlen(text) == ID_DIGITS && strspn(text, "0123456789abcdef") == ID_DIGITS;
}

static int no_memory(struct csn_error *err)
{
	return csn_fail(err, -ENOMEM, stage, "out of memory");
}

/* ---- time ------------------------------------------------------------------------------------ */

/* Goes on while the machine sleeps, and cannot be set. */
static uint64_t boot_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static int read_boot_id(char ret_id[BOOT_ID], struct csn_error *err)
{
	_cleanup_fd_ int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -errno : read(fd, ret_id, BOOT_ID - 1);

	if (n != BOOT_ID - 1)
		return csn_fail(err, -EIO, stage,
				"cannot read /proc/sys/kernel/random/boot_id, without which an "
				"approval cannot expire");
	ret_id[BOOT_ID - 1] = 0;
	return 0;
}

/* ---- the folder ------------------------------------------------------------------------------ */

/* Nobody but its owner may look in: arguments are in there. */
static int check_folder(int fd, const char *root, struct csn_error *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return csn_fail(err, -errno, stage, "cannot look at %s/approvals: %m", root);
	if ((st.st_uid != geteuid() && geteuid() != 0) || (st.st_mode & 077))
		return csn_fail(err, -EPERM, stage,
				"%s/approvals is not believed: it must belong to you alone, with "
				"mode 0700; remove it",
				root);
	return 0;
}

static int open_root(const char *root, bool makes, int *ret_fd, struct csn_error *err)
{
	int fd;

	if (makes || geteuid() != 0)
		return files_open_root(root, makes, ret_fd, err);
	fd = open(root, OPEN_DIR); /* root answers for anybody */
	if (fd < 0)
		return csn_fail(err, -errno, stage, "cannot open the run root %s: %m", root);
	*ret_fd = fd;
	return 0;
}

int approvals_open(const char *root, bool makes, int *ret_fd, struct csn_error *err)
{
	_cleanup_fd_ int root_fd = -1, fd = -1;
	int r = open_root(root, makes, &root_fd, err);

	if (r < 0)
		return r;
	if (makes && mkdirat(root_fd, "approvals", 0700) < 0 && errno != EEXIST)
		return csn_fail(err, -errno, stage, "cannot make %s/approvals: %m", root);
	fd = openat(root_fd, "approvals", OPEN_DIR);
	if (fd < 0)
		return csn_fail(err, -errno, stage, "cannot open %s/approvals: %m", root);
	r = check_folder(fd, root, err);
	if (r < 0)
		return r;
	*ret_fd = fd_take(&fd);
	return 0;
}

/* A file of the folder's, to be read: nobody else's, and nobody else can write it. */
static int open_file(int dir_fd, const char *name, size_t *ret_size, struct csn_error *err)
{
	_cleanup_fd_ int fd = files_open_regular(dir_fd, name);
	struct stat st, folder;

	if (fd < 0)
		return csn_fail(err, fd, stage, "cannot read the approval file %s: %s", name,
				strerror(-fd));
	if (fstat(fd, &st) < 0 || fstat(dir_fd, &folder) < 0)
		return csn_fail(err, -errno, stage, "cannot look at the approval file %s: %m",
				name);
	if (st.st_uid != folder.st_uid || (st.st_mode & 077) || st.st_nlink != 1)
		return csn_fail(err, -EPERM, stage,
				"the approval file %s is not believed: it must belong to the "
				"folder's owner, with mode 0600 and one name; remove it, and ask "
				"again",
				name);
	if (st.st_size > FILE_MAX)
		return csn_fail(err, -EFBIG, stage,
				"the approval file %s is too long; remove it, and ask again", name);
	*ret_size = (size_t)st.st_size;
	return fd_take(&fd);
}

/* Whole or not at all; the folder's owner's also where root writes it. */
static int write_file(int dir_fd, const char *name, const void *data, size_t size)
{
	char temporary[NAME_SIZE];
	_cleanup_fd_ int fd = -1;
	struct stat folder;
	uint32_t number;
	int r;

	if (getrandom(&number, sizeof number, 0) != sizeof number || fstat(dir_fd, &folder) < 0)
		return -errno;
	snprintf(temporary, sizeof temporary, ".%08x.new", number);
	fd = openat(dir_fd, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	r = fd_write_all(fd, data, size);
	if (r == 0 && folder.st_uid != geteuid() && fchown(fd, folder.st_uid, folder.st_gid) < 0)
		r = -errno;
	if (r == 0 && syscall(SYS_renameat2, dir_fd, temporary, dir_fd, name, RENAME_NOREPLACE) < 0)
		r = -errno;
	if (r < 0)
		unlinkat(dir_fd, temporary, 0);
	return r;
}

static int read_key(int dir_fd, uint8_t ret_key[APPROVAL_KEY], struct csn_error *err)
{
	size_t size = 0;
	_cleanup_fd_ int fd = open_file(dir_fd, "key", &size, err);

	if (fd < 0)
		return fd;
	if (fd_read_all(fd, ret_key, APPROVAL_KEY) != APPROVAL_KEY)
		return csn_fail(err, -EBADMSG, stage,
				"the file approvals/key of the run root is damaged; remove it, and "
				"ask again");
	return 0;
}

int approvals_key(int dir_fd, uint8_t ret_key[APPROVAL_KEY], struct csn_error *err)
{
	uint8_t key[APPROVAL_KEY];
	int r = read_key(dir_fd, ret_key, err);

	if (r != -ENOENT)
		return r;
	if (getrandom(key, sizeof key, 0) != sizeof key)
		return csn_fail(err, -EIO, stage, "the kernel gives no random numbers: %m");
	r = write_file(dir_fd, "key", key, sizeof key);
	if (r < 0 && r != -EEXIST) /* another one was faster: his counts */
		return csn_fail(err, r, stage, "cannot write approvals/key: %s", strerror(-r));
	return read_key(dir_fd, ret_key, err);
}

/* ---- one file -------------------------------------------------------------------------------- */

int approval_digest(json_t *terms, char ret_hex[SHA_HEX], struct csn_error *err)
{
	struct sha_part part;
	char *text = NULL;
	size_t size = 0;

	if (!terms || dump_json(terms, DUMP_CANONICAL, &text, &size) < 0)
		return no_memory(err);
	part = (struct sha_part){ text, size };
	sha_parts(&part, 1, ret_hex);
	free(text);
	if (size > APPROVAL_TERMS_MAX)
		return csn_fail(err, -EFBIG, stage,
				"this is %zu bytes long, more than a person reads before a yes: "
				"put the command into a script, whose digest is approved",
				size);
	return 0;
}

static void name_file(char ret_name[NAME_SIZE], const char *id, enum approval_state state)
{
	snprintf(ret_name, NAME_SIZE, "%.8s%s", id, states[state].suffix);
}

static int damaged(struct csn_error *err, const char *name)
{
	return csn_fail(err, -EBADMSG, stage,
			"the approval file %s is damaged or was changed; remove it, and ask again",
			name);
}

/* How much longer it holds; none after another boot. */
static int take_time(const json_t *root, const char *name, struct approval *approval,
		     struct csn_error *err)
{
	const char *boot = json_string_value(json_object_get(root, "boot"));
	json_int_t until = json_integer_value(json_object_get(root, "until_ms"));
	uint64_t now_ms = boot_ms();
	char own[BOOT_ID];
	int r = read_boot_id(own, err);

	if (r < 0)
		return r;
	if (!boot || until <= 0)
		return damaged(err, name);
	approval->until_ms = (uint64_t)until;
	approval->left_ms =
		str_is(boot, own) && (uint64_t)until > now_ms ? (uint64_t)until - now_ms : 0;
	/* Nobody here gives a longer one. */
	return approval->left_ms > APPROVAL_MAX_MS ? damaged(err, name) : 0;
}

static json_t *take_object(const json_t *root, const char *key)
{
	json_t *value = json_object_get(root, key);

	return json_is_object(value) ? json_incref(value) : NULL;
}

/* Fills `approval`, whatever comes of it. */
static int take_file(const json_t *root, const char *name, struct approval *approval,
		     struct csn_error *err)
{
	const char *id = json_string_value(json_object_get(root, "id"));
	const char *state = json_string_value(json_object_get(root, "state"));
	const char *digest = json_string_value(json_object_get(root, "digest"));

	approval->terms = take_object(root, "terms");
	approval->asked = take_object(root, "asked");
	approval->answered = take_object(root, "answered");
	if (!id || !str_is(id, approval->id) || !state ||
	    !str_is(state, approval_state_name(approval->state)) || !digest || !approval->terms ||
	    !approval->asked || !approval->answered != (approval->state == APPROVAL_WAITING))
		return damaged(err, name);
	if (approval_digest(approval->terms, approval->digest, err) < 0 ||
	    !str_is(digest, approval->digest))
		return damaged(err, name);
	return take_time(root, name, approval, err);
}

static int parse_file(int dir_fd, const char *name, json_t **ret_root, struct csn_error *err)
{
	size_t size = 0;
	_cleanup_fd_ int fd = open_file(dir_fd, name, &size, err);
	char *data = fd < 0 ? NULL : malloc(size + 1);
	ssize_t n;

	if (fd < 0 || !data)
		return fd < 0 ? fd : no_memory(err);
	n = fd_read_all(fd, data, size);
	*ret_root =
		n < 0 ? NULL
		      : json_loadb(data, (size_t)n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
	free(data);
	return *ret_root ? 0 : damaged(err, name);
}

/* `approval` says whose and which answer is wanted; `name` need not be the one of that. Holds
 * nothing afterwards unless 0 is returned. */
static int read_as(int dir_fd, const char *name, struct approval *approval, struct csn_error *err)
{
	json_t *root = NULL;
	int r = parse_file(dir_fd, name, &root, err);

	if (r < 0)
		return r;
	r = take_file(root, name, approval, err);
	json_decref(root);
	if (r < 0)
		approval_done(approval);
	return r;
}

static struct approval wanted(const char *id, enum approval_state state)
{
	struct approval approval = { .state = state };

	snprintf(approval.id, sizeof approval.id, "%.8s", id);
	return approval;
}

int approval_read(int dir_fd, const char *id, struct approval *ret_approval, struct csn_error *err)
{
	static const enum approval_state order[] = { APPROVAL_GIVEN, APPROVAL_DENIED,
						     APPROVAL_WAITING };
	char name[NAME_SIZE];
	int r = -ENOENT;

	for (size_t i = 0; approval_is_id(id) && r == -ENOENT && i < ARRAY_SIZE(order); i++) {
		struct approval approval = wanted(id, order[i]);

		name_file(name, id, order[i]);
		r = read_as(dir_fd, name, &approval, err);
		if (r == 0)
			*ret_approval = approval;
	}
	if (r == -ENOENT)
		return csn_fail(
			err, r, stage,
			"there is no request %.40s: it was used or withdrawn, it expired, or "
			"it lies in another run root (--run-dir); caisson approve --list "
			"names all",
			id);
	return r;
}

static json_t *stamp(const char *how)
{
	char time[CLOCK_TEXT];

	clock_format(clock_wall_ms(), time);
	return json_pack("{s:I, s:I, s:s, s:s*}", "uid", (json_int_t)getuid(), "pid",
			 (json_int_t)getpid(), "time", time, "how", how);
}

static int write_approval(int dir_fd, const struct approval *approval, uint64_t good_ms,
			  struct csn_error *err)
{
	char name[NAME_SIZE], boot[BOOT_ID];
	char *text = NULL;
	json_t *root;
	size_t size;
	int r = read_boot_id(boot, err);

	if (r < 0)
		return r;
	root = json_pack("{s:s, s:s, s:s, s:s, s:O, s:O, s:O*, s:s, s:I}", "schema",
			 "caisson.approval/1", "id", approval->id, "state",
			 approval_state_name(approval->state), "digest", approval->digest, "terms",
			 approval->terms, "asked", approval->asked, "answered", approval->answered,
			 "boot", boot, "until_ms", (json_int_t)(boot_ms() + good_ms));
	r = root ? dump_json(root, JSON_INDENT(1), &text, &size) : -ENOMEM;
	json_decref(root);
	name_file(name, approval->id, approval->state);
	if (r == 0)
		r = write_file(dir_fd, name, text, size);
	free(text);
	return r < 0 ? csn_fail(err, r, stage, "cannot write the approval file %s: %s", name,
				strerror(-r))
		     : 0;
}

bool approval_is_over(const struct approval *approval)
{
	return boot_ms() >= approval->until_ms;
}

/* ---- all of them ----------------------------------------------------------------------------- */

/* What a file's name says. */
static bool is_ours(const char *name, char ret_id[APPROVAL_ID], enum approval_state *ret_state)
{
	snprintf(ret_id, APPROVAL_ID, "%.8s", name);
	for (size_t i = 0; approval_is_id(ret_id) && i < ARRAY_SIZE(states); i++)
		if (str_is(name + ID_DIGITS, states[i].suffix)) {
			*ret_state = (enum approval_state)i;
			return true;
		}
	return false;
}

/* What somebody who was killed left between two names. */
static void sweep(int dir_fd, const char *name)
{
	struct stat st;

	if (name[0] == '.' && fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    S_ISREG(st.st_mode) && time(NULL) - st.st_mtime > LEFT_S)
		unlinkat(dir_fd, name, 0);
}

int approvals_each(int dir_fd, int (*each)(struct approval *approval, void *data), void *data)
{
	int fd = openat(dir_fd, ".", OPEN_DIR), r = 0;
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	enum approval_state state;
	struct dirent *entry;
	char id[APPROVAL_ID];

	if (!dir) {
		fd_close(fd);
		return -errno;
	}
	while (r == 0 && (entry = readdir(dir))) {
		_cleanup_approval_ struct approval approval = { 0 };

		sweep(dir_fd, entry->d_name);
		if (!is_ours(entry->d_name, id, &state))
			continue;
		approval = wanted(id, state);
		if (read_as(dir_fd, entry->d_name, &approval, NULL) < 0)
			continue;
		if (approval.left_ms == 0)
			unlinkat(dir_fd, entry->d_name, 0);
		else
			r = each(&approval, data);
	}
	closedir(dir);
	return r;
}

/* ---- asking and answering -------------------------------------------------------------------- */

struct search {
	const char *digest;
	struct approval *found;
	size_t waiting;
};

/* The request for the same, if it waits. */
static int look_at(struct approval *approval, void *data)
{
	struct search *search = data;

	if (approval->state != APPROVAL_WAITING)
		return 0;
	search->waiting++;
	if (!str_is(approval->digest, search->digest))
		return 0;
	*search->found = *approval;
	*approval = (struct approval){ 0 };
	return 1;
}

int approval_ask(int dir_fd, json_t *terms, struct approval *ret_approval, struct csn_error *err)
{
	_cleanup_approval_ struct approval asked = { .state = APPROVAL_WAITING };
	struct search search = { asked.digest, ret_approval, 0 };
	uint32_t number = 0;
	int r = approval_digest(terms, asked.digest, err);

	if (r < 0 || approvals_each(dir_fd, look_at, &search) == 1)
		return r;
	if (search.waiting >= APPROVALS_WAITING_MAX)
		return csn_fail(err, -EAGAIN, stage,
				"%d requests wait for a person already: caisson approve --list "
				"shows them, caisson approve --deny ID ends one",
				(int)APPROVALS_WAITING_MAX);
	if (getrandom(&number, sizeof number, 0) != sizeof number)
		return csn_fail(err, -EIO, stage, "the kernel gives no random numbers: %m");
	snprintf(asked.id, sizeof asked.id, "%08x", number);
	asked.terms = json_incref(terms);
	asked.asked = stamp(NULL);
	asked.left_ms = APPROVAL_MAX_MS;
	r = asked.asked ? write_approval(dir_fd, &asked, APPROVAL_MAX_MS, err) : no_memory(err);
	if (r < 0)
		return r;
	*ret_approval = asked;
	asked = (struct approval){ 0 };
	return 0;
}

int approval_answer(int dir_fd, const struct approval *approval,
		    const struct approval_answer *answer, struct csn_error *err)
{
	struct approval given = *approval;
	char name[NAME_SIZE], claimed[NAME_SIZE];
	int r;

	name_file(name, approval->id, APPROVAL_WAITING);
	snprintf(claimed, sizeof claimed, ".%s.claimed", approval->id);
	if (renameat(dir_fd, name, dir_fd, claimed) < 0)
		return csn_fail(err, -errno, stage, "%s was answered or withdrawn meanwhile: %m",
				approval->id);
	given.state = answer->is_yes ? APPROVAL_GIVEN : APPROVAL_DENIED;
	given.answered = stamp(answer->how);
	r = given.answered ? write_approval(dir_fd, &given, answer->good_ms, err) : no_memory(err);
	json_decref(given.answered);
	unlinkat(dir_fd, claimed, 0);
	return r;
}

int approval_use(int dir_fd, const struct approval *approval, struct csn_error *err)
{
	_cleanup_approval_ struct approval used = wanted(approval->id, APPROVAL_GIVEN);
	char name[NAME_SIZE], claimed[NAME_SIZE];
	int r;

	name_file(name, approval->id, APPROVAL_GIVEN);
	snprintf(claimed, sizeof claimed, ".%s.used", approval->id);
	if (renameat(dir_fd, name, dir_fd, claimed) < 0)
		return csn_fail(err, -errno, stage,
				"approval %s is good for one start, and was used meanwhile",
				approval->id);
	r = read_as(dir_fd, claimed, &used, err);
	unlinkat(dir_fd, claimed, 0);
	if (r == 0 && (!str_is(used.digest, approval->digest) || used.left_ms == 0))
		return damaged(err, name);
	return r;
}

/* ---- what differs ---------------------------------------------------------------------------- */

static void add_difference(const char *prefix, const char *key, char *text, size_t size)
{
	size_t n = strlen(text);
	char name[96];

	str_escape(key, false, name, sizeof name);
	if (n + strlen(prefix) + strlen(name) + 8 < size)
		snprintf(text + n, size - n, "%s%s%s%s", n ? ", " : "", prefix, *prefix ? "." : "",
			 name);
	else if (n + 4 < size && (n < 3 || !str_is(text + n - 3, "…")))
		snprintf(text + n, size - n, "…");
}

static void compare(const json_t *a, const json_t *b, const char *prefix, char *text, size_t size)
{
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)a, key, value) {
		const json_t *other = json_object_get(b, key);

		if (other && json_equal(value, other))
			continue;
		if (!*prefix && json_is_object(value) && json_is_object(other))
			compare(value, other, key, text, size);
		else
			add_difference(prefix, key, text, size);
	}
	json_object_foreach((json_t *)b, key, value)
		if (!json_object_get(a, key))
			add_difference(prefix, key, text, size);
}

void approval_differences(const json_t *a, const json_t *b, char *ret_text, size_t size)
{
	ret_text[0] = 0;
	compare(a, b, "", ret_text, size);
}
