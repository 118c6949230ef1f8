/* parked.c - streams that wait for their queue pair, which is not connected yet. */
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "softhca/link/wire/socket.h"
#include "softhca/link/wire/wire.h"
#include "util/clock.h"

enum { PARKED_MAX = 256 };		/* the oldest go: their callers call again */
#define PARKED_NS 60000000000ull

struct hca_wire_parked {
	struct hca_wire_parked *next;
	struct hca_hello hello;
	uint64_t since_ns;
	int fd;
};

static void unpark(struct hca_wire_parked **at)
{
	struct hca_wire_parked *p = *at;

	*at = p->next;
	free(p);
}

void hca_wire_park(struct hca_wire *wire, int fd, const struct hca_hello *h)
{
	struct hca_wire_parked *p = calloc(1, sizeof(*p)), **at;
	unsigned n = 0;

	if (!p) {
		hca_socket_close(fd);
		return;
	}
	*p = (struct hca_wire_parked){ .next = wire->parked, .hello = *h, .since_ns = rg_now_ns(),
				       .fd = fd };
	wire->parked = p;
	hca_wire_look_at(&wire->look_ns, p->since_ns + PARKED_NS);
	for (at = &wire->parked; *at && n < PARKED_MAX; at = &(*at)->next)
		n++;
	while (*at) {			/* the oldest go */
		hca_socket_close((*at)->fd);
		unpark(at);
	}
}

bool hca_wire_is_for(const struct hca_hello *h, const struct hca_qp *qp)
{
	return h->target_qpn == hca_qpn(qp) && h->source_qpn == qp->attr.dest_qp_num &&
	       memcmp(&h->source, &qp->attr.ah_attr.grh.dgid, sizeof(h->source)) == 0;
}

/* Its caller has closed it: with or without a farewell, it is of an earlier life. */
static bool has_ended(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLRDHUP };

	return poll(&p, 1, 0) == 1 && (p.revents & (POLLRDHUP | POLLHUP | POLLERR));
}

int hca_wire_parked_for(struct hca_wire *wire, const struct hca_qp *qp, bool sends, uint32_t *psn)
{
	struct hca_wire_parked **at = &wire->parked;
	int fd = -1;

	while (*at) {
		const struct hca_wire_parked *p = *at;

		if (p->hello.target_qpn != hca_qpn(qp)) {
			at = &(*at)->next;
			continue;
		}
		if (!hca_wire_is_for(&p->hello, qp) || has_ended(p->fd) ||
		    (sends && qp->reliable && p->hello.psn != qp->attr.sq_psn)) {
			hca_socket_close(p->fd);
			unpark(at);
		} else if (fd < 0) {
			fd = p->fd;
			*psn = p->hello.psn;
			unpark(at);
		} else {
			at = &(*at)->next;
		}
	}
	return fd;
}

void hca_wire_parked_drop(struct hca_wire *wire, const struct hca_qp *qp)
{
	struct hca_wire_parked **at = &wire->parked;

	while (*at) {
		if ((*at)->hello.target_qpn != hca_qpn(qp)) {
			at = &(*at)->next;
			continue;
		}
		hca_socket_close((*at)->fd);
		unpark(at);
	}
}

void hca_wire_parked_expire(struct hca_wire *wire, uint64_t now_ns)
{
	struct hca_wire_parked **at = &wire->parked;

	while (*at) {
		if (!rg_reached((*at)->since_ns + PARKED_NS, now_ns)) {
			at = &(*at)->next;
			continue;
		}
		hca_socket_close((*at)->fd);
		unpark(at);
	}
}

void hca_wire_parked_free(struct hca_wire *wire)
{
	while (wire->parked) {
		hca_socket_close(wire->parked->fd);
		unpark(&wire->parked);
	}
}
