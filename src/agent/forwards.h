/*
 * forwards - listeners inside, whose connections go on to an endpoint of the host's
 *
 *   a program ── connect ── a socket that the agent made ── agent ── {forward_…} ── monitor ── host
 *
 * `init` names where to listen: paths of sockets, in scratch, or ports of the loopback. Which
 * endpoint a listener stands for only the monitor knows; from here it gets its number, and bytes.
 *
 * Each connection has a window either way (FRAME_FORWARD_WINDOW): it is read only while the monitor
 * takes more, and what its program does not take is at most a window, kept here. A slow end stalls
 * its own connection and nothing else. While as many are open as there may be, the next ones wait
 * at the listener.
 *
 * Trust: whatever runs inside may connect, write anything, or leave; it can remove the socket or
 * put one of its own there, and deceives itself.
 */
#pragma once

#include "agent/agent.h"

enum { FORWARDS_ERROR = 256 };

struct forwards;

/* Listens on all of `init`'s; where one cannot be had on none, and `ret_error` says why. */
void forwards_open(struct agent *agent, const struct term *places, char ret_error[FORWARDS_ERROR]);

/* Somebody connects to the n-th; something came from the connection in this slot, or it takes more.
 */
void forwards_knock(struct agent *agent, unsigned n);
void forwards_ready(struct agent *agent, unsigned slot, uint32_t events);

/* What the monitor says about a connection. One that is over is passed over. -EBADMSG when the
 * window is overrun. */
int forwards_data(struct agent *agent, int64_t ref, const struct term *bytes);
void forwards_end(struct agent *agent, int64_t ref);
void forwards_window(struct agent *agent, int64_t ref, int64_t bytes);
/* `is_clean`: what came before it is still delivered. */
void forwards_close(struct agent *agent, int64_t ref, bool is_clean);

/* Closes everything. */
void forwards_done(struct agent *agent);
