/* ledger.c - what the rails have carried and could carry, for programs that include railmpi.h. */
#include <errno.h>

#include "mpi/comm/peers.h"
#include "mpi/job/progress.h"
#include "mpi/railmpi.h"
#include "rail/programs.h"
#include "rail/rail.h"

/* librail's number of a rail of railmpi.h, or -1. */
static int rail_of_number(int rail)
{
	if (!layer.rails)
		return -1;
	if (rail == RAILMPI_LOCAL)
		return rail_local(layer.rails);
	return rail >= 0 && rail < rail_count(layer.rails) ? rail : -1;
}

int railmpi_ledger(int rail, struct rail_ledger *out)
{
	rail = rail_of_number(rail);
	if (rail < 0)
		return -ENOENT;
	rail_ledger(layer.rails, rail, out);
	return 0;
}

int railmpi_port_state(int rail)
{
	rail = rail_of_number(rail);
	return rail < 0 ? 0 : rail_port_state(layer.rails, rail);
}

const char *railmpi_port_state_text(int state)
{
	return rail_port_state_text(state);
}

int railmpi_port_counters(int rail, railmpi_counter_fn *each, void *user)
{
	rail = rail_of_number(rail);
	return rail < 0 ? 0 : rail_port_counters(layer.rails, rail, each, user);
}

const struct vrb_port *railmpi_port(int rail)
{
	rail = rail_of_number(rail);
	return rail < 0 ? NULL : rail_port(layer.rails, rail);
}

const struct vrb_ports *railmpi_ports(void)
{
	return layer.rails ? rail_ports(layer.rails) : NULL;
}

bool railmpi_counter_is_retry(const char *name)
{
	return rail_counter_is_retry(name);
}

int railmpi_shares(struct rail_share out[RAIL_SHARES_MAX])
{
	return layer.rails ? rail_shares(layer.rails, out) : 0;
}

bool railmpi_learned(unsigned cell, struct rail_learned *out)
{
	bool there;

	layer_enter();		/* messages change cells, the progress thread's as well */
	there = layer.rails && rail_learned(layer.rails, cell, out);
	layer_leave();
	return there;
}

uint64_t railmpi_late_reads(void)
{
	uint64_t messages;

	layer_enter();
	messages = layer.rails ? rail_reads_of_late(layer.rails) : 0;
	layer_leave();
	return messages;
}

const char *railmpi_place(int rank)
{
	return layer.rails ? rail_place_name(world_peer[rank]) : NULL;
}

void railmpi_learned_text(const struct rail_learned *cell, char *text, size_t size)
{
	rail_learned_text(cell, text, size);
}

void railmpi_processor(char *name, size_t size)
{
	rail_processor(name, size);
}
