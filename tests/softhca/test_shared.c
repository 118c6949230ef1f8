/*
 * test_shared.c - receives for many senders: order, positions that wrap, concurrent
 * claims, released receives, dead and hostile processes.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "softhca/base/proc.h"
#include "softhca/base/segment.h"
#include "cmocka_all.h"
#include "softhca/link/memory/ask.h"
#include "softhca/link/memory/join.h"
#include "softhca/link/memory/state.h"
#include "softhca/object/qp.h"
#include "softhca/object/shared.h"

enum { HEAP_BYTES = 1 << 20, DEPTH = 8, STRANGER = 900 };	/* a free slot */

/* A fabric as far as a queue needs it: a heap, and free slots. */
static struct hca_fabric *fabric;

static int setup(void **state)
{
	const uint64_t bytes = sizeof(struct hca_shm_process) + HEAP_BYTES;

	fabric = calloc(1, sizeof(*fabric));
	fabric->shm = aligned_alloc(HCA_PAGE, sizeof(*fabric->shm));
	fabric->self_fd = hca_segment_create("test_shared", bytes);
	fabric->self = hca_segment_map(fabric->self_fd, 0, bytes);
	fabric->link = &hca_memory_link;
	pthread_mutex_init(&fabric->slow, NULL);
	if (!fabric->shm || !fabric->self)
		return 1;
	memset(fabric->shm, 0, sizeof(*fabric->shm));
	hca_heap_init(&fabric->heap, fabric->self->heap, HEAP_BYTES, fabric->self_fd,
		      offsetof(struct hca_shm_process, heap));
	return 0;
}

static int teardown(void **state)
{
	hca_heap_destroy(&fabric->heap);
	munmap(fabric->self, sizeof(struct hca_shm_process) + HEAP_BYTES);
	close(fabric->self_fd);
	free(fabric->shm);
	free(fabric);
	return 0;
}

static void make(struct hca_shared *s)
{
	memset(s, 0, sizeof(*s));
	assert_int_equal(hca_shared_make(s, fabric, 1, DEPTH, 1), 0);
}

static int post(struct hca_shared *s, uint64_t wr_id)
{
	struct ibv_recv_wr wr = { .wr_id = wr_id }, *bad;

	return hca_shared_post(s, &wr, &bad);
}

/* From the claim to the poll: the wr_id. */
static uint64_t complete(struct hca_shared *s, const struct hca_shared_claim *c)
{
	uint64_t wr_id = UINT64_MAX;
	uint32_t room;

	hca_shared_done(c, STRANGER);
	assert_true(hca_shared_accept(s, c->position, c->entry, &wr_id, &room));
	hca_shared_release(s, c->entry);
	return wr_id;
}

/* In the order they were posted, again and again; the first positions are at the end of 2^32. */
static void test_order(void **state)
{
	struct hca_shared s;
	struct hca_shared_claim c[DEPTH], extra;
	uint64_t posted = 0, taken = 0, i, n;

	fabric->shared_last = 0xfffe;
	make(&s);
	assert_false(hca_shared_claim_oldest(&s.view, STRANGER, &c[0]));
	for (i = 0; i < 20000; i++) {
		n = 1 + i % DEPTH;
		while (posted < taken + n)
			assert_int_equal(post(&s, posted++), 0);
		for (n = 0; taken + n < posted; n++)
			assert_true(hca_shared_claim_oldest(&s.view, STRANGER, &c[n]));
		assert_false(hca_shared_claim_oldest(&s.view, STRANGER, &extra));
		/* Completed in another order than taken. */
		while (n--)
			assert_int_equal(complete(&s, &c[n]), taken + n);
		taken = posted;
	}
	assert_true(s.posted < 0x80000000u);	/* the position has wrapped */
	hca_shared_free(&s);
}

static void test_full(void **state)
{
	struct hca_shared s;
	struct hca_shared_claim c;
	uint64_t i, wr_id;
	uint32_t room;

	make(&s);
	for (i = 0; i < DEPTH; i++)
		assert_int_equal(post(&s, i), 0);
	assert_int_equal(post(&s, i), ENOMEM);
	assert_true(hca_shared_claim_oldest(&s.view, STRANGER, &c));
	assert_int_equal(post(&s, i), ENOMEM);
	hca_shared_done(&c, STRANGER);
	assert_true(hca_shared_accept(&s, c.position, c.entry, &wr_id, &room));
	assert_int_equal(post(&s, i), ENOMEM);	/* not polled yet */
	hca_shared_release(&s, c.entry);
	assert_int_equal(post(&s, i), 0);
	hca_shared_free(&s);
}

/* A released receive is the next to be taken; a receive that others passed by is posted anew. */
static void test_return(void **state)
{
	struct hca_shared s;
	struct hca_shared_claim a, b;
	uint64_t i;

	make(&s);
	for (i = 0; i < 3; i++)
		assert_int_equal(post(&s, i), 0);
	assert_true(hca_shared_claim_oldest(&s.view, STRANGER, &a));
	hca_shared_unclaim(&s.view, &a, STRANGER);
	assert_true(hca_shared_claim_oldest(&s.view, STRANGER, &a));
	assert_int_equal(complete(&s, &a), 0);
	/* The second is given back after the third was taken, and the head goes on over it. */
	assert_true(hca_shared_claim_oldest(&s.view, STRANGER, &a));
	assert_true(hca_shared_claim_oldest(&s.view, STRANGER, &b));
	hca_shared_unclaim(&s.view, &a, STRANGER);
	atomic_store(&s.view.shm->head, b.position + 1);
	assert_int_equal(complete(&s, &b), 2);
	assert_false(hca_shared_claim_oldest(&s.view, STRANGER, &a));
	assert_true(hca_shared_suspect(&s));
	hca_shared_recover(&s, false);
	assert_false(hca_shared_suspect(&s));
	assert_true(hca_shared_claim_oldest(&s.view, STRANGER, &a));
	assert_int_equal(complete(&s, &a), 1);
	hca_shared_free(&s);
}

/* A process that dies with a claim loses it; others keep theirs. */
static void test_dead(void **state)
{
	struct hca_shared s;
	struct hca_shared_claim lost, c;
	uint64_t i, wr_id;
	uint32_t room;

	make(&s);
	for (i = 0; i < DEPTH; i++)
		assert_int_equal(post(&s, i), 0);
	assert_true(hca_shared_claim_oldest(&s.view, STRANGER, &lost));
	/* Before the head was advanced, too. */
	atomic_store(&s.view.shm->head, lost.position);
	for (i = 1; i < DEPTH; i++) {
		assert_true(hca_shared_claim_oldest(&s.view, STRANGER, &c));
		assert_int_equal(complete(&s, &c), i);
	}
	assert_false(hca_shared_claim_oldest(&s.view, STRANGER, &c));
	assert_true(hca_shared_suspect(&s));
	hca_shared_recover(&s, true);
	assert_true(hca_shared_claim_oldest(&s.view, STRANGER, &c));
	/* A late word of the dead process. */
	hca_shared_done(&lost, STRANGER);
	assert_false(hca_shared_accept(&s, lost.position, lost.entry, &wr_id, &room));
	assert_int_equal(complete(&s, &c), 0);
	assert_false(hca_shared_suspect(&s));
	hca_shared_free(&s);
}

/* A queue is busy while a living process has a claim. */
static void test_busy(void **state)
{
	struct hca_shm_slot *slot = &fabric->shm->slot[STRANGER];
	struct hca_link_state link_state = { 0 };
	struct hca_shared_claim c;
	struct hca_shared s;
	uint64_t wr_id;
	uint32_t room;

	make(&s);
	hca_identity_get(&link_state.me);
	fabric->link_state = &link_state;
	slot->pid = getpid();
	slot->start_time = hca_process_start_time(getpid());
	slot->pid_ns = link_state.me.pid_ns;
	atomic_store(&slot->phase, HCA_PRESENT);
	assert_false(hca_shared_busy(&s));
	assert_int_equal(post(&s, 1), 0);
	assert_false(hca_shared_busy(&s));
	assert_true(hca_shared_claim_oldest(&s.view, STRANGER, &c));
	assert_true(hca_shared_busy(&s));
	slot->start_time++;		/* the number of a process that has ended */
	assert_false(hca_shared_busy(&s));
	slot->start_time--;
	assert_true(hca_shared_busy(&s));
	hca_shared_done(&c, STRANGER);
	assert_false(hca_shared_busy(&s));
	assert_true(hca_shared_accept(&s, c.position, c.entry, &wr_id, &room));
	assert_false(hca_shared_busy(&s));
	atomic_store(&slot->phase, HCA_ABSENT);
	fabric->link_state = NULL;
	hca_shared_free(&s);
}

static void test_limit(void **state)
{
	struct hca_shared s;
	struct hca_shared_claim c;
	uint64_t i;

	make(&s);
	for (i = 0; i < DEPTH; i++)
		assert_int_equal(post(&s, i), 0);
	atomic_store(&s.view.shm->limit, 5);
	for (i = 0; i < DEPTH; i++) {
		assert_true(hca_shared_claim_oldest(&s.view, STRANGER, &c));
		assert_int_equal(c.alert, i == 3);	/* 4 are left */
	}
	hca_shared_free(&s);
}

/* Only a claimed receive can be complete, once, under its own number. */
static void test_accept(void **state)
{
	struct hca_shared s;
	struct hca_shared_claim c;
	uint64_t wr_id;
	uint32_t room;

	make(&s);
	assert_int_equal(post(&s, 1), 0);
	assert_int_equal(post(&s, 2), 0);
	assert_false(hca_shared_accept(&s, s.first, 0, &wr_id, &room));
	assert_true(hca_shared_claim_oldest(&s.view, STRANGER, &c));
	assert_false(hca_shared_accept(&s, c.position + 1, c.entry, &wr_id, &room));
	assert_false(hca_shared_accept(&s, c.position, c.entry + 1, &wr_id, &room));
	assert_false(hca_shared_accept(&s, c.position, UINT32_MAX, &wr_id, &room));
	assert_true(hca_shared_accept(&s, c.position, c.entry, &wr_id, &room));
	assert_false(hca_shared_accept(&s, c.position, c.entry, &wr_id, &room));
	hca_shared_free(&s);
}

static void test_withdraw(void **state)
{
	struct hca_shared s;
	struct hca_shared_claim c;
	uint64_t i, wr_id;
	uint32_t entry;

	make(&s);
	for (i = 0; i < DEPTH; i++)
		assert_int_equal(post(&s, i), 0);
	assert_true(hca_shared_claim_oldest(&s.view, STRANGER, &c));
	assert_int_equal(complete(&s, &c), 0);
	hca_lock(&s.lock);
	for (i = 1; i < DEPTH; i++) {
		assert_int_equal(hca_shared_withdraw(&s, false, &entry, &wr_id), 1);
		assert_int_equal(wr_id, i);
		hca_shared_release(&s, entry);
	}
	assert_int_equal(hca_shared_withdraw(&s, false, &entry, &wr_id), 0);
	hca_unlock(&s.lock);
	assert_false(hca_shared_claim_oldest(&s.view, STRANGER, &c));
	hca_shared_free(&s);
}

/* Garbage in words that takers read: perhaps no receive, but no crash and no long search. */
static void test_hostile(void **state)
{
	struct hca_shared s;
	struct hca_shared_claim c;
	uint64_t i, k;

	make(&s);
	srandom(7);
	for (i = 0; i < 20000; i++) {
		post(&s, i);
		switch (random() % 4) {
		case 0:
			atomic_store(&s.view.shm->head, (uint32_t)random() * 3);
			break;
		case 1:
			atomic_store(&s.view.shm->order[random() % DEPTH],
				     (uint64_t)random() << 33 ^ (uint64_t)random());
			break;
		case 2:
			atomic_store(&s.view.shm->posted, (uint32_t)random());
			break;
		default:
			atomic_store(&hca_rq_entry(s.view.ring, (uint32_t)random(), s.view.mask,
						   s.view.stride)->state,
				     (uint64_t)random() << 32 | random() % 8);
		}
		if (hca_shared_claim_oldest(&s.view, STRANGER, &c)) {
			uint64_t wr_id;
			uint32_t room;

			assert_true(c.entry < DEPTH);
			hca_shared_done(&c, STRANGER);
			if (hca_shared_accept(&s, c.position, c.entry, &wr_id, &room))
				hca_shared_release(&s, c.entry);
		}
		hca_shared_recover(&s, true);
	}
	/* Emptied, it is as new. */
	hca_shared_clear(&s);
	for (k = 0; k < DEPTH; k++)
		assert_int_equal(post(&s, k), 0);
	for (k = 0; k < DEPTH; k++) {
		assert_true(hca_shared_claim_oldest(&s.view, STRANGER, &c));
		assert_int_equal(complete(&s, &c), k);
	}
	hca_shared_free(&s);
}

/* ---- Many at once -------------------------------------------------------- */

enum { THREADS = 3, EACH = 5000 };

struct taker {
	pthread_t thread;
	struct hca_shared *s;
	uint32_t claimer;
	_Atomic uint64_t hand;		/* position << 32 | entry + 1; 0: empty */
};

/* Takes; the owner, who is told by `hand`, completes and posts again. */
static void *take_many(void *arg)
{
	struct taker *t = arg;
	uint32_t got = 0, n = 0;

	while (got < EACH) {
		struct hca_shared_claim c;

		if (!hca_shared_claim_oldest(&t->s->view, t->claimer, &c)) {
			sched_yield();
			continue;
		}
		if (++n % 7 == 0) {
			hca_shared_unclaim(&t->s->view, &c, t->claimer);
			continue;
		}
		while (atomic_load(&t->hand))
			sched_yield();
		atomic_store(&t->hand, (uint64_t)c.position << 32 | (c.entry + 1));
		got++;
		hca_shared_done(&c, t->claimer);
	}
	return NULL;
}

static void test_many(void **state)
{
	static struct taker t[THREADS];
	uint64_t left = (uint64_t)THREADS * EACH, next = 0, wr_id;
	static unsigned char seen[THREADS * EACH + DEPTH];
	struct hca_shared s;
	uint32_t i, room;

	make(&s);
	while (next < DEPTH)
		assert_int_equal(post(&s, next++), 0);
	for (i = 0; i < THREADS; i++) {
		t[i].s = &s;
		t[i].claimer = i;
		assert_int_equal(pthread_create(&t[i].thread, NULL, take_many, &t[i]), 0);
	}
	while (left) {
		for (i = 0; i < THREADS; i++) {
			uint64_t hand = atomic_exchange(&t[i].hand, 0);

			if (!hand)
				continue;
			assert_true(hca_shared_accept(&s, (uint32_t)(hand >> 32),
						      (uint32_t)hand - 1, &wr_id, &room));
			assert_int_equal(seen[wr_id]++, 0);
			hca_shared_release(&s, (uint32_t)hand - 1);
			assert_int_equal(post(&s, next++), 0);
			left--;
		}
		/* Recover receives that were given back before the head. */
		if (atomic_load(&s.view.shm->returned))
			hca_shared_recover(&s, false);
	}
	for (i = 0; i < THREADS; i++)
		pthread_join(t[i].thread, NULL);
	hca_shared_free(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_order, setup, teardown),
		cmocka_unit_test_setup_teardown(test_full, setup, teardown),
		cmocka_unit_test_setup_teardown(test_return, setup, teardown),
		cmocka_unit_test_setup_teardown(test_dead, setup, teardown),
		cmocka_unit_test_setup_teardown(test_busy, setup, teardown),
		cmocka_unit_test_setup_teardown(test_limit, setup, teardown),
		cmocka_unit_test_setup_teardown(test_accept, setup, teardown),
		cmocka_unit_test_setup_teardown(test_withdraw, setup, teardown),
		cmocka_unit_test_setup_teardown(test_hostile, setup, teardown),
		cmocka_unit_test_setup_teardown(test_many, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
