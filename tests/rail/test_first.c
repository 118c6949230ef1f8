/*
 * test_first.c - messages without a warm-up between two processes of one host, on the machines of test_scheme.c: the
 * first hundred of one size, and ten thousand of mixed sizes, take little longer than by the best forced scheme.
 * The messages are those of measures/first.c: one, four or 16 at once, from either end.
 *
 * A burst is a timeline of two processors.  The sender posts all offers, and then does its parts in order.  The
 * receiver takes all offers that are there, with its own part of each if that is a copy by the kernel, before
 * it empties the ring.  So the end of a message may come long after many others have been taken.
 */
#include "cmocka_all.h"

#include "scheme_machines.h"

#define KIB ((uint64_t)1 << 10)
#define MIB ((uint64_t)1 << 20)

enum { LAUNCHES = 200, MIXED_LAUNCHES = 10, MOST = 16, OFFER_NS = 300, SMALL_WINDOWS = 2000, BY_LEARNING = RAIL_SCHEMES };

/* As usual in scheme_machines.h, but that no process loses its core. */
static const struct noise interrupts = { 0.06, 0.06, 0.03, 0, 0 };

struct parts { double receiver, sender; };

struct flight {
	uint64_t bytes;
	enum rail_scheme scheme;
	struct parts parts;
	struct rail_scheme_cell *cell;		/* NULL: not learned from */
	uint8_t batch;
	double there_ns;			/* its bytes, or the first ones in the ring */
	bool landed;
};

/* Both ends receive; each one learns by itself. */
struct pair {
	struct world end[2];
	struct rail_crossing crossing[2];
	int bursts[2];
	bool reads[RAIL_SCHEMES + 1];		/* by turns: the receiver has read the last message */
	uint64_t dice;
	double total[RAIL_SCHEMES + 1];		/* ns of all bursts, by a forced scheme and by learning */
};

static unsigned draw(struct pair *p, unsigned n)
{
	return (unsigned)(random_of(&p->dice) * n);
}

/* All octaves alike. */
static uint64_t draw_size(struct pair *p, uint64_t low, unsigned octaves)
{
	const uint64_t octave = octaves ? low << draw(p, octaves) : low;

	return octaves ? octave + draw(p, (unsigned)octave) + 1 : low;
}

/* What each end does for a message. */
static struct parts parts_of(const struct machine *m, enum rail_scheme scheme, uint64_t bytes, bool *reads)
{
	const double b = (double)bytes;
	struct parts parts = { 0, 0 };

	switch (scheme) {
	case SCHEME_READ:
		parts.receiver = m->fixed + b / m->rate;
		break;
	case SCHEME_HALVES:
		parts.receiver = parts.sender = m->half_fixed + b / 2 / m->half_rate;
		break;
	case SCHEME_TURNS:
		*reads = !*reads;
		*(*reads ? &parts.receiver : &parts.sender) = m->turn_fixed + b / m->turn_rate;
		break;
	default:
		parts.receiver = parts.sender = m->fixed + b / (scheme == SCHEME_RING ? m->ring_rate :
								scheme == SCHEME_RING_SHORT ? m->short_rate : m->long_rate);
	}
	return parts;
}

static bool through_ring(enum rail_scheme scheme)
{
	return SCHEMES_RING >> scheme & 1;
}

/* The receiver takes a message at now_ns. */
static void take(struct pair *p, int to, struct flight *f, bool queued, int by, double now_ns)
{
	struct world *w = &p->end[to];
	struct rail_schemes *schemes = &w->schemes;
	const double slow = p->bursts[to] ? 1 : 2;	/* the first burst meets fresh pages */

	f->scheme = (enum rail_scheme)by;
	f->cell = NULL;
	if (by == BY_LEARNING) {
		const enum rail_load load = rail_one_way_load(&p->crossing[to], f->bytes, queued);

		f->cell = rail_scheme_cell(schemes, f->bytes, load);
		f->scheme = (enum rail_scheme)f->cell->scheme;
		rail_scheme_expect(schemes, f->cell, rail_scheme_found(&p->end[!to].schemes, 0, f->bytes));
		if (rail_scheme_learns(schemes, f->cell))
			f->scheme = rail_scheme_take(schemes, f->cell, f->bytes, !queued, (uint64_t)now_ns);
		else
			f->cell = NULL;
		f->batch = f->cell ? f->cell->batch : 0;
	}
	f->parts = parts_of(w->machine, f->scheme, f->bytes, &p->reads[by]);
	if (f->parts.receiver > 0)
		f->parts.receiver = disturbed(w, slow * f->parts.receiver);
	if (f->parts.sender > 0)
		f->parts.sender = disturbed(w, slow * f->parts.sender);
}

static void land(struct pair *p, int to, struct flight *f, double now_ns)
{
	f->landed = true;
	if (f->cell)
		rail_scheme_done(&p->end[to].schemes, f->cell, f->bytes, f->batch, (uint64_t)now_ns);
}

/* The message that lands next, or NULL; those of the ring need the receiver. */
static struct flight *next_there(struct flight *f, int taken)
{
	struct flight *next = NULL;

	for (int i = 0; i < taken; i++)
		if (!f[i].landed && (!next || f[i].there_ns < next->there_ns))
			next = &f[i];
	return next;
}

/* The time until all bytes are there. */
static double burst(struct pair *p, int to, struct flight *f, int count, int by)
{
	const double begun = p->end[to].now_ns, answer = p->end[to].machine->answer;
	double receiver = begun, sender = begun + count * OFFER_NS, last = begun;
	int taken = 0;

	for (int landed = 0; landed < count;) {
		struct flight *next = next_there(f, taken);

		if (next && (taken == count || next->there_ns <= receiver)) {
			if (next->there_ns > receiver)
				receiver = next->there_ns;
			/* Both ends copy at once, and the receiver not before it is here. */
			if (through_ring(next->scheme))
				receiver += next->parts.receiver;
			land(p, to, next, receiver);
			landed++;
			last = receiver;
			continue;
		}
		if (receiver < begun + (taken + 1) * OFFER_NS)
			receiver = begun + (taken + 1) * OFFER_NS;
		take(p, to, &f[taken], taken > 0, by, receiver);
		if (f[taken].parts.sender > 0)
			sender = (sender > receiver + answer ? sender : receiver + answer) + f[taken].parts.sender;
		if (!through_ring(f[taken].scheme))
			receiver += f[taken].parts.receiver;
		f[taken].there_ns = f[taken].parts.sender > 0 && sender > receiver ? sender : receiver;
		if (through_ring(f[taken].scheme))
			f[taken].there_ns = sender - f[taken].parts.sender;
		taken++;
	}
	p->end[to].now_ns = last + 20000;
	return last - begun;
}

static void bursts(struct pair *p, int to, int count, uint64_t low, unsigned octaves)
{
	const uint64_t dice = p->end[to].dice;
	struct flight f[MOST];
	uint64_t bytes[MOST];

	for (int i = 0; i < count; i++)
		bytes[i] = draw_size(p, low, octaves);
	for (int by = 0; by <= BY_LEARNING; by++) {
		for (int i = 0; i < count; i++)
			f[i] = (struct flight){ .bytes = bytes[i] };
		p->end[to].dice = dice;
		p->total[by] += burst(p, to, f, count, by);
	}
	p->bursts[to]++;
	p->end[!to].now_ns = p->end[to].now_ns;
}

static double in_best(const struct pair *p)
{
	double best = 1e300;

	for (int s = 0; s < RAIL_SCHEMES; s++)
		if (p->total[s] < best)
			best = p->total[s];
	return p->total[BY_LEARNING] / best;
}

/* The time of `count` messages, in that of the best forced scheme. */
static double launch(const struct machine *m, int count, uint64_t low, unsigned octaves, uint64_t seed)
{
	static const int counts[] = { 1, 4, MOST };
	struct pair p = { .end = { world_make(m, seed, interrupts), world_make(m, seed + LAUNCHES, interrupts) },
			  .dice = seed * 7919 + 3 };

	for (int done = 0, n; done < count; done += n) {
		n = counts[draw(&p, 3)];
		if (n > count - done)
			n = count - done;
		bursts(&p, (int)draw(&p, 2), n, low, octaves);
	}
	return in_best(&p);
}

/* On average of launches at most `most` times the best forced scheme's time. */
static void expect_cheap(int launches, int count, uint64_t low, unsigned octaves, double most)
{
	for (int m = 0; m < MACHINES; m++) {
		double mean = 0;

		for (int i = 0; i < launches; i++)
			mean += launch(&machines[m], count, low, octaves, (uint64_t)i) / launches;
		if (mean > most)
			fail_msg("%s, %d messages from %llu KiB on, %u octaves: %.3f of the best forced scheme, asked %.2f",
				 machines[m].name, count, (unsigned long long)low >> 10, octaves, mean, most);
	}
}

/* Each of three or four schemes has to be tried by messages that cost up to four times the best ones. */
static void first_hundred(void **state)
{
	(void)state;
	expect_cheap(LAUNCHES, 100, 64 * KIB, 0, 1.27);
	expect_cheap(LAUNCHES, 100, MIB, 0, 1.25);
}

static void mixed_sizes(void **state)
{
	(void)state;
	expect_cheap(MIXED_LAUNCHES, 10000, 16 * KIB, 6, 1.1);
}

/* Windows of a few messages, among them those too short for any batch. */
static void small_windows(void **state)
{
	(void)state;
	for (int m = 0; m < MACHINES; m++)
		for (int window = 2; window <= 9; window++)
			for (uint64_t bytes = 64 * KIB; bytes <= MIB; bytes *= 16) {
				struct pair p = { .end = { world_make(&machines[m], 1, interrupts),
							   world_make(&machines[m], 2, interrupts) }, .dice = 3 };

				for (int i = 0; i < SMALL_WINDOWS; i++)
					bursts(&p, 0, window, bytes, 0);
				if (in_best(&p) > 1.13)
					fail_msg("%s, windows of %d messages of %llu KiB: %.3f of the best forced scheme",
						 machines[m].name, window, (unsigned long long)bytes >> 10, in_best(&p));
			}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(first_hundred),
		cmocka_unit_test(mixed_sizes),
		cmocka_unit_test(small_windows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
