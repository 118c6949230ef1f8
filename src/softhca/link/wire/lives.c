/*
 * lives.c - which stream is of this life of a queue pair.
 *
 * Numbers and addresses recur in a later life; PSNs tell lives apart.  Each end tells which PSN it
 * expects, the caller in its hello and the other one in its first frame.  Each compares that with its
 * own before it sends, which is in RTS: a stream of another life ends, and the queue pair has the next
 * one.  Unreliable queue pairs take any PSN, as adapters do.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "softhca/link/wire/wire.h"

void hca_wire_await_another(struct hca_wire_qp *w)
{
	uint32_t psn = 0;
	int fd;

	hca_wire_close(w, w->calls ? HCA_WIRE_CALLING : HCA_WIRE_EXPECTING);
	w->fate = HCA_FATE_ALIVE;
	w->broken = 0;
	if (w->calls) {
		hca_wire_pause_calls(w);
		return;
	}
	fd = hca_wire_parked_for(w->wire, w->qp, w->sends, &psn);
	if (fd >= 0)
		hca_wire_open(w, fd, psn);
}

bool hca_wire_is_of_this_life(struct hca_wire_qp *w)
{
	const struct hca_qp *qp = w->qp;
	char why[128];

	if (!hca_wire_is_of_any_life(w) || w->peer_psn == qp->attr.sq_psn) {
		w->of_this_life = true;
		hca_wire_parked_drop(w->wire, qp);
		return true;
	}
	snprintf(why, sizeof(why), "queue pair %u sends from PSN %u (sq_psn), and its peer expects %u (rq_psn)",
		 hca_qpn(qp), qp->attr.sq_psn, w->peer_psn);
	free(w->why);
	w->why = strdup(why);
	hca_wire_disown(w);
	hca_wire_await_another(w);
	return false;
}

bool hca_wire_is_of_any_life(const struct hca_wire_qp *w)
{
	return w->qp->reliable && !w->of_this_life && !w->expected && !w->request.receive.claimed;
}

void hca_wire_qp_sends(struct hca_qp *qp)
{
	struct hca_wire_qp *w = qp->wire;

	if (!w || w->sends)
		return;
	w->sends = true;
	if (w->state == HCA_WIRE_OPEN)
		hca_wire_is_of_this_life(w);
}

void hca_wire_disowned(struct hca_wire_qp *w)
{
	if (!w->qp->reliable || w->qp->sq.under_way || w->expected)
		hca_wire_left(w);
	else
		hca_wire_await_another(w);
}
