/* port_path.c - the GIDs and the P_Key by which the ports of a rail reach each other. */
#include <string.h>

#include "rail/open/port_choice.h"

enum { BITS_IPV4 = 96 + 24, BITS_IPV6 = 64 };	/* of a network whose length no host knows */

static bool is_infiniband(const struct choice_port *p)
{
	return p->link_layer != IBV_LINK_LAYER_ETHERNET;
}

static bool bits_equal(const unsigned char *a, const unsigned char *b, unsigned bits)
{
	const unsigned whole = bits / 8, rest = bits % 8;

	return !memcmp(a, b, whole) && (!rest || !((a[whole] ^ b[whole]) >> (8 - rest)));
}

static bool same_kind(const struct vrb_gid *a, const struct vrb_gid *b)
{
	return !a->dead && !b->dead && a->type == b->type && vrb_gid_scope(a->raw) == vrb_gid_scope(b->raw);
}

/* Each end takes the other one for a neighbour. */
static bool same_network(const struct vrb_gid *a, const struct vrb_gid *b)
{
	unsigned bits = a->bits > b->bits ? a->bits : b->bits;

	if (!bits)
		bits = vrb_gid_scope(a->raw) == VRB_GID_IPV4 ? BITS_IPV4 : BITS_IPV6;
	return bits_equal(a->raw, b->raw, bits);
}

/* How two GIDs of one kind meet, as choice_relation. */
static int gid_relation(const struct vrb_gid *a, const struct vrb_gid *b)
{
	if (!same_kind(a, b))
		return 0;
	if (vrb_gid_scope(a->raw) == VRB_GID_LINK_LOCAL)
		return 1;
	if (same_network(a, b))
		return 2;
	return a->type == IBV_GID_TYPE_ROCE_V2;
}

int choice_relation(const struct choice_port *a, const struct choice_port *b)
{
	int best = 0;

	if (a->link_layer != b->link_layer)
		return 0;
	if (is_infiniband(a))
		return a->tables.gids && b->tables.gids && !memcmp(a->tables.gid[0].raw, b->tables.gid[0].raw, 8) ?
		       2 : 0;
	for (unsigned i = 0; i < a->tables.gids; i++)
		for (unsigned k = 0; k < b->tables.gids; k++) {
			int r = gid_relation(&a->tables.gid[i], &b->tables.gid[k]);

			best = r > best ? r : best;
		}
	return best;
}

/* ---- GIDs ---------------------------------------------------------------- */

/* The order: neighbours, across routers, by link-local addresses. */
enum step { STEP_NETWORK, STEP_ROUTED, STEP_LINK_LOCAL, STEPS };

static const struct choice_port *port_of(const struct choice *c, unsigned h, unsigned rail)
{
	return &c->host[h]->port[c->end[h][rail].port];
}

static bool fits(enum step step, const struct vrb_gid *a, const struct vrb_gid *b)
{
	const bool local = vrb_gid_scope(a->raw) == VRB_GID_LINK_LOCAL;

	if (!gid_relation(a, b) || local != (step == STEP_LINK_LOCAL))
		return false;
	return step == STEP_NETWORK ? same_network(a, b) : true;
}

/* The port's GID that meets `with`; a neighbour before others; CHOICE_NONE. */
static uint8_t gid_find(enum step step, const struct choice_port *p, const struct vrb_gid *with)
{
	for (int near = 1; near >= 0; near--)
		for (unsigned i = 0; i < p->tables.gids; i++)
			if (fits(step, with, &p->tables.gid[i]) &&
			    (!near || same_network(with, &p->tables.gid[i])))
				return (uint8_t)i;
	return CHOICE_NONE;
}

/* Do all hosts meet GID i of host 0?  Their ends are set. */
static bool gids_from(struct choice *c, unsigned rail, enum step step, unsigned i)
{
	const struct vrb_gid *first = &port_of(c, 0, rail)->tables.gid[i];

	if (!fits(step, first, first))
		return false;
	c->end[0][rail].gid = (uint8_t)i;
	for (unsigned h = 1; h < c->hosts; h++) {
		c->end[h][rail].gid = gid_find(step, port_of(c, h, rail), first);
		if (c->end[h][rail].gid == CHOICE_NONE)
			return false;
	}
	return true;
}

static bool crosses_networks(const struct choice *c, unsigned rail)
{
	const struct vrb_gid *first = &port_of(c, 0, rail)->tables.gid[c->end[0][rail].gid];

	for (unsigned h = 1; h < c->hosts; h++)
		if (!same_network(first, &port_of(c, h, rail)->tables.gid[c->end[h][rail].gid]))
			return true;
	return false;
}

static struct choice_pair pair_of(const struct choice *c, unsigned rail, unsigned a, unsigned b)
{
	return (struct choice_pair){ a, b, c->end[a][rail].port, c->end[b][rail].port };
}

static bool infiniband_gids(struct choice *c, unsigned rail, struct choice_pair *without)
{
	for (unsigned h = 0; h < c->hosts; h++) {
		c->end[h][rail].gid = 0;
		if (choice_relation(port_of(c, 0, rail), port_of(c, h, rail)))
			continue;
		*without = pair_of(c, rail, 0, h);
		return false;
	}
	return true;
}

/* ---- GIDs of two hosts ------------------------------------------------------ */

static bool pair_find(const struct choice_port *a, const struct choice_port *b, uint8_t *gid_a,
		      uint8_t *gid_b)
{
	for (int step = 0; step < STEPS; step++)
		for (unsigned i = 0; i < a->tables.gids; i++)
			for (unsigned k = 0; k < b->tables.gids; k++)
				if (fits((enum step)step, &a->tables.gid[i], &b->tables.gid[k])) {
					*gid_a = (uint8_t)i;
					*gid_b = (uint8_t)k;
					return true;
				}
	return false;
}

bool choice_gid_pair(const struct choice *c, unsigned rail, unsigned a, unsigned b, uint8_t *gid_a,
		     uint8_t *gid_b)
{
	if (a > b)
		return choice_gid_pair(c, rail, b, a, gid_b, gid_a);
	if (c->pairwise[rail] && a != b)
		return pair_find(port_of(c, a, rail), port_of(c, b, rail), gid_a, gid_b);
	*gid_a = c->end[a][rail].gid;
	*gid_b = c->end[b][rail].gid;
	return true;
}

/* The first GID that can be used: what others know of an end that differs from peer to peer. */
static uint8_t gid_live(const struct choice_port *p)
{
	for (unsigned i = 0; i < p->tables.gids; i++)
		if (!p->tables.gid[i].dead)
			return (uint8_t)i;
	return 0;
}

static bool gids_pairwise(struct choice *c, unsigned rail, struct choice_pair *without)
{
	bool met = c->hosts > 2;

	*without = pair_of(c, rail, 0, c->hosts - 1);
	c->pairwise[rail] = true;
	for (unsigned a = 0; a < c->hosts && met; a++) {
		c->end[a][rail].gid = gid_live(port_of(c, a, rail));
		for (unsigned b = a + 1; b < c->hosts && met; b++) {
			uint8_t i = 0, k = 0;

			*without = pair_of(c, rail, a, b);
			met = choice_gid_pair(c, rail, a, b, &i, &k);
			c->routed[rail] |= met && gid_relation(&port_of(c, a, rail)->tables.gid[i],
							       &port_of(c, b, rail)->tables.gid[k]) < 2;
		}
	}
	c->pairwise[rail] = met;
	return met;
}

bool choice_gids(struct choice *c, unsigned rail, struct choice_pair *without)
{
	const struct choice_port *p = port_of(c, 0, rail);

	c->routed[rail] = c->pairwise[rail] = false;
	if (is_infiniband(p))
		return infiniband_gids(c, rail, without);
	for (int step = 0; step < STEPS; step++)
		for (unsigned i = 0; i < p->tables.gids; i++)
			if (gids_from(c, rail, (enum step)step, i)) {
				c->routed[rail] = step == STEP_ROUTED && crosses_networks(c, rail);
				return true;
			}
	return gids_pairwise(c, rail, without);
}

/* ---- P_Keys -------------------------------------------------------------- */

/* The entry of a partition, of a full member if there is one; CHOICE_NONE. */
static uint8_t pkey_find(const struct choice_port *p, uint16_t key)
{
	uint8_t found = CHOICE_NONE;

	for (unsigned i = 0; i < p->tables.pkeys; i++) {
		const uint16_t have = p->tables.pkey[i].key;

		if ((have & ~CHOICE_PKEY_FULL) != (key & ~CHOICE_PKEY_FULL))
			continue;
		if (have & CHOICE_PKEY_FULL)
			return (uint8_t)i;
		if (found == CHOICE_NONE)
			found = (uint8_t)i;
	}
	return found;
}

int choice_partition(const struct choice_port *a, const struct choice_port *b)
{
	int most = 0;

	for (unsigned i = 0; i < a->tables.pkeys; i++) {
		const uint16_t key = a->tables.pkey[i].key;
		const uint8_t at = pkey_find(b, key);
		const int full = at == CHOICE_NONE ? 0 :
				 !!(key & CHOICE_PKEY_FULL) + !!(b->tables.pkey[at].key & CHOICE_PKEY_FULL);

		most = full > most ? full : most;
	}
	return most;
}

/* Do all hosts talk to each other with this key?  Their ends are set. */
static bool pkeys_from(struct choice *c, unsigned rail, uint16_t key)
{
	unsigned limited = 0;

	for (unsigned h = 0; h < c->hosts; h++) {
		const struct choice_port *p = port_of(c, h, rail);
		const uint8_t at = pkey_find(p, key);

		c->end[h][rail].pkey = at;
		if (at == CHOICE_NONE)
			return false;
		if (p->tables.pkey[at].key & CHOICE_PKEY_FULL)
			continue;
		if (++limited > 1 || c->host[h]->meets)
			return false;
	}
	return true;
}

bool choice_pkeys(struct choice *c, unsigned rail)
{
	const struct choice_port *p = port_of(c, 0, rail);

	/* Alone, a limited member reaches no other one: a key of a full one comes first. */
	for (int full = c->hosts == 1; full >= 0; full--)
		for (unsigned i = 0; i < p->tables.pkeys; i++)
			if ((!full || p->tables.pkey[i].key & CHOICE_PKEY_FULL) &&
			    pkeys_from(c, rail, p->tables.pkey[i].key))
				return true;
	return false;
}

enum choice_why choice_pkeys_why(const struct choice *c, unsigned rail, struct choice_pair *without)
{
	for (unsigned a = 0; a < c->hosts; a++)
		for (unsigned b = a + !c->host[a]->meets; b < c->hosts; b++)
			if (!choice_partition(port_of(c, a, rail), port_of(c, b, rail))) {
				*without = pair_of(c, rail, a, b);
				return CHOICE_PARTITION;
			}
	return CHOICE_PARTITIONS;
}
