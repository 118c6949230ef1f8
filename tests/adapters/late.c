/*
 * late.c - a host that is late in a round of datagrams between ports (rail_probe_round), and has all that the
 * others have sent at once: it sends to the others no less.  Nothing is lost.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "rail/rail.h"

static const int ms[] = { 1000, 4000 };		/* rounds */

static int rank;

static void stop(const char *what)
{
	fprintf(stderr, "late: host %d: %s\n", rank, what);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

/* The hosts' choice of ports, as all have listed theirs. */
static struct rail_hosts *hosts_open(const struct rail_settings *set)
{
	size_t bytes, each[2];
	struct rail_hosts *hosts;
	char *all;
	void *mine;

	if (rail_hosts_list(set, 1, 2, &mine, &bytes))
		stop("no list");
	each[0] = each[1] = bytes;		/* like hosts */
	all = malloc(2 * bytes);
	MPI_Allgather(mine, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, MPI_COMM_WORLD);
	if (rail_hosts_open(all, each, 2, (unsigned)rank, &hosts) || rail_hosts_choose(hosts))
		stop("no rails");
	free(mine);
	free(all);
	return hosts;
}

int main(int argc, char **argv)
{
	unsigned char address[RAIL_PROBE_BYTES], all[2 * RAIL_PROBE_BYTES];
	struct rail_loss lost[2 * RAIL_MAX];
	struct rail_settings set;
	struct rail_prober *p;
	struct rail_hosts *hosts;
	int any = 1;
	size_t count;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	rail_settings_init(&set);
	hosts = hosts_open(&set);
	p = rail_probe_open(&set, hosts, address);
	MPI_Allgather(address, sizeof(address), MPI_BYTE, all, sizeof(address), MPI_BYTE, MPI_COMM_WORLD);
	if (!p || !rail_probe_start(p, all))
		stop("no datagrams");
	rail_probe_pairs(p, NULL);
	for (int i = 0; i < 2 && any; i++) {
		MPI_Barrier(MPI_COMM_WORLD);
		if (rank && !i)
			usleep(700000);
		any = rail_probe_round(p, (uint64_t)ms[i] * 1000000);
		MPI_Allreduce(MPI_IN_PLACE, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
	}
	count = rail_probe_lost(p, lost);
	for (size_t i = 0; i < count; i++)
		fprintf(stderr, "late: rail %u of host %u to rails 0x%x of host %u: lost\n", lost[i].rail,
			lost[i].from, lost[i].rails, lost[i].to);
	rail_probe_close(p);
	rail_hosts_close(hosts);
	MPI_Finalize();
	return count != 0;
}
