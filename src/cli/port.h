/*
 * port - frames on standard input and output, shared by port.c and port_join.c
 *
 * Both streams are non-blocking, descriptors of our own; 0 and 1 are /dev/null then, so that
 * nothing else is read or written there.
 */
#pragma once

#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

struct emit;

struct port {
	int in, out;                      /* owned */
	bool is_in_shared, is_out_shared; /* with others, for whom they block */
	struct buf say;                   /* what is to be written */
};

/* Writes all that is to be said. 0, -ETIMEDOUT: nobody reads, or another negative errno. */
int port_flush(struct port *port);

/* Says {failed, Ref, Reason, "stage: sentence"}, after what was to be said before. As port_flush().
 */
int port_fail(struct port *port, int64_t ref, const char *reason, const struct csn_error *err);

/* {reply, Ref, …: a map follows. */
struct emit port_reply(struct port *port, int64_t ref);

/*
 * Joins the sandbox `name`, answers {open, Ref, …} and passes frames on, both ways, until {close,
 * …}, or either side ends. 0: it was joined, and left or ended by who joined it; 1: it ended by
 * itself, `err` says why; -errno with a sentence: it was not joined, and nothing is said yet.
 */
int port_join(struct port *port, int64_t ref, const char *name, struct csn_error *err);

/*
 * The same with a prepared sandbox, whose stream `fd` is, and is taken: it is this port's own. It
 * ends with standard input, and {close, …} is answered when its monitor is gone.
 */
int port_own(struct port *port, int64_t ref, int fd, struct csn_error *err);
