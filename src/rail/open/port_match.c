/* port_match.c - the ports of a host, each with the port of another host that it meets. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rail/open/port_choice.h"

/*
 * Passes: one network and place; one network; routed and one place; routed.  Then the same without a
 * partition in common, whose ports are no rail, and have that for a reason.
 */
enum { PASSES = 8, PASS_PATH = 3, PASS_ANY = 7 };

static bool pairs(const struct choice_port *a, const struct choice_port *b, int pass)
{
	const bool place = !strcmp(a->place, b->place);

	return choice_relation(a, b) >= (pass % 4 < 2 ? 2 : 1) && (pass % 2 || place) &&
	       (pass > PASS_PATH || choice_partition(a, b));
}

unsigned choice_nearest(const struct choice_port *port, const struct choice_host *h, uint32_t set)
{
	for (int pass = 0; pass < PASSES; pass++)
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
	uint32_t lost[CHOICE_PORTS];	/* ports of the reference that a port of h does not reach */
	uint32_t seen;			/* ports of h, in this search */
};

static bool may_meet(const struct match *m, unsigned p, unsigned q, int pass)
{
	return m->ref_set >> p & 1 && m->h_set >> q & 1 && !(m->lost[q] >> p & 1) &&
	       pairs(&m->ref->port[p], &m->h->port[q], pass);
}

static void meet(struct match *m, unsigned p, unsigned q)
{
	m->at[p] = (uint8_t)q;
	m->of[q] = (uint8_t)p;
}

/* Ports without a partner meet, in these passes. */
static void meet_in(struct match *m, int first, int last)
{
	for (int pass = first; pass <= last; pass++)
		for (unsigned p = 0; p < m->ref->count; p++)
			for (unsigned q = 0; q < m->h->count; q++)
				if (m->at[p] == CHOICE_NONE && m->of[q] == CHOICE_NONE && may_meet(m, p, q, pass))
					meet(m, p, q);
}

/*
 * A port for p, also one whose partner finds another one (Kuhn, Naval Res. Logist. Q. 2, 1955).  Limited
 * members move no others: of three hosts two would be limited.
 */
static bool rematch(struct match *m, unsigned p)
{
	for (unsigned q = 0; q < m->h->count; q++) {
		if (m->seen >> q & 1 || !may_meet(m, p, q, PASS_PATH) ||
		    choice_partition(&m->ref->port[p], &m->h->port[q]) < 2)
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
	for (unsigned q = 0; q < m.h->count; q++)
		m.lost[q] = choice_lost_to(c, h, q, ref);
	meet_in(&m, 0, PASS_PATH);
	for (unsigned p = 0; p < m.ref->count; p++) {
		m.seen = 0;
		if (at[p] == CHOICE_NONE)
			rematch(&m, p);
	}
	meet_in(&m, PASS_PATH + 1, PASS_ANY);
}

/* ---- Losses between any hosts ------------------------------------------------------- */

enum {
	STEPS_MOST = 100 * 1000,	/* a search's */
	CELLS_MOST = 4096,		/* rails x hosts of a search through all */
};

/* Rail by rail each host with losses gets a port, until all that can be has been tried. */
struct search {
	const struct choice *c;
	const uint32_t *set;
	unsigned ref, hosts, rails;
	uint8_t (*at)[CHOICE_PORTS];	/* choice_untangle */
	struct choice_pair *pair;
	unsigned *host;			/* [hosts] */
	uint8_t (*first)[CHOICE_PORTS];	/* [hosts]: what choice_match has found */
	uint32_t *used;			/* [hosts]: its ports in use */
	uint8_t rail[CHOICE_PORTS];	/* [rails]: ports of the reference */
	uint32_t out;			/* rails without such ports, as ports of the reference */
	unsigned may_leave;		/* so many more may be */
	bool single;			/* each rail by itself */
	bool strict;			/* no port but the first */
	int steps;
};

/* Has the host losses to others; to others than the reference? */
static bool loses(const struct choice *c, unsigned h, unsigned but)
{
	for (unsigned q = 0; q < c->host[h]->count; q++) {
		size_t count;
		const struct choice_loss *loss = choice_losses_of(c, h, q, &count);

		for (size_t i = 0; i < count; i++)
			if (loss[i].b != but)
				return true;
	}
	return false;
}

/* Port q reaches all ports that rail p has until now. */
static bool reaches(const struct search *s, unsigned h, unsigned q, unsigned p)
{
	size_t count;
	const struct choice_loss *loss = choice_losses_of(s->c, h, q, &count);

	for (size_t i = 0; i < count; i++) {
		const uint8_t there = loss[i].b == s->ref ? (uint8_t)p : s->at[loss[i].b][p];

		if (there == CHOICE_NONE || !(loss[i].ports >> there & 1))
			continue;
		if (s->pair[p].a == s->pair[p].b)
			s->pair[p] = (struct choice_pair){ loss[i].b, h, there, (uint8_t)q };
		return false;
	}
	return true;
}

static bool fits(const struct search *s, unsigned k, unsigned q, unsigned p)
{
	const unsigned h = s->host[k];

	return q < s->c->host[h]->count && s->set[h] >> q & 1 && !(s->used[k] >> q & 1) &&
	       pairs(&s->c->host[s->ref]->port[p], &s->c->host[h]->port[q],
		     q == s->first[k][p] ? PASS_ANY : PASS_PATH) && reaches(s, h, q, p);
}

static bool place_rails(struct search *s, unsigned r);

/* Ports of rail r on host k and those after it, then the rails after it. */
static bool place(struct search *s, unsigned r, unsigned k)
{
	const unsigned p = s->rail[r];
	unsigned h;

	if (k == s->hosts)
		return s->single || place_rails(s, r + 1);
	h = s->host[k];
	for (unsigned i = 0; i <= (s->strict ? 0 : s->c->host[h]->count); i++) {
		const unsigned q = i ? i - 1 : s->first[k][p];

		if ((i && q == s->first[k][p]) || !fits(s, k, q, p))
			continue;
		if (s->steps-- <= 0)
			return false;
		s->at[h][p] = (uint8_t)q;
		s->used[k] |= UINT32_C(1) << q;
		if (place(s, r, k + 1))
			return true;
		s->at[h][p] = CHOICE_NONE;
		s->used[k] &= ~(UINT32_C(1) << q);
	}
	return false;
}

static bool place_rails(struct search *s, unsigned r)
{
	if (r == s->rails || place(s, r, 0))
		return true;
	if (!s->may_leave)
		return false;
	s->may_leave--;
	s->out |= UINT32_C(1) << s->rail[r];
	if (place_rails(s, r + 1))
		return true;
	s->may_leave++;
	s->out &= ~(UINT32_C(1) << s->rail[r]);
	return false;
}

/* At least so many rails are left out, as few as can be; the ports of choice_match come first. */
static bool search_all(struct search *s, unsigned least)
{
	for (unsigned leave = least; leave < s->rails && s->rails * s->hosts <= CELLS_MOST; leave++)
		for (int strict = 1; strict >= 0; strict--) {
			s->strict = strict;
			s->steps = STEPS_MOST;
			s->may_leave = leave;
			if (place_rails(s, 0))
				return true;
		}
	s->strict = false;
	return false;
}

/* Steps are each rail's own: one that cannot be takes none of the next one's. */
static void search_each(struct search *s)
{
	s->single = true;
	for (unsigned r = 0; r < s->rails; r++) {
		s->steps = STEPS_MOST;
		if (!place(s, r, 0))
			s->out |= UINT32_C(1) << s->rail[r];
	}
}

/* The hosts with losses to others than `but`, without their ports. */
static void search_begin(struct search *s, uint32_t rails, unsigned but)
{
	s->hosts = s->rails = 0;
	for (unsigned p = 0; p < CHOICE_PORTS; p++)
		if (rails >> p & 1)
			s->rail[s->rails++] = (uint8_t)p;
	for (unsigned h = 0; h < s->c->hosts; h++) {
		if (h == s->ref || !loses(s->c, h, but))
			continue;
		memcpy(s->first[s->hosts], s->at[h], sizeof(*s->first));
		memset(s->at[h], CHOICE_NONE, sizeof(s->at[h]));
		s->used[s->hosts] = 0;
		s->host[s->hosts++] = h;
	}
}

/* Ports of choice_match come back: of all rails before the next search, of those left out at the end. */
static void search_restore(struct search *s, uint32_t rails)
{
	for (unsigned k = 0; k < s->hosts; k++)
		for (unsigned p = 0; p < CHOICE_PORTS; p++)
			if (rails >> p & 1)
				s->at[s->host[k]][p] = s->first[k][p];
}

/* Ports that the reference does not have are met by none. */
static uint32_t matched(const uint8_t at[CHOICE_PORTS])
{
	uint32_t met = 0;

	for (unsigned p = 0; p < CHOICE_PORTS; p++)
		met |= (uint32_t)(at[p] != CHOICE_NONE) << p;
	return met;
}

/* The number of rails that each host with losses has by itself. */
static unsigned rails_bound(const struct search *s)
{
	unsigned bound = s->rails;

	for (unsigned k = 0; k < s->hosts; k++) {
		const unsigned n = (unsigned)__builtin_popcount(matched(s->first[k]));

		bound = n < bound ? n : bound;
	}
	return bound;
}

static uint32_t untangle(struct search *s, uint32_t met)
{
	uint32_t rails = s->set[s->ref];

	for (unsigned h = 0; h < s->c->hosts; h++)
		if (!loses(s->c, h, s->c->hosts))
			rails &= matched(s->at[h]);
	search_begin(s, rails, s->c->hosts);
	if (search_all(s, s->rails - rails_bound(s))) {
		met = rails & ~s->out;
	} else {
		search_restore(s, rails);
		search_begin(s, met, s->ref);
		search_each(s);
		met &= ~s->out;
	}
	search_restore(s, s->out);
	return met;
}

int choice_untangle(const struct choice *c, const uint32_t *set, unsigned ref, uint32_t *met,
		    uint8_t (*at)[CHOICE_PORTS], struct choice_pair pair[CHOICE_PORTS])
{
	struct search s = { .c = c, .set = set, .ref = ref, .at = at, .pair = pair };
	int rc = 0;

	if (!c->lost || !c->lost->count)
		return 0;
	s.host = calloc(c->hosts, sizeof(*s.host));
	s.first = calloc(c->hosts, sizeof(*s.first));
	s.used = calloc(c->hosts, sizeof(*s.used));
	if (s.host && s.first && s.used)
		*met = untangle(&s, *met);
	else
		rc = -ENOMEM;
	free(s.host);
	free(s.first);
	free(s.used);
	return rc;
}
