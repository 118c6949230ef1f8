/* atomic.c - atomic operations on the peer's memory. */
#include "softhca/link/memory/peer.h"
#include "softhca/link/memory/atomic.h"
#include "softhca/link/memory/copy.h"
#include "softhca/object/atomics.h"

/* ---- Memory that is not mapped ------------------------------------------- */

static int read_word(struct hca_conn *c, const struct hca_span *s, uint64_t *value)
{
	if (!s->local)
		return hca_copy_remote(c->peer, HCA_FROM_REMOTE, value, s->remote, s->key, HCA_WORD);
	memcpy(value, s->local, HCA_WORD);
	return 0;
}

static int write_word(struct hca_conn *c, const struct hca_span *s, uint64_t value)
{
	if (!s->local)
		return hca_copy_remote(c->peer, HCA_TO_REMOTE, &value, s->remote, s->key, HCA_WORD);
	memcpy(s->local, &value, HCA_WORD);
	return 0;
}

static uint64_t word_change(const struct ibv_send_wr *wr, uint64_t old)
{
	return hca_atomic_result(wr->opcode, old, wr->wr.atomic.compare_add, wr->wr.atomic.swap);
}

static int under_lock(struct hca_qp *qp, const struct ibv_send_wr *wr,
		      const struct hca_span *s, uint64_t *old)
{
	struct hca_conn *c = qp->message.to;
	struct hca_atomic_lock lock;
	int rc;

	if (!hca_atomic_lock(qp->fabric, c->address, &qp->message.wait, &lock))
		return -EBUSY;
	rc = read_word(c, s, old);
	/* After a long stop of this process the lock may be another's. */
	if (!rc && !hca_atomic_lock_holds(&lock))
		return -EBUSY;
	if (rc == -EINPROGRESS)
		rc = -EBUSY;		/* nothing was changed: once more */
	else if (!rc && word_change(wr, *old) != *old)
		rc = write_word(c, s, word_change(wr, *old));
	hca_atomic_unlock(&lock);
	return rc;
}

/* ---- The operation ------------------------------------------------------- */

/* The result may go to several pieces. */
static void atomic_scatter(const struct hca_message *m, uint64_t value)
{
	const unsigned char *from = (const unsigned char *)&value;
	size_t left = HCA_WORD;
	unsigned i;

	for (i = 0; i < m->local_count && left; i++) {
		size_t n = m->local[i].bytes < left ? m->local[i].bytes : left;

		memcpy(m->local[i].local, from, n);
		from += n;
		left -= n;
	}
}

int hca_atomic(struct hca_qp *qp, const struct ibv_send_wr *wr)
{
	struct hca_message *m = &qp->message;
	const struct hca_peer *peer = m->to->peer;
	/* A word of which only a part is mapped has pieces; the kernel reaches all of them. */
	struct hca_span word = { .local = m->remote_count == 1 ? m->remote[0].local : NULL,
				 .remote = m->remote[0].remote, .bytes = HCA_WORD,
				 .key = m->remote[0].key };
	uint64_t old;
	int rc = 0;

	if (word.local && word.remote % HCA_WORD == 0 &&
	    (!peer->is_self ||
	     hca_atomic_is_mapped(peer->fabric, wr->wr.atomic.rkey, word.remote)))
		old = hca_atomic_on_processor(wr->opcode, word.local, wr->wr.atomic.compare_add,
					      wr->wr.atomic.swap);
	else
		rc = under_lock(qp, wr, &word, &old);
	if (!rc)
		atomic_scatter(m, old);
	return rc;
}
