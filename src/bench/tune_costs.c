/*
 * tune_costs.c - costs within this host: the transport learns them from messages, so messages of
 * each class of sizes are sent, one at a time and by windows, until rank 0 has learned.
 */
#include "bench/tune_costs.h"
#include "bench/ranks.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "util/clock.h"

#define CELL_NS UINT64_C(500000000)	/* per cell, at most */
enum { WINDOW = 16, LARGEST = 4 << 20, DATA = 1, GO_ON = 2 };

struct partner {
	MPI_Comm comm;
	int other;			/* rank 0's partner */
	char *buffer;			/* WINDOW x LARGEST bytes */
};

/* The lowest other rank of rank 0's host; 0: there is none. */
static int partner_find(const struct bench_job *job)
{
	for (int r = 1; r < job->b.size; r++)
		if (job->where.place[r].first_of_host == 0)
			return r;
	return 0;
}

static void window_receive(const struct partner *p, int bytes, int count)
{
	MPI_Request request[WINDOW];

	for (int i = 0; i < count; i++)
		MPI_Irecv(p->buffer + (size_t)i * LARGEST, bytes, MPI_BYTE, p->other, DATA, p->comm,
			  &request[i]);
	MPI_Waitall(count, request, MPI_STATUSES_IGNORE);
}

static void window_send(const struct partner *p, int bytes, int count)
{
	MPI_Request request[WINDOW];

	for (int i = 0; i < count; i++)
		MPI_Isend(p->buffer + (size_t)i * LARGEST, bytes, MPI_BYTE, 0, DATA, p->comm,
			  &request[i]);
	MPI_Waitall(count, request, MPI_STATUSES_IGNORE);
}

/* Rank 0's order: {bytes, messages}; no messages: the end. */
static void order_send(const struct partner *p, int bytes, int count)
{
	const int order[2] = { bytes, count };

	MPI_Send(order, 2, MPI_INT, p->other, GO_ON, p->comm);
}

static void orders_follow(const struct partner *p)
{
	int order[2];

	for (;;) {
		MPI_Recv(order, 2, MPI_INT, 0, GO_ON, p->comm, MPI_STATUS_IGNORE);
		if (!order[1])
			return;
		window_send(p, order[0], order[1]);
	}
}

static bool is_learned(unsigned n)
{
	struct rail_learned cell;

	return !railmpi_learned(n, &cell) || cell.why != RAIL_LEARNED_ASSUMED;
}

static void cell_learn(const struct bench_job *job, const struct partner *p, unsigned n,
		       const struct rail_learned *cell)
{
	const uint64_t bytes = cell->bytes ? cell->bytes : LARGEST, end_ns = rg_now_ns() + CELL_NS;
	const int count = strcmp(cell->load, "queued") ? 1 : WINDOW;

	if (strcmp(cell->table, "receive") || bytes > LARGEST || bytes <= job->where.fabric.eager_bytes)
		return;
	while (!is_learned(n) && rg_now_ns() < end_ns) {
		order_send(p, (int)bytes, count);
		window_receive(p, (int)bytes, count);
	}
}

static void cells_learn(const struct bench_job *job, const struct partner *p)
{
	struct rail_learned cell;

	for (unsigned n = 0; railmpi_learned(n, &cell); n++)
		cell_learn(job, p, n, &cell);
	order_send(p, 0, 0);
}

static void cells_write(FILE *file)
{
	char text[RAILMPI_LEARNED_TEXT], processor[96];
	struct rail_learned cell;
	unsigned cells = 0;

	railmpi_processor(processor, sizeof(processor));
	fprintf(file, "# For RAILGAUGE_COSTS=FILE: costs within a host, in ns\ncosts 1 %s\n", processor);
	printf("# Costs within this host, in ns, and the chosen schemes\n");
	for (unsigned n = 0; railmpi_learned(n, &cell); n++) {
		if (cell.why == RAIL_LEARNED_ASSUMED)
			continue;
		railmpi_learned_text(&cell, text, sizeof(text));
		fprintf(file, "cell %s\n", text);
		printf("cell %s\n", text);
		cells++;
	}
	fprintf(file, "costs-end %u\n", cells);
}

void tune_costs(const struct bench_job *job, FILE *file)
{
	struct partner p = { .comm = job->where.way[0].comm, .other = partner_find(job) };

	if (p.other && (job->b.rank == 0 || job->b.rank == p.other)) {
		p.buffer = bench_must(calloc(WINDOW, LARGEST));
		if (job->b.rank == 0)
			cells_learn(job, &p);
		else
			orders_follow(&p);
		free(p.buffer);
	}
	ranks_meet(job);
	if (file)
		cells_write(file);
}
