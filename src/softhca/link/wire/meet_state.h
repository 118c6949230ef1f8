/* meet_state.h - the state of a struct hca_meet, for meet.c, incoming.c, recipient.c and call.c. */
#ifndef HCA_MEET_STATE_H
#define HCA_MEET_STATE_H

#include <net/if.h>
#include <sys/epoll.h>

#include "softhca/base/base.h"
#include "softhca/base/layout.h"
#include "softhca/link/wire/handover.h"
#include "softhca/link/wire/handshake.h"
#include "softhca/link/wire/meet.h"
#include "softhca/link/wire/socket.h"

enum { HCA_HINTS = 64 };

#define HCA_CROSSED "(accepted: in net=, interfaces of one network at the same place on both hosts; where a " \
	"host has two in one network, net.ipv4.conf.all.arp_ignore=1, arp_announce=2, rp_filter=2)"

struct hca_incoming;
struct hca_call;

struct hca_rail {
	struct sockaddr_storage local;
	char interface[IFNAMSIZ];	/* its name at the begin; "": as routed */
	unsigned index;			/* its number; 0: none */
	/* A host whose calls arrived on another interface, and went no further; port 0: none. */
	struct hca_endpoint crossed;
	/* The last host whose call went no further, and why; NULL: none, or a later call of it did. */
	struct hca_endpoint turned_away;
	const char *why;
	struct hca_watch listener;
};

/* The port at which a process of this fabric answered last; port 0: none. */
struct hca_hint {
	unsigned char address[16];
	uint16_t port;
};

struct hca_meet {
	struct hca_meet_config config;		/* its pointers are stale but arg and functions */
	struct hca_credentials credentials;
	struct hca_rail rail[HCA_PORTS_MAX];
	int epoll;
	uint16_t port;
	uint64_t next_ns;
	uint64_t listen_again_ns;	/* the listeners pause; 0: they do not */
	uint64_t crossed_ns;		/* a look at calls on another interface; 0: there are none */
	/* Where others hand connections over (recipient.c); fd -1: none. */
	struct hca_watch handovers;
	struct hca_handover_poll givers;
	uint64_t giver_look_ns;
	unsigned number;
	struct hca_handover_search search;
	bool lacks;			/* people know that descriptors are lacking */

	/* Connections of others that have proven nothing; the oldest first, by time of arrival. */
	struct hca_incoming *incoming, **incoming_end;
	unsigned incoming_count;

	/* Calls of this process. */
	struct hca_list_node *calls;
	uint64_t turn;				/* number of the call of hca_calls_progress */
	struct hca_hint hint[HCA_HINTS];
};

/* The next giver comes when the last one has gone, and listeners do not pause. */
static inline void hca_handovers_listen(struct hca_meet *m)
{
	if (m->handovers.fd >= 0)
		hca_watch_change(m->epoll, &m->handovers,
				 m->givers.giver < 0 && !m->listen_again_ns ? EPOLLIN : 0);
}

/* incoming.c: connections that others opened */
void hca_incoming_accept(struct hca_meet *m, struct hca_rail *rail);
/* Room for one more: else the listeners pause. */
bool hca_incoming_has_room(struct hca_meet *m);
void hca_incoming_lacks(struct hca_meet *m, const char *where, int error);
/* A connection that was handed over; its descriptor is this process's. */
void hca_incoming_take(struct hca_meet *m, const struct hca_handover *h);
void hca_incoming_serve(struct hca_meet *m, struct hca_watch *w);
void hca_incoming_progress(struct hca_meet *m, uint64_t now_ns);
uint64_t hca_incoming_next_ns(const struct hca_meet *m);
void hca_incoming_close(struct hca_meet *m);

/* recipient.c: connections that change hands */
int hca_recipient_begin(struct hca_meet *m);
void hca_recipient_end(struct hca_meet *m);
void hca_recipient_serve(struct hca_meet *m);
void hca_recipient_progress(struct hca_meet *m, uint64_t now_ns);
uint64_t hca_recipient_next_ns(const struct hca_meet *m);

/* call.c, call_reply.c: connections that this process opens */
int hca_call_start(struct hca_meet *m, const struct sockaddr_storage *to,
		   const struct hca_hello *h, void *token);
void hca_call_serve(struct hca_meet *m, struct hca_watch *w);
void hca_calls_progress(struct hca_meet *m, uint64_t now_ns);
uint64_t hca_calls_next_ns(const struct hca_meet *m);
/* Does this end call a process at that address, by no question? */
bool hca_calls_address(const struct hca_meet *m, const struct sockaddr_storage *peer);
/* All calls with this token; any: all of them. */
void hca_calls_cancel(struct hca_meet *m, const void *token, bool any);

#endif
