/* learned.c - what each rank has learned of costs, gathered as text. */
#include "mpi/watch/learned.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpi/abi/native.h"
#include "mpi/coll/coll_agree.h"
#include "mpi/coll/coll_learn.h"
#include "mpi/job/progress.h"
#include "mpi/railmpi.h"
#include "rail/programs.h"
#include "util/units.h"

static const char *const why[RAIL_LEARNED_WHYS] = {
	[RAIL_LEARNED_ASSUMED] = "assumed so far",
	[RAIL_LEARNED_RACING] = "best so far",
	[RAIL_LEARNED_MEASURED] = "measured",
	[RAIL_LEARNED_GIVEN] = "given by --costs",
};

static bool is_told(const struct rail_learned *cell)
{
	uint32_t samples = 0;

	for (unsigned i = 0; i < cell->schemes; i++)
		samples += cell->scheme[i].samples;
	return samples || cell->why != RAIL_LEARNED_ASSUMED;
}

static void cells_print(FILE *f)
{
	struct rail_learned cell;
	char text[RAILMPI_LEARNED_TEXT];

	for (unsigned i = 0; railmpi_learned(i, &cell); i++) {
		if (!is_told(&cell))
			continue;
		railmpi_learned_text(&cell, text, sizeof(text));
		fprintf(f, "  learned, rank %d: %s (%s)\n", layer.world_rank, text, why[cell.why]);
	}
}

/* A choice other than the learned one, and its reason. */
static void late_print(FILE *f)
{
	const uint64_t messages = layer.rails ? rail_reads_of_late(layer.rails) : 0;

	if (messages)
		fprintf(f, "  learned, rank %d: %" PRIu64 " messages read, since their senders answered late\n",
			layer.world_rank, messages);
}

static const char *const race_end[COLL_LEARN_ENDS] = {
	[COLL_LEARN_GOES_ON] = "not settled",
	[COLL_LEARN_CROWDED] = "the table's, since ranks share cores",
	[COLL_LEARN_UNLIKE] = "the table's, since calls differed among ranks",
};

struct races {
	FILE *f;
	int ranks;
};

static void race_print(void *user, const struct coll_learned_row *row)
{
	const struct races *of = user;
	char bytes[RG_UNIT_TEXT];

	rg_format_size(row->most_bytes, bytes, sizeof(bytes));
	fprintf(of->f, "  learned, %d ranks: %s %s %s", of->ranks, row->collective, bytes, row->choice);
	for (int c = 0; c < row->candidates; c++)
		if (row->cost_ns[c])
			fprintf(of->f, " %s=%" PRIu32, row->candidate[c], row->cost_ns[c]);
	fprintf(of->f, " (%s)\n", row->settled ? "measured" : race_end[row->end]);
}

static void races_print(void *user, int ranks, const struct coll_learned *learned)
{
	struct races of = { user, ranks };

	coll_learned_each(learned, race_print, &of);
}

/* The ranks of a communicator have the same races, so rank 0 tells those of its communicators. */
static void all_races_print(FILE *f)
{
	if (layer.world_rank)
		return;
	layer_enter();
	coll_each_learned(races_print, f);
	layer_leave();
}

/* All ranks take part, those without a text, too. */
static char *texts_gather(char *mine, int length)
{
	int *lengths = NULL, *at = NULL, total = 0;
	const bool root = layer.world_rank == 0;
	char *all = NULL;

	if (root)
		lengths = calloc((size_t)layer.world_size, 2 * sizeof(*lengths));
	if (root && !lengths)
		abort();
	native.Gather(&length, 1, MPI_INT, lengths, 1, MPI_INT, 0, MPI_COMM_WORLD);
	for (int i = 0; root && i < layer.world_size; i++) {
		at = lengths + layer.world_size;
		at[i] = total;
		total += lengths[i];
	}
	if (root)
		all = calloc((size_t)total + 1, 1);
	if (root && !all)
		abort();
	native.Gatherv(mine, length, MPI_CHAR, all, lengths, at, MPI_CHAR, 0, MPI_COMM_WORLD);
	free(lengths);
	return all;
}

char *learned_gather(void)
{
	size_t length = 0;
	char *text = NULL, *all;
	FILE *f = open_memstream(&text, &length);

	if (f) {
		cells_print(f);
		late_print(f);
		all_races_print(f);
		fclose(f);
	}
	all = texts_gather(text, text ? (int)length : 0);
	free(text);
	if (all && !*all) {
		free(all);
		all = NULL;
	}
	return all;
}
