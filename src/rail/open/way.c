/* way.c - rail_way_check: the ways that make sense on the rails of a context. */
#include <errno.h>
#include <stdio.h>

#include "rail/policy.h"
#include "rail/rail.h"
#include "rail/message/eager_choice.h"
#include "rail/message/slices.h"
#include "rail/open/rail_ctx.h"
#include "util/text.h"
#include "verbs/vrb.h"

/* Names of all policies, or of the policies that go with rendezvous by both. */
static const char *policies_list(char *list, size_t size, bool both)
{
	*list = '\0';
	for (int p = 0; p < RAIL_POLICIES; p++)
		if (!both || !rail_policies[p].not_both)
			rg_text_add(list, size, "%s%s", *list ? ", " : "", rail_policies[p].name);
	return list;
}

static bool by_both_ends(const struct rail_way *way)
{
	enum rail_slicing slicing;

	return way->rendezvous == RAIL_BY_BOTH || way->rendezvous == RAIL_BY_TURNS || rail_way_slices(way, &slicing);
}

static const char *rendezvous_name(const struct rail_way *way)
{
	return way->rendezvous == RAIL_BY_READ ? "read" :
	       way->rendezvous == RAIL_BY_BOTH ? "both" :
	       way->rendezvous == RAIL_BY_RING ? "ring" :
	       way->rendezvous == RAIL_BY_RING_SHORT ? "ring-short" :
	       way->rendezvous == RAIL_BY_RING_LONG ? "ring-long" : "turns";
}

/*
 * The largest limit of a way.  Rings that processors fill take longer messages than the job's limit, unless
 * the job gives one.
 */
static uint64_t eager_most(const struct rail_ctx *ctx)
{
	const bool wide = ctx->settings.eager == RAIL_AUTO && ctx->eager_max < EAGER_CHOICE_BYTES;

	for (int a = 0; a < ctx->adapter_count && wide; a++)
		if (ctx->adapter[a].copies)
			return EAGER_CHOICE_BYTES;
	return ctx->eager_max;
}

int rail_way_check(const struct rail_ctx *ctx, const struct rail_way *way, char *why,
		   size_t why_size)
{
	const struct rail *last = &ctx->rail[ctx->rail_count - 1];

	const struct rail_policy_row *policy;
	char others[80];

	if ((unsigned)way->policy >= RAIL_POLICIES) {
		snprintf(why, why_size, "policy %u: there is no such policy (accepted: %s)",
			 (unsigned)way->policy, policies_list(others, sizeof(others), false));
		return -EINVAL;
	}
	policy = &rail_policies[way->policy];
	if (policy->names_rail && way->rail >= ctx->rail_count) {
		snprintf(why, why_size, "%s:%d: there is no such rail (accepted: %s:0, "
			 "which is %s, to %s:%d, which is %s)", policy->name, way->rail, policy->name,
			 ctx->rail[0].port->name, policy->name, ctx->rail_count - 1,
			 last->port->name);
		return -EINVAL;
	}
	if (policy->names_rail && way->rail && ctx->narrow) {
		snprintf(why, why_size, "%s:%d: a peer has one of the rails in this job, as the line at its start "
			 "says (accepted: %s, over that rail)", policy->name, way->rail, policy->name);
		return -EINVAL;
	}
	if (way->eager > eager_most(ctx) && way->eager != RAIL_AUTO) {
		snprintf(why, why_size, "eager=%llu: the rails' buffers are not made for that "
			 "(accepted: 0 to %llu%s)",
			 (unsigned long long)way->eager, (unsigned long long)eager_most(ctx),
			 eager_most(ctx) > ctx->eager_max ? "" : ", the job's --eager");
		return -EINVAL;
	}
	if (way->completion == RAIL_BY_CONTROL && policy->not_control) {
		snprintf(why, why_size, "%s: completion=control makes no sense, since %s "
			 "(accepted: completion=immediate)", policy->name, policy->not_control);
		return -EINVAL;
	}
	if (by_both_ends(way) && policy->not_both) {
		snprintf(why, why_size, "rendezvous=%s: not with %s, %s (accepted: %s)",
			 rendezvous_name(way), policy->name, policy->not_both,
			 policies_list(others, sizeof(others), true));
		return -EINVAL;
	}
	if (way->completion == RAIL_BY_CONTROL &&
	    (way->rendezvous == RAIL_BY_READ || by_both_ends(way))) {
		snprintf(why, why_size, "rendezvous=%s: completion=control makes no sense, since "
			 "who reads knows when it is done (accepted: completion=immediate)",
			 rendezvous_name(way));
		return -EINVAL;
	}
	return 0;
}
