/* ledger.c - what the rails have carried and could carry, for programs that include railmpi.h. */
#include <errno.h>
#include <string.h>

#include "mpi/job/progress.h"
#include "mpi/railmpi.h"
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

int railmpi_ledger(int rail, struct railmpi_ledger *out)
{
	struct rail_ledger l;

	rail = rail_of_number(rail);
	if (rail < 0)
		return -ENOENT;
	rail_ledger(layer.rails, rail, &l);
	*out = (struct railmpi_ledger){
		.tx_messages = l.tx_messages, .tx_chunks = l.tx_chunks, .tx_bytes = l.tx_bytes,
		.rx_messages = l.rx_messages, .rx_chunks = l.rx_chunks, .rx_bytes = l.rx_bytes,
		.stalls = l.stalls, .retries = l.retries_counted ? l.retries : 0,
	};
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

bool railmpi_counter_is_retry(const char *name)
{
	return rail_counter_is_retry(name);
}

_Static_assert((int)RAIL_SHARES_MAX == (int)RAILMPI_SHARES_MAX, "no share is lost");
_Static_assert(sizeof(((struct rail_share *)0)->name) ==
	       sizeof(((struct railmpi_share *)0)->name), "nor a part of a name");

int railmpi_shares(struct railmpi_share out[RAILMPI_SHARES_MAX])
{
	struct rail_share share[RAIL_SHARES_MAX];
	int count = layer.rails ? rail_shares(layer.rails, share) : 0;

	for (int i = 0; i < count; i++) {
		out[i] = (struct railmpi_share){
			.rails = share[i].rails, .out = share[i].out, .in = share[i].in,
			.half = share[i].half,
		};
		memcpy(out[i].name, share[i].name, sizeof(out[i].name));
	}
	return count;
}
