/* roundtime.c - rounds that begin at a common time; see roundtime.h. */
#include "bench/roundtime.h"

#include "util/clock.h"

enum {
	AGREEMENTS = 41,
	/*
	 * A start is so much later than the end before it: the least time of an agreement, which
	 * contains no interruption, a quarter more, and readings of the clock.  A loaded machine
	 * does not stretch all rounds: only void ones give more.
	 */
	AHEAD_SHARE = 4,
	AHEAD_LEAST_NS = 500,
	/* Void rounds add up to so much.  A long wait is itself interrupted. */
	AHEAD_MORE_NS = 500000,
	/* A start so long after its time is late. */
	LATE_NS = 500, LATE_READINGS = 8,
	VOIDED_IN_TURN = 40, VOIDED_MORE = 100,
	/* So much time is lost only to more than a few: one of 20. */
	VOIDED_MORE_NS = 300000000, FEW_SHARE = 20,
};

/* Agreed on at the end of a round: the largest of each. */
enum { LATE, END, START, EARLIEST, LOCAL, WHOLE, VALUES };

static uint64_t now(const struct roundtime *r)
{
	return r->clocks->link.now(r->clocks->link.user);
}

static uint64_t less_reading(const struct roundtime *r, uint64_t ns)
{
	return ns > r->reading_ns ? ns - r->reading_ns : 0;
}

void roundtime_open(struct roundtime *r, const struct clocks *clocks, uint64_t reading_ns)
{
	const struct clocks_link *link = &clocks->link;
	uint64_t least = UINT64_MAX, value[VALUES] = { 0 }, took;

	*r = (struct roundtime){ .clocks = clocks, .reading_ns = reading_ns };
	for (int i = 0; i < AGREEMENTS; i++) {
		took = now(r);
		link->most(link->user, value, VALUES);
		took = now(r) - took;
		least = took < least ? took : least;
	}
	link->most(link->user, &least, 1);
	r->least_ahead_ns = least + least / AHEAD_SHARE + AHEAD_LEAST_NS;
	roundtime_begin(r);
}

void roundtime_begin(struct roundtime *r)
{
	r->ahead_ns = r->least_ahead_ns;
	r->rounds = r->voided = r->voided_in_turn = 0;
	r->rounds_ns = r->voided_ns = 0;
	roundtime_pause(r);
}

void roundtime_pause(struct roundtime *r)
{
	r->is_agreed = false;
}

/* The start of a first round: the latest time of all ranks here, and the time ahead. */
static void first_agree(struct roundtime *r)
{
	const struct clocks_link *link = &r->clocks->link;

	r->start_ns = clocks_now(r->clocks);
	link->most(link->user, &r->start_ns, 1);
	r->start_ns += r->ahead_ns;
	r->is_agreed = true;
}

uint64_t roundtime_start(struct roundtime *r)
{
	const struct clocks_link *link = &r->clocks->link;
	uint64_t late_ns = LATE_NS + LATE_READINGS * r->reading_ns;
	uint64_t t;

	if (!r->is_agreed)
		first_agree(r);
	r->entered_ns = now(r);
	r->due_ns = clocks_to_local(&r->clocks->model, r->start_ns);
	t = now(r);
	r->late = t >= r->due_ns;
	while (!rg_reached(r->due_ns, t)) {
		link->relax(link->user, t, r->due_ns);
		t = now(r);
	}
	r->late = r->late || t - r->due_ns > late_ns;
	return t;
}

/* More time ahead after a void round, less after a good one. */
static void ahead_adapt(struct roundtime *r, bool voided)
{
	uint64_t more = r->ahead_ns - r->least_ahead_ns;

	if (!voided)
		r->ahead_ns -= more < 8 ? more : more / 8;
	else
		r->ahead_ns += more + AHEAD_LEAST_NS < AHEAD_MORE_NS - more ?
			more + AHEAD_LEAST_NS : AHEAD_MORE_NS - more;
}

bool roundtime_end(struct roundtime *r, uint64_t begin_ns, uint64_t end_ns,
		   struct roundtime_sample *out)
{
	const struct clocks_model *m = &r->clocks->model;
	const struct clocks_link *link = &r->clocks->link;
	uint64_t begin = clocks_to_global(m, begin_ns), end = clocks_to_global(m, end_ns);
	/* The earliest is the largest complement. */
	uint64_t all[VALUES] = { r->late, end, begin, ~begin, end_ns - begin_ns,
				 end_ns - r->entered_ns };

	link->most(link->user, all, VALUES);
	ahead_adapt(r, all[LATE]);
	r->start_ns = all[END] + r->ahead_ns;
	if (all[LATE]) {
		r->voided++;
		r->voided_ns += all[WHOLE];
		r->voided_in_turn++;
		return false;
	}
	r->rounds++;
	r->rounds_ns += all[WHOLE];
	r->voided_in_turn = 0;
	*out = (struct roundtime_sample){
		.duration_ns = less_reading(r, all[END] - ~all[EARLIEST]),
		.local_ns = less_reading(r, all[LOCAL]),
		.skew_ns = all[START] - ~all[EARLIEST],
	};
	return true;
}

bool roundtime_is_vain(const struct roundtime *r)
{
	return r->voided_in_turn >= VOIDED_IN_TURN || r->voided > r->rounds + VOIDED_MORE ||
	       (r->voided_ns > r->rounds_ns + VOIDED_MORE_NS &&
		r->voided * FEW_SHARE > r->rounds);
}
