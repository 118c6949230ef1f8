/* run_ledger.h - the ledger that `railgauge exec --ledger` prints, read again.  Pure. */
#ifndef CLI_RUN_LEDGER_H
#define CLI_RUN_LEDGER_H

#include "cli/cli.h"

enum { RUN_LEDGER_RAILS_MAX = 16, RUN_LEDGER_BYTES = 64 << 20 };
#define RUN_LEDGER_FILE "records/ledger.txt"	/* text of the launch that has it */

struct run_ledger {
	uint64_t routed, native;	/* calls of all ranks */
	struct run_ledger_rail {
		char name[72];		/* "mlx5_0:1" */
		uint64_t messages, chunks, bytes;	/* sent */
	} rail[RUN_LEDGER_RAILS_MAX];	/* to other nodes; the one inside of a node is left out */
	int rails;
};

/* Read what a launch printed.  False: it has no ledger. */
bool run_ledger_read(const char *text, struct run_ledger *out);

#endif
