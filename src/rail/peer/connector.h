/* connector.h - the datagram queue pairs that make connections, and their memory. */
#ifndef RAIL_CONNECTOR_H
#define RAIL_CONNECTOR_H

#include <stdint.h>

#include "verbs/vrb.h"

struct rail_ctx;

enum {
	RAIL_CONNECTOR_RECEIVES = 128,
	RAIL_CONNECTOR_SENDS = 32,
	RAIL_DATAGRAM_BYTES = 1024,	/* nearly every port's MTU */
};

struct rail_connector {
	struct rail_ctx *ctx;
	struct vrb_adapter *adapter;
	const struct vrb_port *port;
	struct vrb_ud ud;
	unsigned char *memory;
	struct ibv_mr *mr;
	uint32_t free[RAIL_CONNECTOR_SENDS];	/* datagrams to send from */
	int free_count;
};

/* ctx->connector[which], on a port of a rail, for datagrams of `least` bytes: 0 or -errno, with a line. */
int rail_connector_open(struct rail_ctx *ctx, int which, int rail, uint32_t least);
void rail_connector_close(struct rail_connector *c);	/* or NULL */
/* Datagram `which`: a receive, or from RAIL_CONNECTOR_RECEIVES on one to send. */
unsigned char *rail_connector_datagram(const struct rail_connector *c, uint64_t which);
int rail_connector_receive(struct rail_connector *c, uint64_t which);	/* post the receive again */

#endif
