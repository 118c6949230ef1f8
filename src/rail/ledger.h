/* ledger.h - what a rail has carried, and limits that rails share: for rail.h and railmpi.h. */
#ifndef RAIL_LEDGER_H
#define RAIL_LEDGER_H

#include <stdbool.h>
#include <stdint.h>

/* The use of one rail, counted where a chunk is posted and where it lands. */
struct rail_ledger {
	uint64_t tx_messages, tx_chunks, tx_bytes;	/* eager; rendezvous; payload of both */
	uint64_t rx_messages, rx_chunks, rx_bytes;
	uint64_t stalls;		/* times a message waited for credit or queue space */
	uint64_t retries;		/* retransmissions of the adapter for this process */
};

/*
 * A limit that several rails of this node share, with its nominal rate: the PCIe
 * link of their adapters, or a limit in the software HCA's model.
 */
enum { RAIL_SHARES_MAX = 16 };
struct rail_share {
	char name[64];			/* "PCIe link 0000:17:00", "bus of soft0" */
	uint32_t rails;			/* bit i: rail i */
	uint64_t out, in;		/* bytes per second, sending and receiving */
	bool half;			/* both directions share the limit, each at its own rate */
};

#endif
