/* receives.c - draws receives for the messages of a plan, so that all of them get one (programs.h).
 */
#include "programs.h"

#include <string.h>

static struct receive *add(struct plan *p, const struct message *m, struct draw *d)
{
	struct receive *r = &p->receive[p->receives];
	static const enum receive_how hows[] = {
	    RECEIVE_BLOCKING,    RECEIVE_BLOCKING,    RECEIVE_BLOCKING,    RECEIVE_PROBE,
	    RECEIVE_IPROBE,      RECEIVE_MPROBE,      RECEIVE_IMPROBE,     RECEIVE_NONBLOCKING,
	    RECEIVE_NONBLOCKING, RECEIVE_NONBLOCKING, RECEIVE_NONBLOCKING, RECEIVE_NONBLOCKING,
	    RECEIVE_NONBLOCKING, RECEIVE_PERSISTENT,  RECEIVE_PERSISTENT,
	};

	memset(r, 0, sizeof(*r));
	r->chain = r->before = r->message = -1;
	r->comm = m->comm;
	r->to = m->to;
	r->source = m->from;
	r->tag = m->tag;
	r->unit = m->unit;
	r->epoch = m->epoch;
	r->how = hows[draw(d, sizeof(hows) / sizeof(hows[0]))];
	p->receives++;
	return r;
}

/* ---- Receives that name their source ----------------------------------------------------------
 */

/* The first of the list with this source and tag. */
static int first_of(const struct plan *p, const int *list, int n, int from, int tag)
{
	int i;

	for (i = 0; i < n; i++)
		if (p->message[list[i]].from == from &&
		    (tag == MPI_ANY_TAG || p->message[list[i]].tag == tag))
			return i;
	return -1;
}

/* A receive that starts the persistent request of the receive before it again. */
static bool is_again(const struct plan *p, int before, const struct message *m)
{
	const struct receive *r = &p->receive[before < 0 ? 0 : before];

	return before >= 0 && r->how == RECEIVE_PERSISTENT && m->chain >= 0 &&
	       r->message == m->chain && r->tag == m->tag && r->units >= m->units;
}

/* A receive gets the first message that is left and fits its pattern. */
static void named(struct plan *p, int *list, int n, bool any_tag, struct draw *d)
{
	int at, before = -1, left = n;

	while (left) {
		const struct message *m = &p->message[list[draw(d, left < 6 ? (unsigned)left : 6)]];
		int tag = any_tag && draw_chance(d, 40) ? MPI_ANY_TAG : m->tag;
		struct receive *r;
		int index;

		at = first_of(p, list, left, m->from, tag);
		index = list[at];
		m = &p->message[index];
		r = add(p, m, d);
		r->tag = tag;
		r->message = index;
		r->before = before;
		r->units = m->units + (draw_chance(d, 30) ? draw(d, 40) : 0);
		side_draw(d, &r->side, r->unit, r->units * units[r->unit].bytes);
		if (is_again(p, before, m)) {
			*r = p->receive[before];
			r->chain = r->before = before;
			r->message = index;
		}
		before = (int)(r - p->receive);
		p->message[index].receive = before;
		memmove(&list[at], &list[at + 1], (size_t)(left - at - 1) * sizeof(*list));
		left--;
	}
}

/* ---- Receives of a class: narrow patterns first
 * ----------------------------------------------------- */

/* 0: (source, tag), 1: one of them, 2: anything. */
static int breadth(const struct receive *r)
{
	return (r->source == MPI_ANY_SOURCE) + (r->tag == MPI_ANY_TAG);
}

static bool is_within(const struct receive *r, const struct receive *of)
{
	return (of->source == MPI_ANY_SOURCE || of->source == r->source) &&
	       (of->tag == MPI_ANY_TAG || of->tag == r->tag);
}

/* Shuffled, then by breadth. */
static void sort(struct receive *r, int n, struct draw *d)
{
	struct receive t;
	int i, k;

	for (i = n - 1; i > 0; i--) {
		k = (int)draw(d, (unsigned)i + 1);
		t = r[i], r[i] = r[k], r[k] = t;
	}
	for (i = 1; i < n; i++)
		for (k = i; k > 0 && breadth(&r[k - 1]) > breadth(&r[k]); k--)
			t = r[k], r[k] = r[k - 1], r[k - 1] = t;
}

static void wild(struct plan *p, const int *list, int n, int *before, struct draw *d)
{
	unsigned narrow = draw(d, 100), wide = draw(d, 100);
	bool by_tag = draw(d, 2);
	int i, k, first = p->receives;
	size_t most = 0;

	for (i = 0; i < n; i++)
		most = p->message[list[i]].units > most ? p->message[list[i]].units : most;
	for (i = 0; i < n; i++) {
		struct receive *r = add(p, &p->message[list[i]], d);

		if (!draw_chance(d, narrow)) {
			if (by_tag || draw_chance(d, wide))
				r->source = MPI_ANY_SOURCE;
			if (!by_tag || r->source != MPI_ANY_SOURCE || draw_chance(d, wide))
				r->tag = MPI_ANY_TAG;
		}
		r->units = most;
		side_draw(d, &r->side, r->unit, most * units[r->unit].bytes);
	}
	sort(&p->receive[first], n, d);
	for (i = first; i < p->receives; i++) {
		p->receive[i].before = *before;
		*before = i;
		for (k = first; k <= i; k++)
			p->receive[i].ordinal += is_within(&p->receive[k], &p->receive[i]);
	}
}

/* ---- */

static void receives_of(struct plan *p, int comm, int to, struct draw *d)
{
	int list[MESSAGES_MAX], n = 0, i, epoch, before = -1;
	enum style style = p->comm[comm].style;

	for (epoch = 0; epoch < p->epochs; epoch++) {
		for (i = 0; i < p->messages; i++)
			if (p->message[i].comm == comm && p->message[i].to == to &&
			    p->message[i].epoch == epoch)
				list[n++] = i;
		if (style == STYLE_WILD) {
			wild(p, list, n, &before, d);
			n = 0;
		}
	}
	if (style != STYLE_WILD)
		named(p, list, n, style == STYLE_NAMED, d);
}

void plan_receives(struct plan *p, struct draw *d)
{
	int comm, to;

	for (comm = 0; comm < p->comms; comm++)
		for (to = 0; to < p->comm[comm].size; to++)
			receives_of(p, comm, to, d);
}
