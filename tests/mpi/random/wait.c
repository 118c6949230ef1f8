/* wait.c - the calls that complete requests. */
#include "programs.h"

enum { REQUESTS = 2 * MESSAGES_MAX + OTHERS_MAX };
static MPI_Request requests[REQUESTS];
static MPI_Status statuses[REQUESTS];

static struct half *half_of(const struct item *item)
{
	struct half *halves[] = {sending, receiving, between};

	return &halves[item->kind][item->index];
}

void item_finish(const struct item *item)
{
	switch (item->kind) {
	case ITEM_SEND:
		send_finish(item->index);
		break;
	case ITEM_RECEIVE:
		receive_finish(item->index);
		break;
	case ITEM_OTHER:
		other_finish(item->index);
	}
}

/* ---- One request ---------------------------------------------------------------------------- */

static void wait_one(enum wait_style style, MPI_Request *q, MPI_Status *st)
{
	const MPI_Request was = *q;
	int flag = 0;

	switch (style) {
	case WAIT_TEST:
		while (!flag)
			DO(MPI_Test(q, &flag, st));
		return;
	case WAIT_GET_STATUS:
		while (!flag)
			DO(MPI_Request_get_status(*q, &flag, st));
		CHECK(*q == was, "MPI_Request_get_status has taken the request");
		/* fallthrough */
	default:
		DO(MPI_Wait(q, st));
	}
}

/* ---- Several ----------------------------------------------------------------------------------
 */

/* The requests that have ended: at least one, or none yet. */
static int some(enum wait_style style, int n, int *index, MPI_Status *st)
{
	int ended = 1, flag = 1;

	switch (style) {
	case WAIT_ANY:
		DO(MPI_Waitany(n, requests, index, st));
		break;
	case WAIT_TESTANY:
		DO(MPI_Testany(n, requests, index, &flag, st));
		ended = flag;
		break;
	case WAIT_SOME:
		DO(MPI_Waitsome(n, requests, &ended, index, st));
		break;
	default:
		DO(MPI_Testsome(n, requests, &ended, index, st));
	}
	CHECK(ended != MPI_UNDEFINED && (!ended || index[0] != MPI_UNDEFINED),
	      "no request is active, they say, while some are");
	return ended;
}

static void wait_by_and_by(enum wait_style style, int n, int active)
{
	static MPI_Status st[REQUESTS];
	static int index[REQUESTS];
	int i, ended;

	while (active) {
		ended = some(style, n, index, st);
		CHECK(ended <= active, "%d requests have ended, of %d", ended, active);
		active -= ended;
		for (i = 0; i < ended; i++)
			statuses[index[i]] = st[i];
	}
}

static void wait_several(enum wait_style style, int n, int active)
{
	int flag = 0;

	switch (style) {
	case WAIT_ALL:
		DO(MPI_Waitall(n, requests, statuses));
		return;
	case WAIT_TESTALL:
		while (!flag)
			DO(MPI_Testall(n, requests, &flag, statuses));
		return;
	default:
		wait_by_and_by(style, n, active);
	}
}

void wait_for(const struct event *e)
{
	const struct item *item = &running->item[e->first];
	int nulls = e->first % 3 == 0, active = 0, i;

	if (e->style < WAIT_ALL) {
		struct half *h = half_of(item);

		wait_one(e->style, &h->q, &h->st);
	} else {
		requests[0] = MPI_REQUEST_NULL;
		for (i = 0; i < e->items; i++) {
			requests[nulls + i] = half_of(&item[i])->q;
			active += requests[nulls + i] != MPI_REQUEST_NULL;
		}
		wait_several(e->style, e->items + nulls, active);
		for (i = 0; i < e->items; i++) {
			half_of(&item[i])->q = requests[nulls + i];
			half_of(&item[i])->st = statuses[nulls + i];
		}
	}
	for (i = 0; i < e->items; i++)
		item_finish(&item[i]);
}
