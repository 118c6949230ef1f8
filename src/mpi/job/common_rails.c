/*
 * common_rails.c - the rails that all hosts of the job have, among their RDMA ports.
 *
 * The lowest rank of each host lists its ports.  All ranks get all lists and choose the same
 * (rail.h).  Where the choice has GIDs of Ethernet, each lowest rank tries address handles to the hosts
 * 1, 2, 4, ... further on; what fails at one host is chosen by none.
 */
#include "mpi/job/common_rails.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "mpi/abi/native.h"
#include "mpi/comm/peers.h"
#include "mpi/job/agree.h"
#include "mpi/job/options.h"
#include "mpi/job/progress.h"
#include "rail/rail.h"
#include "util/err.h"

enum { CHOICES_MAX = 16 };		/* each excludes a GID at least */

struct lists {
	void *mine, *all;
	size_t mine_bytes;
	int *count, *at;		/* [ranks]: bytes */
	size_t *bytes;			/* [hosts] */
	unsigned hosts, host;		/* number of hosts; this rank's */
};

/* A node's number is its lowest rank. */
static bool is_lowest(int rank)
{
	return world_node_of[rank] == (unsigned)rank;
}

static int lists_begin(struct lists *l)
{
	const size_t ranks = (size_t)layer.world_size;
	int rc = 0;

	rg_errors_hold();
	l->count = calloc(ranks, sizeof(*l->count));
	l->at = calloc(ranks, sizeof(*l->at));
	l->bytes = calloc(ranks, sizeof(*l->bytes));
	if (!l->count || !l->at || !l->bytes) {
		rc = -ENOMEM;
		rg_error("no memory for the ports of %d ranks", layer.world_size);
	} else if (is_lowest(layer.world_rank)) {
		rc = rail_hosts_list(&world_settings.rail, &l->mine, &l->mine_bytes);
	}
	return agree(rc);
}

static int lists_place(struct lists *l)
{
	uint64_t used = 0;

	for (int r = 0; r < layer.world_size; r++) {
		if (world_node_of[layer.world_rank] == (unsigned)r)
			l->host = l->hosts;
		if (is_lowest(r))
			l->bytes[l->hosts++] = (size_t)l->count[r];
		l->at[r] = (int)used;
		used += (uint64_t)l->count[r];
	}
	l->all = used <= INT_MAX ? malloc(used ? used : 1) : NULL;
	if (!l->all)
		rg_error("no memory for the ports of %u hosts", l->hosts);
	return l->all ? 0 : -ENOMEM;
}

static int lists_gather(struct lists *l)
{
	const int mine = (int)l->mine_bytes;
	int rc;

	native.Allgather(&mine, 1, MPI_INT, l->count, 1, MPI_INT, MPI_COMM_WORLD);
	rg_errors_hold();
	rc = agree(lists_place(l));
	if (!rc)
		native.Allgatherv(l->mine, mine, MPI_BYTE, l->all, l->count, l->at, MPI_BYTE,
				  MPI_COMM_WORLD);
	return rc;
}

static bool faults_exclude(struct rail_hosts *hosts)
{
	struct rail_hosts_fault mine = { .rails = 0 }, all;

	if (is_lowest(layer.world_rank))
		rail_hosts_try(hosts, &mine);
	native.Allreduce(&mine.rails, &all.rails, 1, MPI_UINT32_T, MPI_BOR, MPI_COMM_WORLD);
	return rail_hosts_exclude(hosts, &all);
}

static int choose(struct rail_hosts *hosts)
{
	int rc, turn = 0;

	do {
		rg_errors_hold();
		rc = agree(rail_hosts_choose(hosts));
	} while (!rc && ++turn < CHOICES_MAX && faults_exclude(hosts));
	return rc;
}

static void say(void *arg, const char *text)
{
	(void)arg;
	rg_note("%s", text);
}

static int lists_choose(struct lists *l, struct rail_hosts **out)
{
	struct rail_hosts *hosts = NULL;
	int rc;

	rg_errors_hold();
	rc = agree(rail_hosts_open(l->all, l->bytes, l->hosts, l->host, &hosts));
	if (!rc)
		rc = choose(hosts);
	if (rc) {
		rail_hosts_close(hosts);
		return rc;
	}
	if (layer.world_rank == 0)
		rail_hosts_tell(hosts, say, NULL);
	*out = hosts;
	return 0;
}

int common_rails(struct rail_hosts **out)
{
	struct lists l = { .hosts = 0 };
	int rc = lists_begin(&l);

	if (!rc)
		rc = lists_gather(&l);
	if (!rc)
		rc = lists_choose(&l, out);
	free(l.mine);
	free(l.all);
	free(l.count);
	free(l.at);
	free(l.bytes);
	return rc;
}
