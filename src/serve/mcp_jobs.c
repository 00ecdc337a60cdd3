/* See mcp_jobs.h. A job's own work is mcp_tool_work(); it runs without the lock. */
#include "serve/mcp_jobs.h"

#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "serve/mcp.h"
#include "serve/mcp_tool.h"

enum { STACK_BYTES = 512 << 10 };

void mcp_jobs_init(struct mcp_jobs *jobs, struct mcp *mcp)
{
	pthread_condattr_t monotonic;

	*jobs = (struct mcp_jobs){ .mcp = mcp };
	pthread_mutex_init(&jobs->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&jobs->changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
}

void mcp_job_free(struct mcp_job *job)
{
	json_decref(job->id);
	json_decref(job->request);
	free(job);
}

/* ---- workers -------------------------------------------------------------------------------- */

/* Under the lock. */
static struct mcp_job *next_waiting(const struct mcp_jobs *jobs)
{
	struct mcp_job *job = jobs->first;

	while (job && job->is_running)
		job = job->next;
	return job;
}

static void take_out(struct mcp_jobs *jobs, const struct mcp_job *job)
{
	struct mcp_job **at = &jobs->first;

	while (*at != job)
		at = &(*at)->next;
	*at = job->next;
}

/* Under the lock, which is let go meanwhile. */
static void work(struct mcp_jobs *jobs, struct mcp_job *job)
{
	job->is_running = true;
	jobs->waiting--;
	pthread_mutex_unlock(&jobs->lock);
	mcp_tool_work(jobs->mcp, job);
	pthread_mutex_lock(&jobs->lock);
	take_out(jobs, job);
	mcp_job_free(job);
	if (!jobs->first)
		pthread_cond_broadcast(&jobs->changed);
}

static void *worker(void *data)
{
	struct mcp_jobs *jobs = data;

	pthread_mutex_lock(&jobs->lock);
	for (;;) {
		struct mcp_job *job = next_waiting(jobs);

		if (job) {
			work(jobs, job);
			continue;
		}
		if (jobs->is_over)
			break;
		jobs->idle++;
		pthread_cond_wait(&jobs->changed, &jobs->lock);
		jobs->idle--;
	}
	pthread_mutex_unlock(&jobs->lock);
	return NULL;
}

/* Under the lock. Without one more thread, those there are have to do. */
static void start_worker(struct mcp_jobs *jobs)
{
	pthread_attr_t attributes;

	if (jobs->workers == MCP_WORKERS)
		return;
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	if (pthread_create(&jobs->threads[jobs->workers], &attributes, worker, jobs) == 0)
		jobs->workers++;
	pthread_attr_destroy(&attributes);
}

/* ---- jobs ----------------------------------------------------------------------------------- */

/* Under the lock. */
static struct mcp_job *find(const struct mcp_jobs *jobs, const json_t *id)
{
	struct mcp_job *job = jobs->first;

	while (job && (job->is_answered || !json_equal(job->id, id)))
		job = job->next;
	return job;
}

static void append(struct mcp_jobs *jobs, struct mcp_job *job)
{
	struct mcp_job **at = &jobs->first;

	while (*at)
		at = &(*at)->next;
	*at = job;
	jobs->waiting++;
}

enum mcp_jobs_said mcp_jobs_add(struct mcp_jobs *jobs, struct mcp_job *job)
{
	enum mcp_jobs_said said = MCP_JOB_TAKEN;

	pthread_mutex_lock(&jobs->lock);
	if (find(jobs, job->id))
		said = MCP_JOB_SAME_ID;
	else if (jobs->waiting == MCP_WAITING || jobs->is_over)
		said = MCP_JOB_BUSY;
	if (said == MCP_JOB_TAKEN && jobs->waiting >= jobs->idle)
		start_worker(jobs);
	if (said == MCP_JOB_TAKEN && jobs->workers == 0)
		said = MCP_JOB_BUSY;
	if (said == MCP_JOB_TAKEN) {
		append(jobs, job);
		pthread_cond_signal(&jobs->changed);
	}
	pthread_mutex_unlock(&jobs->lock);
	return said;
}

/* One that waits is gone at once; where `*at` points to is then the next. */
static bool cancel(struct mcp_jobs *jobs, struct mcp_job **at)
{
	struct mcp_job *job = *at;

	if (!job->is_running) {
		*at = job->next;
		jobs->waiting--;
		mcp_job_free(job);
		return true;
	}
	job->is_cancelled = true;
	if (job->sandbox)
		csn_cancel(job->sandbox, job->call_id, NULL);
	return false;
}

void mcp_jobs_cancel(struct mcp_jobs *jobs, const json_t *id)
{
	struct mcp_job **at = &jobs->first;

	pthread_mutex_lock(&jobs->lock);
	while (*at) {
		bool is_meant = !(*at)->is_answered && (!id || json_equal((*at)->id, id));

		if (!is_meant || !cancel(jobs, at))
			at = &(*at)->next;
	}
	if (!jobs->first)
		pthread_cond_broadcast(&jobs->changed);
	pthread_mutex_unlock(&jobs->lock);
}

uint64_t mcp_job_call(struct mcp_jobs *jobs, struct mcp_job *job, csn_sandbox *sandbox)
{
	uint64_t id = 0;

	pthread_mutex_lock(&jobs->lock);
	job->sandbox = sandbox;
	if (sandbox)
		id = job->call_id = csn_call_id(sandbox);
	if (sandbox && job->is_cancelled)
		csn_cancel(sandbox, id, NULL); /* remembered until it begins */
	pthread_mutex_unlock(&jobs->lock);
	return id;
}

bool mcp_job_is_cancelled(struct mcp_jobs *jobs, const struct mcp_job *job)
{
	bool is_cancelled;

	pthread_mutex_lock(&jobs->lock);
	is_cancelled = job->is_cancelled;
	pthread_mutex_unlock(&jobs->lock);
	return is_cancelled;
}

bool mcp_job_may_answer(struct mcp_jobs *jobs, struct mcp_job *job)
{
	pthread_mutex_lock(&jobs->lock);
	job->is_answered = !job->is_cancelled;
	pthread_mutex_unlock(&jobs->lock);
	return job->is_answered;
}

unsigned mcp_jobs_count(struct mcp_jobs *jobs)
{
	unsigned count = 0;

	pthread_mutex_lock(&jobs->lock);
	for (const struct mcp_job *job = jobs->first; job; job = job->next)
		count++;
	pthread_mutex_unlock(&jobs->lock);
	return count;
}

bool mcp_jobs_end(struct mcp_jobs *jobs, uint64_t until_ms)
{
	struct timespec until = { .tv_sec = (time_t)(until_ms / 1000),
				  .tv_nsec = (long)(until_ms % 1000) * 1000000 };
	bool is_empty;
	int r = 0;

	pthread_mutex_lock(&jobs->lock);
	jobs->is_over = true;
	pthread_cond_broadcast(&jobs->changed);
	while (jobs->first && r == 0)
		r = pthread_cond_timedwait(&jobs->changed, &jobs->lock, &until);
	is_empty = !jobs->first;
	pthread_mutex_unlock(&jobs->lock);
	for (unsigned i = 0; is_empty && i < jobs->workers; i++)
		pthread_join(jobs->threads[i], NULL);
	return is_empty;
}
