/* port_choice.c - ports of all hosts in, rails out. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rail/open/port_set.h"

static unsigned ports_in(uint32_t set)
{
	return (unsigned)__builtin_popcount(set);
}

/* ---- Pairs ----------------------------------------------------------------------- */

/* The host with fewest ports, by whose ports the rails are counted. */
static unsigned reference(const struct trial *t)
{
	unsigned least = 0;

	for (unsigned h = 1; h < t->c->hosts; h++)
		if (ports_in(t->set[h]) < ports_in(t->set[least]))
			least = h;
	return least;
}

/* Ports of the same card that come before this one. */
static unsigned turn_of(const struct trial *t, unsigned h, unsigned p)
{
	const uint64_t card = trial_port(t, h, p)->card;
	unsigned n = 0;

	for (unsigned q = 0; card && q < p; q++)
		n += trial_has(t, h, q) && trial_port(t, h, q)->card == card;
	return n;
}

/* First ports of cards come first where not all fit. */
static uint32_t most_that_fit(const struct trial *t, unsigned h, uint32_t set)
{
	uint32_t taken = 0;

	for (unsigned turn = 0; turn < CHOICE_PORTS; turn++)
		for (unsigned p = 0; p < t->c->host[h]->count; p++)
			if (set >> p & 1 && turn_of(t, h, p) == turn && ports_in(taken) < RAIL_MAX)
				taken |= UINT32_C(1) << p;
	return taken;
}

/* The ports of a rail, which must have GIDs and a P_Key in common. */
static void rail_add(struct trial *t, unsigned p, uint8_t (*at)[CHOICE_PORTS])
{
	struct choice *c = t->c;
	const unsigned rail = c->rails;
	enum choice_why why = CHOICE_USED;
	struct choice_pair without = { 0 };

	for (unsigned h = 0; h < c->hosts; h++)
		c->end[h][rail].port = at[h][p];
	if (!choice_gids(c, rail, &without))
		why = CHOICE_NO_PATH;
	else if (!choice_pkeys(c, rail))
		why = choice_pkeys_why(c, rail, &without);
	for (unsigned h = 0; h < c->hosts; h++) {
		choice_leave(c, h, at[h][p], why, h);
		c->left[h][at[h][p]].pair = without;
	}
	c->rails += why == CHOICE_USED;
}

static void leave_lost(struct choice *c, unsigned h, unsigned p, const struct choice_pair *pair)
{
	choice_leave(c, h, p, CHOICE_LOST, pair->a == h ? pair->b : pair->a);
	c->left[h][p].pair = *pair;
}

/* The port of a host, of those in lost, that port p of host h would meet first. */
static uint8_t nearest(struct trial *t, unsigned h, unsigned p, unsigned to, uint32_t lost)
{
	return (uint8_t)choice_nearest(trial_port(t, h, p), t->c->host[to], lost);
}

/* Port p of the reference is without a port of host h: is that since what it sends there is lost? */
static void leave_alone(struct trial *t, unsigned ref, unsigned p, unsigned h)
{
	const uint32_t lost = choice_lost_to(t->c, ref, p, h) & t->set[h];

	choice_leave(t->c, ref, p, CHOICE_ALONE, h);
	if (lost)
		leave_lost(t->c, ref, p, &(struct choice_pair){ ref, h, (uint8_t)p, nearest(t, ref, p, h, lost) });
}

/* The same of a port of another host; one that is met is a rail's later. */
static void leave_unmet(struct trial *t, unsigned ref, unsigned h, unsigned q)
{
	const uint32_t lost = choice_lost_to(t->c, h, q, ref);

	choice_leave(t->c, h, q, CHOICE_ALONE, ref);
	if (lost)
		leave_lost(t->c, h, q, &(struct choice_pair){ h, ref, (uint8_t)q, nearest(t, h, q, ref, lost) });
}

/* The ports of the reference that a port of each host meets. */
static uint32_t met_by_all(struct trial *t, unsigned ref, uint8_t (*at)[CHOICE_PORTS])
{
	uint32_t met = t->set[ref];

	for (unsigned h = 0; h < t->c->hosts; h++)
		choice_match(t->c, t->set, ref, h, at[h]);
	for (unsigned p = 0; p < t->c->host[ref]->count; p++)
		for (unsigned h = 0; h < t->c->hosts; h++)
			if (trial_has(t, ref, p) && at[h][p] == CHOICE_NONE && met >> p & 1) {
				met &= ~(UINT32_C(1) << p);
				leave_alone(t, ref, p, h);
			}
	return met;
}

/* The ports of rails that a loss rules out have the same reason at all hosts. */
static void leave_tangled(struct trial *t, unsigned ref, uint32_t out, uint8_t (*at)[CHOICE_PORTS],
			  const struct choice_pair *pair)
{
	for (unsigned p = 0; p < t->c->host[ref]->count; p++)
		for (unsigned h = 0; out >> p & 1 && h < t->c->hosts; h++)
			if (pair[p].a != pair[p].b)
				leave_lost(t->c, h, at[h][p], &pair[p]);
			else
				choice_leave(t->c, h, at[h][p], CHOICE_ALONE, h == ref ? !ref : ref);
}

/* Where not all fit, those that have no GIDs or no P_Key in common take the place of none. */
static uint32_t that_join(struct trial *t, unsigned ref, uint32_t met, uint8_t (*at)[CHOICE_PORTS])
{
	const uint32_t all = met;

	for (unsigned p = 0; p < t->c->host[ref]->count && ports_in(all) > RAIL_MAX; p++) {
		if (!(all >> p & 1))
			continue;
		rail_add(t, p, at);
		if (!t->c->rails)
			met &= ~(UINT32_C(1) << p);
		t->c->rails = 0;
	}
	return met;
}

static void rails_add(struct trial *t, unsigned ref, uint32_t all, uint8_t (*at)[CHOICE_PORTS])
{
	struct choice *c = t->c;
	const uint32_t met = that_join(t, ref, all, at), taken = most_that_fit(t, ref, met);

	for (unsigned p = 0; p < c->host[ref]->count; p++)
		for (unsigned h = 0; met & ~taken & UINT32_C(1) << p && h < c->hosts; h++)
			choice_leave(c, h, at[h][p], CHOICE_MANY, h);
	for (unsigned p = 0; p < c->host[ref]->count; p++)
		if (taken >> p & 1)
			rail_add(t, p, at);
}

static int rails_make(struct trial *t)
{
	struct choice *c = t->c;
	const unsigned ref = reference(t);
	uint8_t (*at)[CHOICE_PORTS] = calloc(c->hosts, sizeof(*at));
	struct choice_pair pair[CHOICE_PORTS] = { 0 };
	uint32_t all, met;
	int rc;

	if (!at)
		return -ENOMEM;
	c->ref = ref;
	all = met = met_by_all(t, ref, at);
	rc = choice_untangle(c, t->set, ref, &met, at, pair);
	for (unsigned h = 0; h < c->hosts; h++)
		for (unsigned q = 0; q < c->host[h]->count; q++)
			if (trial_has(t, h, q) && h != ref)
				leave_unmet(t, ref, h, q);
	leave_tangled(t, ref, all & ~met, at, pair);
	if (!rc)
		rails_add(t, ref, met, at);
	free(at);
	return rc;
}

/* ---- --rails all ------------------------------------------------------------------- */

static int trial_set(struct trial *t)
{
	t->c->rails = 0;
	trial_sets(t);
	return rails_make(t);
}

/* The ports of the set that was tried are out of the next one. */
static bool trial_bar(struct trial *t)
{
	bool any = false;

	for (unsigned h = 0; h < t->c->hosts; h++) {
		any |= t->set[h] != 0;
		t->barred[h] |= t->set[h];
	}
	return any;
}

static int trial_run(struct choice *c, uint8_t link_layer)
{
	struct trial t = { .c = c, .link_layer = link_layer };
	int rc = -ENOMEM;

	t.set = calloc(c->hosts, sizeof(*t.set));
	t.barred = calloc(c->hosts, sizeof(*t.barred));
	if (t.set && t.barred)
		do
			rc = trial_set(&t);
		while (!rc && !c->rails && trial_bar(&t));
	free(t.set);
	free(t.barred);
	return rc;
}

/* The lowest rate at the ends of the fastest rail. */
static uint64_t rate_of(const struct choice *c)
{
	uint64_t best = 0;

	for (unsigned r = 0; r < c->rails; r++) {
		uint64_t least = UINT64_MAX;

		for (unsigned h = 0; h < c->hosts; h++) {
			const uint64_t rate = c->host[h]->port[c->end[h][r].port].rate;

			least = rate < least ? rate : least;
		}
		best = least > best ? least : best;
	}
	return best;
}

/* Ports of the link layer that were looked at. */
static unsigned ports_tried(const struct choice *c)
{
	unsigned n = 0;

	for (unsigned h = 0; h < c->hosts; h++)
		for (unsigned p = 0; p < c->host[h]->count; p++)
			n += c->left[h][p].why != CHOICE_LINK_LAYER && c->left[h][p].why != CHOICE_STATE &&
			     c->left[h][p].why != CHOICE_TRANSPORT;
	return n;
}

static bool is_better(const struct choice *a, const struct choice *b)
{
	const uint64_t rate_a = rate_of(a), rate_b = rate_of(b);

	if (!a->rails && !b->rails)
		return ports_tried(a) > ports_tried(b);
	if (!a->rails || !b->rails)
		return a->rails > b->rails;
	if (rate_a && rate_b && rate_a < rate_b / CHOICE_SLOWEST)
		return false;
	if (rate_a && rate_b && rate_b < rate_a / CHOICE_SLOWEST)
		return true;
	return a->rails != b->rails ? a->rails > b->rails : rate_a > rate_b;
}

static int tables_make(struct choice *c, const struct choice_host *const *host, unsigned hosts,
		       const struct choice_losses *lost)
{
	*c = (struct choice){ .host = host, .hosts = hosts, .lost = lost };
	c->end = calloc(hosts, sizeof(*c->end));
	c->left = calloc(hosts, sizeof(*c->left));
	return c->end && c->left ? 0 : -ENOMEM;
}

static int choose_all(struct choice *c)
{
	struct choice other;
	int rc = tables_make(&other, c->host, c->hosts, c->lost);

	if (!rc)
		rc = trial_run(c, IBV_LINK_LAYER_INFINIBAND);
	if (!rc)
		rc = trial_run(&other, IBV_LINK_LAYER_ETHERNET);
	if (!rc && is_better(&other, c)) {
		struct choice best = other;

		other = *c;
		*c = best;
	}
	choice_free(&other);
	return rc;
}

/* ---- Named ports --------------------------------------------------------------------- */

/* The first host whose ports are named; all are alike in number. */
static int named_count(struct choice *c, unsigned *ref)
{
	*ref = c->hosts;
	for (unsigned h = 0; h < c->hosts; h++) {
		if (!c->host[h]->named)
			continue;
		if (*ref == c->hosts)
			*ref = h;
		if (c->host[h]->count == c->host[*ref]->count)
			continue;
		snprintf(c->why, sizeof(c->why), "--rails names %u port%s on %s, %u on %s (accepted: as many on "
			 "each host, or all)", c->host[*ref]->count, c->host[*ref]->count == 1 ? "" : "s",
			 c->host[*ref]->name, c->host[h]->count, c->host[h]->name);
		return -EINVAL;
	}
	return 0;
}

static void set_all(struct trial *t, unsigned ref)
{
	for (unsigned h = 0; h < t->c->hosts; h++) {
		t->set[h] = 0;
		for (unsigned p = 0; p < t->c->host[h]->count; p++) {
			const struct choice_port *port = trial_port(t, h, p);
			enum choice_why why = choice_usable(port, port->link_layer);

			/* The reason against a named port is told as the rail's own error. */
			t->set[h] |= (uint32_t)(h == ref || why == CHOICE_USED || t->c->host[h]->named) << p;
			choice_leave(t->c, h, p, CHOICE_STATE, h);
		}
	}
}

/* The ends of a rail that do not meet; a CHOICE_PARTITIONS has none. */
static int named_fails(struct choice *c, unsigned rail, const struct choice_pair *pair, enum choice_why why)
{
	const struct choice_host *a = c->host[pair->a], *b = c->host[pair->b];
	const struct choice_port *port = &a->port[pair->port_a];
	const bool infiniband = port->link_layer != IBV_LINK_LAYER_ETHERNET;

	if (why == CHOICE_PARTITIONS)
		snprintf(c->why, sizeof(c->why), "rail %u: no partition key that all hosts have, with a full member at "
			 "one end of each pair (accepted: --pkey KEY of a partition of all)", rail);
	else
		snprintf(c->why, sizeof(c->why), why == CHOICE_PARTITION ?
			 "rail %u (%s of %s) and host %s have no partition key in common with a full member at one end "
			 "of each pair (accepted: --pkey KEY of a partition of both)" :
			 infiniband ?
			 "rail %u (%s of %s) is on another subnet than host %s, whose prefix only a router's LID leads "
			 "to: order the ports by --rails so that rail i meets rail i" :
			 "rail %u (%s of %s) is on another subnet than host %s: order the ports by --rails so that rail "
			 "i meets rail i", rail, port->name, a->name, b->name);
	return -ENETUNREACH;
}

/* A neighbour at another place of a host's list: the names are in disorder. */
static bool in_disorder(const struct choice *c, unsigned ref, unsigned p, unsigned h)
{
	const struct choice_port *port = &c->host[ref]->port[p];

	if (!c->host[h]->named || choice_relation(port, &c->host[h]->port[p]) == 2)
		return false;
	for (unsigned q = 0; q < c->host[h]->count; q++)
		if (q != p && choice_relation(port, &c->host[h]->port[q]) == 2)
			return true;
	return false;
}

static int named_rails(struct trial *t, unsigned ref, uint8_t (*at)[CHOICE_PORTS])
{
	struct choice *c = t->c;

	for (unsigned h = 0; h < c->hosts; h++) {
		choice_match(t->c, t->set, ref, h, at[h]);
		for (unsigned p = 0; c->host[h]->named && p < c->host[ref]->count; p++)
			at[h][p] = (uint8_t)p;
	}
	for (unsigned p = 0; p < c->host[ref]->count; p++) {
		for (unsigned h = 0; h < c->hosts; h++)
			if (at[h][p] == CHOICE_NONE || in_disorder(c, ref, p, h))
				return named_fails(c, p, &(struct choice_pair){ ref, h, (uint8_t)p, at[h][p] },
						   CHOICE_NO_PATH);
		rail_add(t, p, at);
		if (c->rails <= p)
			return named_fails(c, p, &c->left[ref][p].pair, (enum choice_why)c->left[ref][p].why);
	}
	return 0;
}

static int choose_named(struct choice *c, unsigned ref)
{
	struct trial t = { .c = c };
	uint8_t (*at)[CHOICE_PORTS] = calloc(c->hosts, sizeof(*at));
	int rc = -ENOMEM;

	t.set = calloc(c->hosts, sizeof(*t.set));
	if (at && t.set) {
		set_all(&t, ref);
		rc = named_rails(&t, ref, at);
	}
	free(t.set);
	free(at);
	return rc;
}

int choice_make(struct choice *c, const struct choice_host *const *host, unsigned hosts,
		const struct choice_losses *lost)
{
	int rc = tables_make(c, host, hosts, lost);
	unsigned ref = hosts;

	if (!rc)
		rc = named_count(c, &ref);
	c->named = ref < hosts;
	if (!rc)
		rc = c->named ? choose_named(c, ref) : choose_all(c);
	if (rc == -ENOMEM)
		snprintf(c->why, sizeof(c->why), "no memory for the ports of %u hosts", hosts);
	if (rc || c->rails)
		return rc;
	choice_why_none(c);
	return -ENODEV;
}

void choice_free(struct choice *c)
{
	free(c->end);
	free(c->left);
	c->end = NULL;
	c->left = NULL;
}
