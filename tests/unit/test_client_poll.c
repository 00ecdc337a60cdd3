/* The library's descriptors and a real agent: input that comes when it comes while output goes on,
 * signals and sizes between turns, several threads of which only one sleeps. */
#include "client_agent.h"

#include <pthread.h>
#include <time.h>

static csn_sandbox *sandbox;
static csn_error err;

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* A call's output, and what a callback does when a text was seen in it. */
struct talk {
	int pipe[2]; /* of its input, or what wakes it */
	char seen[4096];
	size_t size;
	uint64_t id;
	int steps;
	double first; /* when the first output came */
};

static void talk_init(struct talk *talk)
{
	*talk = (struct talk){ .id = csn_call_id(sandbox) };
	CHECK(pipe2(talk->pipe, O_CLOEXEC) == 0);
}

static int see(struct talk *talk, const void *bytes, size_t size)
{
	if (!talk->size)
		talk->first = now();
	CHECK(talk->size + size < sizeof talk->seen);
	memcpy(talk->seen + talk->size, bytes, size);
	talk->size += size;
	return 0;
}

static void run(const csn_exec_request *request, int status)
{
	csn_exec_result *result = NULL;
	int r = csn_exec(sandbox, request, &result, &err);

	if (r < 0)
		printf("# %s: %s\n", csn_code_name(r), err.text);
	CHECK(r == 0 && result);
	printf("# %s %d %d\n", result->reason_name, result->exit_code, result->signal);
	CHECK(result->exit_code == status);
	csn_free(result);
}

/* ---- a descriptor --------------------------------------------------------------------------- */

/* Says the next line only when the one before came back: whoever waits for input first hangs. */
static int answer(void *data, enum csn_stream stream, const void *bytes, size_t size)
{
	struct talk *talk = data;
	int r = see(talk, bytes, size);

	(void)stream;
	if (talk->steps++ < 3)
		CHECK(write(talk->pipe[1], "next\n", 5) == 5);
	else if (talk->pipe[1] >= 0) {
		close(talk->pipe[1]);
		talk->pipe[1] = -1;
	}
	return r;
}

static void echoed(void)
{
	struct talk talk;
	csn_exec_request request = { .command = "echo first; exec cat",
				     .has_input_fd = true,
				     .on_output = answer,
				     .data = &talk };

	sandbox = open_agent();
	talk_init(&talk);
	request.input_fd = talk.pipe[0];
	run(&request, 0);
	CHECK_STR(talk.seen, "first\nnext\nnext\nnext\n");
	close(talk.pipe[0]);
	csn_close(sandbox);
}

/* Endless input that nobody reads: neither the output nor the end waits, and memory is bounded by
 * the windows. */
static void never_read(void)
{
	csn_exec_request request = { .command = "sleep 0.3; echo over", .has_input_fd = true };
	csn_exec_result *result = NULL;
	double start = now();

	sandbox = open_agent();
	request.input_fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	CHECK(csn_exec(sandbox, &request, &result, &err) == 0);
	CHECK_STR(result->output.data, "over\n");
	CHECK(now() - start < 5);
	csn_free(result);
	close(request.input_fd);
	csn_close(sandbox);
}

static void no_descriptor(void)
{
	csn_exec_request request = { .command = "true", .has_input_fd = true, .input_fd = -1 };
	csn_exec_result *result = NULL;

	sandbox = open_agent();
	CHECK(csn_exec(sandbox, &request, &result, &err) == -CSN_INVALID && !result);
	request.input_fd = 1000; /* nothing is open there: the call says so and ends */
	request.command = "sleep 20";
	CHECK(csn_exec(sandbox, &request, &result, &err) == 0);
	CHECK(result->reason == CSN_REASON_CANCELLED);
	csn_free(result);
	csn_close(sandbox);
}

/* ---- a callback that has nothing yet -------------------------------------------------------- */

struct feeder {
	pthread_mutex_t lock;
	char bytes[64];
	size_t size;
	bool is_over;
	uint64_t id;
	unsigned asked;
};

static ptrdiff_t take(void *data, void *ret_bytes, size_t size)
{
	struct feeder *feeder = data;
	bool is_over;
	size_t n;

	pthread_mutex_lock(&feeder->lock);
	n = feeder->size;
	feeder->asked++;
	CHECK(n <= size);
	memcpy(ret_bytes, feeder->bytes, n);
	feeder->size = 0;
	is_over = feeder->is_over;
	pthread_mutex_unlock(&feeder->lock);
	return n > 0 ? (ptrdiff_t)n : is_over ? 0 : CSN_INPUT_LATER;
}

static void *feed(void *data)
{
	struct feeder *feeder = data;

	for (int i = 0; i < 5; i++) {
		usleep(30000);
		pthread_mutex_lock(&feeder->lock);
		memcpy(feeder->bytes, "word\n", 5);
		feeder->size = 5;
		feeder->is_over = i == 4;
		pthread_mutex_unlock(&feeder->lock);
		CHECK(csn_input_ready(sandbox, feeder->id, NULL) == 0);
	}
	return NULL;
}

static void later(void)
{
	struct feeder feeder = { .lock = PTHREAD_MUTEX_INITIALIZER };
	csn_exec_request request = { .command = "wc -w", .on_input = take, .data = &feeder };
	csn_exec_result *result = NULL;
	pthread_t thread;

	sandbox = open_agent();
	feeder.id = request.call.id = csn_call_id(sandbox);
	CHECK(csn_input_ready(sandbox, feeder.id, NULL) == 0); /* too early: nothing happens */
	CHECK(pthread_create(&thread, NULL, feed, &feeder) == 0);
	CHECK(csn_exec(sandbox, &request, &result, &err) == 0);
	pthread_join(thread, NULL);
	CHECK_STR(result->output.data, "5\n");
	printf("# asked %u times\n", feeder.asked);
	CHECK(feeder.asked < 20); /* it was not asked over and over */
	csn_free(result);
	csn_close(sandbox);
}

/* ---- between turns -------------------------------------------------------------------------- */

static int see_only(void *data, enum csn_stream stream, const void *bytes, size_t size)
{
	struct talk *talk = data;

	(void)stream;
	if (!talk->size) /* something to be told of */
		CHECK(write(talk->pipe[1], "x", 1) == 1);
	return see(data, bytes, size);
}

static int resize(void *data)
{
	struct talk *talk = data;
	char byte;

	CHECK(read(talk->pipe[0], &byte, 1) == 1);
	talk->steps++;
	return csn_resize(sandbox, talk->id, 12, 34, NULL);
}

static void resized(void)
{
	struct talk talk;
	csn_exec_request request = {
		.command = "trap 'stty size; exit 3' WINCH; echo up; while :; do sleep 0.02; done",
		.has_tty = true,
		.on_output = see_only,
		.on_ready = resize,
		.data = &talk
	};

	sandbox = open_agent();
	talk_init(&talk);
	request.call.id = talk.id;
	request.ready_fd = talk.pipe[0];
	run(&request, 3);
	CHECK_STR(talk.seen, "up\r\n12 34\r\n");
	CHECK(talk.steps == 1);
	csn_close(sandbox);
}

static int interrupt(void *data)
{
	struct talk *talk = data;
	char byte;

	CHECK(read(talk->pipe[0], &byte, 1) == 1);
	return csn_signal(sandbox, talk->id, SIGINT, NULL);
}

/* Also while its input's window is shut. */
static void interrupted(void)
{
	struct talk talk;
	csn_exec_request request = {
		.command = "trap 'exit 7' INT; echo up; while :; do sleep 0.02; done",
		.has_input_fd = true,
		.on_output = see_only,
		.on_ready = interrupt,
		.data = &talk
	};

	sandbox = open_agent();
	talk_init(&talk);
	request.call.id = talk.id;
	request.ready_fd = talk.pipe[0];
	request.input_fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	run(&request, 7);
	close(request.input_fd);
	csn_close(sandbox);
}

static int refuse(void *data)
{
	(*(int *)data)++;
	return -1;
}

static void refused(void)
{
	int calls = 0;
	csn_exec_request request = { .command = "sleep 20", .on_ready = refuse, .data = &calls };
	csn_exec_result *result = NULL;

	sandbox = open_agent();
	request.ready_fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	CHECK(csn_exec(sandbox, &request, &result, &err) == 0);
	CHECK(result->reason == CSN_REASON_CANCELLED && calls == 1);
	csn_free(result);
	close(request.ready_fd);
	csn_close(sandbox);
}

/* ---- threads -------------------------------------------------------------------------------- */

static void *sleep_there(void *data)
{
	csn_exec_request request = { .command = data };

	run(&request, 0);
	return NULL;
}

static void *converse(void *data)
{
	struct talk *talk = data;
	csn_exec_request request = { .command = "exec cat", /* which says nothing by itself */
				     .has_input_fd = true,
				     .on_output = answer,
				     .input_fd = talk->pipe[0],
				     .data = data };

	CHECK(write(talk->pipe[1], "first\n", 6) == 6);
	run(&request, 0);
	CHECK_STR(talk->seen, "first\nnext\nnext\nnext\n");
	close(talk->pipe[0]);
	return NULL;
}

/* The one that reads for all sleeps on the descriptors of others, whoever it is. */
static void many(void)
{
	enum { TALKS = 8 };
	struct talk talks[TALKS];
	pthread_t threads[TALKS + 1];
	double start;

	sandbox = open_agent();
	start = now();
	CHECK(pthread_create(&threads[TALKS], NULL, sleep_there, "sleep 1") == 0);
	usleep(100000); /* that one reads for all */
	for (int i = 0; i < TALKS; i++) {
		talk_init(&talks[i]);
		CHECK(pthread_create(&threads[i], NULL, converse, &talks[i]) == 0);
	}
	for (int i = 0; i < TALKS; i++)
		pthread_join(threads[i], NULL);
	printf("# %d talks in %.3f s\n", TALKS, now() - start);
	CHECK(now() - start < 0.9);
	pthread_join(threads[TALKS], NULL);
	csn_close(sandbox);
}

static const struct tap_test tests[] = {
	{ "input that answers output", echoed },
	{ "input that nobody reads", never_read },
	{ "a descriptor that is none", no_descriptor },
	{ "a callback that has nothing yet", later },
	{ "resized between turns", resized },
	{ "a signal while input is stuck", interrupted },
	{ "a callback that wants no more", refused },
	{ "several threads, one of which sleeps", many },
};

TAP_MAIN(tests)
