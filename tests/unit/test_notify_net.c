/* Notifications on sockets: who is connected by the monitor, who is refused, what is recorded. */
#include "notify_inside.h"

#include <netdb.h>
#include <pthread.h>

static int path_socket(const char *path, struct sockaddr_un *ret_address)
{
	*ret_address = (struct sockaddr_un){ .sun_family = AF_UNIX };
	snprintf(ret_address->sun_path, sizeof ret_address->sun_path, "%s", path);
	return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
}

static int connect_path(const char *path)
{
	struct sockaddr_un address;
	int fd = path_socket(path, &address);

	return connect(fd, (struct sockaddr *)&address, sizeof address);
}

static int listen_path(const char *path, int backlog)
{
	struct sockaddr_un address;
	int fd = path_socket(path, &address);

	if (bind(fd, (struct sockaddr *)&address, sizeof address) < 0 || listen(fd, backlog) < 0)
		return -1;
	return fd;
}

/* A socket of a host process in the workspace. */
static int host_listener(void)
{
	char path[128];
	int fd;

	snprintf(path, sizeof path, "%s/host.sock", workspace);
	fd = listen_path(path, 100);
	CHECK(fd >= 0 && chmod(path, 0777) == 0);
	CHECK(fd_set_nonblock(fd, 1) == 0);
	return fd;
}

static void program_sockets(void)
{
	int server = listen_path("/tmp/own.sock", 5);
	struct sockaddr_un address;
	struct nl_address {
		sa_family_t family;
		uint16_t pad;
		uint32_t pid, groups;
	} netlink = { .family = AF_NETLINK };
	int fd;

	note(server);
	note(connect_path("/tmp/own.sock"));
	note(accept(server, NULL, NULL));
	note(connect_path("/workspace/host.sock"));
	symlink("/workspace/host.sock", "/tmp/link");
	note(connect_path("/tmp/link"));
	note(connect_path("/tmp/missing.sock"));
	note(connect_path("/run/nscd/socket"));
	note(connect_path("/proc/self/root/workspace/host.sock"));
	chdir("/tmp");
	note(connect_path("own.sock"));
	note(connect_path("../workspace/host.sock"));
	note(listen_path("/workspace/mine.sock", 1));
	fd = path_socket("", &address);
	address.sun_path[1] = 'n';
	note(bind(fd, (struct sockaddr *)&address, 4) || listen(fd, 1) ? -1 : 0);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	note(connect(fd, (struct sockaddr *)&address, 4));
	note(connect(99, (struct sockaddr *)&address, 4));
	note(connect(1, (struct sockaddr *)&address, 4));
	note(connect(fd, (struct sockaddr *)8, 4));
	note(connect(fd, (struct sockaddr *)&address, 1));
	fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 0);
	note(connect(fd, (struct sockaddr *)&netlink, sizeof netlink));
	netlink.groups = 1;
	note(connect(fd, (struct sockaddr *)&netlink, sizeof netlink));
}

static void sockets(bool as_user)
{
	static const int results[] = { 0,        0,      0,      EACCES, EACCES, ENOENT, ENOENT,
				       EACCES,   0,      EACCES, EROFS,  0,      0,      EBADF,
				       ENOTSOCK, EFAULT, EINVAL, 0,      EPERM };
	int host;

	start(as_user);
	host = host_listener();
	CHECK(run_box(program_sockets) == 0);
	if (shared->results[14] == ECONNREFUSED || shared->results[14] == EINVAL)
		shared->results[14] = ENOTSOCK; /* the test's own output may be a socket */
	expect_results(results, ARRAY_SIZE(results));
	CHECK(accept(host, NULL, NULL) < 0 && errno == EAGAIN);
	if (list.count != 2)
		show();
	CHECK(list.count == 2 && list.facts[0].count == 4 && list.facts[0].is_certain);
	CHECK(list.facts[0].event == FACT_NETWORK_ACCESS);
	CHECK_STR(list.facts[0].detail.address, "unix:/workspace/host.sock");
	CHECK_STR(list.facts[1].detail.path, "/workspace/mine.sock");
	close(host);
	finish();
}

/* Another thread swaps the address between a permitted socket and the host's. */
static volatile bool is_swapping = true;

static void *swap(void *data)
{
	struct sockaddr_un *address = data;

	while (is_swapping) {
		memcpy(address->sun_path, "/workspace/host.sock", 21);
		memcpy(address->sun_path, "/tmp/own.sock", 14);
	}
	return NULL;
}

static void program_swap(void)
{
	static struct sockaddr_un address = { .sun_family = AF_UNIX };
	int server = listen_path("/tmp/own.sock", 2000);
	pthread_t thread;

	fd_set_nonblock(server, 1);
	snprintf(address.sun_path, sizeof address.sun_path, "/tmp/own.sock");
	pthread_create(&thread, NULL, swap, &address);
	for (int i = 0; i < 1500; i++) {
		int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

		if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0)
			shared->count++;
		close(fd);
		close(accept(server, NULL, NULL));
	}
	is_swapping = false;
	pthread_join(thread, NULL);
}

static void swapped(bool as_user)
{
	int host;

	start(as_user);
	host = host_listener();
	CHECK(run_box(program_swap) == 0);
	CHECK(shared->count > 0); /* some got through to the own socket */
	CHECK(accept(host, NULL, NULL) < 0 && errno == EAGAIN);
	close(host);
	finish();
}

static void program_thread_of(void *data)
{
	(void)data;
	note(connect_path("/tmp/own.sock"));
}

static void *from_thread(void *data)
{
	program_thread_of(data);
	return NULL;
}

/* A notification names a thread: its id opens no ordinary pidfd. */
static void program_thread(void)
{
	pthread_t thread;

	note(listen_path("/tmp/own.sock", 5));
	pthread_create(&thread, NULL, from_thread, NULL);
	pthread_join(thread, NULL);
}

static void threads(bool as_user)
{
	static const int results[] = { 0, 0 };

	start(as_user);
	CHECK(run_box(program_thread) == 0);
	expect_results(results, 2);
	finish();
}

/* A full backlog: the third connect waits until the server takes one. */
static void program_backlog(void)
{
	int server = listen_path("/tmp/full.sock", 0), fd, flags;
	struct sockaddr_un address;
	int64_t begin;

	note(connect_path("/tmp/full.sock"));
	fd = path_socket("/tmp/full.sock", &address);
	fcntl(fd, F_SETFL, O_NONBLOCK);
	note(connect(fd, (struct sockaddr *)&address, sizeof address));
	if (fork() == 0) {
		usleep(200 * 1000);
		accept(server, NULL, NULL);
		usleep(500 * 1000);
		_exit(0);
	}
	fd = path_socket("/tmp/full.sock", &address);
	begin = (int64_t)clock_now_ms();
	note(connect(fd, (struct sockaddr *)&address, sizeof address));
	shared->elapsed_ms = (int64_t)clock_now_ms() - begin;
	flags = fcntl(fd, F_GETFL);
	note(flags & O_NONBLOCK ? -1 : 0);
	/* SO_SNDTIMEO is kept: nobody takes this one */
	struct timeval limit = { .tv_usec = 50 * 1000 };
	fd = path_socket("/tmp/full.sock", &address);
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
	note(connect(fd, (struct sockaddr *)&address, sizeof address));
}

static void backlog(bool as_user)
{
	static const int results[] = { 0, EAGAIN, 0, 0, EAGAIN };

	start(as_user);
	CHECK(run_box(program_backlog) == 0);
	expect_results(results, ARRAY_SIZE(results));
	CHECK(shared->elapsed_ms >= 150);
	if (longest_us >= 100000)
		printf("# %llu us in one notify_handle()\n", (unsigned long long)longest_us);
	CHECK(longest_us < 100000);
	CHECK(list.count == 0);
	finish();
}

static struct sockaddr_in inet_address(const char *text, uint16_t port)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(port) };

	inet_pton(AF_INET, text, &address.sin_addr);
	return address;
}

static int connect_inet(int type, const char *text, uint16_t port)
{
	struct sockaddr_in address = inet_address(text, port);
	int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);

	return connect(fd, (struct sockaddr *)&address, sizeof address);
}

static void program_none(void)
{
	struct sockaddr_in address = inet_address("198.51.100.7", 99),
			   any = inet_address("0.0.0.0", 0);
	struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_port = htons(80) };
	struct iovec bytes = { "x", 1 };
	struct mmsghdr messages[2] = { { .msg_hdr = { .msg_iov = &bytes, .msg_iovlen = 1 } } };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int six_fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);

	inet_pton(AF_INET6, "2001:db8::1", &six.sin6_addr);
	note(connect_inet(SOCK_STREAM, "198.51.100.7", 443));
	note(connect_inet(SOCK_STREAM, "127.0.0.1", 80));
	note(sendto(fd, "x", 1, 0, (struct sockaddr *)&address, sizeof address));
	messages[0].msg_hdr.msg_name = &address;
	messages[0].msg_hdr.msg_namelen = sizeof address;
	messages[1] = messages[0];
	note(sendmsg(fd, &messages[0].msg_hdr, 0));
	note(sendmmsg(fd, messages, 2, 0));
	note(connect(six_fd, (struct sockaddr *)&six, sizeof six));
	note(bind(fd, (struct sockaddr *)&any, sizeof any));
}

static void network_none(bool as_user)
{
	static const int results[] = {
		ENETUNREACH, ENETUNREACH, ENETUNREACH, ENETUNREACH, ENETUNREACH, ENETUNREACH, 0
	};

	start(as_user);
	CHECK(run_box(program_none) == 0);
	expect_results(results, ARRAY_SIZE(results));
	if (list.count != 6)
		show();
	CHECK(list.count == 6);
	CHECK_STR(list.facts[0].detail.address, "198.51.100.7");
	CHECK(list.facts[0].detail.port == 443 && list.facts[0].is_certain);
	CHECK_STR(list.facts[0].rule, "network.mode: none");
	CHECK_STR(list.facts[5].detail.address, "2001:db8::1");
	finish();
}

static int make_server(uint16_t *ret_port)
{
	struct sockaddr_in address = inet_address("127.0.0.1", 0);
	socklen_t size = sizeof address;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (bind(fd, (struct sockaddr *)&address, sizeof address) < 0 || listen(fd, 0) < 0 ||
	    getsockname(fd, (struct sockaddr *)&address, &size) < 0)
		return -1;
	*ret_port = ntohs(address.sin_port);
	return fd;
}

static void program_loopback(void)
{
	uint16_t port = 0;
	int server = make_server(&port), fd;
	struct sockaddr_in address = inet_address("127.0.0.1", port);

	note(server);
	note(connect_inet(SOCK_STREAM, "127.0.0.1", port));
	note(accept(server, NULL, NULL));
	note(connect_inet(SOCK_STREAM, "127.9.9.9", 1));
	note(connect_inet(SOCK_STREAM, "198.51.100.7", 443));
	note(connect_inet(SOCK_DGRAM, "127.0.0.1", 9));
	/* full backlog: TCP goes on by itself, and the answer comes late */
	note(connect_inet(SOCK_STREAM, "127.0.0.1", port));
	if (fork() == 0) {
		usleep(200 * 1000);
		accept(server, NULL, NULL);
		accept(server, NULL, NULL);
		usleep(300 * 1000);
		_exit(0);
	}
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	note(connect(fd, (struct sockaddr *)&address, sizeof address));
	note(write(fd, "x", 1));
	note(fcntl(fd, F_GETFL) & O_NONBLOCK ? -1 : 0);
}

static void network_loopback(bool as_user)
{
	static const int results[] = { 0, 0, 0, ECONNREFUSED, ENETUNREACH, 0, 0, 0, 0, 0 };

	start(as_user);
	with_loopback = true;
	plan.network = NETWORK_LOOPBACK;
	CHECK(run_box(program_loopback) == 0);
	expect_results(results, ARRAY_SIZE(results));
	if (list.count != 1)
		show();
	CHECK(list.count == 1);
	CHECK_STR(list.facts[0].detail.address, "198.51.100.7");
	CHECK(longest_us < 100000);
	finish();
}

static void program_lookup(void)
{
	static const uint8_t bad[] = { 1, 2, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 63, 'x' };
	struct sockaddr_in resolver = inet_address(FACT_RESOLVER, 53);
	struct addrinfo *found, hints = { .ai_socktype = SOCK_STREAM };
	int64_t begin = (int64_t)clock_now_ms();
	int fd;

	note(getaddrinfo("files.example.org", "443", &hints, &found) ? 0 : -1);
	shared->elapsed_ms = (int64_t)clock_now_ms() - begin;
	/* a query that lies about its lengths, sent with an address */
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	note(sendto(fd, bad, sizeof bad, 0, (struct sockaddr *)&resolver, sizeof resolver));
	/* connected, but the query never comes */
	note(connect(fd, (struct sockaddr *)&resolver, sizeof resolver));
}

static void lookup(bool as_user)
{
	static const int results[] = { 0, ENETUNREACH, 0 };

	start(as_user);
	CHECK(run_box(program_lookup) == 0);
	expect_results(results, ARRAY_SIZE(results));
	if (list.count != 3)
		show();
	CHECK(list.count == 3 && shared->elapsed_ms < 500);
	CHECK_STR(list.facts[0].detail.host, "files.example.org");
	CHECK_STR(list.facts[0].detail.address, FACT_RESOLVER);
	CHECK(strstr(list.facts[0].say, "files.example.org"));
	CHECK(!list.facts[1].detail.host[0] && !list.facts[2].detail.host[0]);
	finish();
}

static void program_hidden(void)
{
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	note(open_("/tmp/x", O_WRONLY | O_CREAT));
	note(connect_path("/tmp/own.sock"));
}

/* What cannot be read is not connected, and the record says that it was not observed. */
static void unreadable(bool as_user)
{
	static const int results[] = { 0, EACCES };

	start(as_user);
	if (!is_user) {
		finish();
		SKIP("ordinary user: root may read every process");
	}
	CHECK(run_box(program_hidden) == 0);
	expect_results(results, ARRAY_SIZE(results));
	CHECK(stats.unreadable == 2 && list.count == 2);
	CHECK(list.facts[0].detail.path_unknown && list.facts[0].is_expected);
	CHECK(list.facts[1].event == FACT_NETWORK_ACCESS && list.facts[1].detail.path_unknown);
	finish();
}

BOTH(sockets)
BOTH(swapped)
BOTH(threads)
BOTH(backlog)
BOTH(network_none)
BOTH(network_loopback)
BOTH(lookup)

static void unreadable_user(void)
{
	unreadable(true);
}

static const struct tap_test tests[] = {
	ROWS(sockets, "connect reaches sockets on scratch only"),
	ROWS(swapped, "an address swapped by a thread reaches nothing"),
	ROWS(threads, "connect works from a thread"),
	ROWS(backlog, "a full backlog does not stop the monitor"),
	ROWS(network_none, "network none: every inet address is a fact"),
	ROWS(network_loopback, "network loopback: connects work, foreign ones are facts"),
	ROWS(lookup, "a lookup fails at once and its fact has the name"),
	{ "what cannot be read is not connected (ordinary user)", unreadable_user },
};

TAP_MAIN(tests)
