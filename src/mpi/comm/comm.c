/*
 * comm.c - routing: the communicators that go over rails, and their ways.
 *
 * A routed communicator carries a cached attribute that points to its record; a communicator
 * without the attribute is native.  Rank 0 picks the context id (world rank and a counter: unique
 * in the job without coordination).  A native MPI_Allreduce on the new communicator distributes the
 * id and checks that all ranks chose the same way.
 *
 * Each routed communicator has a second record for the messages of its collectives, whose
 * context differs in one bit.  Both records are made together and released together; each
 * lives on as long as operations hold it.
 */
#include "mpi/comm/comm.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpi/abi/native.h"
#include "mpi/coll/coll_job.h"
#include "mpi/comm/comm_table.h"
#include "mpi/comm/lost.h"
#include "mpi/comm/peers.h"
#include "mpi/job/calibrate.h"
#include "mpi/job/options.h"
#include "mpi/job/progress.h"
#include "mpi/job/start_coll.h"
#include "mpi/p2p/match.h"
#include "mpi/railmpi.h"
#include "rail/policy.h"
#include "rail/rail.h"
#include "util/err.h"
#include "util/opt.h"
#include "util/text.h"

static _Atomic uint32_t context_counter;

static void comm_release(struct comm *c)
{
	c->handle = MPI_COMM_NULL;
	if (--c->refs == 0)
		comm_unref_last(c);
}

/* MPI_Comm_free was called, or the library is finalizing: operations may still run. */
static int comm_deleted(MPI_Comm handle, int keyval, void *value, void *extra)
{
	struct comm *c = value;

	atomic_fetch_add(&comm_epoch, 1);
	layer_enter();
	coll_job_freed(c->collective);
	comm_release(c->collective);
	comm_release(c);
	layer_leave();
	return MPI_SUCCESS;
}

static struct comm *comm_alloc_one(MPI_Comm handle, const struct rail_way *way)
{
	struct comm *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->handle = handle;
	c->way = *way;
	c->refs = 1;
	c->probed = MPI_PROC_NULL;
	native.Comm_rank(handle, &c->rank);
	native.Comm_size(handle, &c->size);
	c->peer = calloc((size_t)c->size, sizeof(*c->peer));
	c->source = calloc((size_t)c->size, sizeof(*c->source));
	if (!c->peer || !c->source || world_peers(handle, c->size, c->peer)) {
		comm_free(c);
		return NULL;
	}
	match_comm_init(c);
	return c;
}

static void comm_abandon(struct comm *c)
{
	comm_free(c->collective);
	comm_free(c);
}

static struct comm *comm_alloc(MPI_Comm handle, const struct rail_way *way)
{
	struct comm *c = comm_alloc_one(handle, way);

	if (!c)
		return NULL;
	c->collective = comm_alloc_one(handle, way);
	if (!c->collective) {
		comm_free(c);
		return NULL;
	}
	return c;
}

/* Inside layer_enter.  Messages find the record from here on. */
static void comm_insert(struct comm *c)
{
	comm_table_insert(c);
	match_replay_early(c);
	lost_comm(c);
}

static uint64_t way_digest(const struct rail_way *w)
{
	uint64_t d = 0x9e3779b97f4a7c15u + (uint64_t)w->policy;

	d = d * 0xff51afd7ed558ccdu + w->threshold;
	d = d * 0xff51afd7ed558ccdu + w->eager;
	d = d * 0xff51afd7ed558ccdu + (w->rail | (uint64_t)w->rendezvous << 8 |
				       (uint64_t)w->completion << 16);
	return d >> 1;	/* room for the complement below: MPI_UINT64_T has no sign */
}

/* A threshold that was measured is the job's. */
static struct world_settings settings_of(const struct rail_way *way)
{
	struct world_settings s = world_settings;

	s.rail.rendezvous = way->rendezvous;
	s.rail.completion = way->completion;
	s.rail.eager = way->eager;
	if (s.rail.threshold != OPT_SPECIAL && rail_policies[way->policy].spreads)
		s.rail.threshold = way->threshold;
	return s;
}

/* "single:1,rendezvous=read": as in --over, with the options that differ from the job's. */
static void way_text(const struct rail_way *way, char *text, size_t size)
{
	struct world_settings s = settings_of(way);
	struct opt_table own = world_table;
	char value[32], job[32];

	own.values = &s;
	*text = '\0';
	rg_text_add(text, size, "%s", rail_policies[way->policy].name);
	if (way->rail)
		rg_text_add(text, size, ":%d", way->rail);
	for (const struct opt *row = own.rows; row->name; row++)
		if (row->carry & OPT_COMM &&
		    strcmp(opt_text(&own, row, value, sizeof(value)),
			   opt_text(&world_table, row, job, sizeof(job))))
			rg_text_add(text, size, ",%s=%s", row->name, value);
}

/* The other ranks route the communicator already, so a failure ends the job. */
static void attribute_set(MPI_Comm handle, struct comm *c)
{
	if (native.Comm_set_attr(handle, comm_keyval, c))
		native_end("out of memory for the attribute of a communicator");
}

int comm_adopt(MPI_Comm handle, const struct rail_way *wanted)
{
	enum { CONTEXT, FAILED, WAY, NOT_WAY, RACES, FIELDS = RACES + COLL_JOB_FIELDS };
	char why[OPT_WHY_BYTES], over[128];
	int rank, wrong = rail_way_check(layer.rails, wanted, why, sizeof(why)), rc = 0;
	struct comm *c = wrong ? NULL : comm_alloc(handle, wanted);
	uint64_t mine[FIELDS] = {0}, all[FIELDS];
	MPI_Request reduced;

	mine[FAILED] = !c;
	mine[WAY] = way_digest(wanted);
	mine[NOT_WAY] = ~mine[WAY];
	if (c && c->rank == 0)
		mine[CONTEXT] = (uint64_t)(layer.world_rank + 1) << 32 |
				atomic_fetch_add(&context_counter, 1);
	if (c) {
		way_text(wanted, over, sizeof(over));
		coll_job_ask(c->collective, over, mine + RACES);
	}
	native.Iallreduce(mine, all, FIELDS, MPI_UINT64_T, MPI_MAX, handle, &reduced);
	start_await(&reduced, UINT64_MAX);

	if (all[FAILED] || all[WAY] != ~all[NOT_WAY]) {
		native.Comm_rank(handle, &rank);
		if (wrong && rank == 0)
			rg_error("%s", why);
		if (c) {
			if (!all[FAILED] && c->rank == 0)
				rg_error("info key " RAILMPI_INFO_KEY ": ranks of one communicator asked for "
					 "different ways; all must give the same");
			comm_abandon(c);
		}
		/* The error may end the job, so a barrier lets the message be printed first. */
		native.Barrier(handle);
		return all[FAILED] ? -ENOMEM : -EINVAL;
	}
	/* The threshold is measured by all ranks together, so only after they have agreed on it. */
	if (wanted->threshold == OPT_SPECIAL)
		rc = calibrate(handle, wanted, &c->way.threshold);
	if (rc) {
		comm_abandon(c);
		return rc;
	}
	coll_job_begin(c->collective, all + RACES);
	c->way.eager_auto = wanted->eager == RAIL_AUTO;
	c->collective->way = c->way;
	/* The kind of memory matters to a message above this limit (send.c). */
	c->eager = c->collective->eager = rail_eager_limit(layer.rails, &c->way);
	c->context = all[CONTEXT];
	c->collective->context = c->context | COMM_COLLECTIVE_CONTEXT;
	attribute_set(handle, c);
	atomic_fetch_add(&comm_epoch, 1);	/* a cache may hold it as native */
	layer_enter();
	comm_insert(c);
	comm_insert(c->collective);
	layer_leave();
	return 0;
}

static void say_options(const char *word, char *why, size_t why_size)
{
	const char *between = "";
	const struct opt *row;
	size_t used;

	snprintf(why, why_size, "info key " RAILMPI_INFO_KEY ": '%s' (accepted after the way: ", word);
	for (row = world_table.rows; row->name; row++)
		if (row->carry & OPT_COMM) {
			used = strlen(why);
			snprintf(why + used, why_size - used, "%s%s=%s", between, row->name,
				 row->arg);
			between = ", ";
		}
	used = strlen(why);
	snprintf(why + used, why_size - used, ")");
}

int comm_parse_way(const char *text, bool *native_way, struct rail_way *way, char *why,
		   size_t why_size)
{
	struct world_settings s = world_settings;
	struct opt_table t = world_table;
	unsigned char origin[OPT_ROWS_MAX];
	char accepted[OPT_WHY_BYTES / 2], copy[256], *save = NULL, *word, *value;
	const struct opt_choice *choice;
	const struct opt *row;

	if (snprintf(copy, sizeof(copy), "%s", text) >= (int)sizeof(copy)) {
		snprintf(why, why_size, "info key " RAILMPI_INFO_KEY ": longer than 255 characters");
		return -EINVAL;
	}
	t.values = &s;
	t.origin = origin;
	word = strtok_r(copy, ",", &save);
	for (choice = railmpi_ways(); choice->name; choice++)
		if (word && !strcmp(word, choice->name))
			break;
	if (!choice->name) {
		const struct opt ways = { .type = OPT_CHOICE, .choices = railmpi_ways() };

		snprintf(why, why_size, "info key " RAILMPI_INFO_KEY ": '%s' (accepted: %s, then "
			 ",name=value)", text, opt_accepted(&ways, accepted, sizeof(accepted)));
		return -EINVAL;
	}
	while ((word = strtok_r(NULL, ",", &save))) {
		value = strchr(word, '=');
		if (value)
			*value++ = '\0';
		for (row = t.rows; row->name && strcmp(row->name, word); row++)
			;
		if (!row->name || !(row->carry & OPT_COMM) || !value) {
			say_options(word, why, why_size);
			return -EINVAL;
		}
		if (opt_set(&t, word, value, OPT_FROM_CALL, why, why_size))
			return -EINVAL;
	}
	*native_way = choice->value == RAILMPI_NATIVE;
	*way = world_way(&s, choice->value);
	return 0;
}

int railmpi_way_check(const char *value, char *why, size_t why_size)
{
	bool native_way;
	struct rail_way way;
	int rc = comm_parse_way(value, &native_way, &way, why, why_size);

	if (rc || native_way || !layer.rails)
		return rc;
	return rail_way_check(layer.rails, &way, why, why_size);
}

int comm_start(void)
{
	if (native.Comm_create_keyval(MPI_COMM_NULL_COPY_FN, comm_deleted, &comm_keyval, NULL))
		return -ENOMEM;
	atomic_fetch_add(&comm_epoch, 1);	/* look-ups made without rails are stale */
	return 0;
}

void comm_stop(void)
{
	comm_table_end();
	native.Comm_free_keyval(&comm_keyval);
	atomic_fetch_add(&comm_epoch, 1);
}
