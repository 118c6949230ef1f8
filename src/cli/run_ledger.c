/* run_ledger.c - the ledger that `railgauge exec --ledger` prints, read again. */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/run_ledger.h"

/* "  MPI_Send   calls routed   bytes sent   calls native" */
static bool call_read(const char *line, struct run_ledger *l)
{
	uint64_t routed, bytes, native;
	char name[64];

	if (sscanf(line, "  MPI_%63s %" SCNu64 " %" SCNu64 " %" SCNu64, name, &routed, &bytes, &native) != 4)
		return false;
	l->routed += routed;
	l->native += native;
	return true;
}

/* "  mlx5_0:1   messages chunks bytes sent   messages chunks bytes got   stalls retries" */
static bool rail_read(const char *line, struct run_ledger *l)
{
	struct run_ledger_rail r;
	uint64_t got[3], stalls;

	if (sscanf(line, "  %71s %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
		   " %" SCNu64, r.name, &r.messages, &r.chunks, &r.bytes, &got[0], &got[1], &got[2],
		   &stalls) != 8)
		return false;
	if (strcmp(r.name, "local") && l->rails < RUN_LEDGER_RAILS_MAX)
		l->rail[l->rails++] = r;
	return true;
}

bool run_ledger_read(const char *text, struct run_ledger *out)
{
	const char *line = strstr(text, ": ledger of ");
	struct run_ledger l = { .rails = 0 };

	if (!line)
		return false;
	while ((line = strchr(line, '\n'))) {
		line++;
		if (!call_read(line, &l))
			rail_read(line, &l);
	}
	*out = l;
	return true;
}
