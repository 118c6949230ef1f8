/*
 * scheme.h - who moves a message between two processes of one host, learned while messages flow.
 *
 * A copy by the kernel costs a fixed part and a part by the byte; two processors that copy at
 * once gain or lose by their caches.  Both differ between processors by more than a factor of
 * two, so constants that are right on one machine are wrong on the next.  UCX's protocol
 * selection (ucp/proto) estimates from constants, patched by processor (openucx/ucx issues 1833,
 * 4572, 8354; 10652 is open), MVAPICH has tables by cluster; how copies by the kernel slow each
 * other is modelled in "Contention-Aware Kernel-Assisted MPI Collectives" (Chakraborty,
 * Subramoni, Panda, CLUSTER 2017).  Here each class of sizes takes every scheme in turn for its
 * first messages, and then the fastest.  The receiver of a message measures, since it decides:
 * from the moment when it takes the offer until the bytes are there.  A cell holds the samples of
 * a class under a load: of messages that come one at a time, of several that queue in one
 * direction, or of those that cross others.  Samples of the first are durations, of the others
 * intervals.
 *
 * Crossing.  Each processor copies for both directions there, and an end that changes its scheme alone
 * moves work to the other end: it measures its own gain and not the loss, and two such ends keep the
 * scheme they met in.  So one end of a pair leads, the one with the lower index: each of its offers
 * tells the scheme of crossing messages, the other end obeys, and the leader takes messages by
 * what it has told with the offer that the other end has reached.
 *
 * Windows of unlike sizes, such as those of an exchange of faces, have no batch of one class.  All their
 * messages have one scheme, raced as a cell of its own: its costs are those of a piece of 64 KiB.
 *
 * Without a warm-up.  A cell without a sample expects what a related one has found, the same class under
 * another load or a class nearby, or else what the peer has found, which an offer tells.  It begins with the
 * scheme that is expected to be the best, and one that is expected to be slow is tried when the time of all
 * messages pays for that.  Messages that queue end long after they have been taken, so their first
 * measurements are looks (scheme_look.h), and a scheme changes between bursts.  Where messages come in
 * bursts, the first one of a burst is no message alone.
 *
 * Slices.  The length of those through the ring is a choice as well, of three: ring, ring-short, ring-long.  The
 * other two lengths join the race once the ring is known to cost at most a twentieth more than the best, so they
 * cost nothing where the kernel's copies are faster.
 *
 * Steady.  The best so far is that with the least mean of the samples around and below the median, since disturbances
 * only add time.  A decision compares ratios of samples that are neighbours in time, since other processes disturb
 * for longer than a sample.  The race goes on until the best differs from the others beyond the spread of their
 * ratios, and ends after SCHEME_SAMPLES of each.  Within 1 / SCHEME_MARGIN of the best what was
 * assumed at first stays, so a tie, as on a virtual clock, changes nothing.  A decision is for good.
 *
 * Cheap.  A scheme far above the best drops out early.  The time that slower schemes have taken beyond
 * the best one is a debt; the next visit waits until the debt is a small part of the time of all
 * messages, and a visit ends when it alone has taken a few messages' time more than the best.
 *
 * Pure: no clock, no verbs.  A process has one table; its caller serializes.
 */
#ifndef RAIL_SCHEME_H
#define RAIL_SCHEME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rail/learned.h"

enum rail_scheme {
	SCHEME_READ,			/* the receiver copies all */
	SCHEME_HALVES,			/* each end copies half */
	SCHEME_TURNS,			/* of queued messages each end copies every second */
	SCHEME_RING,			/* both copy all, through the eager ring */
	SCHEME_RING_SHORT,		/* in shorter slices (slices.h) */
	SCHEME_RING_LONG,		/* in longer ones */
	RAIL_SCHEMES,
};

enum {
	SCHEMES_LATER = 1 << SCHEME_RING_SHORT | 1 << SCHEME_RING_LONG,	/* raced once the ring is near the best */
	SCHEMES_RING = 1 << SCHEME_RING | SCHEMES_LATER,
};

enum rail_load {
	LOAD_ALONE,			/* no earlier message waits for its answer */
	LOAD_QUEUED,
	LOAD_CROSSING,			/* an offer of this end waits for its answer */
	LOAD_CROSSING_MIXED,		/* the same, and unlike sizes follow each other: one cell, of the last class */
	LOAD_QUEUED_MIXED,		/* as LOAD_QUEUED, and unlike sizes follow each other: likewise */
	RAIL_LOADS,
};

enum {
	SCHEME_CLASSES = 9,		/* to 16 KiB, to 32 KiB, ... to 2 MiB, above */
	SCHEME_SAMPLES = 42,		/* per scheme, at most; a byte numbers those of all */
	SCHEME_MARGIN = 200,		/* of costs, a two-hundredth */
};

/* The largest message of the first class, bytes. */
#define SCHEME_FIRST_BYTES ((uint64_t)16 << 10)

/* A short measurement of a scheme whose messages queue (scheme_look.h). */
struct rail_look {
	uint64_t begun_ns, taken_ns;	/* the first take; the last one, or the next one of another scheme */
	uint64_t first_ns, last_ns;	/* ends */
	uint32_t pieces, first_pieces;	/* of all messages taken; of the one that ended first */
	uint32_t timed;			/* pieces of those whose part at this end is done at taken_ns */
	uint8_t batch, taken, done;
	bool closed;
};

struct rail_scheme_cell {
	uint32_t sample_ns[RAIL_SCHEMES][SCHEME_SAMPLES];	/* per message, in order */
	uint8_t sample_turn[RAIL_SCHEMES][SCHEME_SAMPLES];	/* samples of all schemes before it */
	uint8_t samples[RAIL_SCHEMES];
	uint32_t glance_ns[RAIL_SCHEMES];	/* per message, from first short batches; 0: none */
	uint8_t glances[RAIL_SCHEMES];
	uint32_t cost_ns[RAIL_SCHEMES];	/* per message, by either, 0: unknown */
	struct rail_look look[RAIL_SCHEMES];
	uint8_t looking;		/* schemes whose look is under way: bits */
	uint32_t given_ns[RAIL_SCHEMES];	/* by rail_scheme_give; 0: none */
	uint16_t prior[RAIL_SCHEMES];	/* the cost that related cells expect, in percent of the best; 0: none */
	uint8_t possible, racing;	/* schemes: all; those that are still compared: bits */
	uint8_t later;			/* those that wait for the ring to be near the best: bits */
	uint8_t assumed, scheme;	/* at first; now */
	uint8_t judged;			/* samples of each at the last judgement */
	bool settled, given, resting;	/* resting: messages go by the best until the debt is small */
	bool fresh;			/* no batch has ended */
	uint8_t passed;			/* messages of this scheme before the batch, to a limit */
	uint8_t burst;			/* messages of the burst so far, to a limit */
	uint8_t batch;			/* its number, which wraps */
	uint32_t done, done_pieces;	/* messages of the batch that have ended; what a cost is of, as below */
	uint64_t begun_ns, ended_ns;	/* the batch, 0: none; its last message so far */
	uint64_t took_ns;		/* the last message, 0: its cost is unknown or counted */
	uint32_t took_pieces;
	uint64_t alone_ns;		/* its cost, unless others follow at once; 0: unknown */
	uint32_t messages[RAIL_SCHEMES];	/* per scheme, with a known cost; of mixed sizes: pieces */
	uint32_t rested;		/* messages between visits, among those of rested_as */
	uint8_t rested_as;
	uint32_t visit_messages, visit_pieces;	/* of this visit */
	uint64_t visit_ns;
	uint64_t visit_extra_ns;	/* beyond the best scheme's cost */
	/* Crossing messages: */
	bool windows;			/* the batch is a window from its first message on */
	uint8_t unbroken;		/* messages since the last pause, to a limit */
	uint32_t taken, under_way;	/* of the batch; measured and not done */
	uint32_t counted;		/* messages of the windows before it, in the same sample */
	uint32_t taken_pieces, counted_pieces;	/* of both, what a cost is of: a message, or a piece of it */
	uint64_t counted_ns;
};

struct rail_schemes {
	struct rail_scheme_cell cell[RAIL_PLACES * RAIL_LOADS][SCHEME_CLASSES];	/* rows: place, load */
	struct rail_scheme_cell *last;	/* of the last message, while it is not settled */
	uint32_t under_way;		/* messages that were taken and are not done */
	struct rail_scheme_cell *window;	/* whose window is measured; NULL: none */
};

/* Offers to a peer, or of it. */
struct rail_sizes {
	uint8_t class;			/* of the last one */
	uint8_t mixed;			/* unlike sizes follow each other: so many offers are left of that */
};

/* The last offer of this end that a peer has reached, or the first one on its way there. */
struct rail_crossing {
	uint8_t scheme, class;
	uint8_t place;			/* enum rail_place, the peer's */
	struct rail_sizes offered, received;	/* received: of one-way messages */
	bool followed;			/* messages have queued after the last one that did not */
	uint8_t bursts;			/* such ones in a row, to a limit */
};

void rail_scheme_init(struct rail_schemes *schemes);
/* Some messages of a cell cannot have these schemes, bits, so they are not raced; none that is assumed. */
void rail_scheme_exclude(struct rail_scheme_cell *cell, unsigned schemes);

/* The class of a size. */
static inline unsigned rail_scheme_class(uint64_t bytes)
{
	unsigned c = 0;

	while (c < SCHEME_CLASSES - 1 && bytes > SCHEME_FIRST_BYTES << c)
		c++;
	return c;
}

/* The row of a load among messages of a place's peers; those of RAIL_PLACE_HOST are the loads. */
static inline unsigned rail_load_at(unsigned place, enum rail_load load)
{
	return place * RAIL_LOADS + load;
}

/* load: a row. */
static inline bool rail_load_is_mixed(unsigned load)
{
	return load % RAIL_LOADS >= LOAD_CROSSING_MIXED;
}

static inline bool rail_load_crosses(unsigned load)
{
	return load % RAIL_LOADS == LOAD_CROSSING || load % RAIL_LOADS == LOAD_CROSSING_MIXED;
}

static inline enum rail_load rail_cell_load(const struct rail_schemes *schemes, const struct rail_scheme_cell *cell)
{
	return (enum rail_load)((cell - schemes->cell[0]) / SCHEME_CLASSES % RAIL_LOADS);
}

/* load: a row. */
static inline struct rail_scheme_cell *rail_scheme_cell(struct rail_schemes *schemes, uint64_t bytes,
							unsigned load)
{
	return &schemes->cell[load][rail_load_is_mixed(load) ? SCHEME_CLASSES - 1 : rail_scheme_class(bytes)];
}

/* A scheme that is told, and none. */
enum { SCHEME_TOLD = 1, SCHEME_NONE_TOLD = 0 };

/* What this end has found best for messages that cross none, of a place's peers: SCHEME_TOLD + scheme, or none. */
uint8_t rail_scheme_found(const struct rail_schemes *schemes, unsigned place, uint64_t bytes);
/* A peer has told what it has found; the next message of the cell expects that, if the cell knows nothing better. */
void rail_scheme_expect(struct rail_schemes *schemes, struct rail_scheme_cell *cell, uint8_t found);

/* The load of messages that cross those of a peer. */
static inline enum rail_load rail_crossing_load(const struct rail_crossing *crossing)
{
	return crossing->offered.mixed ? LOAD_CROSSING_MIXED : LOAD_CROSSING;
}

/*
 * The load of a message that crosses none; queued: an earlier one waits for its answer.  Where messages come in
 * bursts, the first one of a burst is of those that queue.  Called once for each.
 */
enum rail_load rail_one_way_load(struct rail_crossing *crossing, uint64_t bytes, bool queued);

/* The class of such a message; all classes are one where sizes are mixed. */
static inline unsigned rail_crossing_class(const struct rail_crossing *crossing, uint64_t bytes)
{
	return crossing->offered.mixed ? SCHEME_CLASSES : rail_scheme_class(bytes);
}

/* Is there something to learn from a message of that cell, or of the message before it? */
static inline bool rail_scheme_learns(const struct rail_schemes *schemes,
				      const struct rail_scheme_cell *cell)
{
	return !cell->settled || schemes->last;
}

/* The scheme of a message that is taken at now_ns, first: of a burst; its end is told by rail_scheme_done. */
enum rail_scheme rail_scheme_take(struct rail_schemes *schemes, struct rail_scheme_cell *cell,
				  uint64_t bytes, bool first, uint64_t now_ns);
/*
 * The same of a message that crosses others, at the end that leads.  first: the peer had no other offer
 * under way.  True: its end is told by rail_scheme_done.
 */
bool rail_scheme_take_crossing(struct rail_schemes *schemes, struct rail_scheme_cell *cell, uint64_t bytes,
			       enum rail_scheme told, bool first, uint64_t now_ns);
/*
 * A message that crosses others is taken at the end that obeys: it comes between those of a cell.  Called
 * if schemes->last.
 */
void rail_scheme_obey(struct rail_schemes *schemes, uint64_t now_ns);
/* A message that was taken in this batch has all its bytes. */
void rail_scheme_done(struct rail_schemes *schemes, struct rail_scheme_cell *cell, uint64_t bytes,
		      uint8_t batch, uint64_t now_ns);
/* The scheme that an offer of so many bytes tells; `offers` earlier ones to the peer are unanswered. */
enum rail_scheme rail_crossing_offer(const struct rail_schemes *schemes,
				     struct rail_crossing *crossing, uint64_t bytes, uint32_t offers);
/* An offer that has told `scheme` is answered. */
static inline void rail_crossing_answered(struct rail_crossing *crossing, uint64_t bytes,
					  enum rail_scheme scheme)
{
	crossing->scheme = (uint8_t)scheme;
	crossing->class = (uint8_t)rail_crossing_class(crossing, bytes);
}
/*
 * An offer of this end is at its end, which is a window's if no other is unanswered; called if
 * schemes->window.
 */
void rail_crossing_sent(struct rail_schemes *schemes, uint32_t offers, uint64_t now_ns);
/* Is a message of the class of the offer that it crosses?  Others teach nothing. */
static inline bool rail_crossing_is_even(const struct rail_crossing *crossing, uint64_t bytes)
{
	return crossing->class == rail_crossing_class(crossing, bytes);
}
/*
 * The scheme of a message from memory that both ends map, to such memory or another one; the other
 * end copies as well if messages cross.  It is not measured: a copy without the kernel costs less
 * than one by it, and its samples would decide wrongly for other memory.
 */
enum rail_scheme rail_scheme_shared(uint64_t bytes, bool crossing, bool to_shared);
/* Messages under way are lost: they are not measured. */
void rail_scheme_forget(struct rail_schemes *schemes);

/* The cost of a message, nanoseconds; 0: none. */
uint32_t rail_scheme_cost(const struct rail_scheme_cell *cell, enum rail_scheme scheme);
/* The choice so far; *tried: each scheme has had messages that were measured. */
enum rail_scheme rail_scheme_best(const struct rail_scheme_cell *cell, bool *tried);
/* Settle a cell by costs that were measured before; false: the scheme is not possible there. */
bool rail_scheme_give(struct rail_scheme_cell *cell, enum rail_scheme scheme,
		      const uint32_t cost_ns[RAIL_SCHEMES]);

#endif
