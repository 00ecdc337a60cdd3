/*
 * caisson pool: prepared sandboxes that wait for who needs one
 *
 *   pool start ── fork ──▶ the pool: counts, refills
 *                             ├── prepared: a monitor and its wall, before the Landlock step
 *                             └── prepared: …            each waits on the pool's socket itself
 *
 * Whoever asks (base/pool.h) is taken by one of them, which becomes his monitor: it decides about
 * his flags, folder and environment as `caisson up` would, and serves him only if its wall is what
 * that plan asks for. It is used once, wanted or not; the pool makes another one meanwhile. With
 * the pool's end, however it ends, those that wait end too; those that were taken go on.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/place.h"
#include "base/str.h"
#include "cli/pool.h"

enum {
	SIZE_MAX_POOL = 16,
	SIZE = 2,
	FAILURES_MAX = 5,
	DRAIN_MS = 10000,
	IDLE_MS = 30 * 60000,
	REFILL_MS = 50,
	WHY = 80
};

struct slot {
	pid_t pid; /* 0: free */
	int fd;    /* its notes */
	bool is_ready;
};

struct pool {
	struct pool_child child; /* what each is made with */
	const char *name;
	int place;
	int lock;
	int signal_fd;
	int life; /* write end: closed, those that wait end */
	int told; /* whoever started us waits here for a struct csn_error, -1 */
	size_t size;
	struct slot slots[SIZE_MAX_POOL];
	unsigned taken, missed, failures; /* the last in a row */
	char why[WHY];                    /* the last one was missed: a line, safe to print */
	uint64_t used_ms, idle_ms;
	uint64_t refill_ms; /* when, unless somebody waits: who took one needs the processors */
	bool is_over;
};

/* ---- what `status` reads ----------------------------------------------------------------- */

static void write_status(const struct pool *pool)
{
	char text[256];
	unsigned ready = 0;
	int n;

	for (size_t i = 0; i < pool->size; i++)
		ready += pool->slots[i].is_ready;
	n = snprintf(text, sizeof text, "%zu\n%u\n%u\n%u\n%s\n", pool->size, ready, pool->taken,
		     pool->missed, pool->why[0] ? pool->why : "-");
	if (n > 0 && pwrite(pool->lock, text, (size_t)n, 0) == n)
		n = ftruncate(pool->lock, n);
}

static void tell_starter(struct pool *pool, const struct csn_error *err)
{
	if (pool->told >= 0 && write(pool->told, err, sizeof *err) < 0)
		pool->is_over = true; /* nobody waits for it */
	pool->told = fd_close(pool->told);
}

/* ---- those that wait --------------------------------------------------------------------- */

/* What the pool itself holds; a monitor that was taken must not hold it after its end. */
static void forget_pool(struct pool *pool)
{
	sigset_t none;

	for (size_t i = 0; i < pool->size; i++)
		fd_close(pool->slots[i].fd);
	fd_close(pool->life);
	fd_close(pool->lock);
	fd_close(pool->told);
	fd_close(pool->signal_fd);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

static void fill_slot(struct pool *pool, struct slot *slot)
{
	int pair[2];
	pid_t pid;

	if (pipe2(pair, O_CLOEXEC) < 0)
		return;
	pid = fork();
	if (pid == 0) {
		close(pair[0]);
		forget_pool(pool);
		pool->child.notes = pair[1];
		pool_child_be(&pool->child);
	}
	close(pair[1]);
	if (pid < 0) {
		close(pair[0]);
		pool->is_over |= ++pool->failures >= FAILURES_MAX;
		return;
	}
	*slot = (struct slot){ pid, pair[0], false };
}

/* Slots that are ready, or that will be. */
static size_t count_slots(const struct pool *pool, bool is_ready)
{
	size_t count = 0;

	for (size_t i = 0; i < pool->size; i++)
		count += pool->slots[i].pid && pool->slots[i].is_ready == is_ready;
	return count;
}

/* Nobody can answer: the pool itself sees then that somebody asks. */
static bool is_empty(const struct pool *pool)
{
	return count_slots(pool, true) + count_slots(pool, false) == 0;
}

static bool is_asked(const struct pool *pool)
{
	struct pollfd asked = { .fd = pool->child.listener, .events = POLLIN };

	return count_slots(pool, true) == 0 && poll(&asked, 1, 0) > 0;
}

/* One after the other, in a quiet moment: what is prepared takes the processor from somebody's
 * commands. All at once only while somebody waits for them. */
static void fill(struct pool *pool)
{
	bool is_urgent = is_asked(pool);

	if (!is_urgent && (clock_now_ms() < pool->refill_ms || count_slots(pool, false) > 0))
		return;
	for (size_t i = 0; i < pool->size && !pool->is_over; i++) {
		if (pool->slots[i].pid)
			continue;
		fill_slot(pool, &pool->slots[i]);
		if (!is_urgent)
			break;
	}
}

static void free_slot(struct slot *slot)
{
	fd_close(slot->fd);
	*slot = (struct slot){ .fd = -1 };
}

static void on_failure(struct pool *pool, const struct csn_error *err)
{
	struct csn_error ended = { 0 };

	csn_fail(&ended, -EIO, "pool", "a sandbox that was being prepared ended");
	pool->is_over |= pool->told >= 0 || ++pool->failures >= FAILURES_MAX;
	tell_starter(pool, err ? err : &ended);
}

/* Whoever asks names folders, with bytes that would move a cursor or end the line of `status`. Cut,
 * it is escaped again: the cut may be inside of a character. */
static void note_why(struct pool *pool, const char *text)
{
	_cleanup_buf_ struct buf all, start;
	size_t size;

	buf_init(&all, 4 * sizeof((struct csn_error *)NULL)->text + 1);
	buf_init(&start, WHY);
	if (escape_add(&all, text, strlen(text), false) < 0)
		return;
	size = buf_size(&all) < WHY - 20 ? buf_size(&all) : WHY - 20;
	if (escape_add(&start, buf_at(&all), size, false) == 0)
		snprintf(pool->why, sizeof pool->why, "%.*s", (int)buf_size(&start),
			 (const char *)buf_at(&start));
}

static void on_note(struct pool *pool, struct slot *slot)
{
	struct pool_note note;
	ssize_t n = read(slot->fd, &note, sizeof note);

	if (n != sizeof note) { /* its end: only one that was being prepared is missed */
		if (!slot->is_ready)
			on_failure(pool, NULL);
		free_slot(slot);
		return;
	}
	note.err.text[sizeof note.err.text - 1] = 0;
	if (note.what == POOL_NOTE_READY) {
		slot->is_ready = true;
		pool->failures = 0;
		tell_starter(pool, &(struct csn_error){ 0 });
		return;
	}
	pool->used_ms = clock_now_ms();
	pool->refill_ms = pool->used_ms + REFILL_MS;
	pool->is_over |= note.what == POOL_NOTE_STOP;
	pool->taken += note.what == POOL_NOTE_TAKEN;
	pool->missed += note.what == POOL_NOTE_MISSED;
	if (note.what == POOL_NOTE_MISSED)
		note_why(pool, note.err.text);
	if (note.what == POOL_NOTE_FAILED)
		on_failure(pool, &note.err);
	if (note.what != POOL_NOTE_STOP)
		free_slot(slot);
}

static void on_signals(struct pool *pool)
{
	struct signalfd_siginfo info;

	while (read(pool->signal_fd, &info, sizeof info) == sizeof info)
		pool->is_over |= info.ssi_signo != SIGCHLD;
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
}

/* ---- the pool ---------------------------------------------------------------------------- */

static bool turn(struct pool *pool, int wait_ms)
{
	struct pollfd fds[SIZE_MAX_POOL + 2];
	size_t count = pool->size;

	for (size_t i = 0; i < count; i++)
		fds[i] = (struct pollfd){ pool->slots[i].fd, POLLIN, 0 };
	fds[count] = (struct pollfd){ pool->signal_fd, POLLIN, 0 };
	fds[count + 1] =
		(struct pollfd){ is_empty(pool) && !pool->is_over ? pool->child.listener : -1,
				 POLLIN, 0 };
	if (poll(fds, count + 2, wait_ms) <= 0)
		return false;
	for (size_t i = 0; i < count; i++)
		if (fds[i].revents)
			on_note(pool, &pool->slots[i]);
	if (fds[count].revents)
		on_signals(pool);
	return true;
}

static void drain(struct pool *pool)
{
	uint64_t end_ms = clock_now_ms() + DRAIN_MS;
	bool is_left = true;

	pool->is_over = true;
	pool->life = fd_close(pool->life);
	while (is_left && clock_now_ms() < end_ms) {
		is_left = false;
		for (size_t i = 0; i < pool->size; i++)
			is_left |= pool->slots[i].fd >= 0;
		if (is_left)
			turn(pool, 100);
	}
}

static bool is_idle(const struct pool *pool, uint64_t now_ms)
{
	return now_ms - pool->used_ms >= pool->idle_ms;
}

/* Until the next thing to do by the clock. */
static int next_ms(const struct pool *pool)
{
	uint64_t now_ms = clock_now_ms(), left_ms = 60000;

	if (pool->idle_ms - (now_ms - pool->used_ms) < left_ms)
		left_ms = is_idle(pool, now_ms) ? 0 : pool->idle_ms - (now_ms - pool->used_ms);
	if (pool->refill_ms > now_ms && pool->refill_ms - now_ms < left_ms)
		left_ms = pool->refill_ms - now_ms;
	return (int)left_ms;
}

static void serve(struct pool *pool)
{
	pool->used_ms = clock_now_ms();
	while (!pool->is_over) {
		fill(pool);
		write_status(pool);
		turn(pool, next_ms(pool));
		pool->is_over |= is_idle(pool, clock_now_ms());
	}
	drain(pool);
}

static int take_signals(struct pool *pool)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	pool->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return pool->signal_fd < 0 ? -errno : 0;
}

static _Noreturn void be_pool(struct pool *pool)
{
	int life[2];
	int r = up_leave_caller();

	/* As who we are now: the kernel tells who connects the process that listened last. */
	if (r >= 0 && (listen(pool->child.listener, SOMAXCONN) < 0 || pipe2(life, O_CLOEXEC) < 0))
		r = -errno;
	if (r >= 0)
		r = take_signals(pool);
	if (r >= 0) {
		pool->child.life = life[0];
		pool->life = life[1];
		serve(pool);
	}
	place_leave(pool->place, pool->name);
	_exit(r < 0 ? 1 : 0);
}

/* ---- commands ---------------------------------------------------------------------------- */

static const char *name_of(const struct cli *cli)
{
	return cli->arg_count ? cli->args[0] : "pool";
}

static int start_pool(struct pool *pool, struct csn_error *err)
{
	int pair[2], r;
	pid_t pid;

	pool->place = pool_place(err);
	if (pool->place < 0)
		return pool->place;
	r = place_listen(pool->place, pool->name, &pool->lock, &pool->child.listener, err);
	if (r == -EEXIST)
		return csn_fail(err, r, "pool",
				"there is a pool named %s; end it by: caisson pool stop %s",
				pool->name, pool->name);
	if (r < 0)
		return r;
	if (pipe2(pair, O_CLOEXEC) < 0)
		return csn_fail(err, -errno, "pool", "cannot make a pipe: %m");
	pool->told = pair[1];
	pid = fork();
	if (pid == 0) {
		close(pair[0]);
		be_pool(pool);
	}
	close(pair[1]);
	r = pid < 0 ? csn_fail(err, -errno, "pool", "cannot start it: %m") : up_await(pair[0], err);
	close(pair[0]);
	while (r < 0 && pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return r;
}

static int take_size(const struct cli *cli, size_t *ret_size, struct csn_error *err)
{
	uint64_t size = SIZE;

	if (cli->options.size &&
	    (str_parse_u64(cli->options.size, SIZE_MAX_POOL, &size) < 0 || size == 0))
		return csn_fail(err, -EINVAL, "usage", "--size takes 1 to %d", SIZE_MAX_POOL);
	*ret_size = (size_t)size;
	return 0;
}

static int open_pool(struct cli *cli, struct pool *pool, struct csn_error *err)
{
	struct cli_policy policy;
	struct plan plan;
	int r = cli_load_policy(&cli->options, &policy, err);

	if (r < 0)
		return r;
	cli->options.stays = true;
	r = cli_decide(&cli->options, &policy, NULL, &plan, err);
	if (r >= 0) {
		pool->idle_ms = plan.limits.idle_ms ? plan.limits.idle_ms : IDLE_MS;
		pool->child.wish = (struct up_wish){ &plan, &policy, &cli->options };
		r = start_pool(pool, err);
		plan_done(&plan);
	}
	cli_policy_done(&policy);
	return r;
}

/* "; there are a, b" of the pools that live, as many as fit. */
static void name_pools(int place, char *ret_text, size_t size)
{
	_cleanup_fd_ int fd = openat(place, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	char name[PLACE_NAME_MAX];
	size_t used = 0;

	*ret_text = 0;
	if (!dir)
		return;
	fd = -1;
	while ((entry = readdir(dir)) && used + sizeof name + sizeof "; there are " < size) {
		size_t length = strlen(entry->d_name) - strlen(".lock");

		if (length >= sizeof name || !str_is(entry->d_name + length, ".lock"))
			continue;
		snprintf(name, sizeof name, "%.*s", (int)length, entry->d_name);
		if (place_is_name(name) && place_is_alive(place, name))
			used += (size_t)snprintf(ret_text + used, size - used, "%s%s",
						 used ? ", " : "; there are ", name);
	}
	closedir(dir);
}

static int no_pool(int place, const char *name, struct csn_error *err)
{
	char others[256];

	name_pools(place, others, sizeof others);
	return csn_fail(err, -ENOENT, "pool", "there is no pool named %.64s%s", name,
			*others ? others : "; `caisson pool start` starts one");
}

int cli_pool_start(struct cli *cli)
{
	struct pool pool = { .child = { .listener = -1, .life = -1, .notes = -1 },
			     .name = name_of(cli),
			     .place = -1,
			     .lock = -1,
			     .signal_fd = -1,
			     .life = -1,
			     .told = -1 };
	struct csn_error err = { 0 };
	int r = take_size(cli, &pool.size, &err);

	for (size_t i = 0; i < SIZE_MAX_POOL; i++)
		pool.slots[i].fd = -1;
	if (r < 0)
		return cli_misuse(cli, &err);
	r = open_pool(cli, &pool, &err);
	fd_close(pool.lock);
	fd_close(pool.child.listener);
	fd_close(pool.place);
	if (r < 0)
		return cli_fail(cli, &err);
	puts(pool.name);
	return CLI_OK;
}

int cli_pool_stop(struct cli *cli)
{
	static const char *const no_words[] = { NULL };
	const char *name = name_of(cli);
	uint64_t end_ms = clock_now_ms() + DRAIN_MS;
	struct csn_error err = { 0 };
	_cleanup_fd_ int place = pool_place(&err);
	int fd = -1;
	char rest;

	if (place >= 0 && (!place_is_name(name) || !place_is_alive(place, name)))
		no_pool(place, name, &err);
	else if (place >= 0)
		pool_ask(name, POOL_STOP, no_words, &fd, &err);
	if (fd < 0)
		return cli_fail(cli, &err);
	while (read(fd, &rest, 1) > 0)
		;
	fd_close(fd);
	while (place_is_alive(place, name) && clock_now_ms() < end_ms)
		poll(NULL, 0, 2);
	return CLI_OK;
}

/* Size, ready, taken, missed and why, a line each, as the pool wrote them. */
static int read_status(const struct cli *cli, char *ret_text, size_t size, struct csn_error *err)
{
	_cleanup_fd_ int place = pool_place(err);
	_cleanup_fd_ int fd = -1;
	char file[PLACE_NAME_MAX + 8];
	ssize_t n = 0;

	if (place < 0)
		return place;
	if (!place_is_name(name_of(cli)) || !place_is_alive(place, name_of(cli)))
		return no_pool(place, name_of(cli), err);
	snprintf(file, sizeof file, "%.64s.lock", name_of(cli));
	fd = openat(place, file, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0)
		n = read(fd, ret_text, size - 1);
	ret_text[n > 0 ? n : 0] = 0;
	return 0;
}

/* The next line of *at, which is changed. */
static const char *next_line(char **at)
{
	char *line = *at, *end = strchr(line, '\n');

	if (end)
		*end = 0;
	*at = end ? end + 1 : line + strlen(line);
	return line;
}

int cli_pool_status(struct cli *cli)
{
	uint64_t numbers[4] = { 0 }; /* size, ready, taken, missed */
	struct csn_error err = { 0 };
	char text[256], *at = text;
	const char *why;

	if (read_status(cli, text, sizeof text, &err) < 0)
		return cli_fail(cli, &err);
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		if (str_parse_u64(next_line(&at), UINT32_MAX, &numbers[i]) < 0)
			numbers[i] = 0; /* it is just starting */
	why = next_line(&at);
	why = *why && !str_is(why, "-") ? why : NULL;
	if (cli->options.json)
		out_json(json_pack("{s:s, s:I, s:I, s:I, s:I, s:s?}", "name", name_of(cli), "size",
				   (json_int_t)numbers[0], "ready", (json_int_t)numbers[1], "taken",
				   (json_int_t)numbers[2], "missed", (json_int_t)numbers[3], "why",
				   why));
	else {
		printf("%s: %u of %u ready, %u taken, %u that did not fit%s", name_of(cli),
		       (unsigned)numbers[1], (unsigned)numbers[0], (unsigned)numbers[2],
		       (unsigned)numbers[3], why ? ": another " : "");
		out_text(stdout, why ? why : "");
		putchar('\n');
	}
	return CLI_OK;
}
