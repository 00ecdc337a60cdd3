/*
 * connect, bind and send: addresses.
 *
 * `connect` is decided on our own copy of the address and done on our own copy of the socket,
 * for every family, and is never continued: after CONTINUE the kernel would read address and
 * descriptor number again, and a second thread could by then have put the path of a host
 * process's socket there (tests/unit/test_notify_net.c: swapped address). A path is walked once;
 * the socket behind that descriptor is the one connected, through /proc/self/fd.
 *
 * `bind` and `send` may be continued: a bind makes only what mounts and Landlock permit, and
 * datagram sockets that could carry a path address are refused by the filter.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "monitor/notify_private.h"
#include "os/tracee.h"

enum { QUERY_MAX = 300, LOOKUP_MS = 1000, MESSAGES_MAX = 16 };

/* An address as copied once from the program. */
struct address {
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
		struct sockaddr_un local;
		struct sockaddr_nl netlink;
		struct sockaddr_storage room;
	};
	socklen_t length;
};

/* Bytes of a datagram in the program's memory. */
struct datagram {
	uint64_t at;
	uint64_t size;
};

static int copy_address(const struct call *call, uint64_t at, int length,
			struct address *ret_address)
{
	memset(ret_address, 0, sizeof *ret_address);
	if (length < (int)sizeof ret_address->any.sa_family ||
	    length > (int)sizeof ret_address->room)
		return -EINVAL;
	ret_address->length = (socklen_t)length;
	return tracee_read_all(call->tid, at, &ret_address->room, (size_t)length);
}

static bool is_inet(const struct address *address)
{
	return (address->any.sa_family == AF_INET && address->length >= sizeof address->v4) ||
	       (address->any.sa_family == AF_INET6 &&
		address->length >= offsetof(struct sockaddr_in6, sin6_scope_id));
}

/* The IPv4 address in host order, also of ::ffff:a.b.c.d; false for real IPv6. */
static bool as_v4(const struct address *address, uint32_t *ret_v4)
{
	if (address->any.sa_family == AF_INET) {
		*ret_v4 = ntohl(address->v4.sin_addr.s_addr);
		return true;
	}
	if (!IN6_IS_ADDR_V4MAPPED(&address->v6.sin6_addr))
		return false;
	memcpy(ret_v4, &address->v6.sin6_addr.s6_addr[12], sizeof *ret_v4);
	*ret_v4 = ntohl(*ret_v4);
	return true;
}

static uint16_t port_of(const struct address *address)
{
	return ntohs(address->any.sa_family == AF_INET ? address->v4.sin_port
						       : address->v6.sin6_port);
}

static bool is_unspecified(const struct address *address)
{
	uint32_t v4;

	return as_v4(address, &v4) ? v4 == INADDR_ANY
				   : IN6_IS_ADDR_UNSPECIFIED(&address->v6.sin6_addr);
}

/* 127/8, ::1, and "any", which the kernel takes for this host itself. */
static bool is_loopback(const struct address *address)
{
	uint32_t v4;

	if (is_unspecified(address))
		return true;
	return as_v4(address, &v4) ? v4 >> 24 == 127 : IN6_IS_ADDR_LOOPBACK(&address->v6.sin6_addr);
}

static bool is_resolver(const struct address *address)
{
	struct in_addr resolver;
	uint32_t v4;

	return is_inet(address) && port_of(address) == FACT_RESOLVER_PORT && as_v4(address, &v4) &&
	       inet_pton(AF_INET, FACT_RESOLVER, &resolver) == 1 && v4 == ntohl(resolver.s_addr);
}

static bool is_foreign(const struct call *call, const struct address *address)
{
	if (!is_inet(address))
		return false;
	switch (call->notify->setup.plan->network) {
	case NETWORK_NONE:
		return true;
	case NETWORK_ENGINE:
		return false;
	default:
		return !is_loopback(address);
	}
}

static void print_inet(const struct address *address, struct fact *fact)
{
	char text[INET6_ADDRSTRLEN] = "";

	if (address->any.sa_family == AF_INET)
		inet_ntop(AF_INET, &address->v4.sin_addr, text, sizeof text);
	else
		inet_ntop(AF_INET6, &address->v6.sin6_addr, text, sizeof text);
	fact_print(fact->detail.address, sizeof fact->detail.address, "%s", text);
	fact->detail.port = port_of(address);
}

static void inet_fact(const struct call *call, const struct address *address, struct fact *ret_fact)
{
	call_fact(call, FACT_NETWORK_ACCESS, ret_fact);
	print_inet(address, ret_fact);
	fact_print(ret_fact->rule, sizeof ret_fact->rule, "network.mode: %s",
		   plan_network_name(call->notify->setup.plan->network));
}

/*
 * The name in the first question of a DNS query: labels of at most 63 bytes, at most 253
 * together, no compression. Every byte is hostile. False: not such a query.
 */
static bool query_name(const uint8_t *data, size_t size, char *ret_name, size_t room)
{
	char name[256];
	size_t at = 12, used = 0;

	if (size < 17 || (data[2] & 0x80) || (data[4] == 0 && data[5] == 0))
		return false;
	while (at < size && data[at] != 0) {
		size_t label = data[at++];

		if (label > 63 || label > size - at || used + label + 1 >= sizeof name)
			return false;
		if (used > 0)
			name[used++] = '.';
		memcpy(name + used, data + at, label);
		used += label;
		at += label;
	}
	if (at >= size || used == 0)
		return false;
	fact_text(ret_name, room, name, used);
	return true;
}

static bool read_query(const struct call *call, const struct datagram *datagram, struct fact *fact)
{
	uint8_t data[QUERY_MAX];
	size_t size = datagram->size < sizeof data ? (size_t)datagram->size : sizeof data;
	ssize_t n;

	if (size == 0)
		return false;
	n = tracee_read(call->tid, datagram->at, data, size);
	return n > 0 && query_name(data, (size_t)n, fact->detail.host, sizeof fact->detail.host);
}

/* ---- the resolver ------------------------------------------------------------------------- */

/* Records lookups whose query never came (or came by a plain write, which is not notified). */
static void expire_lookups(struct notify *notify, uint64_t now_ms, uint64_t age_ms)
{
	for (size_t i = 0; i < NOTIFY_LOOKUPS_MAX; i++) {
		struct lookup *lookup = &notify->lookups[i];

		if (lookup->tid && now_ms - lookup->since_ms >= age_ms) {
			lookup->tid = 0;
			if (violations_add(notify->setup.violations, &lookup->fact))
				notify->wants_end = true;
		}
	}
}

void notify_flush(struct notify *notify)
{
	expire_lookups(notify, clock_now_ms(), 0);
}

static struct lookup *lookup_of(struct notify *notify, pid_t tid)
{
	for (size_t i = 0; i < NOTIFY_LOOKUPS_MAX; i++) {
		if (notify->lookups[i].tid == tid)
			return &notify->lookups[i];
	}
	return NULL;
}

/*
 * glibc connects its datagram socket to the resolver and sends the query after that. The
 * connect is answered with success and does nothing, so that the query comes and tells the
 * name; the query is refused, and the lookup ends at once.
 */
static void begin_lookup(struct call *call, const struct address *address)
{
	struct notify *notify = call->notify;
	struct lookup *lookup = lookup_of(notify, call->tid);

	expire_lookups(notify, clock_now_ms(), LOOKUP_MS);
	if (!lookup)
		lookup = lookup_of(notify, 0);
	if (!lookup) {
		notify_flush(notify);
		lookup = &notify->lookups[0];
	}
	lookup->tid = call->tid;
	lookup->since_ms = clock_now_ms();
	inet_fact(call, address, &lookup->fact);
	call->answer = ANSWER_ZERO;
}

/* A datagram without an address, from a thread that has just "connected" to the resolver. */
static void end_lookup(struct call *call, const struct datagram *datagram)
{
	struct lookup *lookup = lookup_of(call->notify, call->tid);
	struct fact fact;

	if (!lookup)
		return;
	fact = lookup->fact;
	if (!read_query(call, datagram, &fact))
		return;
	lookup->tid = 0;
	call_refuse(call, ENETUNREACH);
	call_record(call, &fact);
}

/* ---- connect -------------------------------------------------------------------------------- */

static int take_socket(const struct call *call, int *ret_socket)
{
	_cleanup_fd_ int socket = -1;
	int r = tracee_take_fd(call->tid, call_int(call, 0), &socket);

	if (r < 0)
		return r;
	/* Only now is it sure that all we read was of the process that asked. */
	if (!call_is_valid(call))
		return -ESRCH;
	*ret_socket = fd_take(&socket);
	return 0;
}

/* Connects our copy; `target` (owned, -1: none) is what a path address leads to. */
static int connect_copy(struct call *call, const struct address *address, int target)
{
	_cleanup_fd_ int keep = target;
	struct waiting connect = { .socket = -1, .target = -1, .length = address->length };
	bool waits = false;
	int r = take_socket(call, &connect.socket);

	if (r < 0)
		return r;
	connect.address = address->room;
	r = wait_try(connect.socket, &address->any, address->length, &waits);
	if (!waits) {
		fd_close(connect.socket);
		call->answer = ANSWER_ZERO;
		return r;
	}
	connect.is_started = r == -EINPROGRESS;
	connect.target = fd_take(&keep);
	return wait_add(call, &connect);
}

/* Sockets that programs probe at every start and whose absence means nothing. */
static bool is_probed_socket(const char *path)
{
	static const char *const probed[] = {
		"/run/nscd/socket", "/var/run/nscd/socket", "/dev/log",
		"/run/systemd/*",   "/var/run/systemd/*",
	};

	for (size_t i = 0; i < ARRAY_SIZE(probed); i++) {
		if (str_matches(probed[i], path))
			return true;
	}
	return false;
}

/* `place` is NULL where the path could not be walked: then it is named as the program did. */
static void record_socket(struct call *call, const char *path, const struct place *place)
{
	char name[PATH_MAX];
	struct fact fact;

	if (is_probed_socket(path))
		return;
	call_fact(call, FACT_NETWORK_ACCESS, &fact);
	if (place && place_name(place, name, sizeof name) == 0)
		path = name;
	fact_print(fact.detail.address, sizeof fact.detail.address, "unix:%s", path);
	fact_print(fact.rule, sizeof fact.rule, "built-in: sockets on scratch only");
	call_record(call, &fact);
}

static int connect_path(struct call *call, const struct address *address)
{
	_cleanup_place_ struct place place = { .fd = -1 };
	struct address own = { .local.sun_family = AF_UNIX };
	char path[sizeof address->local.sun_path + 1] = "";
	size_t length = address->length - offsetof(struct sockaddr_un, sun_path);
	struct stat st;
	int r, n;

	if (length > sizeof address->local.sun_path)
		return -EINVAL;
	memcpy(path, address->local.sun_path, length);
	r = place_find(call, AT_FDCWD, path, false, &place);
	if (r < 0 || !place_is_scratch(call, &place)) {
		record_socket(call, path, r < 0 ? NULL : &place);
		return r == 0 && place.exists ? -EACCES : -ENOENT;
	}
	if (!place.exists)
		return -ENOENT;
	if (fstat(place.fd, &st) < 0 || !S_ISSOCK(st.st_mode))
		return -ECONNREFUSED;
	n = snprintf(own.local.sun_path, sizeof own.local.sun_path, "/proc/self/fd/%d", place.fd);
	own.length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + (size_t)n + 1);
	return connect_copy(call, &own, fd_take(&place.fd));
}

static int connect_local(struct call *call, const struct address *address)
{
	struct fact fact;

	if (address->length <= offsetof(struct sockaddr_un, sun_path))
		return -EINVAL;
	if (address->local.sun_path[0])
		return connect_path(call, address);
	/*
	 * Abstract names belong to the socket's network namespace: in one of its own nobody
	 * else listens. Elsewhere only Landlock's scope of the *program* would protect the
	 * host's, and we are not in it.
	 */
	if (call->notify->setup.has_own_view)
		return connect_copy(call, address, -1);
	call_fact(call, FACT_NETWORK_ACCESS, &fact);
	fact_print(fact.detail.address, sizeof fact.detail.address, "unix:@%.*s",
		   (int)(address->length - offsetof(struct sockaddr_un, sun_path) - 1),
		   address->local.sun_path + 1);
	fact_print(fact.rule, sizeof fact.rule, "built-in: no abstract sockets on this wall");
	call_record(call, &fact);
	return -EPERM;
}

static int connect_inet(struct call *call, const struct address *address)
{
	struct fact fact;
	_cleanup_fd_ int socket = -1;
	int type = 0;
	socklen_t size = sizeof type;

	if (!is_foreign(call, address))
		return connect_copy(call, address, -1);
	if (is_resolver(address) && take_socket(call, &socket) == 0 &&
	    getsockopt(socket, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_DGRAM) {
		begin_lookup(call, address);
		return 0;
	}
	inet_fact(call, address, &fact);
	call_record(call, &fact);
	return -ENETUNREACH;
}

static int connect_other(struct call *call, const struct address *address)
{
	/* Our own rights must not open what the program's would not: kernel and nothing else. */
	if (address->any.sa_family == AF_NETLINK && address->length >= sizeof address->netlink &&
	    address->netlink.nl_pid == 0 && address->netlink.nl_groups == 0)
		return connect_copy(call, address, -1);
	if (address->any.sa_family == AF_UNSPEC)
		return connect_copy(call, address, -1); /* dissolves a connection */
	return address->any.sa_family == AF_NETLINK ? -EPERM : -EAFNOSUPPORT;
}

/* The address cannot be read: nothing can be decided, so it is refused. */
static int refuse_unread(struct call *call, int error)
{
	struct fact fact;

	call->notify->unreadable++;
	call_fact(call, FACT_NETWORK_ACCESS, &fact);
	fact.detail.path_unknown = true;
	fact_print(fact.detail.text, sizeof fact.detail.text, "%s", strerror(-error));
	fact_print(fact.rule, sizeof fact.rule, "built-in: no unread address is connected");
	call_record(call, &fact);
	return -EACCES;
}

void notify_connect(struct call *call)
{
	const __u64 *args = call->request->data.args;
	struct address address;
	int r = copy_address(call, args[1], call_int(call, 2), &address);

	/* From here on every way out is an answer of ours. */
	call->answer = ANSWER_ZERO;
	if (r == -EPERM || r == -EACCES)
		r = refuse_unread(call, r);
	else if (r == 0 && address.any.sa_family == AF_UNIX)
		r = connect_local(call, &address);
	else if (r == 0 && is_inet(&address))
		r = connect_inet(call, &address);
	else if (r == 0 && (address.any.sa_family == AF_INET || address.any.sa_family == AF_INET6))
		r = -EINVAL; /* too short */
	else if (r == 0)
		r = connect_other(call, &address);
	if (r < 0)
		call_refuse(call, -r);
}

/* ---- bind and send ----------------------------------------------------------------------- */

static void bind_path(struct call *call, const struct address *address)
{
	_cleanup_place_ struct place place = { .fd = -1 };
	char path[sizeof address->local.sun_path + 1] = "", name[PATH_MAX];
	struct fact fact;
	size_t length = address->length - offsetof(struct sockaddr_un, sun_path);

	if (length > sizeof address->local.sun_path)
		return;
	memcpy(path, address->local.sun_path, length);
	if (!path[0] || place_find(call, AT_FDCWD, path, true, &place) < 0 || place.exists ||
	    place_may_write(call, &place))
		return;
	call_fact(call, FACT_FILESYSTEM_WRITE, &fact);
	if (place_name(&place, name, sizeof name) == 0)
		fact_text(fact.detail.path, sizeof fact.detail.path, name, strlen(name));
	fact_print(fact.rule, sizeof fact.rule, "built-in: read-only place");
	fact.is_certain = false;
	call_record(call, &fact);
}

void notify_bind(struct call *call)
{
	const __u64 *args = call->request->data.args;
	struct address address;
	struct fact fact;

	if (copy_address(call, args[1], call_int(call, 2), &address) < 0)
		return;
	if (address.any.sa_family == AF_UNIX &&
	    address.length > offsetof(struct sockaddr_un, sun_path)) {
		bind_path(call, &address);
		return;
	}
	/* No port of its own address: a probe of what the machine can do, as resolvers and pip do.
	 */
	if (!is_foreign(call, &address) || (port_of(&address) == 0 && is_loopback(&address)))
		return;
	inet_fact(call, &address, &fact);
	fact.is_certain = false;
	call_record(call, &fact);
}

/* Returns true if the address was foreign: the fact is made, and the answer is ours. */
static bool look_at_send(struct call *call, uint64_t at, int length,
			 const struct datagram *datagram)
{
	struct address address;
	struct fact fact;

	if (at == 0 || length == 0) {
		end_lookup(call, datagram);
		return call->answer != ANSWER_CONTINUE;
	}
	if (copy_address(call, at, length, &address) < 0 || !is_foreign(call, &address))
		return false;
	inet_fact(call, &address, &fact);
	if (port_of(&address) == FACT_RESOLVER_PORT)
		read_query(call, datagram, &fact);
	call_refuse(call, ENETUNREACH);
	call_record(call, &fact);
	return true;
}

static bool look_at_message(struct call *call, uint64_t at)
{
	struct datagram datagram = { 0 };
	struct msghdr message;
	struct iovec first;

	if (tracee_read_all(call->tid, at, &message, sizeof message) < 0)
		return false;
	if (message.msg_iovlen > 0 &&
	    tracee_read_all(call->tid, (uintptr_t)message.msg_iov, &first, sizeof first) == 0) {
		datagram.at = (uintptr_t)first.iov_base;
		datagram.size = first.iov_len;
	}
	return look_at_send(call, (uintptr_t)message.msg_name, (int)message.msg_namelen, &datagram);
}

/* Only the first message decides the answer: the kernel sends those before a bad one. */
static void look_at_messages(struct call *call)
{
	unsigned count = (unsigned)call_int(call, 2);

	for (unsigned i = 0; i < count && i < MESSAGES_MAX; i++) {
		if (!look_at_message(call,
				     call->request->data.args[1] + i * sizeof(struct mmsghdr)))
			continue;
		if (i > 0)
			call->answer = ANSWER_CONTINUE;
		return;
	}
}

void notify_send(struct call *call)
{
	const __u64 *args = call->request->data.args;
	struct datagram datagram = { .at = args[1], .size = args[2] };

	if (call->shape->class == CALL_SENDMMSG)
		look_at_messages(call);
	else if (call->shape->class == CALL_SENDMSG)
		look_at_message(call, args[1]);
	else
		look_at_send(call, args[4], call_int(call, 5), &datagram);
}
