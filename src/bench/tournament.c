/*
 * tournament.c - every pair of nodes, one way at a time, in rounds in which all nodes are busy.
 *
 * The first rank of each node takes part.  In a round each way is measured in turns, as in
 * all layouts, first from the lower node to the higher, then back.  A cell is made of the
 * samples of its pair.  The traffic of other pairs at the same time is part of the conditions.
 */
#include "bench/tournament.h"
#include "bench/acceptance.h"
#include "bench/measure.h"
#include "bench/ranks.h"
#include "bench/rows.h"
#include "bench/validate.h"
#include "bench/ways.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "accept/rounds.h"

/* A cell below this share of its rail's median suggests a bad cable. */
#define SLOW 0.9

/* ---- Words --------------------------------------------------------------------- */

void tournament_matrix(const struct bench_job *job, struct report_matrix *out)
{
	const char **names = bench_must(calloc((size_t)job->where.node_count, sizeof(names[0])));
	const char **labels = bench_must(calloc((size_t)job->where.way_count, sizeof(labels[0])));

	for (int n = 0; n < job->where.node_count; n++) {
		const char *host = job->where.place[job->where.player[n]].host;
		char *text;

		if (job->where.host_count > 1)
			text = strdup(host);
		else if (asprintf(&text, "virtual node %d of %s", n, host) < 0)
			text = NULL;
		names[n] = bench_must(text);
	}
	for (int w = 0; w < job->where.way_count; w++) {
		const char *rail = way_rail(job, &job->where.way[w]);
		char *text;

		if (asprintf(&text, "%s%s%s%s", job->where.way[w].name, rail ? " (" : "",
			     rail ? rail : "", rail ? ")" : "") < 0)
			text = NULL;
		labels[w] = bench_must(text);
	}
	*out = (struct report_matrix){ .names = names, .labels = labels, .slow = SLOW,
				       .count = job->where.node_count, .alike = true,
				       .sparse = acceptance_is(job) && acceptance_rounds(job) };
	for (int w = 0; w < job->where.way_count; w++)
		out->alike = out->alike && way_rail(job, &job->where.way[w]);
}

/* ---- Rounds ------------------------------------------------------------------------ */

/* Pairs of a round; side 0 is the lower node, or, `back`, the higher one. */
static void round_set(struct bench_job *job, int round, bool back)
{
	struct bench *b = &job->b;

	job->where.pair_count = 0;
	b->pair = b->peer = -1;
	for (int n = 0; n < job->where.node_count; n++) {
		int other = rounds_opponent(job->where.node_count, round, n);
		int rank[2];

		if (other < n)
			continue;
		rank[back] = job->where.player[n];
		rank[!back] = job->where.player[other];
		for (int side = 0; side < 2; side++)
			if (rank[side] == b->rank) {
				b->pair = job->where.pair_count;
				b->side = side;
				b->peer = rank[!side];
			}
		job->where.pair[job->where.pair_count++] =
			(struct bench_pair){ { rank[0], rank[1] } };
	}
}

/* Validate a round: valid[way * pairs + pair], at rank 0. */
static void round_validate(struct bench_job *job, uint64_t bytes, int *valid)
{
	int *wrong = bench_must(calloc((size_t)job->b.size, sizeof(wrong[0])));

	for (int w = 0; w < job->where.way_count; w++) {
		int all = validate_way(job, &job->where.way[w], bytes), mine = job->got.wrong;

		job->got.validation_failed = job->got.validation_failed || all == 0;
		if (all >= 0)
			MPI_Gather(&mine, 1, MPI_INT, wrong, 1, MPI_INT, 0, job->where.comm);
		for (int p = 0; p < job->where.pair_count; p++) {
			const int *rank = job->where.pair[p].rank;

			valid[w * job->where.pair_count + p] = all < 0 ? -1 :
				!wrong[rank[0]] && !wrong[rank[1]];
		}
	}
	free(wrong);
}

static int round_run(struct bench_job *job, uint64_t bytes)
{
	size_t cells = (size_t)job->where.way_count * (size_t)job->where.pair_count;
	int *valid = bench_must(calloc(cells + 1, sizeof(valid[0]))), rc;
	struct measure m[REPORT_WAYS_MAX];

	round_validate(job, bytes, valid);
	measure_size(job, bytes, m);
	rc = rows_write_pairs(job, bytes, m, valid);
	free(valid);
	return rc;
}

int tournament_run(struct bench_job *job, uint64_t bytes)
{
	int rc = 0;

	for (int turn = 0; turn < 2 * rounds_count(job->where.node_count) && !rc; turn++) {
		round_set(job, turn / 2, turn % 2);
		rc = round_run(job, bytes);
	}
	return rc;
}
