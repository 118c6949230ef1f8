/* way.c - ways of messages: which ones make sense on the rails of a context. */
#include <errno.h>
#include <stdio.h>

#include "rail.h"
#include "rail_ctx.h"
#include "vrb.h"

int rail_way_check(const struct rail_ctx *ctx, const struct rail_way *way, char *why,
		   size_t why_size)
{
	const struct rail *last = &ctx->rail[ctx->rail_count - 1];

	if (way->policy == RAIL_SINGLE && way->rail >= ctx->rail_count) {
		snprintf(why, why_size, "single:%d: there is no such rail (accepted: single:0, "
			 "which is %s, to single:%d, which is %s)", way->rail,
			 ctx->rail[0].port->name, ctx->rail_count - 1, last->port->name);
		return -EINVAL;
	}
	if (way->eager > ctx->eager_max) {
		snprintf(why, why_size, "eager=%llu: the rails' buffers are not made for that "
			 "(accepted: 0 to %llu, the job's --eager)",
			 (unsigned long long)way->eager, (unsigned long long)ctx->eager_max);
		return -EINVAL;
	}
	if (way->completion == RAIL_BY_CONTROL && way->policy == RAIL_PULL) {
		snprintf(why, why_size, "pull: completion=control makes no sense, since no rail "
			 "knows which of its chunks is the last (accepted: completion=imm)");
		return -EINVAL;
	}
	if (way->rendezvous == RAIL_BY_BOTH &&
	    (way->policy == RAIL_WEIGHTED || way->policy == RAIL_PULL)) {
		snprintf(why, why_size, "rendezvous=both: not with %s, whose rails are measured at "
			 "one end (accepted: single, bind, stripe)",
			 way->policy == RAIL_PULL ? "pull" : "weighted");
		return -EINVAL;
	}
	if (way->completion == RAIL_BY_CONTROL &&
	    (way->rendezvous == RAIL_BY_READ || way->rendezvous == RAIL_BY_BOTH)) {
		snprintf(why, why_size, "rendezvous=%s: completion=control makes no sense, since "
			 "who reads knows when it is done (accepted: completion=imm)",
			 way->rendezvous == RAIL_BY_READ ? "read" : "both");
		return -EINVAL;
	}
	return 0;
}
