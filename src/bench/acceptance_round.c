/*
 * acceptance_round.c - rounds: orders of rank 0, cells of the nodes, their answers.
 *
 * A node gets an order, measures its cells with the node that got the other half of the order, and
 * answers with those that it sent.  A pair is done when both have answered.  As soon as half of the
 * pairs are done, rank 0 knows how long it waits for the others, and then stops them; they answer
 * with what they have.
 */
#include "bench/acceptance.h"
#include "bench/options_use.h"
#include "bench/ranks.h"
#include "bench/rows.h"

#include <stdlib.h>
#include <string.h>

#include "stats/stats.h"
#include "util/clock.h"

enum { ORDER_TAG = 41, STOP_TAG, ANSWER_TAG };
enum { CELLS_MAX = 2 * ACCEPTANCE_RAILS_MAX, SAMPLES_AUTO = 20 };
enum { FORWARD = 1, BACKWARD = 2 };	/* from the lower node, to it */
#define NAP_NS UINT64_C(50000)
/* A node that has not answered so long after its stop has lost its process. */
#define SILENT_NS UINT64_C(60000000000)
#define ALONE_NS UINT64_C(1000000000)	/* a cell alone is cut no earlier */

struct order {
	uint64_t number;		/* of orders so far; equal for all of a round; 0: the end */
	int node, other;
	unsigned rails;			/* bits */
	unsigned directions;
	uint64_t serial;		/* of the first cell */
	uint64_t limit_ns;		/* per cell; 0: none */
};

/* A cell as the node that sent it saw it; its samples follow. */
struct answer {
	int from, to, rail;
	int valid;
	enum accept_state state;
	uint64_t moved_bytes, took_ns, samples, latency_ns;
};

/* Rank 0's knowledge of a round. */
struct round {
	const struct accept_pair *pair;
	int count;
	int left;			/* nodes that have not answered */
	int *open;			/* per pair: nodes that have not answered */
	int pairs_done;
	uint64_t *took_ns;		/* of pairs that are done */
	uint64_t begun_ns, stopped_ns;	/* stopped_ns 0: not stopped */
	unsigned char **answer;		/* per node; NULL: none */
	size_t *answer_bytes;
};

static struct round *running;		/* rank 0 */
static uint64_t number, stopped_number;	/* of the order under way, and of the last stop */
static uint64_t orders;			/* rank 0 */

static const struct bench_acceptance *asked(const struct bench_job *job)
{
	return job->def->acceptance;
}

static uint64_t samples_most(const struct bench_job *job)
{
	return job->opt.iterations == OPT_SPECIAL ? SAMPLES_AUTO : job->opt.iterations;
}

static size_t answer_size(const struct bench_job *job)
{
	return sizeof(struct answer) + (size_t)samples_most(job) * sizeof(uint64_t);
}

/* ---- Rank 0 hears ------------------------------------------------------------------------ */

static void answer_keep(int node, unsigned char *answer, size_t bytes)
{
	struct round *r = running;

	if (r->answer[node]) {
		free(answer);
		return;
	}
	r->answer[node] = answer;
	r->answer_bytes[node] = bytes;
	r->left--;
	for (int p = 0; p < r->count; p++)
		if ((r->pair[p].a == node || r->pair[p].b == node) && --r->open[p] == 0)
			r->took_ns[r->pairs_done++] = rg_now_ns() - r->begun_ns;
}

static void answers_hear(struct bench_job *job)
{
	MPI_Status status;
	int come = 1;

	while (running->left) {
		unsigned char *answer;
		int bytes;

		MPI_Iprobe(MPI_ANY_SOURCE, ANSWER_TAG, job->where.comm, &come, &status);
		if (!come)
			return;
		MPI_Get_count(&status, MPI_BYTE, &bytes);
		answer = bench_must(malloc((size_t)bytes + 1));
		MPI_Recv(answer, bytes, MPI_BYTE, status.MPI_SOURCE, ANSWER_TAG, job->where.comm,
			 MPI_STATUS_IGNORE);
		answer_keep(job->where.place[status.MPI_SOURCE].node, answer, (size_t)bytes);
	}
}

static void round_stop(struct bench_job *job)
{
	running->stopped_ns = rg_now_ns();
	for (int p = 0; p < running->count; p++)
		for (int i = 0; i < 2; i++) {
			int node = i ? running->pair[p].b : running->pair[p].a;

			if (running->answer[node])
				continue;
			if (job->where.player[node] == 0)
				stopped_number = number;
			else
				MPI_Send(&number, 1, MPI_UINT64_T, job->where.player[node], STOP_TAG,
					 job->where.comm);
		}
}

static void silent_die(struct bench_job *job)
{
	for (int p = 0; p < running->count; p++)
		for (int i = 0; i < 2; i++) {
			int node = i ? running->pair[p].b : running->pair[p].a;
			char name[96];

			if (running->answer[node])
				continue;
			acceptance_node_name(job, node, name, sizeof(name));
			rg_error("%s: its rank %d does not answer", name, job->where.player[node]);
			rg_let_launcher_read();
			MPI_Abort(MPI_COMM_WORLD, RG_EXIT_FAULT);
		}
}

static void round_watch(struct bench_job *job)
{
	struct round *r = running;
	uint64_t limit, now;

	answers_hear(job);
	if (!r->left)
		return;
	now = rg_now_ns();
	limit = accept_limit_ns(r->took_ns, r->pairs_done, r->count, (unsigned)*asked(job)->patience);
	if (!r->stopped_ns && limit && now - r->begun_ns > limit)
		round_stop(job);
	if (now > (r->stopped_ns ? r->stopped_ns : r->begun_ns) + SILENT_NS)
		silent_die(job);
}

/* ---- A node measures ------------------------------------------------------------------------ */

static void stops_hear(struct bench_job *job)
{
	int come = 1;

	while (come) {
		MPI_Iprobe(0, STOP_TAG, job->where.comm, &come, MPI_STATUS_IGNORE);
		if (come)
			MPI_Recv(&stopped_number, 1, MPI_UINT64_T, 0, STOP_TAG, job->where.comm,
				 MPI_STATUS_IGNORE);
	}
}

static bool is_stopped(void *user)
{
	struct bench_job *job = user;

	if (job->b.rank == 0)
		round_watch(job);
	else
		stops_hear(job);
	return stopped_number == number;
}

static enum accept_state state_of(const struct bench_cell_result *r)
{
	return r->whole ? ACCEPT_OK : r->moved_bytes ? ACCEPT_CUT : ACCEPT_DOWN;
}

static void cell_measure(struct bench_job *job, const struct order *o, int rail, bool back,
			 struct answer *out)
{
	const struct acceptance *acc = job->got.acceptance;
	bool low = o->node < o->other, automatic = job->opt.iterations == OPT_SPECIAL;
	struct bench_cell cell = {
		.peer = job->where.player[o->other], .port = acc->port[o->node * acc->rails + rail],
		.sends = low != back, .serial = o->serial + (uint64_t)(2 * rail + back),
		.window = (int)job->opt.window, .samples = samples_most(job),
		.warmup = job->opt.warmup == OPT_SPECIAL ? 1 : job->opt.warmup,
		.time_ns = automatic ? *asked(job)->cell_ns : 0, .limit_ns = o->limit_ns,
		.validate = job->opt.validate, .stopped = is_stopped, .user = job,
		.ns = (uint64_t *)(void *)(out + 1),
	};
	struct bench_cell_result result;

	asked(job)->cells->measure(&cell, &result);
	*out = (struct answer){
		.from = cell.sends ? o->node : o->other, .to = cell.sends ? o->other : o->node,
		.rail = rail, .valid = result.valid, .state = state_of(&result),
		.moved_bytes = result.moved_bytes, .took_ns = result.took_ns,
		.samples = result.samples, .latency_ns = result.latency_ns,
	};
}

/* Measure the cells of an order; the answer has those that this node sent. */
static unsigned char *order_carry_out(struct bench_job *job, const struct order *o, size_t *bytes)
{
	size_t each = answer_size(job), used = 0;
	unsigned char *all = bench_must(calloc(CELLS_MAX + 1, each));

	number = o->number;
	for (int r = 0; r < job->got.acceptance->rails; r++)
		for (int back = 0; back < 2; back++) {
			bool sends = (o->node < o->other) != back;

			if (!(o->rails & 1u << r) || !(o->directions & (back ? BACKWARD : FORWARD)) ||
			    is_stopped(job))
				continue;
			cell_measure(job, o, r, back, (struct answer *)(void *)(all + used));
			used += sends ? each : 0;
		}
	*bytes = used;
	return all;
}

void acceptance_serve(struct bench_job *job)
{
	for (;;) {
		struct order o;
		unsigned char *answer;
		size_t bytes;
		int come = 0;

		MPI_Iprobe(0, ORDER_TAG, job->where.comm, &come, MPI_STATUS_IGNORE);
		if (!come) {
			rg_sleep_ns(NAP_NS);
			continue;
		}
		MPI_Recv(&o, sizeof(o), MPI_BYTE, 0, ORDER_TAG, job->where.comm, MPI_STATUS_IGNORE);
		if (!o.number)
			return;
		answer = order_carry_out(job, &o, &bytes);
		MPI_Send(answer, (int)bytes, MPI_BYTE, 0, ANSWER_TAG, job->where.comm);
		free(answer);
	}
}

void acceptance_dismiss(struct bench_job *job)
{
	struct order end = { 0 };

	for (int i = 1; i < job->b.size; i++)
		MPI_Send(&end, sizeof(end), MPI_BYTE, i, ORDER_TAG, job->where.comm);
}

/* ---- Rank 0 orders ------------------------------------------------------------------------------ */

static unsigned rails_of(const struct bench_job *job, const struct accept_pair *p)
{
	const struct acceptance *acc = job->got.acceptance;
	unsigned rails = 0;

	for (int r = 0; r < acc->rails; r++)
		if (accept_takes(acc->a, p->a, r) && accept_takes(acc->a, p->b, r))
			rails |= 1u << r;
	return rails;
}

static void round_free(struct round *r, int nodes)
{
	for (int n = 0; r->answer && n < nodes; n++)
		free(r->answer[n]);
	free(r->answer);
	free(r->answer_bytes);
	free(r->open);
	free(r->took_ns);
}

static void round_open(struct bench_job *job, struct round *r)
{
	size_t nodes = (size_t)job->where.node_count, pairs = (size_t)r->count;

	r->left = 2 * r->count;
	r->open = bench_must(calloc(pairs + 1, sizeof(r->open[0])));
	r->took_ns = bench_must(calloc(pairs + 1, sizeof(r->took_ns[0])));
	r->answer = bench_must(calloc(nodes + 1, sizeof(r->answer[0])));
	r->answer_bytes = bench_must(calloc(nodes + 1, sizeof(r->answer_bytes[0])));
	for (int p = 0; p < r->count; p++)
		r->open[p] = 2;
	orders++;
	r->begun_ns = rg_now_ns();
	running = r;
	number = orders;
}

/* Send a pair its order; rank 0's own is kept in *own. */
static void pair_order(struct bench_job *job, struct order *o, struct order *own)
{
	for (int i = 0; i < 2; i++) {
		int rank = job->where.player[o->node], node = o->node;

		if (rank == 0)
			*own = *o;
		else
			MPI_Send(o, sizeof(*o), MPI_BYTE, rank, ORDER_TAG, job->where.comm);
		o->node = o->other;
		o->other = node;
	}
}

/* Orders alike for all pairs; rails 0: those that both nodes have in the rounds, or the first. */
struct like { unsigned rails, directions; bool first; uint64_t limit_ns; };

static unsigned rails_like(const struct bench_job *job, const struct accept_pair *p,
			   const struct like *like)
{
	unsigned rails = like->rails ? like->rails : rails_of(job, p);

	return like->first ? rails & -rails : rails;
}

static void orders_send(struct bench_job *job, const struct like *like, struct order *own)
{
	struct acceptance *acc = job->got.acceptance;

	for (int p = 0; p < running->count; p++) {
		struct order o = {
			.number = number, .node = running->pair[p].a, .other = running->pair[p].b,
			.rails = rails_like(job, &running->pair[p], like),
			.directions = like->directions, .serial = acc->serial,
			.limit_ns = like->limit_ns,
		};

		acc->serial += CELLS_MAX;
		pair_order(job, &o, own);
	}
}

/* Send orders, carry out rank 0's own, hear all answers. */
static void round_run(struct bench_job *job, struct round *r, const struct like *like)
{
	struct order own = { 0 };

	round_open(job, r);
	orders_send(job, like, &own);
	if (own.number) {
		size_t bytes;
		unsigned char *answer = order_carry_out(job, &own, &bytes);

		answer_keep(own.node, answer, bytes);
	}
	while (r->left) {
		round_watch(job);
		rg_sleep_ns(r->left ? NAP_NS : 0);
	}
	job->got.acceptance->pair_ns = r->took_ns[(r->count - 1) / 2];
}

/* ---- Results ------------------------------------------------------------------------------------- */

static const char *state_text(enum accept_state state)
{
	return state == ACCEPT_OK ? "ok" : state == ACCEPT_CUT ? "cut" : "down";
}

static int cell_row(struct bench_job *job, const struct answer *c, int round)
{
	const int rank[2] = { job->where.player[c->from], job->where.player[c->to] };
	const struct measure m = {
		.done = c->samples, .runs = c->samples, .cut = c->state == ACCEPT_CUT,
		.warm_done = job->opt.warmup == OPT_SPECIAL ? 1 : job->opt.warmup,
	};
	json_t *more = json_pack("{s:i, s:s, s:o, s:s}", "round", round, "state",
				 state_text(c->state), "latency_us", c->latency_ns ?
				 json_real((double)c->latency_ns / 1e3) : json_null(), "rail",
				 job->got.acceptance->rail[c->rail]);
	int rc = rows_write_cell(job, c->rail, rank, &m, (const uint64_t *)(const void *)(c + 1),
				 c->valid, more);

	json_decref(more);
	return rc;
}

static void latency_keep(struct acceptance *acc, const struct answer *c)
{
	if (!c->latency_ns)
		return;
	if (acc->latency_count == acc->latency_room) {
		size_t room = acc->latency_room ? 2 * (size_t)acc->latency_room : 256;

		acc->latency = bench_must(realloc(acc->latency, room * sizeof(acc->latency[0])));
		acc->latency_rail = bench_must(realloc(acc->latency_rail,
						       room * sizeof(acc->latency_rail[0])));
		acc->latency_room = (int)room;
	}
	acc->latency[acc->latency_count] = c->latency_ns;
	acc->latency_rail[acc->latency_count++] = c->rail;
}

/* MB/s: the median sample's; of a cell without one, what it moved. */
static double rate_of(const struct bench_job *job, const struct answer *c)
{
	const uint64_t *ns = (const uint64_t *)(const void *)(c + 1);
	double bytes = (double)job->opt.window * job->b.count;
	uint64_t sorted[SAMPLES_AUTO];
	size_t n = c->samples < SAMPLES_AUTO ? (size_t)c->samples : SAMPLES_AUTO;

	if (c->state != ACCEPT_OK)
		return (double)c->moved_bytes * 1e3 / (double)(c->took_ns ? c->took_ns : 1);
	memcpy(sorted, ns, n * sizeof(sorted[0]));
	stats_sort(sorted, n);
	return bytes * 1e3 / (stats_median(sorted, n) + 1);
}

static int cell_take(struct bench_job *job, const struct answer *c, int round)
{
	struct acceptance *acc = job->got.acceptance;
	const struct accept_cell cell = { .from = c->from, .to = c->to, .rail = c->rail,
					  .round = round, .state = c->state,
					  .rate = rate_of(job, c) };

	latency_keep(acc, c);
	if (c->valid == 0)
		job->got.validation_failed = true;
	if (accept_add(acc->a, &cell))
		return -1;
	return round == ACCEPT_ALONE ? 0 : cell_row(job, c, round);
}

static int answers_take(struct bench_job *job, const struct round *r, int round)
{
	size_t each = answer_size(job);
	int rc = 0;

	for (int n = 0; n < job->where.node_count; n++)
		for (size_t at = 0; r->answer[n] && at < r->answer_bytes[n] && !rc; at += each)
			rc = cell_take(job, (const struct answer *)(const void *)(r->answer[n] + at),
				       round);
	return rc;
}

/* ---- For accept_run ------------------------------------------------------------------------------- */

static int round_measure(void *user, int round, const struct accept_pair *pair, int count)
{
	const struct like like = { .directions = FORWARD | BACKWARD };
	struct round r = { .pair = pair, .count = count };
	struct bench_job *job = user;
	int rc;

	round_run(job, &r, &like);
	rc = answers_take(job, &r, round);
	round_free(&r, job->where.node_count);
	return rc;
}

/* A port that is measured alone may have left the rounds. */
static int alone_measure(void *user, int from, int to, int rail)
{
	struct bench_job *job = user;
	const uint64_t limit_ns = ACCEPT_PATIENCE * job->got.acceptance->cell_ns;
	const struct accept_pair pair = { from < to ? from : to, from < to ? to : from };
	const struct like like = {
		.rails = 1u << rail, .directions = from < to ? FORWARD : BACKWARD,
		.limit_ns = limit_ns > ALONE_NS ? limit_ns : ALONE_NS,
	};
	struct round r = { .pair = &pair, .count = 1 };
	int rc;

	round_run(job, &r, &like);
	rc = answers_take(job, &r, ACCEPT_ALONE);
	round_free(&r, job->where.node_count);
	return rc;
}

const struct accept_ops acceptance_ops = { round_measure, alone_measure };

/* The first cells open adapters and register memory; the second ones are timed. */
void acceptance_try(struct bench_job *job)
{
	const struct like like = { .directions = FORWARD, .first = true };
	struct accept_pair *pair = bench_must(calloc((size_t)job->where.node_count,
						     sizeof(pair[0])));
	int count = 0;

	for (int n = 0; n + 1 < job->where.node_count; n += 2) {
		pair[count] = (struct accept_pair){ n, n + 1 };
		count += rails_of(job, &pair[count]) != 0;
	}
	for (int turn = 0; turn < 2 && count; turn++) {
		struct round r = { .pair = pair, .count = count };

		round_run(job, &r, &like);
		round_free(&r, job->where.node_count);
		job->got.acceptance->cell_ns = job->got.acceptance->pair_ns;
	}
	free(pair);
}
