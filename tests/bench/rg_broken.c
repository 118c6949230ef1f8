/* broken - a program that damages what it moves: validation must see each kind. */
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"

enum damage { NOTHING, FLIP, STALE, SWAP, LOSE, BEYOND };

static const struct opt_choice damages[] = {
	{ "nothing", NOTHING, NULL }, { "flip", FLIP, "one bit of the last byte of one block" },
	{ "stale", STALE, "data of the run before" }, { "swap", SWAP, "two blocks exchanged" },
	{ "lose", LOSE, "a block that never comes" }, { "beyond", BEYOND, "a byte too many" },
	{ NULL },
};

static struct broken_values { int damage; } values;

static const struct opt rows[] = {
	{ .name = "damage", .type = OPT_CHOICE, .offset = offsetof(struct broken_values, damage),
	  .arg = "KIND", .standard = "nothing", .choices = damages, .help = "what goes wrong" },
	{ .name = NULL },
};

static void move(struct bench *b)
{
	for (int i = 0; i < b->window; i++)
		if (b->side == 0)
			MPI_Send(b->sbuf + i * b->step, b->count, MPI_BYTE, b->peer, BENCH_TAG,
				 b->comm);
		else
			MPI_Recv(b->rbuf + i * b->step, b->count, MPI_BYTE, b->peer, BENCH_TAG,
				 b->comm, MPI_STATUS_IGNORE);
}

static void damage(struct bench *b, unsigned char *before)
{
	unsigned char *last = b->rbuf + (size_t)(b->window - 1) * b->step;
	size_t bytes = (size_t)b->count;
	static unsigned char *kept;

	switch (values.damage) {
	case FLIP:
		last[bytes - 1] ^= 0x10;
		break;
	case STALE:
		if (kept) {
			unsigned char *fresh = malloc(bytes);

			memcpy(fresh, last, bytes);
			memcpy(last, kept, bytes);
			memcpy(kept, fresh, bytes);
			free(fresh);
		} else {
			kept = malloc(bytes);
			memcpy(kept, last, bytes);
		}
		break;
	case SWAP:
		for (size_t i = 0; i < bytes; i++) {
			unsigned char c = last[i];

			last[i] = b->rbuf[i];
			b->rbuf[i] = c;
		}
		break;
	case LOSE:
		memcpy(last, before, bytes);
		break;
	case BEYOND:
		last[bytes] ^= 1;
		break;
	}
}

static void broken_run(struct bench *b)
{
	unsigned char *before = NULL;

	if (b->side == 1 && b->step) {
		before = malloc((size_t)b->count);
		memcpy(before, b->rbuf + (size_t)(b->window - 1) * b->step, (size_t)b->count);
	}
	move(b);
	if (b->side == 1 && b->step)
		damage(b, before);
	free(before);
}

const struct bench_def bench_def = {
	.name = "broken",
	.summary = "Damage on purpose",
	.metric = REPORT_LATENCY,
	.layout = BENCH_PAIRS,
	.min_ranks = 2,
	.messages = bench_window,
	.sblocks = bench_window_side0,
	.rblocks = bench_window_side1,
	.run = broken_run,
	.expect = bench_from_peer,
	.sizes = "64",
	.small = { 5, 1 },
	.options = rows,
	.values = &values,
};
