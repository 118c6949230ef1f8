/* staging.h - buffers for payloads that are too long for inline. */
#ifndef RAIL_STAGING_H
#define RAIL_STAGING_H

#include <stdint.h>

#include "rail/rail.h"

struct ibv_mr;

enum { STAGING = 128 };			/* buffers */

struct rail_staging {
	unsigned char *memory;
	uint32_t buffer_bytes;
	struct ibv_mr *mr[RAIL_ALL];	/* index: adapter */
	uint16_t free[STAGING];
	int free_count;
};

/* lane.c.  Make: 0 or -errno after a line; without effect the second time. */
int rail_staging_make(struct rail_ctx *ctx);
void rail_staging_free(struct rail_ctx *ctx);

static inline void rail_staging_put(struct rail_staging *s, uint32_t buffer)
{
	if (buffer < STAGING && s->free_count < STAGING)
		s->free[s->free_count++] = (uint16_t)buffer;
}

#endif
