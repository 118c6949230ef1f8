/* run.c - the order of events: rounds, suspects, cells alone, the verdict. */
#include "accept/state.h"

#include <errno.h>

static int rounds_run(struct accept *a, const struct accept_ops *ops, void *user)
{
	int rc = 0;

	for (int round = 0; round < accept_rounds(&a->shape) && !rc; round++) {
		int pairs = accept_round_make(a, round);

		if (pairs)
			rc = ops->round(user, round, a->pair, pairs);
		accept_leave(a);
	}
	return rc;
}

int accept_run(struct accept *a, const struct accept_ops *ops, void *user)
{
	int rc = rounds_run(a, ops, user);

	if (rc)
		return rc;
	accept_fit(a);
	accept_suspects(a);
	accept_leaves(a);
	rc = accept_checks(a, ops, user);
	if (!rc)
		rc = accept_again(a, ops, user);
	if (rc)
		return rc;
	accept_verdict(a);
	return a->out_of_memory ? -ENOMEM : 0;
}
