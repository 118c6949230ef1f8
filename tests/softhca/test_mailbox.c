/*
 * test_mailbox.c - completions through shared memory: many producers, dead and
 * stopped ones, a full box, a hostile one.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "cmocka_all.h"
#include "softhca/object/cq.h"

enum { SLOTS = 8 };

static struct hca_mailbox box(uint32_t count)
{
	struct hca_mailbox m = { .mask = count - 1, .shift = hca_log2(count) };

	m.shm = aligned_alloc(HCA_LINE, hca_align_up(hca_mailbox_bytes(count), HCA_LINE));
	assert_non_null(m.shm);
	memset(m.shm, 0, hca_mailbox_bytes(count));
	return m;
}

/* The consumer, like cq.c: take the entry at a position, if it is published. */
static bool take(struct hca_mailbox *m, uint32_t *head, struct hca_shm_cqe *out)
{
	struct hca_shm_cqe *e = &m->shm->slot[*head & m->mask];

	if (atomic_load(&e->state) != hca_shm_state(*head >> m->shift, HCA_FULL))
		return false;
	out->position = e->position;
	out->qpn = e->qpn;
	atomic_store(&e->state, hca_shm_state((*head + m->mask + 1) >> m->shift, HCA_FREE));
	++*head;
	return true;
}

static int put(struct hca_mailbox *m, uint32_t slot, uint32_t position)
{
	const struct hca_shm_cqe cqe = { .position = position, .qpn = slot };

	return hca_mailbox_put(m, slot, &cqe);
}

static void test_order(void **state)
{
	struct hca_mailbox m = box(SLOTS);
	struct hca_shm_cqe e;
	uint32_t head = 0, i, k;

	for (i = 0; i < 10000; i += 3) {
		for (k = 0; k < 3; k++)
			assert_int_equal(put(&m, 1, i + k), 0);
		for (k = 0; k < 3; k++) {
			assert_true(take(&m, &head, &e));
			assert_int_equal(e.position, i + k);
		}
		assert_false(take(&m, &head, &e));
	}
	free(m.shm);
}

/* Positions and laps wrap. */
static void test_wrap(void **state)
{
	struct hca_mailbox m = box(SLOTS);
	uint32_t head = 0u - 3 * SLOTS, i;
	struct hca_shm_cqe e;

	atomic_store(&m.shm->tail, head);
	for (i = 0; i < SLOTS; i++)
		atomic_store(&m.shm->slot[(head + i) & m.mask].state,
			     hca_shm_state((head + i) >> m.shift, HCA_FREE));
	for (i = 0; i < 10 * SLOTS; i++) {
		assert_int_equal(put(&m, 1, i), 0);
		assert_true(take(&m, &head, &e));
		assert_int_equal(e.position, i);
	}
	free(m.shm);
}

/* A producer that was away for many laps, or left an old hint, finds the tail all the same. */
static void test_away(void **state)
{
	struct hca_mailbox m = box(SLOTS);
	struct hca_shm_cqe e;
	uint32_t head = 0, i, hint;

	for (i = 0; i < 1000; i++) {
		assert_int_equal(put(&m, 1, i), 0);
		assert_true(take(&m, &head, &e));
	}
	for (hint = 0; hint < 1000; hint++, i++) {
		atomic_store(&m.shm->tail, hint);
		assert_int_equal(put(&m, 1, i), 0);
		assert_true(take(&m, &head, &e));
		assert_int_equal(e.position, i);
	}
	free(m.shm);
}

static void test_full(void **state)
{
	struct hca_mailbox m = box(SLOTS);
	struct hca_shm_cqe e;
	uint32_t head = 0, i;

	for (i = 0; i < SLOTS; i++)
		assert_int_equal(put(&m, 1, i), 0);
	assert_int_equal(atomic_load(&m.shm->overflow), 0);
	assert_int_equal(put(&m, 1, i), -ENOSPC);
	assert_int_equal(atomic_load(&m.shm->overflow), 1);
	for (i = 0; i < SLOTS; i++) {
		assert_true(take(&m, &head, &e));
		assert_int_equal(e.position, i);
	}
	assert_int_equal(put(&m, 1, 77), 0);
	assert_true(take(&m, &head, &e));
	assert_int_equal(e.position, 77);
	free(m.shm);
}

/* A producer died between claim and publication; the owner took the slot back. */
static void test_dead_producer(void **state)
{
	struct hca_mailbox m = box(SLOTS);
	struct hca_shm_cqe e;
	uint32_t head = 0;

	atomic_store(&m.shm->slot[0].state, hca_shm_state(0, hca_shm_claimed(5)));
	assert_int_equal(put(&m, 1, 11), 0);		/* goes after it */
	assert_false(take(&m, &head, &e));
	atomic_store(&m.shm->slot[0].state, hca_shm_state(1, HCA_FREE));
	head = 1;
	assert_true(take(&m, &head, &e));
	assert_int_equal(e.position, 11);
	free(m.shm);
}

/* Claims were revoked: the slots are passed by until their claimers give them back. */
static void test_revoked(void **state)
{
	struct hca_mailbox m = box(SLOTS);
	uint32_t head = 0, i;
	struct hca_shm_cqe e;

	atomic_store(&m.shm->slot[0].state, hca_shm_state(0, hca_shm_revoked(5)));
	atomic_store(&m.shm->slot[1].state, hca_shm_state(0, HCA_RETURNED));
	for (i = 0; i < SLOTS - 2; i++)
		assert_int_equal(put(&m, 1, i), 0);
	assert_int_equal(put(&m, 1, i), -ENOSPC);
	/* The owner does not read their contents. */
	assert_int_equal(hca_shm_kind(atomic_load(&m.shm->slot[0].state)), HCA_REVOKED);
	assert_int_equal(hca_shm_kind(atomic_load(&m.shm->slot[1].state)), HCA_RETURNED);
	for (head = 2, i = 0; i < SLOTS - 2; i++) {
		assert_true(take(&m, &head, &e));
		assert_int_equal(e.position, i);
	}
	/* The owner came by and freed one of them. */
	atomic_store(&m.shm->slot[1].state, hca_shm_state(1, HCA_FREE));
	head = SLOTS + 1;
	assert_int_equal(put(&m, 1, 50), 0);
	assert_true(take(&m, &head, &e));
	assert_int_equal(e.position, 50);
	free(m.shm);
}

/* A producer returns in spite of any garbage that a hostile peer wrote. */
static void test_garbage(void **state)
{
	struct hca_mailbox m = box(SLOTS);
	unsigned seed;

	for (seed = 1; seed < 2000; seed++) {
		size_t i, bytes = hca_mailbox_bytes(SLOTS);

		srand(seed);
		for (i = 0; i < bytes; i++)
			((unsigned char *)m.shm)[i] = (unsigned char)rand();
		put(&m, 1, 0);
	}
	free(m.shm);
}

enum { PRODUCERS = 4, EACH = 50000 };

struct producer {
	struct hca_mailbox m;
	uint32_t slot;
	_Atomic uint32_t *taken;	/* number of mine that have been taken */
	pthread_t thread;
};

static void *produce(void *arg)
{
	struct producer *p = arg;
	uint32_t i;

	for (i = 0; i < EACH; i++) {
		/* All together never more than the box holds. */
		while (i - atomic_load(p->taken) >= 16)
			sched_yield();
		if (put(&p->m, p->slot, i))
			return p;
	}
	return NULL;
}

/* Many producers at once: nothing lost, nothing twice, each producer's order kept. */
static void test_many_producers(void **state)
{
	struct hca_mailbox m = box(64);
	_Atomic uint32_t taken[PRODUCERS] = { 0 };
	struct producer p[PRODUCERS];
	uint32_t head = 0, total = 0, i;

	for (i = 0; i < PRODUCERS; i++) {
		p[i] = (struct producer){ .m = m, .slot = i, .taken = &taken[i] };
		assert_int_equal(pthread_create(&p[i].thread, NULL, produce, &p[i]), 0);
	}
	while (total < PRODUCERS * EACH) {
		struct hca_shm_cqe e;

		if (!take(&m, &head, &e)) {
			sched_yield();
			continue;
		}
		assert_true(e.qpn < PRODUCERS);
		assert_int_equal(e.position, atomic_load(&taken[e.qpn]));
		atomic_fetch_add(&taken[e.qpn], 1);
		total++;
	}
	for (i = 0; i < PRODUCERS; i++) {
		void *result;

		pthread_join(p[i].thread, &result);
		assert_null(result);
	}
	free(m.shm);
}

/* ---- Waking -------------------------------------------------------------- */

static uint64_t armed_as(uint32_t generation, enum hca_armed state)
{
	return (uint64_t)generation << 3 | state;
}

/* The armed word after a put. */
static uint64_t after_put(uint64_t armed, bool solicited, uint8_t status)
{
	const struct hca_shm_cqe cqe = { .solicited = solicited, .status = status };
	struct hca_mailbox m = box(SLOTS);
	uint64_t left;

	atomic_store(&m.shm->armed, armed);
	assert_int_equal(hca_mailbox_put(&m, 1, &cqe), 0);
	left = atomic_load(&m.shm->armed);
	free(m.shm);
	return left;
}

static void test_armed(void **state)
{
	/* A queue fires once until it is armed again. */
	assert_int_equal(after_put(armed_as(5, HCA_IDLE), true, 1), armed_as(5, HCA_IDLE));
	assert_int_equal(after_put(armed_as(5, HCA_ARMED_ANY), false, 0), armed_as(5, HCA_RUNG));
	assert_int_equal(after_put(armed_as(5, HCA_RUNG), true, 1), armed_as(5, HCA_RUNG));
	/* The producer that fired may have died before its wake-up: the next one sends it. */
	assert_int_equal(after_put(armed_as(5, HCA_FIRED), false, 0), armed_as(5, HCA_RUNG));
	/* Solicited entries fire, and errors. */
	assert_int_equal(after_put(armed_as(5, HCA_ARMED_SOLICITED), false, 0),
			 armed_as(5, HCA_ARMED_SOLICITED));
	assert_int_equal(after_put(armed_as(5, HCA_ARMED_SOLICITED), true, 0),
			 armed_as(5, HCA_RUNG));
	assert_int_equal(after_put(armed_as(5, HCA_ARMED_SOLICITED), false, 5),
			 armed_as(5, HCA_RUNG));
	/* The generation wraps. */
	assert_int_equal(after_put(armed_as(UINT32_MAX, HCA_ARMED_ANY), false, 0),
			 armed_as(UINT32_MAX, HCA_RUNG));
}

/* Garbage in the word: a producer gets past each value. */
static void test_armed_garbage(void **state)
{
	uint64_t value;

	for (value = 0; value < 16; value++)
		assert_false(hca_shm_wakes(after_put(value, true, 0)));
	assert_false(hca_shm_wakes(after_put(UINT64_MAX, true, 0)));
}

/* Entries bear a time if the owner wants one; a time of their own stays. */
static void test_stamped(void **state)
{
	struct hca_shm_cqe cqe = { .visible_ns = 0 };
	struct hca_mailbox m = box(SLOTS);

	m.shm->stamped = 0;
	assert_int_equal(hca_mailbox_put(&m, 1, &cqe), 0);
	assert_int_equal(m.shm->slot[0].visible_ns, 0);
	m.shm->stamped = 1;
	assert_int_equal(hca_mailbox_put(&m, 1, &cqe), 0);
	assert_int_not_equal(m.shm->slot[1].visible_ns, 0);
	cqe.visible_ns = 77;
	assert_int_equal(hca_mailbox_put(&m, 1, &cqe), 0);
	assert_int_equal(m.shm->slot[2].visible_ns, 77);
	free(m.shm);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order), cmocka_unit_test(test_wrap),
		cmocka_unit_test(test_away), cmocka_unit_test(test_full), cmocka_unit_test(test_dead_producer),
		cmocka_unit_test(test_revoked),
		cmocka_unit_test(test_garbage), cmocka_unit_test(test_many_producers),
		cmocka_unit_test(test_armed), cmocka_unit_test(test_armed_garbage),
		cmocka_unit_test(test_stamped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
