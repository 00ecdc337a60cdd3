/*
 * A wall of a program's own: files are kept in a list, and nothing of the machine is touched.
 *   dictionary [CAISSON]      writes a file, changes it, reads it, asks for one that is not there
 *
 *   cc dictionary.c $(pkg-config --cflags --libs caisson)
 */
#include <caisson.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILES = 64, MOST = 64 << 10 };

/* A path and its bytes; NULL for a folder. */
struct file {
	char *path;
	char *bytes;
	size_t size;
};

struct store {
	struct file files[FILES];
	size_t count;
};

static struct file *find(struct store *store, const char *path)
{
	for (size_t i = 0; i < store->count; i++)
		if (strcmp(store->files[i].path, path) == 0)
			return &store->files[i];
	return NULL;
}

/* "a//./b" -> "a/b", "." -> "". What leads out of the workspace is no path here. NULL after an
 * answer. */
static char *place(struct store *store, const char *path, csn_answer *answer)
{
	char *tidy = calloc(1, strlen(path) + 1);
	const char *at = path;

	while (tidy && *at) {
		size_t n = strcspn(at, "/"), used = strlen(tidy);
		const struct file *above = find(store, tidy);

		if (n == 2 && memcmp(at, "..", 2) == 0)
			break;
		if (above && above->bytes) {
			csn_answer_fail(answer, CSN_ENOTDIR, "a file is no folder");
			free(tidy);
			return NULL;
		}
		if (n > 0 && !(n == 1 && *at == '.')) {
			if (used > 0)
				tidy[used++] = '/';
			memcpy(tidy + used, at, n);
		}
		at += n + (at[n] == '/');
	}
	if (tidy && !*at && path[0] != '/')
		return tidy;
	free(tidy);
	csn_answer_fail(answer, CSN_EINVAL, "paths here begin in the workspace and go down");
	return NULL;
}

/* The file of that path, NULL after an answer. */
static struct file *file_at(struct store *store, const char *path, csn_answer *answer)
{
	char *tidy = place(store, path, answer);
	struct file *file = tidy ? find(store, tidy) : NULL;

	if (tidy && !file)
		csn_answer_fail(answer, *tidy ? CSN_ENOENT : CSN_EISDIR, "there is no such file");
	else if (file && !file->bytes)
		csn_answer_fail(answer, CSN_EISDIR, "it is a folder");
	free(tidy);
	return file && file->bytes ? file : NULL;
}

/* The list takes both. */
static int put(struct store *store, char *path, char *bytes, size_t size)
{
	struct file *file = find(store, path);

	if (!file && store->count == FILES)
		return -CSN_ENOSPC;
	if (!file)
		file = &store->files[store->count++];
	free(file->path);
	free(file->bytes);
	*file = (struct file){ path, bytes, size };
	return 0;
}

static int put_folders(struct store *store, const char *path)
{
	int r = 0;

	for (const char *slash = strchr(path, '/'); slash && r == 0;
	     slash = strchr(slash + 1, '/')) {
		char *folder = strndup(path, (size_t)(slash - path));

		if (!folder || find(store, folder))
			free(folder);
		else if ((r = put(store, folder, NULL, 0)) < 0)
			free(folder);
	}
	return r;
}

static int dict_read(void *data, const csn_read_request *request, csn_answer *answer)
{
	const struct file *file = file_at(data, request->path, answer);
	size_t from;

	if (!file)
		return 0;
	from = request->offset < file->size ? (size_t)request->offset : file->size;
	return csn_answer_data(answer, CSN_STDOUT, file->bytes + from,
			       file->size - from < request->length ? file->size - from
								   : (size_t)request->length);
}

static int take(csn_answer *answer, char **ret_bytes, size_t *ret_size)
{
	char *bytes = malloc(MOST + 1);
	ptrdiff_t n = -CSN_ENOMEM;
	size_t size = 0;

	while (bytes && size <= MOST &&
	       (n = csn_answer_input(answer, bytes + size, MOST + 1 - size)) > 0)
		size += (size_t)n;
	if (n == 0) {
		*ret_bytes = bytes;
		*ret_size = size;
		return 0;
	}
	free(bytes);
	return n < 0 ? (int)n : csn_answer_fail(answer, CSN_EFBIG, "64 KiB is the most");
}

static int dict_write(void *data, const csn_write_request *request, csn_answer *answer)
{
	char *path = place(data, request->path, answer), *bytes = NULL;
	const struct file *old = path ? find(data, path) : NULL;
	size_t size = 0;
	int r;

	if (!path)
		return 0; /* it has its answer */
	if (!*path || (old && !old->bytes))
		r = csn_answer_fail(answer, CSN_EISDIR, "it is a folder");
	else
		r = take(answer, &bytes, &size);
	if (r == 0)
		r = put_folders(data, path);
	if (r == 0)
		r = put(data, path, bytes, size);
	if (r < 0) {
		free(path);
		free(bytes);
	}
	return r;
}

static uint64_t count_of(const struct file *file, const csn_edit_request *request, size_t *ret_at)
{
	uint64_t count = 0;

	for (size_t i = 0; i + request->old_size <= file->size; i++) {
		if (memcmp(file->bytes + i, request->old_text, request->old_size) != 0)
			continue;
		*ret_at = i;
		count++;
	}
	return count;
}

static int dict_edit(void *data, const csn_edit_request *request, csn_answer *answer)
{
	struct file *file = file_at(data, request->path, answer);
	size_t at = 0, size, tail;
	csn_edit_result result = { 0 };
	char *bytes;

	if (!file)
		return 0;
	if (request->old_size == 0)
		return csn_answer_fail(answer, CSN_EINVAL, "an empty text is everywhere");
	result.occurrences = count_of(file, request, &at);
	size = file->size - request->old_size + request->new_size;
	if (result.occurrences == 1) {
		tail = file->size - at - request->old_size;
		bytes = malloc(size + 1);
		if (!bytes || size > MOST) {
			free(bytes);
			return csn_answer_fail(answer, CSN_EFBIG, "64 KiB is the most");
		}
		memcpy(bytes, file->bytes, at);
		memcpy(bytes + at, request->new_text, request->new_size);
		memcpy(bytes + at + request->new_size, file->bytes + file->size - tail, tail);
		free(file->bytes);
		file->bytes = bytes;
		file->size = size;
	}
	result.content = (csn_bytes){ file->bytes, file->size };
	return csn_answer_edit(answer, &result);
}

/* Is `path` beneath `folder` ("" is above all)? What follows it. */
static const char *beneath(const char *path, const char *folder)
{
	size_t n = strlen(folder);

	if (n == 0)
		return *path ? path : NULL;
	return strncmp(path, folder, n) == 0 && path[n] == '/' ? path + n + 1 : NULL;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const csn_entry *)a)->name, ((const csn_entry *)b)->name);
}

static int dict_list(void *data, const csn_path_request *request, csn_answer *answer)
{
	struct store *store = data;
	char *folder = place(store, request->path, answer);
	const struct file *it = folder ? find(store, folder) : NULL;
	csn_entry entries[FILES];
	csn_list_result result = { .entries = entries };

	if (folder && *folder && !it)
		csn_answer_fail(answer, CSN_ENOENT, "there is nothing of that name");
	else if (it && it->bytes)
		csn_answer_fail(answer, CSN_ENOTDIR, "it is a file");
	for (size_t i = 0; folder && i < store->count; i++) {
		const struct file *file = &store->files[i];
		const char *name = beneath(file->path, folder);

		if (name && !strchr(name, '/'))
			entries[result.count++] =
				(csn_entry){ name, file->bytes ? "file" : "directory", file->size };
	}
	free(folder);
	qsort(entries, result.count, sizeof entries[0], by_name);
	csn_answer_list(answer, &result); /* not if it has an answer */
	return 0;
}

static int dict_remove(void *data, const csn_path_request *request, csn_answer *answer)
{
	struct store *store = data;
	char *path = place(store, request->path, answer);
	size_t inside = 0;
	int r = 0;

	if (!path)
		return 0;
	for (size_t i = 0; i < store->count; i++)
		inside += beneath(store->files[i].path, path) != NULL;
	if (*path && !find(store, path))
		r = csn_answer_fail(answer, CSN_ENOENT, "there is nothing of that name");
	else if (!*path || (inside > 0 && !request->recursive))
		r = csn_answer_fail(answer, CSN_ENOTEMPTY, "it is not empty");
	for (size_t i = 0; r == 0 && i < store->count;) {
		struct file *file = &store->files[i];

		if (strcmp(file->path, path) != 0 && !beneath(file->path, path)) {
			i++;
			continue;
		}
		free(file->path);
		free(file->bytes);
		*file = store->files[--store->count];
		store->files[store->count] = (struct file){ 0 };
	}
	free(path);
	return r;
}

static int show(csn_sandbox *sandbox, const char *path, csn_error *err)
{
	csn_read_request request = { .path = path };
	csn_bytes *bytes;

	if (csn_read(sandbox, &request, &bytes, err) < 0)
		return printf("%s: %s\n", path, csn_code_name(err->code));
	printf("%s: %s\n", path, bytes->data);
	csn_free(bytes);
	return 0;
}

int main(int argc, char **argv)
{
	static const char *const enforces[] = { "fs-write", "syscalls", "privilege",
						"identity", "net-none", NULL };
	static struct store store;
	csn_wall wall = { .enforces = enforces,
			  .data = &store,
			  .read = dict_read,
			  .write = dict_write,
			  .edit = dict_edit,
			  .list = dict_list,
			  .remove = dict_remove };
	csn_options options = { .program = argc > 1 ? argv[1] : NULL,
				.no_record = true,
				.wall = &wall };
	csn_write_request draft = { .path = "notes/a.txt", .bytes = "one two", .size = 7 };
	csn_edit_request edit = { .path = "notes/a.txt", .old_text = "two", .new_text = "three" };
	csn_edit_result *edited;
	csn_error err;
	csn_sandbox *sandbox = csn_open(&options, &err);

	if (!sandbox) {
		fprintf(stderr, "%s: %s\n", csn_code_name(err.code), err.text);
		return 1;
	}
	if (csn_write(sandbox, &draft, &err) < 0 || csn_edit(sandbox, &edit, &edited, &err) < 0)
		fprintf(stderr, "%s\n", err.text);
	else
		csn_free(edited);
	show(sandbox, "notes/a.txt", &err);
	show(sandbox, "notes/b.txt", &err);
	csn_close(sandbox);
	for (size_t i = 0; i < store.count; i++) {
		free(store.files[i].path);
		free(store.files[i].bytes);
	}
	return 0;
}
