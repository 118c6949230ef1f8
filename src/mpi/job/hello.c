/* hello.c - a rank's message to all others at the start. */
#include "mpi/job/hello.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "mpi/coll/coll.h"
#include "mpi/job/options.h"
#include "mpi/job/progress.h"
#include "rail/programs.h"
#include "rail/rail.h"
#include "softhca/softhca.h"
#include "util/err.h"
#include "util/random.h"

/* Names of interfaces may differ from host to host, their number may not. */
static uint64_t soft_digest(const char *spec)
{
	char terms[1024];

	rail_soft_terms(spec, terms, sizeof(terms));
	return opt_digest(terms);
}

static void options_digest(uint64_t option[OPT_ROWS_MAX])
{
	const struct opt *rows = world_table.rows;
	char text[1024];

	for (int i = 0; rows[i].name; i++) {
		opt_text(&world_table, &rows[i], text, sizeof(text));
		option[i] = rows[i].check == coll_check ? coll_digest() :
			    !strcmp(rows[i].name, "quiet") ? 0 :	/* rank 0's counts */
			    !strcmp(rows[i].name, "soft") ? soft_digest(text) : opt_digest(text);
	}
}

int hello_options_compare(const struct hello *all, int n)
{
	int i, row;

	for (i = 0; i < n; i++)
		for (row = 0; world_table.rows[row].name; row++)
			if (all[i].option[row] != all[0].option[row]) {
				rg_error("--%s (RAILGAUGE_ variables%s): rank %d has another value than "
					 "rank 0 (accepted: the same on all ranks)",
					 world_table.rows[row].name,
					 world_table.rows[row].check == coll_check ?
					 ", contents of @FILE" : "", i);
				return -EINVAL;
			}
	return 0;
}

static void cpus_fill(uint64_t cpus[16])
{
	cpu_set_t set;

	CPU_ZERO(&set);
	sched_getaffinity(0, sizeof(set), &set);
	for (int cpu = 0; cpu < 1024; cpu++)
		if (CPU_ISSET(cpu, &set))
			cpus[cpu / 64] |= (uint64_t)1 << (cpu % 64);
}

/* A software HCA in place of libibverbs models hosts on one machine: its nodes. */
static int32_t model_node(void)
{
	const int node = softhca_exposed_node();

	return node < 0 ? 0 : node;
}

static bool is_down_a_port(void)
{
	const char *text = getenv("SOFTHCA_NET_DOWN");

	return text && strcmp(text, "port") == 0;
}

void hello_fill(struct hello *h)
{
	int rc;

	memset(h, 0, sizeof(*h));
	gethostname(h->host, sizeof(h->host) - 1);
	rg_host_find(&h->at);
	options_digest(h->option);
	cpus_fill(h->cpus);
	h->nonce = rg_random();
	h->quiet = world_settings.quiet;
	h->model_node = model_node();
	h->soft = rail_soft_is_named(&world_settings.rail);
	h->net = rail_soft_is_net(&world_settings.rail);
	h->net_down = is_down_a_port();
	if (softhca_net_host(h->net_host))
		memset(h->net_host, 0, sizeof(h->net_host));
	h->probe_job = rg_random();
	/* A kernel without random numbers leaves zeros, and the ranks with the user's own secret. */
	if (!layer.world_rank &&
	    getrandom(h->secret, sizeof(h->secret), 0) != sizeof(h->secret))
		memset(h->secret, 0, sizeof(h->secret));
	rc = rail_probe(&world_settings.rail, &h->ports);
	if (rc)
		h->ports = rc;
	if (!h->ports)
		rail_probe_why(h->no_ports, sizeof(h->no_ports));
}
