/*
 * test_ring.c - ring arithmetic against a writer and a reader with bookkeeping of
 * their own: no unread byte is overwritten, every wait ends, positions
 * wrap their 32 bits unnoticed.
 */
#include "cmocka_all.h"

#include <stdlib.h>
#include <string.h>

#include "rail/lane/ring.h"
#include "rail/message/table.h"

static uint64_t state = 77;

static uint32_t random_below(uint32_t n)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(state >> 33) % n;
}

enum { UNITS = 256, SLOTS = 32, QUEUE = 4096 };

struct model {
	uint64_t owner[UNITS];		/* unread payload in a unit; 0: free */
	uint32_t slot_owner[SLOTS];
	struct { uint32_t first, units; } sent[QUEUE];
	uint32_t sent_count, read_count;
	/* writer */
	uint32_t seq, position, slots_granted, units_granted;
	/* reader */
	uint32_t read, units_read, slots_told, units_told;
	uint64_t word;			/* grant of the reader to the writer */
};

static bool model_send(struct model *m, uint32_t units)
{
	uint32_t first;

	if (!rail_ring_free(m->seq, m->slots_granted, SLOTS) ||
	    !rail_ring_place(m->position, m->units_granted, UNITS, units, &first))
		return false;
	assert_int_equal(m->slot_owner[m->seq % SLOTS], 0);
	m->slot_owner[m->seq % SLOTS] = 1;
	assert_true((first % UNITS) + units <= UNITS);		/* contiguous */
	for (uint32_t u = 0; u < units; u++) {
		assert_int_equal(m->owner[(first + u) % UNITS], 0);
		m->owner[(first + u) % UNITS] = m->sent_count + 1;
	}
	m->sent[m->sent_count % QUEUE].first = first;
	m->sent[m->sent_count++ % QUEUE].units = units;
	m->position = first + units;
	m->seq++;
	return true;
}

static void model_read(struct model *m)
{
	uint32_t i = m->read_count % QUEUE, first = m->sent[i].first, units = m->sent[i].units;

	for (uint32_t u = 0; u < units; u++) {
		assert_int_equal(m->owner[(first + u) % UNITS], m->read_count + 1);
		m->owner[(first + u) % UNITS] = 0;
	}
	m->slot_owner[m->read % SLOTS] = 0;
	m->read_count++;
	m->read++;
	m->units_read = first + units;
	if (rail_ring_grant_due(m->read, m->slots_told, SLOTS) ||
	    rail_ring_grant_due(m->units_read, m->units_told, UNITS)) {
		m->slots_told = m->read;
		m->units_told = m->units_read;
		m->word = rail_grant_word(m->read, m->units_read);
	}
}

static void model_refresh(struct model *m)
{
	m->slots_granted = rail_grant_slots(m->word);
	m->units_granted = rail_grant_units(m->word);
}

static void run(uint32_t start)
{
	struct model *m = calloc(1, sizeof(*m));
	uint32_t largest = UNITS / 4;

	assert_non_null(m);
	m->seq = m->position = m->slots_granted = m->units_granted = start;
	m->read = m->units_read = m->slots_told = m->units_told = start;
	m->word = rail_grant_word(start, start);
	for (int step = 0; step < 200000; step++) {
		uint32_t units = random_below(3) ? random_below(4) : 1 + random_below(largest);

		if (random_below(2)) {
			if (!model_send(m, units))
				model_refresh(m);
		} else if (m->read_count != m->sent_count) {
			model_read(m);
		}
		/* When everything has been read, even the largest finds room. */
		if (random_below(50) == 0) {
			while (m->read_count != m->sent_count)
				model_read(m);
			model_refresh(m);
			assert_true(model_send(m, largest));
		}
	}
	assert_true(m->sent_count > 50000);
	free(m);
}

static void test_from_zero(void **unused)
{
	(void)unused;
	run(0);
}

/* 32 bits run out in the middle. */
static void test_wrap(void **unused)
{
	(void)unused;
	run(UINT32_MAX - 50000);
}

static void test_units(void **unused)
{
	(void)unused;
	assert_int_equal(rail_ring_units(0), 0);
	assert_int_equal(rail_ring_units(1), 1);
	assert_int_equal(rail_ring_units(64), 1);
	assert_int_equal(rail_ring_units(65), 2);
	assert_int_equal(rail_grant_slots(rail_grant_word(0xfffffffe, 7)), 0xfffffffe);
	assert_int_equal(rail_grant_units(rail_grant_word(0xfffffffe, 7)), 7);
}

/* ---- Handles ------------------------------------------------------------ */

static void test_table(void **unused)
{
	struct rail_peer *peer = (struct rail_peer *)&state, *other = (struct rail_peer *)&unused;
	enum { MANY = 3000 };
	static uint64_t handle[MANY];
	struct rail_table t;
	uint64_t old;

	(void)unused;
	assert_int_equal(rail_table_init(&t), 0);
	for (int i = 0; i < MANY; i++) {
		assert_int_equal(rail_table_add(&t, peer, &handle[i]), 0);
		assert_int_not_equal(handle[i], 0);
		rail_table_find(&t, peer, handle[i])->rts.bytes = (uint64_t)i;
	}
	for (int i = 0; i < MANY; i++) {
		assert_int_equal(rail_table_find(&t, peer, handle[i])->rts.bytes, i);
		assert_null(rail_table_find(&t, other, handle[i]));
	}
	/* A handle dies with its entry, also when its place is used again. */
	old = handle[17];
	rail_table_remove(&t, old);
	assert_null(rail_table_find(&t, peer, old));
	assert_int_equal(rail_table_add(&t, other, &handle[17]), 0);
	assert_int_equal((uint32_t)handle[17], (uint32_t)old);
	assert_null(rail_table_find(&t, peer, old));
	assert_null(rail_table_find(&t, other, old));
	assert_non_null(rail_table_find(&t, other, handle[17]));
	assert_null(rail_table_find(&t, peer, 0));
	assert_null(rail_table_find(&t, peer, UINT64_MAX));
	rail_table_fini(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_from_zero),
		cmocka_unit_test(test_wrap),
		cmocka_unit_test(test_units),
		cmocka_unit_test(test_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
