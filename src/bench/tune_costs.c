/*
 * tune_costs.c - costs within this host: the transport learns them from messages, so messages of
 * each class of sizes are sent, one at a time and by windows, until rank 0 has learned.  The end that
 * receives chooses who moves a message, the end that sends whether it is offered, and how it is copied.
 */
#include "bench/tune_costs.h"
#include "bench/ranks.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "util/clock.h"

#define CELL_NS UINT64_C(500000000)	/* per cell, at most */
enum { WINDOW = 16, LARGEST = 4 << 20, MIXED = 256 << 10, DATA = 1, GO_ON = 2 };
enum { IDLE_ROUNDS = 128 };		/* without a sample; learning begins after 1,024 messages at most */

struct partner {
	MPI_Comm comm;
	int other;			/* rank 0, or its partner now */
	char *buffer;			/* 2 x WINDOW x LARGEST bytes */
};

static bool is_beside(const struct bench_job *job, int rank)
{
	return rank && job->where.place[rank].first_of_host == 0;
}

/* The lowest other rank of rank 0's host at this place of the transport's; 0: none. */
static int partner_at(const struct bench_job *job, const char *place)
{
	for (int r = 1; r < job->b.size; r++)
		if (is_beside(job, r) && railmpi_place(r) && strcmp(railmpi_place(r), place) == 0)
			return r;
	return 0;
}

/* Messages of rank 0's order; no messages: the end. */
struct order {
	int bytes, count;
	int to_0, from_0;		/* booleans: directions */
	int mixed;			/* boolean: every second message has half of the bytes */
};

static int bytes_of(const struct order *o, int message)
{
	return o->mixed ? o->bytes >> message % 2 : o->bytes;
}

/* Receive, send, or both at once. */
static void window_run(const struct partner *p, const struct order *o, bool receives, bool sends)
{
	MPI_Request request[2 * WINDOW];
	int n = 0;

	for (int i = 0; receives && i < o->count; i++)
		MPI_Irecv(p->buffer + (size_t)i * LARGEST, bytes_of(o, i), MPI_BYTE, p->other, DATA, p->comm,
			  &request[n++]);
	for (int i = 0; sends && i < o->count; i++)
		MPI_Isend(p->buffer + (size_t)(WINDOW + i) * LARGEST, bytes_of(o, i), MPI_BYTE, p->other,
			  DATA, p->comm, &request[n++]);
	MPI_Waitall(n, request, MPI_STATUSES_IGNORE);
}

/* A row of messages ends with the partner's. */
static void order_give(const struct partner *p, const struct order *o)
{
	MPI_Send(o, sizeof(*o), MPI_BYTE, p->other, GO_ON, p->comm);
	if (!o->count)
		return;
	window_run(p, o, o->to_0, o->from_0);
	MPI_Recv(NULL, 0, MPI_BYTE, p->other, GO_ON, p->comm, MPI_STATUS_IGNORE);
}

static void orders_follow(const struct partner *p)
{
	struct order o;

	for (;;) {
		MPI_Recv(&o, sizeof(o), MPI_BYTE, p->other, GO_ON, p->comm, MPI_STATUS_IGNORE);
		if (!o.count)
			return;
		window_run(p, &o, o.from_0, o.to_0);
		MPI_Send(NULL, 0, MPI_BYTE, p->other, GO_ON, p->comm);
	}
}

/* Nothing is learned where an option gives the scheme, or messages of this size go another way. */
static bool is_learned(unsigned n, int round)
{
	struct rail_learned cell;
	uint32_t samples = 0;

	if (!railmpi_learned(n, &cell) || cell.why >= RAIL_LEARNED_MEASURED)
		return true;
	for (unsigned i = 0; i < cell.schemes; i++)
		samples += cell.scheme[i].samples;
	return !samples && round == IDLE_ROUNDS;
}

static bool has_load(const struct rail_learned *cell, const char *load)
{
	return strncmp(cell->load, load, strlen(load)) == 0;
}

static struct order order_of(const struct rail_learned *cell, bool copies)
{
	const bool sends = copies || strcmp(cell->table, "send") == 0, crosses = has_load(cell, "crossing");
	const bool mixed = strstr(cell->load, "-mixed");

	return (struct order){
		.bytes = cell->bytes ? (int)cell->bytes : mixed ? MIXED : LARGEST,
		.count = has_load(cell, "alone") ? 1 : WINDOW,
		.to_0 = !sends || crosses, .from_0 = sends || crosses, .mixed = mixed,
	};
}

/* Messages of mixed sizes have one cell, the last of their load. */
static bool is_of_none(const struct rail_learned *cell, unsigned n)
{
	struct rail_learned next;

	return strstr(cell->load, "-mixed") && railmpi_learned(n + 1, &next) &&
	       strcmp(next.table, cell->table) == 0 && strcmp(next.load, cell->load) == 0;
}

static void cell_learn(const struct bench_job *job, const struct partner *p, unsigned n,
		       const struct rail_learned *cell)
{
	const bool copies = strcmp(cell->table, "copy") == 0;
	const uint64_t end_ns = rg_now_ns() + CELL_NS;
	const struct order o = order_of(cell, copies);

	/* Only messages above the eager limit are offered; shorter ones are copied, too. */
	if (cell->bytes > LARGEST || is_of_none(cell, n) ||
	    ((uint64_t)o.bytes <= job->where.fabric.eager_bytes && !copies))
		return;
	for (int round = 0; !is_learned(n, round) && rg_now_ns() < end_ns; round++)
		order_give(p, &o);
}

static void cells_learn(const struct bench_job *job, struct partner *p)
{
	struct rail_learned cell;

	for (unsigned n = 0; railmpi_learned(n, &cell); n++) {
		p->other = partner_at(job, cell.place);
		if (p->other)
			cell_learn(job, p, n, &cell);
	}
	for (p->other = 1; p->other < job->b.size; p->other++)
		if (is_beside(job, p->other))
			order_give(p, &(struct order){ .count = 0 });
}

/* Ranks that share cores measure their turns, which no table is to have. */
static void cells_write(FILE *file, bool crowded)
{
	const unsigned least = crowded ? RAIL_LEARNED_GIVEN : RAIL_LEARNED_MEASURED;
	char text[RAILMPI_LEARNED_TEXT], processor[96];
	struct rail_learned cell;
	unsigned cells = 0;

	railmpi_processor(processor, sizeof(processor));
	fprintf(file, "# For RAILGAUGE_COSTS=FILE: costs within a host, in ns\ncosts 1 %s\n", processor);
	printf("# Costs within this host, in ns, and the chosen schemes%s\n",
	       crowded ? ": none are measured, since ranks share cores" : "");
	for (unsigned n = 0; railmpi_learned(n, &cell); n++) {
		if (cell.why < least)
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
	struct partner p = { .comm = job->where.way[0].comm };

	if (!job->where.oversubscribed && (job->b.rank == 0 || is_beside(job, job->b.rank))) {
		p.buffer = bench_must(calloc(2 * WINDOW, LARGEST));
		if (job->b.rank == 0)
			cells_learn(job, &p);
		else
			orders_follow(&p);
		free(p.buffer);
	}
	ranks_meet(job);
	if (file)
		cells_write(file, job->where.oversubscribed);
}
