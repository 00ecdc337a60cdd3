/*
 * files - the verbs that touch files, and what they share
 *
 * Behind the process wall the mounts say what may be seen and written, behind Landlock its rules;
 * a verb adds nothing to the agent's rights and checks none. Each failure is an errno by its name
 * and one sentence with the path.
 */
#pragma once

#include "agent/job.h"
#include "agent/resolve.h"

/* Handlers for the table of verbs. */
void read_start(struct agent *agent, const struct call *call);
void write_start(struct agent *agent, const struct call *call);
void edit_start(struct agent *agent, const struct call *call);
void stat_start(struct agent *agent, const struct call *call);
void list_start(struct agent *agent, const struct call *call);
void remove_start(struct agent *agent, const struct call *call);
void move_start(struct agent *agent, const struct call *call);

/* A checked text or path of the call, "" if absent; borrowed from the call. */
const char *call_text(const struct call *call, const char *key);
int64_t call_number(const struct call *call, const char *key, int64_t otherwise);
bool call_flag(const struct call *call, const char *key);

/* {reply, Ref, …}: the pairs of the map follow, then agent_send(). */
struct emit files_reply(struct agent *agent, int64_t ref, uint32_t pairs);
/* {reply, Ref, #{}} */
void files_done(struct agent *agent, int64_t ref);
/* {failed, Ref, Errno, Sentence} */
void files_fail(struct agent *agent, int64_t ref, const struct csn_error *err);

/* For jobs: the same, and the job is over. */
enum job_state files_over(struct agent *agent, const struct job *job, const struct csn_error *err);

/*
 * Opens a regular file to read it, links followed. 0, or -EISDIR, -EINVAL (fifo, socket, device;
 * none of them can hold us: O_NONBLOCK, and fstat() of what was opened), or another -errno with a
 * sentence.
 */
int files_open(const struct roots *roots, const char *path, int *ret_fd, struct stat *ret_st,
	       struct csn_error *err);

/* "file", "directory", "symlink", "fifo", "socket", "device". */
const char *files_type(mode_t mode);
