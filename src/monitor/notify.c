/*
 * One command's listener: take a notification, find its rule and its handler, answer.
 *
 * Floods: each answer costs tokens of a bucket, a fact twenty times as much as a permitted call.
 * When it is empty the listener is not polled and a timer brings it back, so a program that
 * floods waits in its own calls and burns no processor outside the sandbox. The queue is the
 * kernel's: at most one call per thread of the command.
 */
#include "monitor/notify.h"

#include <errno.h>
#include <sys/stat.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "monitor/notify_private.h"
#include "os/landlock.h"
#include "os/tracee.h"

#ifndef SECCOMP_IOCTL_NOTIF_SET_FLAGS
#define SECCOMP_IOCTL_NOTIF_SET_FLAGS SECCOMP_IOW(4, __u64) /* 6.6 */
#define SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP (1UL << 0)
#endif

/*
 * 20,000 permitted calls (10,000 of those that we make) or 1,000 facts a second, after a start of
 * 40,000 (20,000) or 2,000: an
 * unpacked archive passes at full speed, a flood gets a tenth of a processor.
 */
/* The kernel's own bit of O_TMPFILE, which glibc's holds O_DIRECTORY beside. */
enum { O_TMPFILE_BIT = 020000000, ABI_TRUNCATE = 3 /* from here on Landlock knows it */ };

enum {
	BATCH = 64,
	TOKENS_PER_MS = 20,
	TOKENS_MAX = 40000,
	TOKENS_CALL = 1,
	TOKENS_DONE = 2, /* performed by us */
	TOKENS_FACT = 20,
	PAUSE_MS = 20,
	TICK_MS = 5
};

void call_refuse(struct call *call, int error)
{
	call->answer = ANSWER_ERROR;
	call->error = error;
}

bool call_is_valid(const struct call *call)
{
	uint64_t id = call->request->id;

	return ioctl(call->notify->listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &id) == 0;
}

int call_int(const struct call *call, int index)
{
	return (int)(uint32_t)call->request->data.args[index];
}

void call_fact(const struct call *call, enum fact_event event, struct fact *ret_fact)
{
	const char *name = profile_syscall_name(call->request->data.nr);
	char comm[32] = "";

	fact_init(ret_fact, event, SOURCE_SECCOMP);
	ret_fact->pid = call->tid;
	if (tracee_comm(call->tid, comm, sizeof comm) == 0)
		fact_text(ret_fact->comm, sizeof ret_fact->comm, comm, strlen(comm));
	if (name)
		fact_print(ret_fact->detail.syscall, sizeof ret_fact->detail.syscall, "%s", name);
	else
		fact_print(ret_fact->detail.syscall, sizeof ret_fact->detail.syscall, "syscall_%d",
			   call->request->data.nr);
}

void call_record(struct call *call, const struct fact *fact)
{
	if (!call_is_valid(call))
		return;
	call->had_fact = true;
	if (violations_add(call->notify->setup.violations, fact))
		call->notify->wants_end = true;
}

/* A socket of the host's network, where there is no network namespace to make it harmless. */
static bool is_inet_socket(const struct call *call)
{
	int family = call_int(call, 0);

	return call->request->data.nr == SYS_socket && !call->notify->setup.has_own_view &&
	       (family == AF_INET || family == AF_INET6);
}

/* A syscall that the profile denies: its errno, with the registers as the kernel had them. */
static void deny(struct call *call)
{
	const struct profile_rule *rule = call->rule;
	struct fact fact;

	call_refuse(call, rule->error);
	if (rule->verdict == PROFILE_QUIET)
		return;
	call_fact(call, is_inet_socket(call) ? FACT_NETWORK_ACCESS : FACT_SYSCALL, &fact);
	fact.detail.has_args = true;
	memcpy(fact.detail.args, call->request->data.args, sizeof fact.detail.args);
	fact_print(fact.rule, sizeof fact.rule, "profile %s: %s", call->notify->profile,
		   rule->reason);
	call_record(call, &fact);
}

/* Of a call of class CALL_OPEN; 0 of any other. */
static int open_flags(const struct call *call)
{
	if (call->shape->class != CALL_OPEN)
		return 0;
	return call->shape->flags == ARG_NONE ? call->shape->open_flags
					      : call_int(call, call->shape->flags);
}

/*
 * Does it empty a file that it does not open for writing? Landlock before ABI 3 asks only for what
 * the file is opened for: for reading (0), or for nothing (3, both bits).
 */
static bool empties_unasked(const struct call *call)
{
	int flags = open_flags(call), access = flags & O_ACCMODE;

	return call->notify->setup.does_truncate && (flags & O_TRUNC) && access != O_WRONLY &&
	       access != O_RDWR;
}

/*
 * Does the call make a set-id file? In a writable workspace it would be the caller's own on the
 * host, root's after a run that root started. The mode is in a register: no race.
 * tests/escape/setid_files.py
 */
static bool makes_setid(const struct call *call)
{
	int mode = call_mode_of(call->request->data.nr);

	if (mode == ARG_NONE ||
	    (call->shape->class == CALL_OPEN && !(open_flags(call) & (O_CREAT | O_TMPFILE_BIT))))
		return false;
	return call_int(call, mode) & (S_ISUID | S_ISGID);
}

static void refuse_kind(struct call *call, const char *rule, const char *what)
{
	struct fact fact;

	call_refuse(call, EPERM);
	call_fact(call, FACT_SYSCALL, &fact);
	fact_print(fact.rule, sizeof fact.rule, "%s", rule);
	fact_print(fact.detail.text, sizeof fact.detail.text, "%s", what);
	call_record(call, &fact);
}

/* With mounts of its own the kernel decides, and we look; without them nothing else guards. */
static void look_or_do(struct call *call)
{
	if (call->notify->setup.has_own_view)
		notify_file(call);
	else
		notify_meta(call);
}

static void look_or_resize(struct call *call)
{
	if (call->notify->setup.does_truncate && call->request->data.nr == SYS_truncate)
		notify_meta(call);
	else
		notify_file(call);
}

static void (*const handlers[CALL_CLASS_COUNT])(struct call *) = {
	[CALL_OPEN] = notify_file,       [CALL_OPEN_HOW] = notify_file,
	[CALL_CREATE] = notify_file,     [CALL_REMOVE] = notify_file,
	[CALL_RENAME] = notify_file,     [CALL_CHANGE] = look_or_resize,
	[CALL_CONNECT] = notify_connect, [CALL_BIND] = notify_bind,
	[CALL_SENDTO] = notify_send,     [CALL_SENDMSG] = notify_send,
	[CALL_SENDMMSG] = notify_send,   [CALL_META] = look_or_do,
};

/*
 * The rule is found anew from the registers, since one syscall has lines that deny and lines
 * that watch, and a denied call must not be continued. Registers cannot change meanwhile.
 */
static void decide(struct call *call)
{
	const struct notify *notify = call->notify;
	const struct seccomp_data *data = &call->request->data;

	call->rule = notify->setup.decide(notify->profile, data);
	call->shape = call_shape_of(data->nr);
	if (!call->rule)
		call_refuse(call, ENOSYS); /* another architecture's numbers */
	else if (call->rule->verdict == PROFILE_DENY || call->rule->verdict == PROFILE_QUIET)
		deny(call);
	else if (call->shape && makes_setid(call))
		refuse_kind(call, "built-in: no set-id files", "a set-id file");
	else if (call->shape && empties_unasked(call))
		refuse_kind(call, "built-in: what is emptied is opened for writing", "O_TRUNC");
	else if (call->shape)
		handlers[call->shape->class](call);
}

static void answer(const struct call *call)
{
	struct seccomp_notif_resp response = { .id = call->request->id };

	if (call->answer == ANSWER_LATER)
		return;
	if (call->answer == ANSWER_CONTINUE)
		response.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
	if (call->answer == ANSWER_ERROR)
		response.error = -call->error;
	/* ENOENT: the process died meanwhile. There is nobody to tell. */
	ioctl(call->notify->listener, SECCOMP_IOCTL_NOTIF_SEND, &response);
}

/* One notification. False: there was none. */
static bool handle_one(struct notify *notify)
{
	struct seccomp_notif request = { 0 };
	struct call call = { .notify = notify, .request = &request };

	/* Polled before, and we are the only reader: this does not wait. */
	if (ioctl(notify->listener, SECCOMP_IOCTL_NOTIF_RECV, &request) < 0)
		return errno == ENOENT || errno == EINTR;
	call.tid = (pid_t)request.pid;
	notify->handled++;
	decide(&call);
	notify->tokens -= call.had_fact                 ? TOKENS_FACT
			  : call.answer == ANSWER_LATER ? TOKENS_DONE
							: TOKENS_CALL;
	if (!notify->wants_end)
		answer(&call);
	return true;
}

static void fill_bucket(struct notify *notify)
{
	uint64_t now_us = clock_now_us(), ms = (now_us - notify->filled_us) / 1000;

	if (ms == 0)
		return;
	notify->filled_us += ms * 1000;
	if (ms > TOKENS_MAX / TOKENS_PER_MS)
		ms = TOKENS_MAX / TOKENS_PER_MS;
	notify->tokens += (int64_t)ms * TOKENS_PER_MS;
	if (notify->tokens > TOKENS_MAX)
		notify->tokens = TOKENS_MAX;
}

/* Armed once and left to fire: setting it anew with every call would put it off for ever. */
static void set_timer(struct notify *notify)
{
	int ms = notify->waiting_count || notify->held ? TICK_MS : PAUSE_MS;
	struct itimerspec when = { .it_value.tv_nsec = ms * 1000000L };

	if (notify->is_timer_set || (!notify->waiting_count && !notify->is_paused && !notify->held))
		return;
	notify->is_timer_set = timerfd_settime(notify->timer, 0, &when, NULL) == 0;
}

static bool timer_fired(struct notify *notify)
{
	uint64_t times;

	if (!notify->is_timer_set || read(notify->timer, &times, sizeof times) < 0)
		return false; /* EAGAIN: not yet */
	notify->is_timer_set = false;
	return true;
}

/* What is there to do with the listener? POLLIN, POLLHUP when no process is left, or 0. */
static int listener_events(const struct notify *notify)
{
	struct pollfd ready = { .fd = notify->listener, .events = POLLIN };

	return poll(&ready, 1, 0) > 0 ? ready.revents : 0;
}

static bool may_take(const struct notify *notify)
{
	return notify->tokens > 0 && !notify->wants_end && !notify->held;
}

enum notify_state notify_handle(struct notify *notify)
{
	int events = 0;

	fill_bucket(notify);
	hand_look(notify);
	/* Only then: retrying with every call would let 64 waiting connects multiply a flood. */
	if (timer_fired(notify)) {
		wait_tick(notify);
		hand_tick(notify);
	}
	for (int i = 0; i < BATCH && may_take(notify); i++) {
		events = listener_events(notify);
		if (!(events & POLLIN) || !handle_one(notify))
			break;
	}
	if (notify->wants_end)
		return NOTIFY_END;
	if (events & (POLLHUP | POLLERR) && !(events & POLLIN))
		return NOTIFY_CLOSED;
	if (notify->tokens <= 0 && !notify->is_paused) {
		notify->delayed++;
		notify->is_paused = true;
	} else if (notify->tokens > 0 && notify->is_paused) {
		notify->is_paused = false;
	}
	set_timer(notify);
	return NOTIFY_MORE;
}

static int save_groups(struct notify *notify)
{
	int count = getgroups(0, NULL);

	notify->groups = calloc((size_t)count + 1, sizeof *notify->groups);
	if (!notify->groups)
		return -ENOMEM;
	notify->group_count = getgroups(count, notify->groups);
	return notify->group_count < 0 ? -errno : 0;
}

static int open_all(struct notify *notify)
{
	struct epoll_event readable = { .events = EPOLLIN };
	__u64 nobody = 0;

	/* A number that was announced wrongly would be polled, and never be of use: a busy loop. */
	if (ioctl(notify->listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &nobody) < 0 && errno != ENOENT)
		return -errno;
	notify->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	notify->wakes = epoll_create1(EPOLL_CLOEXEC);
	if (notify->timer < 0 || notify->wakes < 0 ||
	    epoll_ctl(notify->wakes, EPOLL_CTL_ADD, notify->timer, &readable) < 0)
		return -errno;
	if (notify->setup.as_uid)
		return save_groups(notify);
	/* No SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP: it wakes the program on our processor though
	 * another one idles; a build with -j2 then takes a tenth longer, and a call gains nothing.
	 */
	return 0;
}

int notify_new(int listener, const struct notify_setup *setup, struct notify **ret_notify,
	       struct csn_error *err)
{
	struct notify *notify = calloc(1, sizeof *notify);
	int r;

	if (!notify) {
		fd_close(listener);
		return csn_fail(err, -ENOMEM, "notify", "out of memory for a command's listener");
	}
	notify->listener = listener;
	notify->timer = notify->wakes = notify->root = notify->scratch = -1;
	notify->hand = notify->hand_pidfd = -1;
	notify->setup = *setup;
	if (!setup->has_own_view && landlock_abi() < ABI_TRUNCATE)
		notify->setup.does_truncate = true;
	if (!notify->setup.decide)
		notify->setup.decide = profile_decide;
	snprintf(notify->profile, sizeof notify->profile, "%s", setup->profile);
	notify->tokens = TOKENS_MAX;
	notify->filled_us = clock_now_us();
	r = open_all(notify);
	if (r < 0) {
		notify_free(notify);
		return csn_fail(err, r, "notify", "cannot watch a command's listener");
	}
	*ret_notify = notify;
	return 0;
}

void notify_free(struct notify *notify)
{
	if (!notify)
		return;
	notify_flush(notify);
	wait_done(notify);
	hand_done(notify);
	fd_close(notify->listener);
	fd_close(notify->timer);
	fd_close(notify->wakes);
	fd_close(notify->root);
	fd_close(notify->scratch);
	free(notify->groups);
	free(notify);
}

int notify_fd(const struct notify *notify)
{
	return notify->is_paused || notify->held ? -1 : notify->listener;
}

int notify_timer_fd(const struct notify *notify)
{
	return notify->wakes;
}

void notify_stats(const struct notify *notify, struct notify_stats *ret_stats)
{
	*ret_stats = (struct notify_stats){ .handled = notify->handled,
					    .unreadable = notify->unreadable,
					    .delayed = notify->delayed,
					    .waiting = notify->waiting_count };
}
