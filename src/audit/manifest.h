/*
 * manifest - what a finished run consists of
 *
 *   {"schema":"caisson.manifest/1","run_id","head":{"hash","seq"},"is_incomplete",
 *    "files":[{"path","sha256","size"},…]}
 *
 * Paths are relative to the run's folder, or absolute for files kept elsewhere. It lists the
 * regular files of the folder and of logs/, and registered ones; not manifest.json itself, the
 * marker `keep`, or names that begin with a dot.
 *
 * What a job's worker wrote to its logs or registered may be of any size. All of it together is
 * hashed for so many bytes and so long, and no longer once a signal waits that would end us; a file
 * beyond that is listed by its size, without "sha256".
 */
#pragma once

#include "audit/audit.h"
#include "audit/sha.h"

enum {
	MANIFEST_FILES_MAX = 10000,
	MANIFEST_BYTES_MAX = 8 << 20,
	HEADS_LINE_MAX = 1024,
};

/* The largest file that is hashed, 16 GiB: a growing one must end. */
#define MANIFEST_HASH_MAX (UINT64_C(16) << 30)

/* What a job's registered files may take, all together. */
enum { MANIFEST_KEPT_MS = 10000 };
#define MANIFEST_KEPT_MAX (UINT64_C(1) << 30)

/*
 * Writes manifest.json of a record whose chain is flushed. `ret_hash` (SHA_HEX bytes) is the hash
 * of the manifest. 0 or a negative errno with a sentence.
 */
int manifest_write(struct record *record, char *ret_hash, struct csn_error *err);

/*
 * Appends the run's line to heads.jsonl: {"hash","manifest","run_id","seq","time"}. One write
 * under flock; a write that comes out short is taken back.
 */
int heads_append(struct record *record, const char *manifest_hash, struct csn_error *err);
