/* lane_stage.h - the request for an eager message of two parts: inline, or from a staging buffer. */
#ifndef RAIL_LANE_STAGE_H
#define RAIL_LANE_STAGE_H

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "rail/lane/eager_lane.h"
#include "rail/lane/staging.h"
#include "rail/open/rail_ctx.h"
#include "util/compiler.h"
#include "util/copy.h"
#include "verbs/vrb.h"

struct lane_part {
	const void *bytes;
	size_t count;
};

/*
 * Fill tx->wr[0].  The second part may be empty.  Returns the number of the staging buffer, STAGING if
 * the adapter takes both parts inline, or -EAGAIN.
 */
static inline int lane_stage(struct rail_tx *tx, struct lane_part a, struct lane_part b)
{
	struct rail_staging *s = &tx->lane->ctx->staging;
	struct ibv_send_wr *wr = &tx->wr[0];
	unsigned char *buffer;
	int which;

	if (likely(a.count + b.count <= tx->lane->qp.granted.inline_bytes)) {
		tx->sge[0] = (struct ibv_sge){ .addr = (uintptr_t)a.bytes,
					       .length = (uint32_t)a.count };
		tx->sge[1] = (struct ibv_sge){ .addr = (uintptr_t)b.bytes,
					       .length = (uint32_t)b.count };
		wr->num_sge = b.count ? 2 : 1;
		wr->send_flags = IBV_SEND_INLINE;
		return STAGING;
	}
	if (!s->free_count)
		return -EAGAIN;
	which = s->free[--s->free_count];
	buffer = s->memory + (size_t)which * s->buffer_bytes;
	rg_copy_blocks(buffer, a.bytes, a.count);
	rg_copy_blocks(buffer + a.count, b.bytes, b.count);
	tx->sge[0] = (struct ibv_sge){
		.addr = (uintptr_t)buffer,
		.length = (uint32_t)(a.count + b.count),
		.lkey = s->mr[tx->lane->ctx->rail[tx->lane->rail].adapter]->lkey,
	};
	wr->num_sge = 1;
	wr->send_flags = 0;
	return which;
}

#endif
