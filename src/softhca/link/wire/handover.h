/*
 * handover.h - processes of one user and host that share a TCP port hand connections over to each other.
 *
 * The kernel gives a connection to any one of the listeners of a port.  A process that shares its port has
 * a Unix socket as well, in the abstract name space of its network namespace:
 *
 *	softhca/UID/GROUP/NUMBER
 *
 * GROUP is a hash of what the first bytes of a connection name: a fabric, or the job of a probe.  NUMBER is the
 * first one that is free.  Each connection to it has one message: the accepted descriptor, and the bytes that
 * were read from it.  Both ends check that the other one is of their user.  The recipient goes on as if it had
 * accepted the connection itself: nothing is proven yet.
 */
#ifndef HCA_HANDOVER_H
#define HCA_HANDOVER_H

#include <stddef.h>
#include <stdint.h>

#include "softhca/link/wire/handshake.h"

enum {
	HCA_HANDOVER_NUMBERS = 1024,	/* of a group */
	HCA_HANDOVER_TIMES_MAX = 2,	/* of a connection: to a process of the group, to the owner */
	HCA_HANDOVER_BEGIN_MAX = HCA_HELLO_BYTES,
	HCA_HANDOVER_BYTES = 4 + HCA_HANDOVER_BEGIN_MAX,
	HCA_GREETING_BYTES = 40,	/* of a probe (probe.c) */
};

/* A connection that changes hands. */
struct hca_handover {
	int fd;
	unsigned times;			/* that it has changed hands; the recipient sees 1 at least */
	size_t bytes;			/* that were read from it */
	unsigned char begin[HCA_HANDOVER_BEGIN_MAX];
};

/* ---- Pure ------------------------------ */

/* The group of a probe's job; that of a fabric is its hash (handshake.h). */
void hca_handover_of_job(uint64_t job, unsigned char group[HCA_HASH_BYTES]);
/* Does a connection begin as that of a probe does, as far as its bytes go? */
bool hca_greeting_is_likely(const unsigned char *begin, size_t bytes);
/* "softhca?" and the job, the first 16 bytes of a greeting. */
void hca_greeting_begin(unsigned char *out, uint64_t job);
/* The group that a connection is for: 0; -EAGAIN: more bytes are needed; -EPROTO: none. */
int hca_handover_group(const unsigned char *begin, size_t bytes, unsigned char group[HCA_HASH_BYTES]);
/* The message, without the descriptor: its length; and what a recipient makes of it: 0 or -EPROTO. */
size_t hca_handover_write(unsigned char out[HCA_HANDOVER_BYTES], const struct hca_handover *h);
int hca_handover_read(const unsigned char *in, size_t bytes, struct hca_handover *h);

/* ---- Sockets ------------------------------ */

/* A listening socket with the first free number of the group; or -errno (silent). */
int hca_handover_open(const unsigned char group[HCA_HASH_BYTES], unsigned *number);
#define HCA_GIVER_NS 250000000u		/* for a message to come, which is at once as a rule */
/* Connections to it, one at a time. */
struct hca_handover_poll {
	int listener, giver;		/* -1: none */
	uint64_t due_ns;
};
/*
 * The next message, with the descriptor at a number from 1024 on: 0.  -EAGAIN: none now, and a giver that has
 * not spoken is to be looked at again; -EPERM: a giver of another user; other errors of accept(2).
 */
int hca_handover_next(struct hca_handover_poll *p, struct hca_handover *h, uint64_t now_ns);
void hca_handover_poll_end(struct hca_handover_poll *p);

/*
 * Hand a connection over, to one process of a group or to any: 0, and h->fd remains to be closed here; or
 * -errno: there is no such process, or it has no room.
 */
int hca_handover_to(const unsigned char group[HCA_HASH_BYTES], unsigned number, const struct hca_handover *h);
struct hca_handover_search {		/* of one process; zeros at first */
	unsigned char group[HCA_HASH_BYTES];
	unsigned number;		/* that was found there last */
	uint64_t again_ns;		/* no long search before: the last one found nothing */
};
int hca_handover_to_any(struct hca_handover_search *s, const unsigned char group[HCA_HASH_BYTES],
			const struct hca_handover *h, uint64_t now_ns);

#endif
