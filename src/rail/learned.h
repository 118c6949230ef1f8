/*
 * learned.h - choices made by measured costs: for rail.h and railmpi.h.
 *
 * A cell is one choice among schemes: of a table (who chooses), for peers of a place, under a load,
 * for messages up to a number of bytes.
 */
#ifndef RAIL_LEARNED_H
#define RAIL_LEARNED_H

#include <stdint.h>

enum { RAIL_LEARNED_SCHEMES = 8, RAIL_LEARNED_NAME = 16 };

/* Places of peers on this host, by the CPUs that both processes are bound to. */
enum rail_place {
	RAIL_PLACE_HOST,		/* the CPUs are not known */
	RAIL_PLACE_CACHE,		/* they share the last cache */
	RAIL_PLACE_PACKAGE,		/* one package, with several such caches */
	RAIL_PLACE_APART,		/* another package */
	RAIL_PLACE_UNBOUND,		/* one of them may run at several of these places */
	RAIL_PLACES,
};

/* Why a cell has its scheme. */
enum rail_learned_why {
	RAIL_LEARNED_ASSUMED,		/* messages were too few so far */
	RAIL_LEARNED_RACING,		/* the best so far; others still have turns */
	RAIL_LEARNED_MEASURED,		/* for good */
	RAIL_LEARNED_GIVEN,		/* by --costs */
	RAIL_LEARNED_WHYS,
};

/* Names consist of lower-case letters, digits, '-' and '_'. */
struct rail_learned {
	char table[RAIL_LEARNED_NAME];	/* the end that chooses: "receive", "send"; of copies: "copy"; of mapped
					   receive buffers: "map" */
	char place[RAIL_LEARNED_NAME];	/* of the peer: "host", "cache", "package", "apart",
					   "unbound" */
	/*
	 * "alone", "queued", "queued-mixed", "crossing", "crossing-mixed"; of "send": "alone", "row", "crossing",
	 * "row-mixed", "crossing-mixed"; of "copy": the distance of both ends in their pages, "far", "near"; of "map": "all".
	 */
	char load[RAIL_LEARNED_NAME];
	uint64_t bytes;			/* per message, at most; 0: any more */
	unsigned schemes;
	struct {
		char name[RAIL_LEARNED_NAME];
		uint32_t cost_ns;	/* per message; 0: not measured */
		uint32_t samples;
	} scheme[RAIL_LEARNED_SCHEMES];
	unsigned chosen;		/* index of scheme */
	unsigned why;			/* enum rail_learned_why */
};

#endif
