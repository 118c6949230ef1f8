/* rail_choice_text.c - the rails as text, and lines about what is left out. */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "mpi/job/rail_choice.h"
#include "util/text.h"
#include "util/units.h"

enum { LINE_BYTES = 384, IPV4_AT = 12, IPV4_BITS = 96, ADDRESS_BYTES = INET6_ADDRSTRLEN };

static bool is_ipv4(const union ibv_gid *gid)
{
	static const uint8_t mapped[IPV4_AT] = { [10] = 0xff, [11] = 0xff };

	return memcmp(gid->raw, mapped, sizeof(mapped)) == 0;
}

static const char *address(const union ibv_gid *gid, char text[ADDRESS_BYTES])
{
	bool four = is_ipv4(gid);

	inet_ntop(four ? AF_INET : AF_INET6, gid->raw + (four ? IPV4_AT : 0), text, ADDRESS_BYTES);
	return text;
}

/* "10.0.1.0/24"; IPv6 with the 64 bits of a link. */
static void subnet(const struct softhca_net *n, char text[ADDRESS_BYTES + 4])
{
	const bool four = is_ipv4(&n->gid);
	const unsigned bits = four ? n->prefix : 64;
	union ibv_gid cut = n->gid;
	char number[ADDRESS_BYTES];

	for (unsigned i = 0; i < 128; i++)
		if (i >= bits)
			cut.raw[i / 8] &= (uint8_t)~(0x80 >> i % 8);
	snprintf(text, ADDRESS_BYTES + 4, "%s/%u", address(&cut, number),
		 four ? bits - IPV4_BITS : bits);
}

/* ---- Names of the rails -------------------------------------------------- */

/* Is `n` alone in its subnet on its host?  169.254.0.0/16 is never named by a subnet. */
static bool is_alone(const struct choice_host *h, const struct softhca_net *n)
{
	const bool four = is_ipv4(&n->gid);
	const unsigned bits = four ? n->prefix : 64;
	unsigned i, k;

	if (four && n->gid.raw[IPV4_AT] == 169 && n->gid.raw[IPV4_AT + 1] == 254)
		return false;
	for (i = 0; i < h->count; i++) {
		const struct softhca_net *other = &h->net[i];

		if (other->index == n->index || is_ipv4(&other->gid) != four)
			continue;
		for (k = 0; k < bits; k++)
			if ((other->gid.raw[k / 8] ^ n->gid.raw[k / 8]) & 0x80 >> k % 8)
				break;
		if (k == bits)
			return false;
	}
	return true;
}

/* A subnet, if it is the same on all hosts and names one interface on each of them. */
static bool has_subnet(const struct choice *c, unsigned column)
{
	for (unsigned h = 0; h < c->hosts; h++)
		if (!is_alone(&c->host[h], choice_net(c, column, h)))
			return false;
	return c->column[column].subnet;
}

void choice_spec(const struct choice *c, unsigned host, char spec[CHOICE_SPEC_BYTES])
{
	char text[ADDRESS_BYTES + 4];

	snprintf(spec, CHOICE_SPEC_BYTES, "net=");
	for (unsigned r = 0; r < c->rails; r++) {
		const struct softhca_net *n = choice_net(c, c->rail[r], host);

		if (has_subnet(c, c->rail[r]))
			subnet(n, text);
		else
			address(&n->gid, text);
		rg_text_add(spec, CHOICE_SPEC_BYTES, "%s%s", r ? "+" : "", text);
	}
}

/* ---- Columns that are no rails ------------------------------------------- */

/* "eth1 10.0.2.1 (all hosts)", "eth1 10.0.2.1 (host0; ens3 on host1)" */
static void title_column(const struct choice *c, unsigned column, char line[LINE_BYTES])
{
	const struct softhca_net *first = choice_net(c, column, 0);
	char text[ADDRESS_BYTES];
	unsigned h = 1;

	while (h < c->hosts && strcmp(choice_net(c, column, h)->name, first->name) == 0)
		h++;
	snprintf(line, LINE_BYTES, "no rail: %s %s ", first->name, address(&first->gid, text));
	if (h == c->hosts)
		rg_text_add(line, LINE_BYTES, "(all hosts): ");
	else
		rg_text_add(line, LINE_BYTES, "(%s; %s on %s): ", c->host[0].name,
			    choice_net(c, column, h)->name, c->host[h].name);
}

/* Another interface of this host in the subnet of `n`; NULL. */
static const struct softhca_net *neighbour(const struct choice_host *h, const struct softhca_net *n)
{
	for (unsigned i = 0; i < h->count; i++) {
		const struct softhca_net *other = &h->net[i];
		char a[ADDRESS_BYTES + 4], b[ADDRESS_BYTES + 4];

		if (other->why == SOFTHCA_NET_LOOPBACK || other->index == n->index ||
		    is_ipv4(&other->gid) != is_ipv4(&n->gid))
			continue;
		subnet(n, a);
		subnet(other, b);
		if (strcmp(a, b) == 0)
			return other;
	}
	return NULL;
}

/* With two interfaces in a subnet, Linux by itself answers and sends on either. */
static bool add_settings(const struct choice_host *h, const struct softhca_net *n,
			 char line[LINE_BYTES])
{
	const struct softhca_net *other = neighbour(h, n);

	if (!other || !is_ipv4(&n->gid))
		return false;
	if (n->rp_filter == 1)
		rg_text_add(line, LINE_BYTES, "; %s is in this subnet, too, and %s drops what would go "
			    "back there: net.ipv4.conf.%s.rp_filter=2 on %s changes that", other->name,
			    n->name, n->name, h->name);
	else if (!n->arp_ignore || !other->arp_ignore)
		rg_text_add(line, LINE_BYTES, "; %s is in this subnet, too, and answers ARP for %s: "
			    "net.ipv4.conf.all.arp_ignore=1 and net.ipv4.conf.all.arp_announce=2 on %s "
			    "change that", other->name, n->name, h->name);
	else
		return false;
	return true;
}

static void add_crossed(const struct choice *c, unsigned column, char line[LINE_BYTES])
{
	const struct choice_left *left = &c->column[column].left;
	const struct choice_host *to = &c->host[left->other];
	const unsigned i = left->probed.through;

	rg_text_add(line, LINE_BYTES, "on %s its packets arrive on %s: net.ipv4.conf.all.arp_ignore=1 and "
		    "net.ipv4.conf.all.arp_announce=2 there change that", to->name,
		    i < to->count ? to->net[i].name : "another interface");
}

static void add_probed(const struct choice *c, unsigned column, char line[LINE_BYTES])
{
	static const char *const words[] = {
		[SOFTHCA_PROBE_NONE] = "nothing is known of",
		[SOFTHCA_PROBE_SILENT] = "no answer within 3 s from",
		[SOFTHCA_PROBE_REFUSED] = "a refusal (a firewall?) from",
		[SOFTHCA_PROBE_NO_ROUTE] = "no route to",
		[SOFTHCA_PROBE_SELF] = "its own answer instead of that of",
		[SOFTHCA_PROBE_OTHER] = "the answer of a host outside of the job instead of",
		[SOFTHCA_PROBE_MTU] = "packets of the full MTU do not pass to or from",
		[SOFTHCA_PROBE_ASTRAY] = "packets leave over another interface between it and",
		[SOFTHCA_PROBE_FAILED] = "no memory or descriptors for",
	};
	const struct choice_left *left = &c->column[column].left;
	const struct softhca_net *from = choice_net(c, column, left->host);
	const struct softhca_net *to = choice_net(c, column, left->other);
	const unsigned code = left->probed.code;
	char text[ADDRESS_BYTES];

	if (code == SOFTHCA_PROBE_CROSSED) {
		add_crossed(c, column, line);
		return;
	}
	rg_text_add(line, LINE_BYTES, "%s: %s %s %s", c->host[left->host].name,
		    code == SOFTHCA_PROBE_MTU && from->mtu != to->mtu ? "another MTU than" :
		    code < sizeof(words) / sizeof(*words) && words[code] ? words[code] : "?",
		    c->host[left->other].name, address(&to->gid, text));
	if (code == SOFTHCA_PROBE_MTU)
		rg_text_add(line, LINE_BYTES, " (MTU %u and %u bytes)", from->mtu, to->mtu);
	if (code == SOFTHCA_PROBE_ASTRAY)
		rg_text_add(line, LINE_BYTES, ", and this kernel lets only root bind them to one (accepted: Linux "
			    "5.7 or newer, CAP_NET_RAW, or routes over this interface)");
	if (code == SOFTHCA_PROBE_SILENT && !add_settings(&c->host[left->other], to, line) &&
	    !add_settings(&c->host[left->host], from, line))
		rg_text_add(line, LINE_BYTES, ": no path, or a firewall");
}

static void add_slow(const struct choice *c, unsigned column, char line[LINE_BYTES])
{
	const unsigned other = c->column[column].left.other;
	char own[64], best[64];

	rg_text_add(line, LINE_BYTES, "%s, less than a quarter of the %s of %s",
		    rg_format_rate(choice_rate(c, column), own, sizeof(own)),
		    rg_format_rate(choice_rate(c, other), best, sizeof(best)),
		    choice_net(c, other, 0)->name);
}

/* Has another address of the same interfaces a line with this reason? */
static bool is_repeated(const struct choice *c, unsigned column)
{
	for (unsigned k = 0; k < column; k++)
		if (choice_net(c, k, 0)->index == choice_net(c, column, 0)->index &&
		    c->column[k].left.why == c->column[column].left.why)
			return true;
	return false;
}

static bool line_of_column(const struct choice *c, unsigned column, char line[LINE_BYTES])
{
	const struct choice_left *left = &c->column[column].left;

	if (is_repeated(c, column))
		return false;
	title_column(c, column, line);
	switch (left->why) {
	case CHOICE_UNREACHED:
		add_probed(c, column, line);
		return true;
	case CHOICE_STACKED:
		rg_text_add(line, LINE_BYTES, "its packets go over the same wire as those of %s",
			    choice_net(c, left->other, left->host)->name);
		return true;
	case CHOICE_SLOW:
		add_slow(c, column, line);
		return true;
	case CHOICE_MANY:
		rg_text_add(line, LINE_BYTES, "%u rails are in use", CHOICE_RAILS);
		return true;
	default:
		return false;
	}
}

/* ---- Addresses in no column ---------------------------------------------- */

/* Has this interface an address in a column that is a rail or has a line? */
static bool is_told(const struct choice *c, unsigned host, unsigned i)
{
	for (unsigned k = 0; k < c->columns; k++)
		if (choice_net(c, k, host)->index == c->host[host].net[i].index)
			return true;
	for (unsigned before = 0; before < i; before++)
		if (c->host[host].net[before].index == c->host[host].net[i].index)
			return true;
	return false;
}

static bool is_same_kind(const struct choice *c, unsigned host, unsigned i, unsigned other, unsigned k)
{
	const struct softhca_net *a = &c->host[host].net[i], *b = &c->host[other].net[k];

	return strcmp(a->name, b->name) == 0 && a->why == b->why &&
	       c->left[host][i].why == c->left[other][k].why;
}

/* The hosts from `from` to `to` that leave out the same. */
static unsigned hosts_alike(const struct choice *c, unsigned host, unsigned i, unsigned from,
			    unsigned to)
{
	unsigned n = 0;

	for (unsigned h = from; h < to; h++)
		for (unsigned k = 0; k < c->host[h].count; k++)
			if (is_same_kind(c, host, i, h, k) && !is_told(c, h, k)) {
				n++;
				break;
			}
	return n;
}

static void add_public(const struct softhca_net *n, char line[LINE_BYTES])
{
	char text[ADDRESS_BYTES + 4];

	subnet(n, text);
	rg_text_add(line, LINE_BYTES, "%s; --soft net=%s names it",
		    softhca_net_why(SOFTHCA_NET_PUBLIC), text);
}

/* An address of the host that no probe has called may reach others. */
static bool has_beyond(const struct choice *c, unsigned host)
{
	for (unsigned i = 0; i < c->host[host].count; i++)
		if (c->left[host][i].why == CHOICE_BEYOND)
			return true;
	return false;
}

static void add_alone(const struct choice *c, unsigned host, unsigned i, char line[LINE_BYTES])
{
	const struct choice_left *left = &c->left[host][i];
	bool beyond = false;

	for (unsigned h = 0; h < c->hosts && c->has_rest; h++)
		beyond |= (h == left->host || left->host == host) && has_beyond(c, h);
	if (left->why == CHOICE_BEYOND && c->has_rest)
		rg_text_add(line, LINE_BYTES, "%u others of %s without a common subnet are probed, and no "
			    "more (--soft net= names rails)", CHOICE_REST, c->host[host].name);
	else if (left->host == host)
		rg_text_add(line, LINE_BYTES, "not all hosts have an interface that reaches it%s",
			    beyond ? ", of those that are probed" : "");
	else if (left->probed.code == SOFTHCA_PROBE_MTU)
		rg_text_add(line, LINE_BYTES, "packets of the full MTU (%u bytes) do not pass to or from %s",
			    c->host[host].net[i].mtu, c->host[left->host].name);
	else
		rg_text_add(line, LINE_BYTES, "%s has no interface that reaches it%s",
			    c->host[left->host].name, beyond ? ", of those that are probed" : "");
}

static void add_why(const struct choice *c, unsigned host, unsigned i, char line[LINE_BYTES])
{
	const struct softhca_net *n = &c->host[host].net[i];
	const struct choice_left *left = &c->left[host][i];

	if (left->why == CHOICE_TWIN)
		rg_text_add(line, LINE_BYTES, "%s has the same address", c->host[left->host].name);
	else if (left->why == CHOICE_ALONE || left->why == CHOICE_BEYOND)
		add_alone(c, host, i, line);
	else if (left->why == CHOICE_PUBLIC || n->why == SOFTHCA_NET_PUBLIC)
		add_public(n, line);
	else
		rg_text_add(line, LINE_BYTES, "%s", softhca_net_why(n->why));
}

/* The host, and how many more have the same. */
static void add_hosts(const struct choice *c, unsigned host, unsigned more, char line[LINE_BYTES])
{
	if (more + 1 == c->hosts)
		rg_text_add(line, LINE_BYTES, " (all hosts): ");
	else if (more)
		rg_text_add(line, LINE_BYTES, " (%s and %u more): ", c->host[host].name, more);
	else
		rg_text_add(line, LINE_BYTES, " (%s): ", c->host[host].name);
}

static void line_of_net(const struct choice *c, unsigned host, unsigned i, char line[LINE_BYTES])
{
	const struct softhca_net *n = &c->host[host].net[i];
	char text[ADDRESS_BYTES];

	snprintf(line, LINE_BYTES, "no rail: %s %s", n->name, address(&n->gid, text));
	add_hosts(c, host, hosts_alike(c, host, i, host + 1, c->hosts), line);
	add_why(c, host, i, line);
}

static unsigned hosts_with_as_many(const struct choice *c, unsigned host, unsigned from, unsigned to)
{
	unsigned n = 0;

	for (unsigned h = from; h < to; h++)
		n += c->host[h].more == c->host[host].more;
	return n;
}

static void line_of_table(const struct choice *c, unsigned host, char line[LINE_BYTES])
{
	snprintf(line, LINE_BYTES, "no rail: %u more interface%s", (unsigned)c->host[host].more,
		 c->host[host].more > 1 ? "s" : "");
	add_hosts(c, host, hosts_with_as_many(c, host, host + 1, c->hosts), line);
	rg_text_add(line, LINE_BYTES, "not looked at, since a host has at most %u addresses (--soft net= names "
		    "rails)", SOFTHCA_NETS_MAX);
}

void choice_lines(const struct choice *c, void (*line)(void *arg, const char *text), void *arg)
{
	char text[LINE_BYTES];

	for (unsigned h = 0; h < c->hosts; h++)
		if (*c->host[h].error) {
			snprintf(text, sizeof(text), "%s: %s", c->host[h].name, c->host[h].error);
			line(arg, text);
		}
	for (unsigned k = 0; k < c->columns; k++)
		if (c->column[k].left.why && line_of_column(c, k, text))
			line(arg, text);
	for (unsigned h = 0; h < c->hosts; h++)
		for (unsigned i = 0; i < c->host[h].count; i++)
			if (c->left[h][i].why && !is_told(c, h, i) && !hosts_alike(c, h, i, 0, h)) {
				line_of_net(c, h, i, text);
				line(arg, text);
			}
	for (unsigned h = 0; h < c->hosts; h++)
		if (c->host[h].more && !hosts_with_as_many(c, h, 0, h)) {
			line_of_table(c, h, text);
			line(arg, text);
		}
}
