/*
 * eager_choice.h - is a message of 8 to 64 KiB to a process of this host sent eagerly, or offered?
 *
 * Sent eagerly it is copied twice, through the ring, and each end goes on with the next one; offered
 * it is copied once, by the kernel, after a question and before an answer.  The better one depends on
 * the processor and on the load: of messages that come one at a time the duration counts, of several
 * in a row the interval, in which both copies of the ring run at once.  The sender decides, so it
 * measures: for its first messages of each class of sizes and load both schemes in turn, and then it
 * keeps the faster one.  A sample ends with a record of the receiver, the FIN of an offer or the TOLD
 * of an eager message or of a last slice, when the bytes are in place.
 *
 * A row is a sequence of messages to one peer without any message from it.  A sample of a row is all
 * of it, if it is as long as the one before, or a batch of a long one; a message alone, or a few that
 * are exchanged for others, is no sample if another of its row follows before it has ended.  Samples without
 * an end, again and again, leave the decision to those before.  The first messages of up to
 * 32 KiB are sent in any case, since new memory need not be registered, which costs several copies.
 * Learning begins after some more, when the receiver has found how it moves offers (scheme.h).  In rows
 * these are many, so a few short samples, looks, find the scheme of the messages until then.  Of two
 * schemes within EAGER_MARGIN percent offers stay.
 *
 * Crossing.  Where messages of both directions cross, each processor copies for both, and an end that
 * changes its scheme alone moves work to the other one.  So the end with the lower index leads: the other
 * one does as the leader's messages of the class do, if there are any, and the leader measures what
 * both cost together.  A sample is the time from the begin of a row to that of a later one, by the
 * messages between.
 *
 * Rows of unlike sizes have one scheme for all, in a cell of their own: a sample is of many messages, which
 * have no one class.
 *
 * Pure: no clock, no verbs.  A process has one table; its caller serializes.
 */
#ifndef RAIL_EAGER_CHOICE_H
#define RAIL_EAGER_CHOICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rail/learned.h"

enum {
	EAGER_OFFERED,
	EAGER_SENT,
	EAGER_SCHEMES,
};

enum {
	EAGER_ALONE,
	EAGER_IN_ROW,
	EAGER_CROSSING,
	EAGER_ROW_MIXED,		/* of unlike sizes: one cell, of the last class */
	EAGER_CROSSING_MIXED,
	EAGER_LOADS,
};

enum {
	EAGER_CLASSES = 3,		/* to 16 KiB, to 32 KiB, to 64 KiB: EAGER_CHOICE_BYTES */
	EAGER_SAMPLES = 12,
	EAGER_LOOKS = 4,		/* at both schemes in turn, at most */
	EAGER_MARGIN = 3,		/* percent */
	EAGER_ROW_FROM = 2,		/* place in a row from which on a message is not alone */
	/* So many messages to a peer tell what the next are: many in rows, many that cross others. */
	EAGER_ROW_SENT = 32, EAGER_ROW_MANY = 8,
	EAGER_ROW_CROSSES = 8,		/* a long window is sent before the peer's comes */
	EAGER_ROW_MIXED_FOR = 128,	/* messages for which a row is mixed after its sizes have changed */
	EAGER_LED = 255,		/* messages to a leader after its last one, which tells their scheme */
};

/* Bytes of the largest message that is chosen for. */
#define EAGER_CHOICE_BYTES ((uint64_t)64 << 10)

struct rail_eager_cell {
	uint32_t sample_ns[EAGER_SCHEMES][EAGER_SAMPLES];	/* per message, in order */
	uint8_t samples[EAGER_SCHEMES];
	uint8_t scheme;			/* now */
	bool settled, given;
	uint32_t given_ns[EAGER_SCHEMES];	/* by rail_eager_give; 0: none */
	uint16_t passed;		/* messages of this scheme before its samples */
	uint8_t lost;			/* samples without an end, one after the other */
	uint16_t seen;			/* messages before learning, to a limit */
	uint8_t looks;
	uint32_t look_ns[EAGER_SCHEMES];	/* per message; 0: none */
	uint32_t row, row_before;	/* place of the last message; of the last one of the row before */
	/* Crossing: the sample under way, 0: none, and its messages so far. */
	uint64_t begun_ns;
	uint32_t crossed;
	uint16_t unbroken;		/* messages since the last begin of a row, to a limit */
};

struct rail_eager_choice {
	struct rail_eager_cell cell[RAIL_PLACES * EAGER_LOADS][EAGER_CLASSES];	/* rows: place, load */
	/* The sample under way; NULL: none. */
	struct rail_eager_cell *measured;
	uint64_t begun_ns;
	uint16_t batch, sent;		/* messages of it, and those that have been begun */
	uint16_t late;			/* messages since its last */
	struct rail_eager_cell *crossing;	/* whose sample is under way; NULL: none */
};

/* The fate of a message. */
struct rail_eager_step {
	bool eager;
	bool last;			/* the last of a sample: its end is told by rail_eager_ended */
};

/* The messages to a peer. */
struct rail_row {
	uint32_t place;			/* of the last one in its row, from 0 on */
	uint8_t sent, followed;		/* messages to the peer; of these in rows */
	uint16_t heard;			/* messages from it meanwhile */
	bool streams;			/* those before: many in rows */
	uint8_t crosses;		/* many from the peer: so many times EAGER_ROW_SENT are left of that */
	uint8_t peer_place;		/* enum rail_place */
	uint8_t class;			/* of the last message, from 1 on; 0: there is none */
	uint8_t mixed;			/* unlike sizes follow each other: so many messages are left of that */
	/* The scheme of the last message of a peer that leads, and the messages to it that still obey, by class. */
	uint8_t told[EAGER_CLASSES], obeys[EAGER_CLASSES];
};

static inline unsigned rail_eager_class(uint64_t bytes)
{
	return bytes <= (uint64_t)16 << 10 ? 0 : bytes <= (uint64_t)32 << 10 ? 1 : 2;
}

/* A message of another class than the one before mixes a row for a while. */
static inline void rail_row_mix(struct rail_row *row, unsigned class)
{
	if (row->class && class + 1 != row->class && (row->place || row->streams))
		row->mixed = EAGER_ROW_MIXED_FOR;
	else
		row->mixed -= row->mixed > 0;
	row->class = (uint8_t)(class + 1);
}

/* Another message, and how many have come from the peer since the one before. */
static inline void rail_row_step(struct rail_row *row, uint64_t bytes, uint64_t heard)
{
	row->heard = (uint16_t)(row->heard + (heard < EAGER_ROW_MANY ? heard : EAGER_ROW_MANY));
	row->place = heard ? 0 : row->place + (row->place < UINT32_MAX);
	rail_row_mix(row, rail_eager_class(bytes));
	row->followed = (uint8_t)(row->followed + (row->place >= EAGER_ROW_FROM));
	if (++row->sent < EAGER_ROW_SENT)
		return;
	row->streams = row->followed >= EAGER_ROW_MANY;
	if (row->streams && row->heard >= EAGER_ROW_MANY)
		row->crosses = EAGER_ROW_CROSSES;
	else
		row->crosses -= row->crosses > 0;
	row->sent = row->followed = 0;
	row->heard = 0;
}

static inline bool rail_row_is_crossed(const struct rail_row *row)
{
	return row->streams && row->crosses;
}

/* A message of the peer, which leads; so many bytes may go either way. */
static inline void rail_row_told(struct rail_row *row, uint64_t bytes, int scheme)
{
	row->told[rail_eager_class(bytes)] = (uint8_t)scheme;
	row->obeys[rail_eager_class(bytes)] = EAGER_LED;
}

static inline bool rail_row_is_alone(const struct rail_row *row)
{
	return row->place < EAGER_ROW_FROM && !row->streams;
}

void rail_eager_choice_init(struct rail_eager_choice *choice);

static inline struct rail_eager_cell *rail_eager_cell(struct rail_eager_choice *choice,
						      uint64_t bytes, const struct rail_row *row)
{
	unsigned class = rail_eager_class(bytes);
	unsigned load = rail_row_is_crossed(row) ? EAGER_CROSSING :
			rail_row_is_alone(row) ? EAGER_ALONE : EAGER_IN_ROW;

	if (row->mixed && load != EAGER_ALONE) {
		load = load == EAGER_CROSSING ? EAGER_CROSSING_MIXED : EAGER_ROW_MIXED;
		class = EAGER_CLASSES - 1;
	}
	return &choice->cell[row->peer_place * EAGER_LOADS + load][class];
}

/* Is there nothing to learn from a message of that cell, nor any sample under way? */
static inline bool rail_eager_is_settled(const struct rail_eager_choice *choice,
					 const struct rail_eager_cell *cell)
{
	return cell->settled && !choice->measured;
}

/* The next message, of this cell and at this place in its row, is sent at now_ns. */
struct rail_eager_step rail_eager_take(struct rail_eager_choice *choice,
				       struct rail_eager_cell *cell, uint32_t row, uint64_t now_ns);
/* The same of a message that crosses others.  True: it goes eagerly. */
bool rail_eager_take_crossing(struct rail_eager_choice *choice, struct rail_eager_cell *cell, uint32_t row,
			      uint64_t now_ns);
/* A message to a peer that leads.  True: *eager is what its own last one of the class tells. */
bool rail_eager_obey(struct rail_row *row, uint64_t bytes, bool *eager);
/* Another message comes between those of the sample of crossing ones, which is lost. */
void rail_eager_uncross(struct rail_eager_choice *choice);
/* A message to another peer comes.  False: the sample under way does not wait for its end, and is lost. */
bool rail_eager_waits(struct rail_eager_choice *choice);
/* All messages of the sample have their bytes in place. */
void rail_eager_ended(struct rail_eager_choice *choice, uint64_t now_ns);
/* The sample under way is lost, of messages that do not cross. */
void rail_eager_forget(struct rail_eager_choice *choice);

/*
 * The cost of a message, nanoseconds: the lower quartile of the samples, since the receiver may try
 * other schemes with some offers; before these of looks; 0: none.
 */
uint32_t rail_eager_cost(const struct rail_eager_cell *cell, int scheme);
/* Settle a cell, before its first message, by costs that were measured before. */
void rail_eager_give(struct rail_eager_cell *cell, unsigned scheme, const uint32_t cost_ns[EAGER_SCHEMES]);

#endif
