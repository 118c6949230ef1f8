/* learned.c - what each rank has learned of costs, gathered as text. */
#include "mpi/watch/learned.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpi/abi/native.h"
#include "mpi/job/progress.h"
#include "mpi/railmpi.h"
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
	const uint64_t messages = railmpi_late_reads();

	if (messages)
		fprintf(f, "  learned, rank %d: %" PRIu64 " messages read, since their senders answered late\n",
			layer.world_rank, messages);
}

static const char *race_why(const char *word)
{
	return strcmp(word, "racing") == 0 ? "not settled" :
	       strcmp(word, "crowded") == 0 ? "the table's, since ranks share cores" :
	       strcmp(word, "unlike") == 0 ? "the table's, since calls differed among ranks" : word;
}

/* The ranks of a communicator have the same races, so its rank 0 tells them. */
static void races_print(FILE *f)
{
	char bytes[RG_UNIT_TEXT];
	struct railmpi_race r;

	for (unsigned n = 0; railmpi_race(n, &r); n++) {
		rg_format_size(r.bytes, bytes, sizeof(bytes));
		fprintf(f, "  learned, %d ranks", r.ranks);
		if (layer.world_rank)
			fprintf(f, " (first: rank %d)", layer.world_rank);
		if (r.nodes > 1)
			fprintf(f, " on %d nodes", r.nodes);
		fprintf(f, " over %s: %s %s %s", r.over, r.collective, bytes, r.algorithm);
		for (int c = 0; c < r.candidates; c++)
			if (r.candidate[c].cost_ns)
				fprintf(f, " %s=%" PRIu32, r.candidate[c].name, r.candidate[c].cost_ns);
		fprintf(f, " (%s)\n", race_why(r.why));
	}
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
		races_print(f);
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
