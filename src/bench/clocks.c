/* clocks.c - offsets, drift and the tree of clocks; see clocks.h. */
#include "bench/clocks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	PINGS = 100, PINGS_LEAST = 8, PINGS_SAME = 20,
	PINGS_NS = 2000000,		/* after the first measurement, for slow networks */
	/* A trip longer by this share is as quick.  (SKaMPI: 10; half of the share is an error.) */
	TRIP_SHARE = 50,
	SPAN_LEAST_NS = 1000000,
	FIRST_SPAN_NS = 100000000,	/* between the first two measurements */
};
#define WINDOW_NS UINT64_C(10000000000)
/* Crystals differ by less. */
#define DRIFT_MOST 1e-3

/* ---- Arithmetic ------------------------------------------------------------------------ */

struct clocks_reading clocks_reading_of(uint64_t sent_ns, uint64_t remote_ns,
					uint64_t received_ns)
{
	struct clocks_reading r = { .trip_ns = received_ns - sent_ns };

	r.at_ns = sent_ns + r.trip_ns / 2;
	r.offset_ns = (int64_t)(remote_ns - r.at_ns);
	return r;
}

/* A clock that both ends read cannot run outside of the trip; 1 ns is the division's remainder. */
bool clocks_reading_is_same(const struct clocks_reading *r)
{
	uint64_t off = (uint64_t)llabs(r->offset_ns);

	return off <= r->trip_ns / 2 + 1;
}

struct clocks_model clocks_fit(const struct clocks_reading *first,
			       const struct clocks_reading *last)
{
	struct clocks_model m = { .at_ns = last->at_ns, .offset_ns = last->offset_ns };
	uint64_t span = last->at_ns - first->at_ns;

	if (span < SPAN_LEAST_NS)
		return m;
	m.drift = (double)(last->offset_ns - first->offset_ns) / (double)span;
	if (m.drift > DRIFT_MOST || m.drift < -DRIFT_MOST)
		m.drift = 0;
	return m;
}

static int64_t round_ns(double ns)
{
	return (int64_t)(ns < 0 ? ns - 0.5 : ns + 0.5);
}

uint64_t clocks_to_global(const struct clocks_model *m, uint64_t local_ns)
{
	double passed = (double)(int64_t)(local_ns - m->at_ns);

	return local_ns + (uint64_t)(m->offset_ns + round_ns(m->drift * passed));
}

uint64_t clocks_to_local(const struct clocks_model *m, uint64_t global_ns)
{
	double passed = (double)(int64_t)(global_ns - (uint64_t)m->offset_ns - m->at_ns);

	return global_ns - (uint64_t)(m->offset_ns +
				      round_ns(m->drift * passed / (1 + m->drift)));
}

bool clocks_suffice(uint64_t error_ns, double time_ns)
{
	return (double)error_ns * 100 <= time_ns * CLOCKS_ERROR_PERCENT;
}

/* ---- Messages ---------------------------------------------------------------------------- */

static uint64_t now(const struct clocks *c)
{
	return c->link.now(c->link.user);
}

/*
 * Are so many ping-pongs, for so long, enough?  At the latest `pings`; after the first measurement
 * also one as quick as the quickest known, or the time limit.
 */
static bool is_enough(const struct clocks *c, int done, int pings, uint64_t best_ns,
		      uint64_t took_ns)
{
	if (done >= pings || !c->least_trip_ns)
		return done >= pings;
	return done >= PINGS_LEAST &&
	       (took_ns > PINGS_NS || best_ns <= c->least_trip_ns + c->least_trip_ns / TRIP_SHARE);
}

/* Ping-pongs with a parent.  parent_error_ns: that of the parent's own clock. */
static struct clocks_reading ping(struct clocks *c, int parent, int pings,
				  uint64_t *parent_error_ns)
{
	struct clocks_reading best = { .trip_ns = UINT64_MAX };
	uint64_t more = 1, begin = now(c), reply[2];

	for (int i = 1; more; i++) {
		struct clocks_reading r;
		uint64_t sent = now(c);

		more = !is_enough(c, i, pings, best.trip_ns, sent - begin);
		sent = now(c);
		c->link.send(c->link.user, parent, &more, 1);
		c->link.receive(c->link.user, parent, reply, 2);
		r = clocks_reading_of(sent, reply[0], now(c));
		if (r.trip_ns < best.trip_ns)
			best = r;
	}
	*parent_error_ns = reply[1];
	return best;
}

/* Answer a child's ping-pongs, with rank 0's time. */
static void pong(struct clocks *c, int child)
{
	uint64_t more, reply[2];

	do {
		c->link.receive(c->link.user, child, &more, 1);
		reply[0] = clocks_now(c);
		reply[1] = c->error_ns;
		c->link.send(c->link.user, child, reply, 2);
	} while (more);
}

/* ---- Measuring along the tree ------------------------------------------------------------ */

/* Take over a reading: the offset is new, the drift comes from an older reading. */
static void model_take(struct clocks *c, const struct clocks_reading *r)
{
	if (c->first.trip_ns == UINT64_MAX)
		c->first = c->next = *r;
	if (r->at_ns - c->next.at_ns > WINDOW_NS) {
		c->first = c->next;
		c->next = *r;
	}
	c->model = clocks_fit(&c->first, r);
	if (!c->least_trip_ns || r->trip_ns < c->least_trip_ns)
		c->least_trip_ns = r->trip_ns;
}

static void learn(struct clocks *c, int parent)
{
	uint64_t above_ns;
	struct clocks_reading r = ping(c, parent, PINGS, &above_ns);
	int64_t off = (int64_t)(r.at_ns + (uint64_t)r.offset_ns -
				clocks_to_global(&c->model, r.at_ns));

	c->error_ns = above_ns + (uint64_t)llabs(off);
	model_take(c, &r);
}

/* A leader learns from its parent, then serves its children, the farthest first. */
static void tree_walk(struct clocks *c)
{
	int step = 1;

	while (step < c->count)
		step *= 2;
	for (; step >= 1; step /= 2)
		if (c->index % (2 * step) == step)
			learn(c, c->leaders[c->index - step]);
		else if (c->index % (2 * step) == 0 && c->index + step < c->count)
			pong(c, c->leaders[c->index + step]);
}

/* All ranks of a clock have their leader's model. */
static void model_share(struct clocks *c)
{
	uint64_t m[3] = { c->model.at_ns, (uint64_t)c->model.offset_ns };

	memcpy(&m[2], &c->model.drift, sizeof(m[2]));
	for (int i = 0; i < c->shared_count; i++)
		c->link.send(c->link.user, c->shared[i], m, 3);
	if (c->index >= 0)
		return;
	c->link.receive(c->link.user, c->leader, m, 3);
	c->model.at_ns = m[0];
	c->model.offset_ns = (int64_t)m[1];
	memcpy(&c->model.drift, &m[2], sizeof(m[2]));
}

uint64_t clocks_check(struct clocks *c)
{
	uint64_t error;

	if (c->count == 1)
		return 0;
	if (c->index >= 0)
		tree_walk(c);
	model_share(c);
	error = c->error_ns;
	c->link.most(c->link.user, &error, 1);
	return error;
}

/* ---- The clocks of a job ------------------------------------------------------------------- */

/* The values of all ranks, by rank; 0 is no value. */
static void gather(struct clocks *c, uint64_t *by_rank, uint64_t mine)
{
	memset(by_rank, 0, (size_t)c->link.size * sizeof(by_rank[0]));
	by_rank[c->link.rank] = mine;
	c->link.most(c->link.user, by_rank, c->link.size);
}

static int first_of_key(const uint64_t *key, int rank)
{
	int first = 0;

	while (key[rank] && first < rank && key[first] != key[rank])
		first++;
	return key[rank] ? first : rank;
}

/* Compare with the first rank of the same key; find this rank's leader. */
static void leader_find(struct clocks *c, const uint64_t *key)
{
	int rank = c->link.rank, first = first_of_key(key, rank);
	struct clocks_reading r;
	uint64_t error;

	c->leader = rank;
	for (int i = rank + 1; first == rank && i < c->link.size; i++)
		if (first_of_key(key, i) == rank)
			pong(c, i);
	if (first == rank)
		return;
	r = ping(c, first, PINGS_SAME, &error);
	if (clocks_reading_is_same(&r))
		c->leader = first;
}

static void lists_fill(struct clocks *c, const uint64_t *leader)
{
	c->index = -1;
	for (int i = 0; i < c->link.size; i++) {
		int its = (int)leader[i] - 1;

		if (its == i && i == c->link.rank)
			c->index = c->count;
		if (its == i)
			c->leaders[c->count++] = i;
		else if (its == c->link.rank)
			c->shared[c->shared_count++] = i;
	}
}

/* Two measurements, apart in time. */
static void synchronise(struct clocks *c)
{
	uint64_t begin, t;

	clocks_check(c);
	begin = t = now(c);
	while (t - begin < FIRST_SPAN_NS) {
		c->link.relax(c->link.user, t, begin + FIRST_SPAN_NS);
		t = now(c);
	}
	clocks_check(c);
}

void clocks_renew(struct clocks *c)
{
	c->first.trip_ns = UINT64_MAX;
	c->least_trip_ns = 0;
	if (c->count > 1)
		synchronise(c);
}

int clocks_open(struct clocks *c, const struct clocks_link *link, uint64_t key)
{
	size_t size = (size_t)link->size;
	uint64_t *by_rank = malloc(size * sizeof(by_rank[0]));

	*c = (struct clocks){
		.link = *link, .leaders = malloc(size * sizeof(int)),
		.shared = malloc(size * sizeof(int)), .first.trip_ns = UINT64_MAX,
	};
	if (!by_rank || !c->leaders || !c->shared) {
		free(by_rank);
		clocks_close(c);
		return -ENOMEM;
	}
	gather(c, by_rank, key);
	leader_find(c, by_rank);
	gather(c, by_rank, (uint64_t)c->leader + 1);
	lists_fill(c, by_rank);
	free(by_rank);
	if (c->count > 1)
		synchronise(c);
	return 0;
}

void clocks_close(struct clocks *c)
{
	free(c->leaders);
	free(c->shared);
	c->leaders = c->shared = NULL;
}
