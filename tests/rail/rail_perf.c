/*
 * rail_perf.c - the cost and the gain of librail, without MPI: two processes on the
 * software HCA, one table.
 *
 *	rail_perf [SPEC [RAILS [BYTES]]]	messages up to BYTES, e.g.
 *	rail_perf ideal all 64; rail_perf ports=2,rate=1GB/s,latency=2us
 *
 * latency: half a round trip, median of rounds; post: rail_send of 8 bytes that
 * does not wait, next to ibv_post_send of the same line; bandwidth: a window of 64
 * messages and a small answer, median of rounds.  RAIL_PERF_BEST=1 gives the best
 * round instead, for a machine that has other work.
 */
#include "config.h"		/* _GNU_SOURCE */

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rail/lane/eager_lane.h"
#include "job.h"
#include "rail/lane/lane.h"
#include "rail/rail.h"
#include "rail/lane/cq.h"
#include "rail/peer/peer.h"
#include "rail/message/rail_record.h"
#include "verbs/vrb.h"

enum { ROUNDS = 15, WINDOW = 64, SIZE_MAX_BYTES = 4 << 20 };

static const struct rail_way ways[] = {
	{ RAIL_SINGLE, 8192, 8192 },
	{ RAIL_BIND, 8192, 8192 },
	{ RAIL_STRIPE, 8192, 8192 },
};
static const char *const names[] = { "single", "bind", "stripe" };

static struct {
	struct job *job;
	unsigned char *send, *receive;
	uint64_t got, expected;		/* messages */
	int done;
	bool copy;
	size_t largest;
	struct rail_op out[WINDOW], in[WINDOW];
	int in_used;
} perf;

static void done(struct rail_op *op, int status)
{
	(void)op;
	CHECK_EQUAL(status, 0);
	perf.done++;
}

static void landed(struct rail_op *op, int status)
{
	(void)op;
	CHECK_EQUAL(status, 0);
	perf.got++;
}

static void on_message(void *user, const struct rail_message *msg)
{
	struct rail_buf buf = { perf.receive, msg->bytes, RAIL_MEM_ARENA };
	struct rail_op *op;

	(void)user;
	if (msg->payload) {
		memcpy(perf.receive, msg->payload, msg->bytes);
		perf.got++;
		return;
	}
	op = &perf.in[perf.in_used++ % WINDOW];
	op->done = landed;
	CHECK_EQUAL(rail_accept(msg->peer, msg->rendezvous, &buf, op), 0);
}

static inline void move(void)
{
	rail_progress(perf.job->ctx);
}

/* Wait for so many more messages. */
static void wait_for(uint64_t messages)
{
	perf.expected += messages;
	while (perf.got < perf.expected)
		move();
}

/* 1 when it is out; else its slot of `out` is in use. */
static int send_one(const struct rail_way *way, size_t bytes, int slot)
{
	static const struct rail_header header = { { 1, 2 } };
	struct rail_buf buf = { perf.send, bytes, RAIL_MEM_ARENA };
	int rc;

	perf.out[slot].done = done;
	rc = rail_send(perf.job->peer[!perf.job->rank], way, &header, &buf, 0, &perf.out[slot]);
	CHECK(rc >= 0);
	return rc;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The best or median of times; the best rate is at the other end. */
static double median(double *value, int n, bool rate)
{
	qsort(value, (size_t)n, sizeof(*value), by_value);
	if (getenv("RAIL_PERF_BEST"))
		return value[rate ? n - 1 : 0];
	return value[n / 2];
}

static double latency_ns(const struct rail_way *way, size_t bytes)
{
	int iterations = bytes <= 8192 ? 1000 : bytes <= 65536 ? 200 : 40;
	double sample[ROUNDS];

	for (int r = 0; r < ROUNDS; r++) {
		uint64_t begin = rg_now_ns();

		for (int i = 0; i < iterations; i++) {
			int pending;

			if (perf.job->rank == 1)
				wait_for(1);
			perf.done = 0;
			pending = !send_one(way, bytes, 0);
			if (perf.job->rank == 0)
				wait_for(1);
			while (perf.done < pending)
				move();
		}
		sample[r] = (double)(rg_now_ns() - begin) / iterations / 2;
	}
	return median(sample, ROUNDS, false);
}

static void wait_mark(const _Atomic uint64_t *mark, uint64_t n)
{
	while (atomic_load_explicit(mark, memory_order_acquire) != n)
		;
}

/* The same with one RDMA write of a line and a poll of memory, nothing of librail's. */
static double raw_latency_ns(void)
{
	enum { ITERATIONS = 1000 };
	struct rail_peer *peer = perf.job->peer[!perf.job->rank];
	struct rail_tx *tx = peer->route[RAIL_SINGLE];
	const _Atomic uint64_t *mark =
		&((struct rail_slot *)(void *)peer->rx[LANE_SINGLE].bytes)->record.mark;
	struct rail_slot line = { .record.mark = 0 };
	double sample[ROUNDS];
	uint64_t n = 0;

	for (int r = 0; r < ROUNDS; r++) {
		uint64_t begin = rg_now_ns();

		for (int i = 0; i < ITERATIONS; i++) {
			struct ibv_send_wr wr = tx->wr[1];
			struct ibv_sge sge = { .addr = (uintptr_t)&line, .length = sizeof(line) };
			bool waits_first = perf.job->rank == 1;

			n++;
			if (waits_first)
				wait_mark(mark, n);
			line.record.mark = n;
			wr.sg_list = &sge;
			wr.wr.rdma.remote_addr = tx->bytes_addr;
			CHECK(lane_has_room(tx->lane, 1));
			CHECK_EQUAL(lane_post(tx->lane, &wr, &wr, 1), 1);
			if (!waits_first)
				wait_mark(mark, n);
			if (i % 16 == 0)
				rail_cq_poll(perf.job->ctx);
		}
		sample[r] = (double)(rg_now_ns() - begin) / ITERATIONS / 2;
	}
	return median(sample, ROUNDS, false);
}

/* MB/s from process 0 to 1; both: the sum of both directions at once. */
static double bandwidth(const struct rail_way *way, size_t bytes, bool both)
{
	int repeats = bytes <= 8192 ? 20 : bytes <= 262144 ? 4 : 1;
	bool sends = perf.job->rank == 0 || both, receives = perf.job->rank == 1 || both;
	double sample[ROUNDS];

	for (int r = 0; r < ROUNDS; r++) {
		uint64_t begin;

		job_barrier(perf.job);
		begin = rg_now_ns();
		for (int k = 0; k < repeats; k++) {
			int pending = 0;

			perf.done = 0;
			for (int i = 0; sends && i < WINDOW; i++) {
				pending += !send_one(way, bytes, i);
				if (both)
					move();
			}
			while (perf.done < pending)
				move();
			if (receives)
				wait_for(WINDOW);
			perf.done = pending = 0;
			if (receives)
				pending = !send_one(way, 4, 0);
			if (sends)
				wait_for(1);
			while (perf.done < pending)
				move();
		}
		sample[r] = (double)bytes * WINDOW * repeats * (both ? 2 : 1) * 1e3 /
			    (double)(rg_now_ns() - begin);
	}
	return median(sample, ROUNDS, true);
}

/*
 * CPU ns of rail_send of 8 bytes with credit, and of the post inside it: to this process
 * itself, so that no other core's cache takes part.
 */
static void post_cost(double *send_ns, double *post_ns)
{
	enum { BURST = 16, REPEATS = 500 };
	struct rail_peer *self = perf.job->peer[perf.job->rank];
	struct rail_tx *tx = self->route[RAIL_SINGLE];
	struct rail_buf buf = { perf.send, 8, RAIL_MEM_ARENA };
	const struct rail_header header = { { 1, 2 } };
	double sample[2][ROUNDS];

	for (int what = 0; what < 2; what++)
		for (int r = 0; r < ROUNDS; r++) {
			uint64_t spent = 0;

			for (int k = 0; k < REPEATS; k++) {
				uint64_t begin = rg_now_ns();
				struct ibv_send_wr *bad;

				for (int i = 0; i < BURST; i++) {
					if (!what) {
						rail_send(self, &ways[0], &header, &buf, 0, NULL);
						continue;
					}
					/* The last line once more: nothing new to the receiver. */
					tx->wr[1].send_flags &= ~(unsigned)IBV_SEND_SIGNALED;
					ibv_post_send(tx->lane->qp.qp, &tx->wr[1], &bad);
				}
				spent += rg_now_ns() - begin;
				if (!what)
					wait_for(BURST);
				/* Reclaim requests that librail does not know. */
				CHECK_EQUAL(rail_lane_probe(tx->lane), 1);
				rail_cq_poll(perf.job->ctx);
			}
			sample[what][r] = (double)spent / BURST / REPEATS;
		}
	*send_ns = median(sample[0], ROUNDS, false);
	*post_ns = median(sample[1], ROUNDS, false);
}

static void table(const char *title, const char *unit, const size_t *sizes, int count,
		  double (*measure)(const struct rail_way *, size_t, int), int mode)
{
	bool speaks = perf.job->rank == 0;

	if (speaks)
		printf("\n# %s (%s)\n%10s%12s%12s%12s\n", title, unit, "bytes", names[0], names[1],
		       names[2]);
	for (int s = 0; s < count; s++) {
		double value[3];

		if (sizes[s] > perf.largest)
			continue;
		for (int w = 0; w < 3; w++) {
			job_barrier(perf.job);
			value[w] = measure(&ways[w], sizes[s], mode);
		}
		if (speaks)
			printf("%10zu%12.1f%12.1f%12.1f\n", sizes[s], value[0], value[1], value[2]);
	}
}

static double measure_latency(const struct rail_way *way, size_t bytes, int mode)
{
	(void)mode;
	return latency_ns(way, bytes);
}

static double measure_bandwidth(const struct rail_way *way, size_t bytes, int both)
{
	return bandwidth(way, bytes, both);
}

static void body(struct job *job)
{
	static const size_t small[] = { 0, 8, 32, 33, 64, 256, 1024, 4096, 8192, 8193, 16384,
					65536, 262144, 1048576 };
	static const size_t large[] = { 8, 1024, 4096, 8192, 8193, 16384, 32768, 65536, 131072, 262144,
					1048576, 4194304 };
	struct rail_info info;
	double send_ns, post_ns, raw_ns;

	setvbuf(stdout, NULL, _IOLBF, 0);
	perf.job = job;
	job->rail.on_message = on_message;
	job_connect(job);
	perf.send = rail_alloc(job->ctx, SIZE_MAX_BYTES);
	perf.receive = rail_alloc(job->ctx, SIZE_MAX_BYTES);
	CHECK(perf.send && perf.receive);
	memset(perf.send, 1, SIZE_MAX_BYTES);
	memset(perf.receive, 1, SIZE_MAX_BYTES);
	rail_info(job->ctx, 0, &info);
	if (job->rank == 0)
		printf("# %s, %d rails, eager lane by %s\n", rail_fabric_text(job->ctx),
		       rail_count(job->ctx), info.polls_memory ? "polled ring" : "SEND");
	if (info.polls_memory) {
		post_cost(&send_ns, &post_ns);
		job_barrier(job);
		raw_ns = raw_latency_ns();
		if (job->rank == 0)
			printf("# 8 bytes: rail_send %.1f ns, of which ibv_post_send %.1f ns; "
			       "one-way without librail %.1f ns\n", send_ns, post_ns, raw_ns);
	}
	table("one-way latency", "ns", small, sizeof(small) / sizeof(small[0]), measure_latency, 0);
	table("bandwidth, window 64", "MB/s", large, sizeof(large) / sizeof(large[0]),
	      measure_bandwidth, 0);
	table("bandwidth both ways, window 64", "MB/s", large, sizeof(large) / sizeof(large[0]),
	      measure_bandwidth, 1);
	job_barrier(job);
	rail_free(job->ctx, perf.send);
	rail_free(job->ctx, perf.receive);
	job_close(job);
}

int main(int argc, char **argv)
{
	struct job_config config = {
		.soft = argc > 1 ? argv[1] : NULL,
		.rails = argc > 2 ? argv[2] : NULL,
		.seconds = 600,
	};

	perf.largest = argc > 3 ? strtoul(argv[3], NULL, 0) : SIZE_MAX_BYTES;
	return job_run(&config, body, NULL, 0);
}
