/*
 * notify_private - what the files of the notifier share; included by notify*.c only
 *
 * One notification is a `call`: the handler of its class looks, records facts and sets the
 * answer. The default answer of a watched call is to continue.
 */
#pragma once

#include <linux/seccomp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>

#include "monitor/notify.h"
#include "monitor/notify_call.h"
#include "os/profile.h"

enum {
	NOTIFY_WAITING_MAX = 64, /* connects that wait; one more gets EAGAIN */
	NOTIFY_LOOKUPS_MAX = 8   /* connects to the resolver whose query is still to come */
};

/* A connect that the kernel would have let wait: a full backlog. */
struct waiting {
	uint64_t id;          /* of the notification */
	int socket;           /* our copy, owned */
	int target;           /* O_PATH of the path socket, owned; -1: none */
	bool is_started;      /* the kernel finishes it by itself (TCP); else it is tried again */
	uint64_t deadline_ms; /* of the socket's SO_SNDTIMEO */
	struct sockaddr_storage address;
	socklen_t length;
};

struct held;

/* A connect to the resolver that was answered with success, so that the query can be seen. */
struct lookup {
	pid_t tid; /* 0: free */
	uint64_t since_ms;
	struct fact fact;
};

struct notify {
	int listener;
	int timer;
	int wakes;     /* epoll over the timer and the hand's end */
	gid_t *groups; /* the monitor's own, owned, where it walks with other ids */
	int group_count;
	struct notify_setup setup;
	char profile[32];
	int root;           /* O_PATH of the command's root, -1 until needed */
	int scratch;        /* O_PATH of scratch, looked up inside, -1 until needed */
	int64_t tokens;     /* of the bucket */
	uint64_t filled_us; /* when it was filled last */
	bool is_paused;     /* the listener is not polled */
	bool is_timer_set;
	bool wants_end;
	uint64_t delayed, handled, unreadable;
	int hand; /* the socket to it, -1: not started */
	int hand_pidfd;
	struct held *held; /* an order that waits for room, or NULL */
	uint64_t *orders;  /* given and not known to be answered, owned */
	size_t order_count, order_room;
	size_t waiting_count;
	struct waiting waiting[NOTIFY_WAITING_MAX];
	struct lookup lookups[NOTIFY_LOOKUPS_MAX];
};

enum answer { ANSWER_CONTINUE, ANSWER_ERROR, ANSWER_ZERO, ANSWER_LATER };

struct call {
	struct notify *notify;
	const struct seccomp_notif *request;
	const struct call_shape *shape;  /* NULL: not in the table */
	const struct profile_rule *rule; /* NULL: not a call of this architecture */
	pid_t tid;
	enum answer answer;
	int error;     /* positive errno for ANSWER_ERROR */
	bool had_fact; /* costs more tokens */
};

/* Answers with a positive errno instead of the kernel. */
void call_refuse(struct call *call, int error);

/* Is the call still waiting for us? False: its process died, and its id may be reused. */
bool call_is_valid(const struct call *call);

/* A fact about this call: syscall, pid, comm filled in. */
void call_fact(const struct call *call, enum fact_event event, struct fact *ret_fact);

/* Records a fact unless the call is not valid any more. */
void call_record(struct call *call, const struct fact *fact);

/* Registers as a plain C type: the kernel itself takes only 32 bits of an int argument. */
int call_int(const struct call *call, int index);

/* Handlers by class. */
void notify_file(struct call *call);
void notify_meta(struct call *call);
void notify_connect(struct call *call);
void notify_bind(struct call *call);
void notify_send(struct call *call);

/* Which line of the plan speaks about `name`, a full one. */
void notify_write_rule(const struct plan *plan, const char *name, struct fact *fact);

/* Records connects to the resolver whose query did not come. */
void notify_flush(struct notify *notify);

/* ---- connects that wait (notify_wait.c) ------------------------------------------------- */

/*
 * Connects `socket` (our copy) to `address` without ever blocking, whatever its flags; the
 * flags are afterwards as before. 0, a negative errno as connect() would give, or -EINPROGRESS /
 * -EAGAIN for a blocking socket that would have to wait: *ret_waits is then true.
 */
int wait_try(int socket, const struct sockaddr *address, socklen_t length, bool *ret_waits);

/* Takes over both descriptors; the call is answered later. -EAGAIN when there is no room (both
 * closed). */
int wait_add(struct call *call, const struct waiting *connect);

/* Looks after all waiting connects; answers those that are done or whose process died. */
void wait_tick(struct notify *notify);
void wait_done(struct notify *notify);

/* ---- the hand (notify_hand.c) ------------------------------------------------------------- */

enum change { CHANGE_MODE, CHANGE_OWNER, CHANGE_TIMES, CHANGE_SET, CHANGE_REMOVE, CHANGE_SIZE };

/* A call to perform, as copied from the program; what it changes is a descriptor. */
struct order {
	uint64_t id; /* of the notification */
	enum change change;
	bool is_open; /* the call named a descriptor: one of O_PATH gets EBADF */
	mode_t mode;
	uid_t uid;
	gid_t gid;
	off_t size;
	bool is_now; /* CHANGE_TIMES without times */
	struct timespec times[2];
	int flags;           /* of CHANGE_SET */
	char name[256];      /* of an attribute */
	uint32_t value_size; /* the value follows */
};

/*
 * Gives an order for descriptor `fd` (borrowed) to the hand, which answers the call; the first one
 * starts it. 0 or a negative errno to answer instead: -EIO, -EAGAIN where it cannot be started.
 * Should the hand end before it has answered, the call gets EIO (hand_look()).
 */
int hand_order(struct call *call, const struct order *order, int fd, const void *value);

/* Tries again to hand over an order that had no room; until then no call is taken. */
void hand_tick(struct notify *notify);

/* Has the hand ended? Then what it has not answered fails with EIO, and a fact says why. */
void hand_look(struct notify *notify);

/* Ends the hand, and what it has not done. */
void hand_done(struct notify *notify);

/* ---- places (notify_place.c) -------------------------------------------------------------- */

/* A path as the sandbox sees it: what it leads to, or the nearest existing parent. */
struct place {
	int fd; /* O_PATH, owned */
	bool exists;
	char rest[4096]; /* what is missing beneath fd, "" if it exists */
};

#define _cleanup_place_ __attribute__((cleanup(place_done)))
#define PLACE_NONE ((struct place){ .fd = -1 })

/*
 * Finds a path from folder descriptor `dir_fd` (AT_FDCWD: the current one) of the call's
 * thread. Symbolic links are the sandbox's. 0 or a negative errno: -EACCES, -EPERM not observed,
 * -ENOENT for a thread or descriptor that is gone, -ELOOP.
 */
int place_find(const struct call *call, int dir_fd, const char *path, bool is_nofollow,
	       struct place *ret_place);
/*
 * What a path leads to, walked once as the kernel walks it for a program whose root is ours (the
 * landlock wall), with the command's rights. Nothing missing is made up for, and of magic links
 * only "/proc/self/fd/N" and its like are followed. An O_PATH descriptor, or a negative errno as
 * the program's call would have it.
 */
int place_walk(const struct call *call, int dir_fd, const char *path, bool is_nofollow,
	       int *ret_fd);
/* The place of an open descriptor of the thread. */
int place_of_fd(const struct call *call, int fd, struct place *ret_place);
void place_done(struct place *place);

/* Its full name inside the sandbox. 0 or a negative errno. */
int place_name(const struct place *place, char *ret_name, size_t size);

/* Does the plan permit to write it, or to make it? By mount flags, file system and plan. */
bool place_may_write(const struct call *call, const struct place *place);

/*
 * May its mode, owner, times and attributes be changed? Unlike place_may_write(), which feeds
 * the record, this decides: what cannot be judged is false. For the landlock wall.
 */
bool place_may_change(const struct call *call, const struct place *place);

/* Is `name`, a full one, a file that the wall hides, or in such a folder? The landlock wall. */
bool place_is_hidden(const struct call *call, const char *name);

/* Is it on the sandbox's own scratch? For sockets: nobody outside can have made it. */
bool place_is_scratch(const struct call *call, const struct place *place);

/* Does the view show where it should be? False: the first folder of the path is missing, the plan
 * hides it, or the wall without a view of its own denies it. */
bool place_is_shown(const struct call *call, const struct place *place);

/* ---- the host's tree as a view (notify_view.c) -------------------------------------------- */

/* May `place`, whose name is `name`, be read behind a wall without a view of its own? */
bool view_shows(const struct call *call, const struct place *place, const char *name);
