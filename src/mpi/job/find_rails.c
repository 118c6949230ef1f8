/*
 * find_rails.c - the interfaces over which all hosts of the job reach each other.
 *
 * The first rank of each host is its leader: it lists the host's interfaces and probes.  The native
 * library gathers the lists, then the results, so that all ranks choose the same (rail_choice.h).
 */
#include "mpi/job/find_rails.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mpi/abi/native.h"
#include "mpi/job/progress.h"
#include "mpi/job/rail_choice.h"
#include "mpi/job/start_coll.h"
#include "util/err.h"

struct finder {
	const struct hello *rank;	/* [ranks] */
	unsigned hosts, mine;		/* number of hosts, and this rank's host */
	unsigned *leader;		/* [hosts]: ranks */
	int *count, *at;		/* [ranks]: bytes of a leader's part, for Allgatherv */
	struct choice_host *host;	/* [hosts] */
	struct choice_probes *found;	/* [hosts] */
	struct choice choice;
	struct softhca_probe *probe;	/* of leaders */
};

static bool all_are(bool good)
{
	int mine = good, all;

	start_allreduce(&mine, &all, 1, MPI_INT, MPI_MIN);
	return all;
}

static bool is_leader(const struct finder *f)
{
	return f->leader[f->mine] == (unsigned)layer.world_rank;
}

/* ---- Hosts --------------------------------------------------------------- */

/* The number of this rank's host; a new one, if no lower rank is there. */
static unsigned host_of(struct finder *f, unsigned rank)
{
	for (unsigned h = 0; h < f->hosts; h++)
		if (memcmp(f->rank[f->leader[h]].net_host, f->rank[rank].net_host, 16) == 0)
			return h;
	f->leader[f->hosts] = rank;
	return f->hosts++;
}

static int hosts_count(struct finder *f)
{
	const unsigned ranks = (unsigned)layer.world_size;

	f->leader = calloc(ranks, sizeof(*f->leader));
	f->count = calloc(ranks, sizeof(*f->count));
	f->at = calloc(ranks, sizeof(*f->at));
	for (unsigned r = 0; f->leader && r < ranks; r++) {
		unsigned h = host_of(f, r);

		if (r == (unsigned)layer.world_rank)
			f->mine = h;
	}
	f->host = calloc(f->hosts, sizeof(*f->host));
	f->found = calloc(f->hosts, sizeof(*f->found));
	return all_are(f->leader && f->count && f->at && f->host && f->found) ? 0 : -ENOMEM;
}

/* All ranks get the parts of all hosts, of `bytes` each, from the leaders. */
static void parts_gather(struct finder *f, void *parts, size_t bytes, MPI_Request *request)
{
	for (unsigned h = 0; h < f->hosts; h++) {
		f->count[f->leader[h]] = (int)bytes;
		f->at[f->leader[h]] = (int)(h * bytes);
	}
	start_iallgatherv(MPI_IN_PLACE, 0, parts, f->count, f->at, request);
}

/* ---- Probing ------------------------------------------------------------- */

static void host_fill(struct finder *f)
{
	struct choice_host *h = &f->host[f->mine];
	unsigned more = 0;
	int count = softhca_net_list(h->net, SOFTHCA_NETS_MAX, &more);

	gethostname(h->name, sizeof(h->name) - 1);
	h->more = more;
	memcpy(h->id, f->rank[layer.world_rank].net_host, sizeof(h->id));
	if (count >= 0 && softhca_probe_open(&f->probe, h->net, (unsigned)count, f->rank[0].probe_job) == 0)
		h->count = (uint32_t)count;
	else
		snprintf(h->error, sizeof(h->error), "%s", softhca_last_error());
}

static void calls_begin(struct finder *f, unsigned step)
{
	struct choice_probes *found = &f->found[f->mine];
	const struct choice *c = &f->choice;
	const unsigned other = choice_peer(c, f->mine, step);
	const struct choice_host *peer = &f->host[other];
	const uint8_t *own_rest = c->rest[f->mine], *its_rest = c->rest[other];

	for (unsigned k = 0; k < c->columns; k++)
		if (choice_column_is_up(c, k, f->mine) && choice_column_is_up(c, k, other))
			softhca_probe_call(f->probe, c->column[k].at[f->mine],
					   &peer->net[c->column[k].at[other]], peer->id,
					   &found->column[step][k]);
	for (unsigned i = 0; c->has_rest && i < CHOICE_REST && own_rest[i] != CHOICE_NONE; i++)
		for (unsigned k = 0; k < CHOICE_REST && its_rest[k] != CHOICE_NONE; k++)
			softhca_probe_call(f->probe, own_rest[i], &peer->net[its_rest[k]], peer->id,
					   &found->rest[step][i][k]);
}

/* All ranks get all results.  A leader serves the calls of others until then: the last calls are over. */
static void probe_all(struct finder *f)
{
	MPI_Request gathered;
	unsigned round = 0;
	int done = 0;

	if (f->probe)
		for (unsigned s = 0; s < f->choice.steps; s++)
			calls_begin(f, s);
	while (f->probe && softhca_probe_progress(f->probe))
		start_pause(round++);
	parts_gather(f, f->found, sizeof(*f->found), &gathered);
	for (round = 0; ; round++) {
		native.Test(&gathered, &done, MPI_STATUS_IGNORE);
		if (done)
			break;
		if (f->probe)
			softhca_probe_progress(f->probe);
		start_pause(round);
	}
	softhca_probe_close(f->probe);
	f->probe = NULL;
}

/* ---- The choice ---------------------------------------------------------- */

static void say(void *arg, const char *text)
{
	(void)arg;
	rg_note("%s", text);
}

/* Rank 0 tells what was found, and what is left out. */
static void rails_tell(const struct finder *f)
{
	char spec[CHOICE_SPEC_BYTES];

	choice_spec(&f->choice, f->mine, spec);
	if (f->choice.rails)
		rg_note("%u rail%s by the software HCA over TCP between %u hosts: %s", f->choice.rails,
			f->choice.rails > 1 ? "s" : "", f->hosts, spec);
	choice_lines(&f->choice, say, NULL);
}

static int rails_name(const struct finder *f, const char **soft)
{
	static char spec[CHOICE_SPEC_BYTES];

	if (layer.world_rank == 0)
		rails_tell(f);
	if (!f->choice.rails) {
		rg_error("no ACTIVE RDMA port on host %s, and no interfaces over which all %u hosts reach "
			 "each other (accepted: named ones, such as --soft net=eth0+eth1; or --over native)",
			 f->host[0].name, f->hosts);
		return -ENODEV;
	}
	choice_spec(&f->choice, f->mine, spec);
	*soft = spec;
	return 0;
}

static int finder_run(struct finder *f, const char **soft)
{
	MPI_Request gathered;
	int rc = hosts_count(f);

	if (rc)
		return rc;
	if (is_leader(f))
		host_fill(f);
	parts_gather(f, f->host, sizeof(*f->host), &gathered);
	start_await(&gathered, UINT64_MAX);
	if (!all_are(choice_begin(&f->choice, f->host, f->hosts, f->rank[0].net_down) == 0))
		return -ENOMEM;
	probe_all(f);
	choice_finish(&f->choice, f->found);
	return rails_name(f, soft);
}

int find_rails(const struct hello *all, const char **soft)
{
	struct finder f = { .rank = all };
	int rc = finder_run(&f, soft);

	if (rc == -ENOMEM)
		rg_error("no memory to find rails");
	softhca_probe_close(f.probe);
	choice_end(&f.choice);
	free(f.leader);
	free(f.count);
	free(f.at);
	free(f.host);
	free(f.found);
	return rc;
}
