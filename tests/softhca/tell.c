/*
 * tell.c - diagnostics of a process in a seat when a message is missing: its last
 * completions, and libsofthca's state of its queues.
 */
#include <stdio.h>

#include "softhca/object/cq.h"
#include "member.h"
#include "softhca/object/qp.h"
#include "softhca/object/srq.h"

static const char *const state_names[] = {
	[HCA_FREE] = "free", [HCA_POSTED] = "posted", [HCA_FULL] = "full",
	[HCA_CLAIMED] = "claimed", [HCA_REVOKED] = "revoked", [HCA_RETURNED] = "returned",
	[HCA_DONE] = "done",
};

/* "7:claimed(3)": claimed in position or lap 7 by claimer 3. */
static void tell_state(uint64_t state)
{
	enum hca_state kind = hca_shm_kind(state);

	fprintf(stderr, " %u:%s", (unsigned)(state >> 32),
		kind < sizeof(state_names) / sizeof(*state_names) ? state_names[kind] : "?");
	if (kind == HCA_CLAIMED || kind == HCA_REVOKED)
		fprintf(stderr, "(%x)", (unsigned)hca_shm_claimer(state));
}

static void tell_send_queue(const struct hca_qp *qp)
{
	const struct hca_message *m = &qp->message;

	fprintf(stderr, "    qp %x, state %d: sends next %u, posted %u, polled %u, wait %d, fast "
		"%d, section %u; at the peer's receive %u; last message: %u bytes, %u done, "
		"claimed %d, position %u, entry %u\n", hca_qpn(qp), hca_qp_state(qp), qp->sq.next,
		qp->sq.posted, atomic_load(&qp->sq.done), (int)qp->sq.wait, qp->fast,
		atomic_load(&qp->shm->access_section), qp->conn.rq_head, m->bytes, m->done, m->claimed,
		m->position, m->claim.entry);
}

static void tell_own_receives(const struct hca_qp *qp)
{
	const struct hca_rq *rq = &qp->rq;
	uint32_t next = atomic_load(&rq->next), i;

	fprintf(stderr, "    receives: next %u, posted %u, polled %u, peer's head %u;", next,
		atomic_load(&rq->posted), atomic_load(&rq->done),
		atomic_load(&qp->shm->rq_head));
	for (i = 0; i < rq->depth && i < 16; i++)
		tell_state(atomic_load(&hca_rq_entry(rq->ring, next - 4 + i, rq->mask,
						     rq->stride)->state));
	fprintf(stderr, "\n");
}

static void tell_shared(const struct hca_shared *s)
{
	const struct hca_shm_shared *shm = s->view.shm;
	uint32_t i;

	fprintf(stderr, "  shared receives: head %u, posted %u, first %u, freed %u, taken of them "
		"%u, recovered %u, returned %u\n", atomic_load(&shm->head), s->posted, s->first,
		atomic_load(&s->freed_tail), s->freed_head, s->recovered,
		atomic_load(&shm->returned));
	for (i = 0; i < s->depth; i++) {
		uint64_t held = atomic_load(&s->wr[i].held), order = atomic_load(&shm->order[i]);

		fprintf(stderr, "    entry %u:", i);
		tell_state(atomic_load(&hca_rq_entry(s->view.ring, i, s->view.mask,
						     s->view.stride)->state));
		fprintf(stderr, ", held at %u: %u, wr_id %llx; order: entry %u at %u\n",
			(unsigned)(held >> 32), (unsigned)held, (unsigned long long)s->wr[i].wr_id,
			(unsigned)order, (unsigned)(order >> 32));
	}
}

static void tell_cq(const struct hca_cq *cq, const char *what)
{
	const struct hca_mailbox *m = &cq->mailbox;
	uint32_t i;

	fprintf(stderr, "  %s: %u of %u in the list, mailbox %u of %u slots, head %u, tail %u, "
		"overflow %u;", what, cq->count, cq->size, cq->line, m->mask + 1, cq->head,
		atomic_load(&m->shm->tail), atomic_load(&m->shm->overflow));
	for (i = 0; i < 12; i++) {
		const struct hca_shm_cqe *e = &m->shm->slot[(cq->head - 8 + i) & m->mask];

		tell_state(atomic_load(&e->state));
		fprintf(stderr, "[qp %x, receive %u/%u, from %x, %d]", e->qpn, e->position,
			e->entry, e->src_qp, e->opcode);
	}
	fprintf(stderr, "\n");
}

static void tell_history(const struct member *n)
{
	uint32_t i, count = n->noted < HISTORY ? n->noted : HISTORY;

	for (i = n->noted - count; i != n->noted; i++) {
		const struct note *c = &n->history[i % HISTORY];

		fprintf(stderr, "    %llu us, round %u: qp %x, wr_id %llx, opcode %d, status %d, "
			"%u bytes, imm %u; before it %llu sent, %llu received\n",
			(unsigned long long)(c->at_ns / 1000), c->round, c->wc.qp_num,
			(unsigned long long)c->wc.wr_id, (int)c->wc.opcode, (int)c->wc.status,
			c->wc.byte_len, c->wc.imm_data, (unsigned long long)c->sent,
			(unsigned long long)c->received);
	}
}

void member_tell(const struct member *n)
{
	static const char *const kinds[KINDS] = { "main", "shared", "channel", "loose" };
	int i, k;

	fprintf(stderr, "seat %d, incarnation %u, %llu us:\n", n->me, n->incarnation,
		(unsigned long long)(now_ns() / 1000));
	for (i = 0; i < SEATS; i++)
		for (k = 0; k < KINDS; k++) {
			const struct link *l = &n->link[i];
			const struct hca_qp *qp;

			if (!l->e[k].qp)
				continue;
			qp = hca_qp_of(l->e[k].qp);
			fprintf(stderr, "  seat %d to %d (incarnation %u), %s: alive %d, %llu sent, "
				"%llu acknowledged, %llu received\n", n->me, i, l->to.incarnation,
				kinds[k], l->alive, (unsigned long long)l->n[k].sent,
				(unsigned long long)l->n[k].acked,
				(unsigned long long)l->n[k].received);
			tell_send_queue(qp);
			if (!qp->shared)
				tell_own_receives(qp);
		}
	if (n->srq)
		tell_shared(&hca_srq_of(n->srq)->shared);
	tell_cq(hca_cq_of(n->cq), "completions");
	if (n->channel)
		tell_cq(hca_cq_of(n->channel_cq), "the channel's");
	fprintf(stderr, "  the last completions of all kinds:\n");
	tell_history(n);
	fflush(stderr);
}
