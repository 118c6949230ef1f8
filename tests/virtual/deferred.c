/*
 * deferred.c - the deferred end of an RDMA write over a timed fabric, to memory that only the
 * owner's copy service can write, while the owner does not answer for longer than one wait:
 * there is no completion before the last byte is written.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "../softhca/timed.h"
#include "link/memory/state.h"
#include "object/device.h"
#include "object/fabric.h"

enum { BYTES = 10000, SILENT_MS = 250 };

static double write_to_silent(struct side *s, const void *arg)
{
	struct options options = *s->options;
	struct buffer b;
	struct end e = timed_end(s, 1, IBV_QPT_RC);
	struct ibv_sge sge;
	pthread_mutex_t *porter = &hca_context_of(s->ctx)->fabric->link_state->copy_service.lock;

	(void)arg;
	options.arena = false;
	s->options = &options;
	b = buffer_new(s, BYTES, ACCESS_ALL);
	sge = sge_of(&b, 0, BYTES);
	buffer_swap(s, &b);
	for (uint64_t round = 0; round < 20; round++) {
		if (s->me == 0)
			fill(b.at, round, BYTES);
		barrier(s);
		if (s->me == 1) {
			/* Now and then in the middle of the message, 100 us long, or behind it. */
			pause_ns(round * 15 * US);
			pthread_mutex_lock(porter);
			pause_ns(SILENT_MS * (uint64_t)MS);
			pthread_mutex_unlock(porter);
		} else {
			post(&e, timed_wr(&b, &sge, IBV_WR_RDMA_WRITE));
			wait_ok(e.cq);
			/* Of the other side, in this very process. */
			check((unsigned char *)(uintptr_t)b.addr, round, BYTES, "completed");
		}
		barrier(s);
	}
	end_free(&e);
	buffer_free(s, &b);
	return 0;
}

int main(void)
{
	setenv("SOFTHCA_REMAP", "never", 1);
	setenv("SOFTHCA_COPY", "bounce", 1);
	timed_fabric("held");
	timed_run("held", "rate=100MB/s,latency=20us", write_to_silent, NULL);
	return 0;
}
