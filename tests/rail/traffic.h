/*
 * traffic.h - messages whose every byte both ends can compute: their content, their order,
 * and untouched memory around them.
 */
#ifndef TESTS_RAIL_TRAFFIC_H
#define TESTS_RAIL_TRAFFIC_H

#include "job.h"

enum { TRAFFIC_WAYS_MAX = 40 };

enum traffic_accept {
	ACCEPT_NOW,		/* from on_message */
	ACCEPT_LATER,		/* when all RTSs of a peer are here, last first */
	ACCEPT_RANDOM,		/* some now, some later, in random order */
};

struct traffic {
	uint64_t seed;
	int count;			/* messages from each process to each of its partners */
	const size_t *sizes;		/* in turn; NULL: random up to max_bytes */
	int size_count;
	size_t max_bytes;
	const struct rail_way *ways;	/* in turn */
	int way_count;
	int window;			/* operations in flight per partner */
	unsigned sync_every;		/* every so many is synchronous; 0: none */
	bool arena;			/* buffers from rail_alloc, else malloc */
	enum traffic_accept accept;
	bool with_self, one_way;	/* one_way: only the lower rank sends */
	size_t truncate_every;		/* every so many is received into half its length */
	/*
	 * Long messages move in parts of so many bytes: the sender's memory, the receiver's or
	 * neither's is RAIL_MEM_PARTS; the last have a table of twice as many.  0: no parts.
	 */
	size_t part_bytes;
	/*
	 * The sender's memory, the receiver's, both or neither is in several pieces, which are gathered and
	 * scattered as slices where a message can go so; some messages can.
	 */
	bool slices;
};

/*
 * In every process of the job, between connect and close; fails the process on any
 * difference.  RAIL_TEST_BYTES in the environment bounds the messages.
 */
void traffic_run(struct job *job, const struct traffic *t);

/* rail_config.on_message of a job that runs traffic. */
void traffic_on_message(void *user, const struct rail_message *msg);

/* rail_config.on_part of a job whose traffic has parts. */
void traffic_on_part(void *user, struct rail_op *op, uint64_t from, void *part, size_t bytes,
		     bool gather);

extern const struct rail_way traffic_ways[3];	/* single, bind, stripe at 8192 */

#endif
