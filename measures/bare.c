/*
 * bare.c - railmpi.h without the layer: a program linked with this file talks to the MPI library
 * and to nothing else.  It is the baseline for the cost of the native way with the layer.
 */
#include <errno.h>
#include <string.h>

#include "util/err.h"
#include "util/opt.h"
#include "mpi/railmpi.h"

struct values { uint64_t nodes; };

static const struct opt rows[] = {
	{ .name = "nodes", .type = OPT_COUNT, .carry = OPT_JOB, .standard = "2", .min = 1,
	  .max = 1024, .offset = offsetof(struct values, nodes), .arg = "N",
	  .help = "virtual nodes that the ranks of one host stand for" },
	{ .name = NULL },
};

static const struct opt_choice ways[] = {
	{ "native", RAILMPI_NATIVE, "the MPI library itself" },
	{ NULL, 0, NULL },
};

const struct opt *railmpi_options(void)
{
	return rows;
}

const struct opt_choice *railmpi_ways(void)
{
	return ways;
}

int railmpi_option(const char *name, const char *text, char *why, size_t why_size)
{
	return 0;
}

int railmpi_open(void)
{
	rg_error("this program was built without rails (accepted: --over native)");
	return -ENODEV;
}

int railmpi_way_check(const char *value, char *why, size_t why_size)
{
	return 0;
}

void railmpi_fabric(struct railmpi_fabric *out)
{
	memset(out, 0, sizeof(*out));
	out->kind = "none";
	out->text = out->spec = out->doubt = out->threshold = "";
}

int railmpi_coll(const char *list, char *why, size_t why_size)
{
	return 0;
}

const char *railmpi_coll_candidate(const char *collective, int i)
{
	return NULL;
}

const char *railmpi_coll_used(size_t *bytes)
{
	*bytes = 0;
	return "auto";
}

int railmpi_port_state(int rail)
{
	return 0;
}

const char *railmpi_port_state_text(int state)
{
	return "";
}

bool railmpi_error_is_lost(int error)
{
	return false;
}

int railmpi_port_counters(int rail, railmpi_counter_fn *each, void *user)
{
	return 0;
}

bool railmpi_counter_is_retry(const char *name)
{
	return false;
}

int railmpi_node_of(int rank)
{
	return -1;
}

int railmpi_net(int rail, struct railmpi_net *out)
{
	return -ENOENT;
}

bool railmpi_learned(unsigned cell, struct rail_learned *out)
{
	(void)cell;
	(void)out;
	return false;
}

bool railmpi_race(unsigned race, struct railmpi_race *out)
{
	(void)race;
	(void)out;
	return false;
}

uint64_t railmpi_late_reads(void)
{
	return 0;
}

const char *railmpi_place(int rank)
{
	(void)rank;
	return NULL;
}

void railmpi_learned_text(const struct rail_learned *cell, char *text, size_t size)
{
	(void)cell;
	snprintf(text, size, "%s", "");
}

void railmpi_processor(char *name, size_t size)
{
	snprintf(name, size, "%s", "");
}

int railmpi_shares(struct rail_share out[RAIL_SHARES_MAX])
{
	return 0;
}

int railmpi_ledger(int rail, struct rail_ledger *out)
{
	return -ENOENT;
}
