/* port_set.c - sets of ports: what takes part of each host's ports. */
#include <string.h>

#include "rail/open/port_set.h"

static bool scope_is(const struct choice_port *p, bool link_local)
{
	for (unsigned i = 0; i < p->tables.gids; i++)
		if (!p->tables.gid[i].dead &&
		    (vrb_gid_scope(p->tables.gid[i].raw) == VRB_GID_LINK_LOCAL) == link_local)
			return true;
	return false;
}

static bool has_path(const struct choice_port *p)
{
	return scope_is(p, true) || scope_is(p, false);
}

enum choice_why choice_usable(const struct choice_port *p, uint8_t link_layer)
{
	if (!p->usable)
		return CHOICE_TRANSPORT;
	if (p->state != IBV_PORT_ACTIVE)
		return CHOICE_STATE;
	if (p->link_layer != link_layer)
		return CHOICE_LINK_LAYER;
	return has_path(p) ? CHOICE_USED : CHOICE_NO_GID;
}

static void leave_set(struct trial *t, unsigned h, unsigned p, enum choice_why why, unsigned other)
{
	t->set[h] &= ~(UINT32_C(1) << p);
	choice_leave(t->c, h, p, why, other);
}

/* ---- One host's ports -------------------------------------------------------- */

static void host_usable(struct trial *t, unsigned h)
{
	t->set[h] = 0;
	for (unsigned p = 0; p < t->c->host[h]->count; p++) {
		enum choice_why why = choice_usable(trial_port(t, h, p), t->link_layer);

		if (t->barred[h] >> p & 1)
			continue;
		choice_leave(t->c, h, p, why, h);
		t->set[h] |= (uint32_t)(why == CHOICE_USED) << p;
	}
}

static void host_scope(struct trial *t, unsigned h)
{
	bool others = false;

	for (unsigned p = 0; p < t->c->host[h]->count; p++)
		others |= trial_has(t, h, p) && scope_is(trial_port(t, h, p), false);
	for (unsigned p = 0; others && p < t->c->host[h]->count; p++)
		if (trial_has(t, h, p) && !scope_is(trial_port(t, h, p), false))
			leave_set(t, h, p, CHOICE_LINK_LOCAL, h);
}

static void host_slow(struct trial *t, unsigned h)
{
	unsigned best = 0;

	for (unsigned p = 0; p < t->c->host[h]->count; p++)
		if (trial_has(t, h, p) && (!trial_has(t, h, best) || trial_port(t, h, p)->rate > trial_port(t, h, best)->rate))
			best = p;
	for (unsigned p = 0; p < t->c->host[h]->count; p++) {
		const uint64_t rate = trial_port(t, h, p)->rate;

		if (!trial_has(t, h, p) || !rate || rate >= trial_port(t, h, best)->rate / CHOICE_SLOWEST)
			continue;
		leave_set(t, h, p, CHOICE_SLOW, h);
		t->c->left[h][p].other = (uint8_t)best;
	}
}

static unsigned of_rate(const struct trial *t, unsigned h, uint64_t rate)
{
	unsigned n = 0;

	for (unsigned p = 0; p < t->c->host[h]->count; p++)
		n += trial_has(t, h, p) && trial_port(t, h, p)->rate == rate;
	return n;
}

/* The rate of most ports, of hosts `from` to `to`, all of which have it; the higher of two. */
static uint64_t most_rate(const struct trial *t, unsigned from, unsigned to)
{
	uint64_t best = UINT64_MAX;
	unsigned most = 0;

	for (unsigned p = 0; p < t->c->host[from]->count; p++) {
		const uint64_t rate = trial_port(t, from, p)->rate;
		unsigned n = UINT32_MAX;

		for (unsigned h = from; h < to; h++) {
			unsigned here = of_rate(t, h, rate);

			n = here < n ? here : n;
		}
		if (trial_has(t, from, p) && n && (n > most || (n == most && rate > best))) {
			best = rate;
			most = n;
		}
	}
	return best;
}

/* Hosts of several generations have no rate in common: each one's own then. */
static void one_rate(struct trial *t)
{
	const uint64_t common = most_rate(t, 0, t->c->hosts);

	for (unsigned h = 0; h < t->c->hosts; h++) {
		const uint64_t rate = common != UINT64_MAX ? common : most_rate(t, h, h + 1);

		for (unsigned p = 0; p < t->c->host[h]->count; p++)
			if (trial_has(t, h, p) && trial_port(t, h, p)->rate != rate)
				leave_set(t, h, p, CHOICE_RATE, h);
	}
}

/* ---- InfiniBand prefixes ------------------------------------------------------- */

static bool same_prefix(const struct choice_port *a, const struct choice_port *b)
{
	return memcmp(a->tables.gid[0].raw, b->tables.gid[0].raw, 8) == 0;
}

/* Ports of that prefix that each host has at least. */
static unsigned of_prefix(const struct trial *t, const struct choice_port *as)
{
	unsigned least = UINT32_MAX;

	for (unsigned h = 0; h < t->c->hosts; h++) {
		unsigned n = 0;

		for (unsigned p = 0; p < t->c->host[h]->count; p++)
			n += trial_has(t, h, p) && same_prefix(trial_port(t, h, p), as);
		least = n < least ? n : least;
	}
	return least;
}

static void one_prefix(struct trial *t)
{
	unsigned most = 0;

	for (unsigned p = 0; p < t->c->host[0]->count; p++) {
		unsigned n = trial_has(t, 0, p) ? of_prefix(t, trial_port(t, 0, p)) : 0;

		most = n > most ? n : most;
	}
	for (unsigned p = 0; most && p < t->c->host[0]->count; p++) {
		const struct choice_port *as = trial_port(t, 0, p);
		unsigned n = trial_has(t, 0, p) ? of_prefix(t, as) : most;

		if (n == most || !n)
			continue;
		for (unsigned h = 0; h < t->c->hosts; h++)
			for (unsigned q = 0; q < t->c->host[h]->count; q++)
				if (trial_has(t, h, q) && same_prefix(trial_port(t, h, q), as) && (h || q != p))
					leave_set(t, h, q, CHOICE_PREFIX, h);
		leave_set(t, 0, p, CHOICE_PREFIX, 0);
	}
}

void trial_sets(struct trial *t)
{
	for (unsigned h = 0; h < t->c->hosts; h++) {
		host_usable(t, h);
		host_scope(t, h);
		host_slow(t, h);
	}
	one_rate(t);
	if (t->link_layer == IBV_LINK_LAYER_INFINIBAND)
		one_prefix(t);
}
