/* rail_choice.c - see rail_choice.h. */
#include "mpi/job/rail_choice.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { IPV4_BITS = 96, GID_BITS = 128, IPV6_SUBNET_BITS = 64, SLOWER = 4 };

static const struct softhca_net *net_at(const struct choice *c, unsigned host, unsigned i)
{
	return &c->host[host].net[i];
}

static bool is_ipv4(const struct softhca_net *n)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	return memcmp(n->gid.raw, mapped, sizeof(mapped)) == 0;
}

/* fc00::/7 */
static bool is_local_ipv6(const struct softhca_net *n)
{
	return !is_ipv4(n) && (n->gid.raw[0] & 0xfe) == 0xfc;
}

/* ---- Subnets ------------------------------------------------------------- */

/* An IPv6 address often has a prefix of 128, whatever its link has. */
static unsigned subnet_bits(const struct softhca_net *n)
{
	return is_ipv4(n) ? n->prefix : IPV6_SUBNET_BITS;
}

static bool bits_are_equal(const uint8_t *a, const uint8_t *b, unsigned bits)
{
	const unsigned bytes = bits / 8, odd = bits % 8;

	return memcmp(a, b, bytes) == 0 &&
	       (!odd || ((a[bytes] ^ b[bytes]) & (0xff00 >> odd) & 0xff) == 0);
}

static bool share_subnet(const struct softhca_net *a, const struct softhca_net *b)
{
	const unsigned bits = subnet_bits(a);

	return is_ipv4(a) == is_ipv4(b) && bits == subnet_bits(b) && bits < GID_BITS &&
	       bits_are_equal(a->gid.raw, b->gid.raw, bits);
}

/* Is it free for a column: usable, in none yet? */
static bool is_free(const struct choice *c, unsigned host, unsigned i)
{
	return i < c->host[host].count && c->left[host][i].why == CHOICE_ALONE;
}

/* "eth2" before "eth10" */
static int name_compare(const char *a, const char *b)
{
	while (*a && *b) {
		if (isdigit((unsigned char)*a) && isdigit((unsigned char)*b)) {
			char *a_end, *b_end;
			unsigned long x = strtoul(a, &a_end, 10), y = strtoul(b, &b_end, 10);

			if (x != y)
				return x < y ? -1 : 1;
			a = a_end;
			b = b_end;
		} else if (*a != *b) {
			break;
		} else {
			a++;
			b++;
		}
	}
	return (unsigned char)*a - (unsigned char)*b;
}

/* A free address of this host in the subnet, under this name; CHOICE_NONE. */
static unsigned named_in(const struct choice *c, unsigned host, const struct softhca_net *subnet,
			 const char *name)
{
	for (unsigned i = 0; i < c->host[host].count; i++)
		if (is_free(c, host, i) && share_subnet(net_at(c, host, i), subnet) &&
		    strcmp(net_at(c, host, i)->name, name) == 0)
			return i;
	return CHOICE_NONE;
}

static bool all_have_name(const struct choice *c, const struct softhca_net *subnet,
			  const char *name)
{
	for (unsigned h = 0; h < c->hosts; h++)
		if (named_in(c, h, subnet, name) == CHOICE_NONE)
			return false;
	return true;
}

/* Interfaces that are up come first, then names decide. */
static bool is_preferred(const struct softhca_net *a, const struct softhca_net *b)
{
	return !a->why != !b->why ? !a->why : name_compare(a->name, b->name) < 0;
}

/* The first free address in the subnet; CHOICE_NONE. */
static unsigned first_in(const struct choice *c, unsigned host, const struct softhca_net *subnet)
{
	unsigned best = CHOICE_NONE;

	for (unsigned i = 0; i < c->host[host].count; i++)
		if (is_free(c, host, i) && share_subnet(net_at(c, host, i), subnet) &&
		    (best == CHOICE_NONE || is_preferred(net_at(c, host, i), net_at(c, host, best))))
			best = i;
	return best;
}

/* The first name in the subnet that all hosts have there; NULL. */
static const char *common_name(const struct choice *c, const struct softhca_net *subnet)
{
	const char *best = NULL;

	for (unsigned i = 0; i < c->host[0].count; i++) {
		const struct softhca_net *n = net_at(c, 0, i);

		if (is_free(c, 0, i) && share_subnet(n, subnet) &&
		    (!best || name_compare(n->name, best) < 0) && all_have_name(c, subnet, n->name))
			best = n->name;
	}
	return best;
}

/* Adds a column of a subnet: 0, -ENOENT: a host (*lacks) has none left; -ENOMEM. */
static int column_add(struct choice *c, const struct softhca_net *subnet, unsigned *lacks)
{
	struct choice_column *column = &c->column[c->columns];
	const char *name = common_name(c, subnet);

	column->at = malloc(c->hosts);
	if (!column->at)
		return -ENOMEM;
	for (unsigned h = 0; h < c->hosts; h++) {
		unsigned i = name ? named_in(c, h, subnet, name) : first_in(c, h, subnet);

		if (i == CHOICE_NONE) {
			free(column->at);
			column->at = NULL;
			*lacks = h;
			return -ENOENT;
		}
		column->at[h] = (uint8_t)i;
	}
	for (unsigned h = 0; h < c->hosts; h++)
		c->left[h][column->at[h]].why = CHOICE_USED;
	column->subnet = true;
	c->columns++;
	return 0;
}

/* All columns of the subnets of host 0; its other addresses learn a host that has no match. */
static int columns_of_subnets(struct choice *c)
{
	for (unsigned i = 0; i < c->host[0].count; i++)
		while (is_free(c, 0, i) && c->columns < CHOICE_COLUMNS) {
			int rc = column_add(c, net_at(c, 0, i), &c->left[0][i].host);

			if (rc == -ENOENT)
				break;
			if (rc)
				return rc;
		}
	return 0;
}

/* ---- Addresses that are left out, or rest -------------------------------- */

struct holder {
	const struct softhca_net *net;
	unsigned host, i;
};

static int holder_compare(const void *one, const void *other)
{
	const struct holder *a = one, *b = other;
	int rc = memcmp(&a->net->gid, &b->net->gid, sizeof(a->net->gid));

	return rc ? rc : a->host < b->host ? -1 : a->host > b->host;
}

/* A bridge of containers has the same address on every host. */
static int twins_find(struct choice *c)
{
	struct holder *all = malloc((size_t)c->hosts * SOFTHCA_NETS_MAX * sizeof(*all));
	unsigned n = 0;

	if (!all)
		return -ENOMEM;
	for (unsigned h = 0; h < c->hosts; h++)
		for (unsigned i = 0; i < c->host[h].count; i++)
			if (is_free(c, h, i))
				all[n++] = (struct holder){ net_at(c, h, i), h, i };
	qsort(all, n, sizeof(*all), holder_compare);
	for (unsigned k = 0; k + 1 < n; k++) {
		struct holder *a = &all[k], *b = &all[k + 1];

		if (memcmp(&a->net->gid, &b->net->gid, sizeof(a->net->gid)) || a->host == b->host)
			continue;
		c->left[a->host][a->i] = (struct choice_left){ .why = CHOICE_TWIN, .host = b->host };
		c->left[b->host][b->i] = (struct choice_left){ .why = CHOICE_TWIN, .host = a->host };
	}
	free(all);
	return 0;
}

/* Collects interfaces without a common subnet.  Global IPv6 addresses are the Internet's, unless all share a subnet. */
static void rest_collect(struct choice *c)
{
	c->has_rest = true;
	for (unsigned h = 0; h < c->hosts; h++) {
		unsigned n = 0;

		memset(c->rest[h], CHOICE_NONE, sizeof(c->rest[h]));
		for (unsigned i = 0; i < c->host[h].count; i++) {
			if (!is_free(c, h, i))
				continue;
			if (!is_ipv4(net_at(c, h, i)) && !is_local_ipv6(net_at(c, h, i)))
				c->left[h][i].why = CHOICE_PUBLIC;
			else if (n < CHOICE_REST)
				c->rest[h][n++] = (uint8_t)i;
			else
				c->left[h][i].why = CHOICE_BEYOND;
		}
		c->has_rest &= n > 0;
	}
}

/* ---- Interfaces that are down -------------------------------------------- */

/* The same address elsewhere is none of its subnet: see twins_find. */
static bool is_up_in(const struct choice *c, const struct softhca_net *subnet)
{
	for (unsigned h = 0; h < c->hosts; h++)
		for (unsigned i = 0; i < c->host[h].count; i++)
			if (is_free(c, h, i) && !net_at(c, h, i)->why &&
			    share_subnet(net_at(c, h, i), subnet) &&
			    memcmp(&net_at(c, h, i)->gid, &subnet->gid, sizeof(subnet->gid)))
				return true;
	return false;
}

/* An interface that is down joins the columns of its subnet, if another host is up there. */
static void down_join(struct choice *c)
{
	for (unsigned h = 0; h < c->hosts; h++)
		for (unsigned i = 0; i < c->host[h].count; i++)
			if (net_at(c, h, i)->why == SOFTHCA_NET_DOWN && is_up_in(c, net_at(c, h, i)))
				c->left[h][i].why = CHOICE_ALONE;
}

/* Interfaces that have joined no column are left out as down. */
static void down_leave(struct choice *c)
{
	for (unsigned h = 0; h < c->hosts; h++)
		for (unsigned i = 0; i < c->host[h].count; i++)
			if (is_free(c, h, i) && net_at(c, h, i)->why)
				c->left[h][i].why = CHOICE_UNUSABLE;
}

int choice_begin(struct choice *c, const struct choice_host *host, unsigned hosts, bool with_down)
{
	int rc;

	memset(c, 0, sizeof(*c));
	c->host = host;
	c->hosts = hosts;
	while (c->steps < CHOICE_STEPS && ((uint64_t)1 << c->steps) < hosts)
		c->steps++;
	c->rest = malloc(hosts * sizeof(*c->rest));
	c->left = calloc(hosts, sizeof(*c->left));
	if (!c->rest || !c->left)
		return -ENOMEM;
	for (unsigned h = 0; h < hosts; h++)
		for (unsigned i = 0; i < host[h].count; i++)
			c->left[h][i] = (struct choice_left){
				.why = host[h].net[i].why ? CHOICE_UNUSABLE : CHOICE_ALONE,
				.host = h,
			};
	rc = twins_find(c);
	if (!rc && with_down)
		down_join(c);
	if (!rc)
		rc = columns_of_subnets(c);
	if (rc)
		return rc;
	down_leave(c);
	rest_collect(c);
	return 0;
}

void choice_end(struct choice *c)
{
	for (unsigned k = 0; k < c->columns; k++)
		free(c->column[k].at);
	free(c->rest);
	free(c->left);
}

/* ---- Matching by probes -------------------------------------------------- */

/* Do host's rest[i] and the earlier hosts' reach each other, as far as they were probed? */
static bool rest_reaches(const struct choice *c, const struct choice_probes *probes,
			 const uint8_t *chosen, unsigned host, unsigned i)
{
	for (unsigned s = 0; s < c->steps; s++) {
		unsigned ahead = choice_peer(c, host, s);
		unsigned before = (unsigned)((host + c->hosts - (1u << s)) % c->hosts);

		if (ahead < host && probes[host].rest[s][i][chosen[ahead]].code !=
				    SOFTHCA_PROBE_PASSED)
			return false;
		if (before < host && probes[before].rest[s][chosen[before]][i].code !=
				     SOFTHCA_PROBE_PASSED)
			return false;
	}
	return true;
}

static unsigned common_bits(const struct softhca_net *a, const struct softhca_net *b)
{
	unsigned bits = 0;

	while (bits < GID_BITS && bits_are_equal(a->gid.raw, b->gid.raw, bits + 1))
		bits++;
	return bits;
}

/* How well an address suits host 0's: where routers join all, many reach it. */
static unsigned resemblance(const struct softhca_net *a, const struct softhca_net *b, bool same_place)
{
	return 4 * common_bits(a, b) + 2 * (strcmp(a->name, b->name) == 0) + same_place;
}

/* The best one of a host that continues the chosen ones; CHOICE_NONE. */
static unsigned rest_match(const struct choice *c, const struct choice_probes *probes,
			   const uint8_t *chosen, unsigned host)
{
	const struct softhca_net *first = net_at(c, 0, c->rest[0][chosen[0]]);
	unsigned best = CHOICE_NONE, best_score = 0, i;

	for (i = 0; i < CHOICE_REST && c->rest[host][i] != CHOICE_NONE; i++) {
		unsigned score = 1 + resemblance(first, net_at(c, host, c->rest[host][i]),
						 i == chosen[0]);

		if (is_free(c, host, c->rest[host][i]) && score > best_score &&
		    rest_reaches(c, probes, chosen, host, i)) {
			best = i;
			best_score = score;
		}
	}
	return best;
}

/* Has an address of the host answered one of an earlier host, and not passed full packets? */
static bool rest_is_narrow(const struct choice *c, const struct choice_probes *probes,
			   const uint8_t *chosen, unsigned host)
{
	for (unsigned s = 0; s < c->steps; s++) {
		unsigned ahead = choice_peer(c, host, s);
		unsigned before = (unsigned)((host + c->hosts - (1u << s)) % c->hosts);

		for (unsigned i = 0; i < CHOICE_REST && c->rest[host][i] != CHOICE_NONE; i++)
			if ((ahead < host && probes[host].rest[s][i][chosen[ahead]].code ==
						     SOFTHCA_PROBE_MTU) ||
			    (before < host && probes[before].rest[s][chosen[before]][i].code ==
						      SOFTHCA_PROBE_MTU))
				return true;
	}
	return false;
}

/* A column from host 0's rest[i] on, if each host has a match; `chosen` is its memory. */
static void rest_follow(struct choice *c, const struct choice_probes *probes, unsigned i,
			uint8_t *chosen)
{
	struct choice_column *column = &c->column[c->columns];
	unsigned h, match;

	chosen[0] = (uint8_t)i;
	for (h = 1; h < c->hosts; h++) {
		match = rest_match(c, probes, chosen, h);
		if (match == CHOICE_NONE) {
			c->left[0][c->rest[0][i]].host = h;
			if (rest_is_narrow(c, probes, chosen, h))
				c->left[0][c->rest[0][i]].probed.code = SOFTHCA_PROBE_MTU;
			return;
		}
		chosen[h] = (uint8_t)match;
	}
	column->at = malloc(c->hosts);
	if (!column->at)
		return;
	for (h = 0; h < c->hosts; h++) {
		column->at[h] = c->rest[h][chosen[h]];
		c->left[h][column->at[h]].why = CHOICE_USED;
	}
	c->columns++;
}

static void columns_of_rest(struct choice *c, const struct choice_probes *probes)
{
	uint8_t *chosen = malloc(c->hosts);

	for (unsigned i = 0; chosen && c->has_rest && i < CHOICE_REST; i++)
		if (c->rest[0][i] != CHOICE_NONE && c->columns < CHOICE_COLUMNS)
			rest_follow(c, probes, i, chosen);
	free(chosen);
}

/* ---- Rails --------------------------------------------------------------- */

static void check_probes(struct choice *c, const struct choice_probes *probes, unsigned column)
{
	struct choice_left *left = &c->column[column].left;

	for (unsigned h = 0; h < c->hosts; h++)
		for (unsigned s = 0; s < c->steps; s++) {
			const struct softhca_probed *p = &probes[h].column[s][column];
			unsigned peer = choice_peer(c, h, s);

			if (left->why || p->code == SOFTHCA_PROBE_PASSED ||
			    !choice_column_is_up(c, column, h) || !choice_column_is_up(c, column, peer))
				continue;
			*left = (struct choice_left){ CHOICE_UNREACHED, *p, h, peer };
		}
}

/* Both ends of a connection have one MTU (wire/qp_calls.c). */
static void check_mtus(struct choice *c)
{
	for (unsigned k = 0; k < c->columns; k++)
		for (unsigned h = 1; h < c->hosts && !c->column[k].left.why; h++)
			if (choice_net(c, k, h)->mtu != choice_net(c, k, 0)->mtu)
				c->column[k].left = (struct choice_left){ CHOICE_UNREACHED,
						{ .code = SOFTHCA_PROBE_MTU }, 0, h };
}

uint64_t choice_rate(const struct choice *c, unsigned column)
{
	uint64_t least = 0;

	for (unsigned h = 0; h < c->hosts; h++) {
		uint64_t rate = choice_net(c, column, h)->rate;

		if (rate && (!least || rate < least))
			least = rate;
	}
	return least;
}

static void check_rates(struct choice *c)
{
	unsigned best = 0;

	for (unsigned k = 0; k < c->columns; k++)
		if (!c->column[k].left.why &&
		    (c->column[best].left.why || choice_rate(c, k) > choice_rate(c, best)))
			best = k;
	for (unsigned k = 0; k < c->columns; k++)
		if (!c->column[k].left.why && choice_rate(c, k) &&
		    choice_rate(c, k) < choice_rate(c, best) / SLOWER)
			c->column[k].left = (struct choice_left){ .why = CHOICE_SLOW, .other = best };
}

/* Lower interfaces and IPv4 come first, then the order of host 0's list. */
static bool is_before(const struct choice *c, unsigned a, unsigned b)
{
	const struct softhca_net *x, *y;
	unsigned x_layers = 0, y_layers = 0, h;

	for (h = 0; h < c->hosts; h++) {
		x = choice_net(c, a, h);
		y = choice_net(c, b, h);
		x_layers = x->layers > x_layers ? x->layers : x_layers;
		y_layers = y->layers > y_layers ? y->layers : y_layers;
	}
	x = choice_net(c, a, 0);
	y = choice_net(c, b, 0);
	if (x_layers != y_layers)
		return x_layers < y_layers;
	if (is_ipv4(x) != is_ipv4(y))
		return is_ipv4(x);
	return c->column[a].at[0] < c->column[b].at[0];
}

/* Does a host send both over one wire?  *same: over one interface. */
static bool share_wire(const struct choice *c, unsigned a, unsigned b, unsigned *host, bool *same)
{
	for (unsigned h = 0; h < c->hosts; h++) {
		const struct softhca_net *x = choice_net(c, a, h), *y = choice_net(c, b, h);

		if (x->wire == y->wire) {
			*host = h;
			*same = x->index == y->index;
			return true;
		}
	}
	return false;
}

/* A rail that shares a wire with this column; CHOICE_NONE. */
static unsigned rail_below(const struct choice *c, unsigned column, unsigned *host, bool *same)
{
	for (unsigned r = 0; r < c->rails; r++)
		if (share_wire(c, column, c->rail[r], host, same))
			return c->rail[r];
	return CHOICE_NONE;
}

/* Another address of an interface that is a rail already is no loss: no line. */
static bool is_stacked(struct choice *c, unsigned column)
{
	unsigned host, rail;
	bool same;

	rail = rail_below(c, column, &host, &same);
	if (rail == CHOICE_NONE)
		return false;
	c->column[column].left = (struct choice_left){ .why = same ? CHOICE_USED : CHOICE_STACKED,
						       .host = host, .other = rail };
	return true;
}

/* Whatever became of their probes: no setting makes them rails. */
static void tell_stacked(struct choice *c)
{
	unsigned host, rail;
	bool same;

	for (unsigned k = 0; k < c->columns; k++) {
		if (c->column[k].left.why != CHOICE_UNREACHED)
			continue;
		rail = rail_below(c, k, &host, &same);
		if (rail != CHOICE_NONE && !same)
			c->column[k].left = (struct choice_left){ .why = CHOICE_STACKED, .host = host,
								  .other = rail };
	}
}

/* The next one in order that was not looked at; c->columns: none. */
static unsigned next_column(const struct choice *c, const bool *seen)
{
	unsigned best = c->columns;

	for (unsigned k = 0; k < c->columns; k++)
		if (!seen[k] && !c->column[k].left.why &&
		    (best == c->columns || is_before(c, k, best)))
			best = k;
	return best;
}

static int rail_compare(unsigned a, unsigned b, const struct choice *c)
{
	return (int)choice_net(c, a, 0)->index - (int)choice_net(c, b, 0)->index;
}

/* In the order of host 0's interfaces. */
static void rails_sort(struct choice *c)
{
	for (unsigned i = 1; i < c->rails; i++)
		for (unsigned k = i; k && rail_compare(c->rail[k], c->rail[k - 1], c) < 0; k--) {
			unsigned swap = c->rail[k];

			c->rail[k] = c->rail[k - 1];
			c->rail[k - 1] = swap;
		}
}

void choice_finish(struct choice *c, const struct choice_probes *probes)
{
	bool seen[CHOICE_COLUMNS] = { false };

	for (unsigned k = 0; k < c->columns; k++)
		check_probes(c, probes, k);
	columns_of_rest(c, probes);
	check_mtus(c);
	check_rates(c);
	for (unsigned k; (k = next_column(c, seen)) < c->columns;) {
		seen[k] = true;
		if (is_stacked(c, k))
			continue;
		if (c->rails == CHOICE_RAILS)
			c->column[k].left.why = CHOICE_MANY;
		else
			c->rail[c->rails++] = k;
	}
	tell_stacked(c);
	rails_sort(c);
}
