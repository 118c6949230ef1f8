/*
 * calibrate.c - --threshold auto: the message size from which several rails beat one.
 *
 * Rank 0 of the communicator and its first rank on another node play ping-pong, with whole
 * messages on one rail and striped ones in turn, for sizes in powers of two.  The threshold
 * is the largest size at which striping is not clearly faster.  All other ranks wait.  The
 * measurement takes about a second, once for all communicators of the whole job.
 */
#include "mpi/job/calibrate.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "mpi/abi/native.h"
#include "mpi/comm/comm.h"
#include "mpi/comm/peers.h"
#include "mpi/job/progress.h"
#include "rail/rail.h"
#include "stats/stats.h"
#include "util/clock.h"
#include "util/err.h"

enum {
	FIRST_BYTES = 2 << 10,
	LAST_BYTES = 1 << 20,
	SIZES = 10,			/* powers of two, both included */
	SAMPLES = 15,
	SAMPLES_MIN = 3,
	SIZE_NS = 60000000,		/* for the samples of one size and way */
	TAG = 1,
};

#define CLEARLY 0.97			/* striped time over whole time */
#define STANDARD ((uint64_t)8 << 10)
#define NEVER ((uint64_t)1 << 40)

static char text[160];
static uint64_t found_for_all;		/* ranks; 0: not yet */

struct calibration {
	MPI_Comm comm[2];		/* whole, striped */
	unsigned char *buffer;
	int rank, partner;
	double ratio[SIZES];		/* striped over whole, by size */
};

/* ---- Timing --------------------------------------------------------------------------------- */

static uint64_t round_trip(const struct calibration *c, int which, int bytes)
{
	uint64_t start = rg_now_ns();

	if (c->rank == 0) {
		MPI_Send(c->buffer, bytes, MPI_BYTE, c->partner, TAG, c->comm[which]);
		MPI_Recv(c->buffer, bytes, MPI_BYTE, c->partner, TAG, c->comm[which],
			 MPI_STATUS_IGNORE);
	} else {
		MPI_Recv(c->buffer, bytes, MPI_BYTE, 0, TAG, c->comm[which], MPI_STATUS_IGNORE);
		MPI_Send(c->buffer, bytes, MPI_BYTE, 0, TAG, c->comm[which]);
	}
	return rg_now_ns() - start;
}

static double size_ratio(const struct calibration *c, int bytes)
{
	uint64_t ns[2][SAMPLES], slow = 0;
	int count, w, i;

	for (w = 0; w < 2; w++) {
		uint64_t took;

		round_trip(c, w, bytes);	/* connections, registrations */
		took = round_trip(c, w, bytes);
		slow = took > slow ? took : slow;
	}
	count = (int)(SIZE_NS / (slow ? slow : 1));
	count = count < SAMPLES_MIN ? SAMPLES_MIN : count > SAMPLES ? SAMPLES : count;
	/* Rank 0 alone measures the time, and tells the number of rounds. */
	if (c->rank == 0)
		MPI_Send(&count, 1, MPI_INT, c->partner, TAG, c->comm[0]);
	else
		MPI_Recv(&count, 1, MPI_INT, 0, TAG, c->comm[0], MPI_STATUS_IGNORE);
	for (i = 0; i < count; i++)
		for (w = 0; w < 2; w++)
			ns[w][i] = round_trip(c, w, bytes);
	for (w = 0; w < 2; w++)
		stats_sort(ns[w], (size_t)count);
	return stats_median(ns[1], (size_t)count) / stats_median(ns[0], (size_t)count);
}

/* ---- Judging -------------------------------------------------------------------------------- */

static uint64_t judge(const struct calibration *c)
{
	uint64_t found;
	int from = SIZES;

	while (from > 0 && c->ratio[from - 1] < CLEARLY)
		from--;
	found = from == SIZES ? NEVER : (uint64_t)FIRST_BYTES << from >> 1;
	if (from == SIZES)
		snprintf(text, sizeof(text), "auto: nothing is striped, one rail was as fast up to "
			 "%d KiB", LAST_BYTES >> 10);
	else
		snprintf(text, sizeof(text), "auto found %llu bytes: striped messages of %d KiB "
			 "took %.2f of the time of whole ones, of %d KiB %.2f",
			 (unsigned long long)found, (FIRST_BYTES << from) >> 10, c->ratio[from],
			 LAST_BYTES >> 10, c->ratio[SIZES - 1]);
	return found;
}

/* ---- The communicator ------------------------------------------------------------------------ */

/* Like the communicator, but for their thresholds. */
static int communicators_make(struct calibration *c, MPI_Comm handle, const struct rail_way *like)
{
	struct rail_way way = *like;
	int w, rc = 0;

	way.policy = RAIL_STRIPE;
	for (w = 0; w < 2 && !rc; w++) {
		way.threshold = w ? 1 : NEVER;
		native.Comm_dup(handle, &c->comm[w]);
		rc = comm_adopt(c->comm[w], &way);
	}
	return rc;
}

static int calibration_measure(MPI_Comm handle, const struct rail_way *way, struct calibration *c,
			       uint64_t *found)
{
	int rc = communicators_make(c, handle, way), i;

	if (!rc && (c->rank == 0 || c->rank == c->partner)) {
		c->buffer = calloc(1, LAST_BYTES);
		if (!c->buffer)
			native_end("no memory to measure --threshold auto");
		for (i = 0; i < SIZES; i++)
			c->ratio[i] = size_ratio(c, FIRST_BYTES << i);
		*found = judge(c);
		free(c->buffer);
	}
	for (i = 0; i < 2; i++)
		if (c->comm[i] != MPI_COMM_NULL)
			MPI_Comm_free(&c->comm[i]);
	if (rc)
		return rc;
	native.Bcast(found, 1, MPI_UINT64_T, 0, handle);
	native.Bcast(text, sizeof(text), MPI_CHAR, 0, handle);
	return 0;
}

int calibrate(MPI_Comm handle, const struct rail_way *way, uint64_t *threshold)
{
	struct calibration c = { .comm = { MPI_COMM_NULL, MPI_COMM_NULL } };
	uint64_t found = STANDARD;
	int size, rc = 0;

	native.Comm_size(handle, &size);
	native.Comm_rank(handle, &c.rank);
	if (size == layer.world_size && found_for_all) {
		*threshold = found_for_all;
		return 0;
	}
	c.partner = world_far_rank(handle, size);
	if (rail_count(layer.rails) < 2 || c.partner < 0)
		snprintf(text, sizeof(text), "auto: %llu bytes, not measured: %s",
			 (unsigned long long)STANDARD, c.partner < 0 ? "all ranks are on one node" :
			 "there is one rail");
	else
		rc = calibration_measure(handle, way, &c, &found);
	if (rc)
		return rc;
	if (size == layer.world_size)
		found_for_all = found;
	*threshold = found;
	return 0;
}

const char *calibrate_text(void)
{
	return text;
}
