/* port_match.c - the ports of a host, each with the port of another host that it meets. */
#include <string.h>

#include "rail/open/port_choice.h"

/* Passes: one network and place; one network; routed and one place; routed. */
static bool pairs(const struct choice_port *a, const struct choice_port *b, int pass)
{
	const bool place = !strcmp(a->place, b->place);

	return choice_relation(a, b) >= (pass < 2 ? 2 : 1) && (pass % 2 || place);
}

unsigned choice_nearest(const struct choice_port *port, const struct choice_host *h, uint32_t set)
{
	for (int pass = 0; pass < 4; pass++)
		for (unsigned p = 0; p < h->count; p++)
			if (set >> p & 1 && pairs(port, &h->port[p], pass))
				return p;
	return (unsigned)__builtin_ctz(set);
}

/* Ports of the reference, and those of host h that they meet; of[q]: the other way round. */
struct match {
	const struct choice_host *ref, *h;
	uint32_t ref_set, h_set;
	uint8_t *at, of[CHOICE_PORTS];
	uint32_t seen;			/* ports of h, in this search */
};

static bool may_meet(const struct match *m, unsigned p, unsigned q, int pass)
{
	return m->ref_set >> p & 1 && m->h_set >> q & 1 && !(m->h->port[q].lost >> p & 1) &&
	       pairs(&m->ref->port[p], &m->h->port[q], pass);
}

static void meet(struct match *m, unsigned p, unsigned q)
{
	m->at[p] = (uint8_t)q;
	m->of[q] = (uint8_t)p;
}

/* A port for p, also one whose partner finds another one (Kuhn, Naval Res. Logist. Q. 2, 1955). */
static bool rematch(struct match *m, unsigned p)
{
	for (unsigned q = 0; q < m->h->count; q++) {
		if (m->seen >> q & 1 || !may_meet(m, p, q, 3))
			continue;
		m->seen |= UINT32_C(1) << q;
		if (m->of[q] != CHOICE_NONE && !rematch(m, m->of[q]))
			continue;
		meet(m, p, q);
		return true;
	}
	return false;
}

void choice_match(const struct choice *c, const uint32_t *set, unsigned ref, unsigned h,
		  uint8_t at[CHOICE_PORTS])
{
	struct match m = { .ref = c->host[ref], .h = c->host[h], .ref_set = set[ref], .h_set = set[h],
			   .at = at };

	memset(at, CHOICE_NONE, CHOICE_PORTS);
	memset(m.of, CHOICE_NONE, sizeof(m.of));
	for (int pass = 0; pass < 4; pass++)
		for (unsigned p = 0; p < m.ref->count; p++)
			for (unsigned q = 0; q < m.h->count; q++)
				if (at[p] == CHOICE_NONE && m.of[q] == CHOICE_NONE && may_meet(&m, p, q, pass))
					meet(&m, p, q);
	for (unsigned p = 0; p < m.ref->count; p++) {
		m.seen = 0;
		if (at[p] == CHOICE_NONE)
			rematch(&m, p);
	}
}
