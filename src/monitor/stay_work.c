/*
 * Calls that a worker answers. Towards the client they are calls as any other; towards the worker
 * the monitor is what it is towards the agent, and believes it as little: a worker reads what
 * untrusted code wrote.
 */
#include <errno.h>

#include "base/clock.h"
#include "base/fd.h"
#include "monitor/stay_verbs.h"

/* In the worker: what ends with the monitor, for those who wait for it, is not held open here. */
void stay_forget(void *data)
{
	struct stay *stay = data;

	for (size_t i = 0; i < stay->clients_end; i++)
		fd_close(stay->clients[i].channel.fd);
	if (stay->setup->port)
		fd_close(stay->setup->port->out_fd);
	for (size_t i = 0; i < stay->calls_end; i++)
		if (stay->calls[i].work)
			fd_close(stay->calls[i].work->channel.fd);
	gates_forget(stay->run.gates);
	fd_close(stay->setup->listen_fd);
	fd_close(stay->run.wall.stream);
}

int stay_work_start(struct stay *stay, struct stay_call *call, const struct term *map,
		    struct csn_error *err)
{
	struct work_order order = {
		.run = &stay->run,
		.ref = call->ref,
		.work = call->own->work,
		.map = map,
		.forget = stay_forget,
		.data = stay,
	};

	for (size_t i = 0; i < STAY_CALLS; i++)
		order.others += stay->calls[i].work != NULL;
	return work_start(&order, &call->work, err);
}

/* ---- what it says --------------------------------------------------------------------------- */

struct hearing {
	struct stay *stay;
	struct stay_call *call;
};

static int on_note(struct stay *stay, struct stay_call *call, const struct term *map,
		   struct csn_error *err)
{
	if (!call->own->note)
		return csn_fail(err, -EBADMSG, "worker", "a note out of turn");
	return call->own->note(stay, map, err);
}

/* Its frames are an agent's, about one call. */
static int handle(void *data, int index, const struct term *items, struct csn_error *err)
{
	struct hearing *hearing = data;
	struct stay_call *call = hearing->call;

	if (!call->ref)
		return csn_fail(err, -EBADMSG, "worker", "a message after the reply");
	if (index == FRAME_FACT)
		return on_note(hearing->stay, call, &items[1], err);
	if ((index != FRAME_REPLY && index != FRAME_FAILED && index != FRAME_DATA_OUT) ||
	    items[1].integer != call->ref)
		return csn_fail(err, -EBADMSG, "worker", "a message out of turn");
	return stay_handle_frame(hearing->stay, index, items, err);
}

/* Before its reply: it was cancelled, or it failed in a way that it could not tell. */
static void end(struct stay_call *call, const struct csn_error *err)
{
	if (call->client)
		stay_refuse(call->client, call->client_ref,
			    call->is_cancelled ? "cancelled" : "lost",
			    call->is_cancelled ? "the call was cancelled"
			    : err->code        ? err->text
					       : "the process that did it died");
	stay_call_free(call);
}

void stay_work_ready(struct stay *stay, struct stay_call *call)
{
	struct hearing hearing = { stay, call };
	struct csn_error err = { 0 };
	struct work *work = call->work;

	if (channel_read(&work->channel, handle, &hearing, &err) < 0 || work->channel.is_ended)
		end(call, &err);
}
