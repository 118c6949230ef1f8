/* ways.c - ways: a communicator for each, its rail and its algorithm. */
#include "bench/ways.h"
#include "bench/acceptance.h"
#include "bench/interfaces.h"
#include "bench/options_use.h"
#include "bench/ranks.h"
#include "bench/way_coll.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static bool wants_rails(const struct bench_job *job)
{
	for (int i = 0; i < job->opt.over.count; i++)
		if (job->opt.over.item[i] != RAILMPI_NATIVE)
			return true;
	return job->opt.over.count == 0;
}

static const struct opt_choice *way_choice(int id)
{
	const struct opt_choice *c = railmpi_ways();

	while (c->value != id)
		c++;
	return c;
}

/*
 * Does the way run on another fabric than the others?  Native messages between ranks of one host go
 * through its memory.  Native messages compare with an untimed software HCA, which is memory too,
 * and with no other fabric.
 */
static bool is_foreign(const struct bench_job *job, int id)
{
	bool memory = job->where.fabric.software_hca && !job->where.fabric.modelled &&
		      !job->where.fabric.net;

	return id == RAILMPI_NATIVE && job->where.host_count == 1 &&
	       job->where.fabric.rail_count && !memory;
}

/* Names live as long as the process. */
static const char *way_name(const char *choice, const char *settings)
{
	char *name;

	if (!settings)
		return choice;
	if (asprintf(&name, "%s,%s", choice, settings) < 0)
		name = NULL;
	return bench_must(name);
}

/* The way with its options, as the info key takes it; false: too long, with a line. */
static bool way_text(const struct bench_column *way, int id, const char *extra, const char *own, char *text,
		     size_t size)
{
	int length = snprintf(text, size, "%s%s%s%s", way_choice(id)->name, extra, *own ? "," : "", own);

	if (length >= 0 && (size_t)length < size)
		return true;
	rg_error("--over %s: too long with all options (accepted: up to %zu characters)", way->name, size - 1);
	return false;
}

bool way_is_possible(int id)
{
	char why[OPT_WHY_BYTES];

	return railmpi_way_check(way_choice(id)->name, why, sizeof(why)) == 0;
}

int way_open(struct bench_job *job, struct bench_column *way, int id)
{
	char value[MPI_MAX_INFO_VAL], extra[MPI_MAX_INFO_VAL - 32] = "", why[OPT_WHY_BYTES];
	const char *own;
	MPI_Info info;

	way->id = (enum railmpi_way)id;
	way->name = way_name(way_choice(id)->name, way->settings);
	way->uses_all = way_choice(id)->traits & RAILMPI_USES_ALL;
	way->foreign = is_foreign(job, id);
	if (id != RAILMPI_NATIVE)
		options_of_communicator(job, extra, sizeof(extra));
	else if (way->settings) {
		rg_error("--over %s: the MPI library has no such options (accepted: native)", way->name);
		return RG_EXIT_USAGE;
	}
	own = way_coll_take(job, way, way->settings);
	if (!own || !way_text(way, id, extra, own, value, sizeof(value)))
		return RG_EXIT_USAGE;
	if (railmpi_way_check(value, why, sizeof(why))) {
		rg_error("--over %s", why);
		return RG_EXIT_USAGE;
	}
	if (job->def->carrier && job->def->carrier->check_way(id))
		return RG_EXIT_USAGE;
	/* A carrier's messages go over the rails. */
	if (job->def->carrier)
		snprintf(value, sizeof(value), "native");
	MPI_Info_create(&info);
	MPI_Info_set(info, RAILMPI_INFO_KEY, value);
	MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &way->comm);
	MPI_Info_free(&info);
	ranks_guard(way->comm);
	job->where.way_count++;
	return 0;
}

/* Open the single way once for each of the program's variants. */
static int variants_open(struct bench_job *job, const struct opt_list *over)
{
	const struct opt_choice *v = job->def->variants();
	int rc = 0;

	if (over->count != 1) {
		rg_error("--over: columns are no ways here (accepted: one way, such as single)");
		return RG_EXIT_USAGE;
	}
	for (; v->name && !rc; v++) {
		struct bench_column *way = &job->where.way[job->where.way_count];

		rc = way_open(job, way, over->item[0]);
		way->name = v->name;
		way->variant = v->value;
	}
	return rc;
}

int ways_open(struct bench_job *job)
{
	struct opt_list over = job->opt.over;
	int rc = wants_rails(job) ? railmpi_open() : 0;

	if (rc)
		return rc == -EINVAL || rc == -ENODEV ? RG_EXIT_USAGE : RG_EXIT_FAULT;
	railmpi_fabric(&job->where.fabric);
	MPI_Allreduce(&job->where.fabric.rail_count, &job->where.common_rails, 1, MPI_INT, MPI_MIN,
		      job->where.comm);
	if (acceptance_is(job))
		return 0;
	if (over.count == 0 && job->def->layout == BENCH_TOURNAMENT) {
		over.count = job->where.common_rails;
		for (int r = 0; r < over.count; r++)
			over.item[r] = RAILMPI_SINGLE_RAIL + r;
	}
	if (over.count == 0) {
		over.count = 1;
		over.item[0] = !job->def->carrier && job->where.common_rails > 1 ? RAILMPI_STRIPE :
			       RAILMPI_SINGLE;
	}
	if (job->def->variants)
		return variants_open(job, &over);
	for (int i = 0; i < over.count && !rc; i++) {
		struct bench_column *way = &job->where.way[job->where.way_count];

		if (over.settings[i].length)
			way->settings = bench_must(strndup(over.settings[i].text,
							   (size_t)over.settings[i].length));
		rc = way_open(job, way, over.item[i]);
	}
	way_coll_complete(job);
	return rc;
}

const char *way_rail(const struct bench_job *job, const struct bench_column *way)
{
	int rail = (int)way->id - RAILMPI_SINGLE_RAIL;

	if (job->got.acceptance)
		return job->got.acceptance->rail[rail];
	return rail >= 0 && rail < job->where.fabric.rail_count ?
		job->where.fabric.rail[rail].name : NULL;
}

void way_switch(const struct bench_column *way)
{
	char why[OPT_WHY_BYTES];

	if (way->coll && railmpi_coll(way->coll, why, sizeof(why))) {
		rg_error("%s", why);
		rg_let_launcher_read();
		MPI_Abort(MPI_COMM_WORLD, RG_EXIT_FAULT);
	}
	interfaces_turn(way->id == RAILMPI_NATIVE);
}

uint64_t ways_eager_limit(const struct bench_job *job)
{
	return job->where.fabric.eager_bytes;
}

void ways_close(struct bench_job *job)
{
	while (job->where.way_count)
		MPI_Comm_free(&job->where.way[--job->where.way_count].comm);
}
