/*
 * Who is connected, and the frames from and to him. A client is the sandbox's owner or somebody of
 * the same uid, so he is trusted to ask; what he sends is bounded and checked all the same, since
 * he may be broken, or a program that only relays.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/errno_name.h"
#include "base/fd.h"
#include "base/str.h"
#include "monitor/stay_verbs.h"

/* ---- to a client --------------------------------------------------------------------------- */

static void send_or_drop(struct stay_client *client, struct emit *emit)
{
	/* Beyond 32 MiB of what he does not read: windows keep honest clients far below. */
	if (channel_send(&client->channel, emit) < 0)
		client->is_gone = true;
}

void stay_refuse(struct stay_client *client, int64_t ref, const char *reason, const char *detail)
{
	struct emit emit = channel_frame(&client->channel);

	emit_failed(&emit, ref, reason, detail);
	send_or_drop(client, &emit);
}

/* The agent's, and those of the monitor that this sandbox has. */
static void emit_verbs(struct emit *emit, const struct stay *stay)
{
	uint32_t count = (uint32_t)__builtin_popcountll(stay->verbs);

	for (size_t i = 0; i < stay_verb_count; i++)
		count += !stay_verbs[i].missing(stay);
	emit_list(emit, count);
	for (size_t i = 0; i < frame_verb_count; i++)
		if (stay->verbs >> i & 1)
			emit_atom(emit, frame_verbs[i].name);
	for (size_t i = 0; i < stay_verb_count; i++)
		if (!stay_verbs[i].missing(stay))
			emit_atom(emit, stay_verbs[i].name);
	emit_nil(emit);
}

void stay_emit_abilities(struct emit *emit, const struct stay *stay)
{
	uint64_t enforces = run_enforces(&stay->run);

	emit_atom(emit, "verbs");
	emit_verbs(emit, stay);
	emit_atom(emit, "enforces");
	emit_list(emit, (uint32_t)__builtin_popcountll(enforces));
	for (unsigned bit = 0; bit < FEATURE_COUNT; bit++)
		if (enforces >> bit & 1)
			emit_atom(emit, plan_feature_name(bit));
	emit_nil(emit);
}

static void greet(struct stay *stay, struct stay_client *client)
{
	struct emit emit = channel_frame(&client->channel);

	emit_tuple(&emit, 2);
	emit_atom(&emit, "ready");
	emit_map(&emit, 3);
	emit_atom(&emit, "version");
	emit_int(&emit, STAY_PROTOCOL);
	stay_emit_abilities(&emit, stay);
	send_or_drop(client, &emit);
}

/* ---- from a client ------------------------------------------------------------------------- */

struct speaker {
	struct stay *stay;
	struct stay_client *client;
};

/* Who only connects, or looks as `ps` does, leaves the idle clock alone. */
static bool is_quiet(int index, const struct term *items)
{
	const struct stay_verb *own = index == FRAME_CALL ? stay_verb_find(&items[2]) : NULL;

	return own && own->is_quiet;
}

static int handle(void *data, int index, const struct term *items, struct csn_error *err)
{
	struct speaker *speaker = data;

	if (!is_quiet(index, items))
		speaker->stay->heard_ms = clock_now_ms();
	if (index == FRAME_STOP) {
		speaker->stay->is_over = true;
		return 0;
	}
	if (index == FRAME_CALL)
		return stay_call_new(speaker->stay, speaker->client, items);
	if (index == FRAME_CLOSE) {
		speaker->stay->is_over = speaker->stay->is_closed = true;
		speaker->stay->close_ref = items[1].integer;
		return 0;
	}
	if (index == FRAME_GATE_RESULT && speaker->client->is_owner) {
		gates_answered(speaker->stay->run.gates, items);
		return 0;
	}
	if (index == FRAME_INIT || index == FRAME_OPEN)
		return csn_fail(err, -EBADMSG, "wire", "this sandbox runs already");
	return stay_call_pass(speaker->stay, speaker->client, index, items);
}

void stay_client_ready(struct stay *stay, struct stay_client *client, short events)
{
	struct speaker speaker = { stay, client };
	struct csn_error err = { 0 };

	if (client->is_gone || !(events & (POLLIN | POLLHUP | POLLERR)))
		return;
	client->heard_ms = clock_now_ms();
	if (channel_read(&client->channel, handle, &speaker, &err) < 0) {
		client->channel.is_broken = false; /* for what is said to him; no more is read */
		stay_refuse(client, 0, "invalid", err.code ? err.text : "too much was sent");
		channel_flush(&client->channel);
		if (client->is_owner && stay->setup->port)
			stay_port_lose(stay, &err);
		else
			client->is_gone = true;
	}
	if (client->channel.is_ended)
		client->is_gone = true;
}

/* ---- coming and going ------------------------------------------------------------------------ */

/* A place; the longest silent client without a call makes room, never the owner. */
static struct stay_client *find_place(struct stay *stay)
{
	struct stay_client *silent = NULL;

	for (size_t i = 0; i < stay->clients_end; i++) {
		struct stay_client *client = &stay->clients[i];

		if (client->channel.fd < 0)
			return client;
		if (client->calls == 0 && !client->is_owner &&
		    (!silent || client->heard_ms < silent->heard_ms))
			silent = client;
	}
	if (stay->clients_end < STAY_CLIENTS)
		return &stay->clients[stay->clients_end++];
	if (silent) {
		fd_close(silent->channel.fd);
		channel_done(&silent->channel);
	}
	return silent;
}

void stay_client_own(struct stay *stay, struct stay_client *client)
{
	client->is_owner = true;
	gates_on_host(stay->run.gates, &client->channel);
}

struct stay_client *stay_client_add(struct stay *stay, int fd)
{
	struct stay_client *client = find_place(stay);

	if (!client)
		return NULL;
	*client = (struct stay_client){ .heard_ms = clock_now_ms() };
	fd_widen(fd, FRAME_STREAM);
	channel_init(&client->channel, fd);
	client->channel.side = FROM_MONITOR; /* he takes the monitor's part of the protocol */
	if (stay->is_up && !(fd == stay->setup->owner_fd && stay->setup->port))
		greet(stay, client);
	return client;
}

/* The socket's mode keeps others out; this holds where its folder was made by somebody else. */
static bool is_ours(int fd)
{
	struct ucred peer;
	socklen_t size = sizeof peer;

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == geteuid();
}

void stay_accept(struct stay *stay)
{
	enum { AT_ONCE = 16 };

	for (int i = 0; i < AT_ONCE; i++) {
		_cleanup_fd_ int fd =
			accept4(stay->setup->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd < 0)
			return;
		if (is_ours(fd) && stay_client_add(stay, fd))
			fd_take(&fd);
	}
}

static void leave(struct stay *stay, struct stay_client *client)
{
	for (size_t i = 0; i < stay->calls_end; i++) {
		struct stay_call *call = &stay->calls[i];

		if (!call->ref || call->client != client)
			continue;
		if (call->exec)
			stay_exec_end(stay, call, END_CANCELLED, false);
		else
			stay_call_cancel(stay, call);
		stay_call_forget(call);
	}
	if (client->is_owner)
		stay->is_over = true;
	else
		fd_close(client->channel.fd);
	channel_done(&client->channel);
	*client = (struct stay_client){ .channel.fd = -1 };
}

void stay_clients_turn(struct stay *stay)
{
	for (size_t i = 0; i < stay->clients_end; i++) {
		struct stay_client *client = &stay->clients[i];

		if (client->channel.fd < 0)
			continue;
		if (channel_flush(&client->channel) < 0)
			client->is_gone = true;
		if (client->is_gone)
			leave(stay, client);
	}
}

/* {bye, …}: how the sandbox ended, and what is to be said of it. */
static void say_bye(const struct run *run, struct stay_client *client)
{
	struct emit emit = channel_frame(&client->channel);
	const struct csn_error *err = &run->error;

	emit_tuple(&emit, 2);
	emit_atom(&emit, "bye");
	emit_map(&emit, err->code ? 4 : 1);
	emit_atom(&emit, "reason");
	emit_text(&emit, ending_name(run->ending));
	if (err->code) {
		emit_atom(&emit, "code");
		emit_text(&emit, error_name(err));
		emit_atom(&emit, "stage");
		emit_text(&emit, err->stage);
		emit_atom(&emit, "text");
		emit_text(&emit, err->text);
	}
	send_or_drop(client, &emit);
}

void stay_clients_done(struct stay *stay, const struct run_outcome *outcome)
{
	for (size_t i = 0; i < stay->clients_end; i++) {
		struct stay_client *client = &stay->clients[i];

		if (client->channel.fd < 0)
			continue;
		if (client->is_owner && stay->is_closed)
			stay_port_closed(stay, client, outcome);
		else
			say_bye(&stay->run, client);
		channel_flush(&client->channel);
		if (client->channel.out_fd >= 0)
			stay_port_linger(client);
		channel_done(&client->channel);
	}
}
