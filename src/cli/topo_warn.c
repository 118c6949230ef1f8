/* topo_warn.c - railgauge topo: warnings about conditions that limit the rails. */
#include "config.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpi/railmpi.h"
#include "cli/topo_warn.h"
#include "util/units.h"

enum { NAMES_TEXT = 512 };

__attribute__((format(printf, 3, 4)))
static int warn(struct topo_report *r, const char *kind, const char *fmt, ...)
{
	struct topo_warning *grown = realloc(r->warning,
					     (size_t)(r->warning_count + 1) * sizeof(*grown));
	va_list args;
	char *text;
	int n;

	if (!grown)
		return -ENOMEM;
	r->warning = grown;
	va_start(args, fmt);
	n = vasprintf(&text, fmt, args);
	va_end(args);
	if (n < 0)
		return -ENOMEM;
	grown[r->warning_count++] = (struct topo_warning){ .kind = kind, .text = text };
	return 0;
}

/* "16 GT/s x16, 31.5GB/s", or its known part. */
static const char *speed(const struct topo_link *l, char *text, size_t size)
{
	size_t used = 0;

	if (l->mt_per_s)
		used = (size_t)snprintf(text, size, "%g GT/s x%u, ", l->mt_per_s / 1000.0, l->lanes);
	snprintf(text + used, size - used, "%.1fGB/s", (double)l->bytes_per_s / 1e9);
	return text;
}

/* ---- Links that are too narrow ------------------------------------------ */

void topo_shares_find(const struct topo_report *r, struct topo_shared *s)
{
	const struct topo_spot *spot[TOPO_RAILS_MAX];

	s->rails = 0;
	for (int i = 0; i < r->rail_count && s->rails < TOPO_RAILS_MAX; i++)
		if (r->rail[i].rail >= 0) {
			spot[s->rails] = &r->rail[i].spot;
			s->rail[s->rails++] = &r->rail[i];
		}
	s->count = topo_shares(r->topo, spot, s->rails, s->share);
}

/* "mlx5_0:1, mlx5_1:1 and mlx5_2:1" */
static const char *names(const struct topo_shared *s, uint32_t mask, char *text, size_t size)
{
	int left = __builtin_popcount(mask);
	size_t used = 0;

	*text = '\0';
	for (int i = 0; i < s->rails && used < size; i++)
		if (mask & UINT32_C(1) << i) {
			left--;
			used += (size_t)snprintf(text + used, size - used, "%s%s",
						 s->rail[i]->name, left > 1 ? ", " :
						 left ? " and " : "");
		}
	return text;
}

static bool rates_known(const struct topo_shared *s, uint32_t mask)
{
	for (int i = 0; i < s->rails; i++)
		if (mask & UINT32_C(1) << i && (!s->rail[i]->port.rate_known ||
						!s->rail[i]->port.rate_bytes_per_s))
			return false;
	return true;
}

static uint64_t rates_sum(const struct topo_shared *s, uint32_t mask)
{
	uint64_t sum = 0;

	for (int i = 0; i < s->rails; i++)
		if (mask & UINT32_C(1) << i)
			sum += s->rail[i]->port.rate_bytes_per_s;
	return sum;
}

/* Bytes per second that can come through share `at` from below, where links may be narrower. */
static uint64_t demand(const struct topo_shared *s, int at)
{
	uint32_t left = s->share[at].rails;
	uint64_t sum = 0;

	for (int i = at - 1; i >= 0; i--) {
		const struct topo_share *below = &s->share[i];
		uint64_t from;

		if ((below->rails & left) != below->rails)
			continue;
		left &= ~below->rails;
		from = demand(s, i);
		sum += below->link.bytes_per_s && below->link.bytes_per_s < from ?
			below->link.bytes_per_s : from;
	}
	return sum + rates_sum(s, left);
}

static int warn_share(struct topo_report *r, const struct topo_shared *s, int at)
{
	const struct topo_share *share = &s->share[at];
	char list[NAMES_TEXT], text[64], rate[RG_UNIT_TEXT];
	bool several = (share->rails & (share->rails - 1)) != 0;

	names(s, share->rails, list, sizeof(list));
	if (!rates_known(s, share->rails)) {
		if (!several)
			return 0;
		return warn(r, "shared_link_rates", "%s share one PCIe link (%s%s%s): whether it "
			    "carries them all is not known, since their rates are not", list,
			    share->link.at, share->link.bytes_per_s ? ", " : "",
			    share->link.bytes_per_s ?
			    speed(&share->link, text, sizeof(text)) : "");
	}
	if (!share->link.bytes_per_s || demand(s, at) <= share->link.bytes_per_s)
		return 0;
	rg_format_rate(rates_sum(s, share->rails), rate, sizeof(rate));
	speed(&share->link, text, sizeof(text));
	if (several)
		return warn(r, "shared_link", "%s, together %s, share one PCIe link (%s) of %s: "
			    "the slot is the limit", list, rate, share->link.at, text);
	return warn(r, "narrow_link", "%s, %s, has a PCIe link (%s) of %s: the slot is "
		    "the limit", list, rate, share->link.at, text);
}

static int warn_shares(struct topo_report *r)
{
	struct topo_shared s;
	int rc = 0;

	topo_shares_find(r, &s);
	for (int i = 0; i < s.count && !rc; i++)
		rc = warn_share(r, &s, i);
	return rc;
}

/* ---- One adapter -------------------------------------------------------- */

/* Does the other end of the slot allow no more than the current speed? */
static bool slot_is_full(const struct topo_rail *rail)
{
	return rail->link_count > 1 && rail->link[1].max_bytes_per_s &&
	       rail->link[1].max_bytes_per_s <= rail->link[0].bytes_per_s;
}

static int warn_slow(struct topo_report *r, int at)
{
	const struct topo_rail *rail = &r->rail[at];
	const struct topo_link *l = &rail->link[0];
	char text[64];

	if (!rail->link_count || !l->bytes_per_s || l->bytes_per_s >= l->max_bytes_per_s)
		return 0;
	/* All ports of a card get a single line. */
	for (int i = 0; i < at; i++)
		if (r->rail[i].link_count && !strcmp(r->rail[i].link[0].at, l->at))
			return 0;
	return warn(r, "slow_link", "%s: its PCIe link (%s) runs at %s; the adapter could do %g GT/s "
		    "x%u%s", rail->spot.name, l->at, speed(l, text, sizeof(text)),
		    l->max_mt_per_s / 1000.0, l->max_lanes,
		    slot_is_full(rail) ? ", the slot cannot" : "");
}

static int warn_place(struct topo_report *r, int at)
{
	const struct topo_rail *rail = &r->rail[at];

	if (!*rail->spot.pci || r->topo->package_count < 2 || rail->spot.package >= 0 ||
	    (at && !strcmp(r->rail[at - 1].spot.name, rail->spot.name)))
		return 0;
	return warn(r, "no_place", "%s: no package is known to be near (the firmware names "
		    "none)", rail->spot.name);
}

static int rails_count(const struct topo_report *r)
{
	int count = 0;

	for (int i = 0; i < r->rail_count; i++)
		count += r->rail[i].rail >= 0;
	return count;
}

static int warn_port(struct topo_report *r, int at)
{
	const struct topo_rail *rail = &r->rail[at];
	const struct topo_port *p = &rail->port;

	if (rail->unusable)
		return warn(r, "no_immediates", "%s is no rail: its transport carries no RDMA "
			    "immediates", rail->name);
	if (*p->state && strcmp(p->state, "ACTIVE"))
		return warn(r, "port_down", "%s is %s: only ACTIVE ports are rails",
			    rail->name, p->state);
	if (rail->rail < 0 && *rail->why)
		return warn(r, "left_out", "%s is left out: %s (--rails chooses others)", rail->name, rail->why);
	if (rail->rail < 0 && rails_count(r) == RAILMPI_RAILS_MAX)
		return warn(r, "left_out", "%s is left out: a process uses %d ports (--rails "
			    "chooses others)", rail->name, RAILMPI_RAILS_MAX);
	if (rail->rail < 0)
		return warn(r, "no_rail", "%s is no rail: the saved machine did not use the port "
			    "as a rail", rail->name);
	if (p->gid_link_local && !strcmp(p->link_layer, "Ethernet"))
		return warn(r, "link_local", "%s has only a link-local GID: give its network "
			    "interface an address", rail->name);
	return 0;
}

/* ---- All rails, all ranks ----------------------------------------------- */

static int warn_unequal(struct topo_report *r)
{
	const struct topo_rail *slow = NULL, *fast = NULL;
	char low[RG_UNIT_TEXT], high[RG_UNIT_TEXT];

	for (int i = 0; i < r->rail_count; i++) {
		const struct topo_rail *rail = &r->rail[i];

		if (rail->rail < 0 || !rail->port.rate_known || !rail->port.rate_bytes_per_s)
			continue;
		if (!slow || rail->port.rate_bytes_per_s < slow->port.rate_bytes_per_s)
			slow = rail;
		if (!fast || rail->port.rate_bytes_per_s > fast->port.rate_bytes_per_s)
			fast = rail;
	}
	if (!slow || slow->port.rate_bytes_per_s == fast->port.rate_bytes_per_s)
		return 0;
	rg_format_rate(slow->port.rate_bytes_per_s, low, sizeof(low));
	rg_format_rate(fast->port.rate_bytes_per_s, high, sizeof(high));
	return warn(r, "unequal_rates", "unequal rates: %s has %s, %s has %s: even pieces (stripe) "
		    "wait for the slowest", slow->name, low, fast->name, high);
}

/* "0-3,6" of the ranks that are far under one way to bind and not under `unless`. */
static const char *far_ranks(const struct topo_report *r, enum topo_bind b, bool near_too,
			     char *text, size_t size)
{
	size_t used = 0;

	*text = '\0';
	for (unsigned i = 0, first; i < r->rank_count && used + 24 < size; i++) {
		first = i;
		while (i < r->rank_count && r->rank[i].path[b] == TOPO_SYS &&
		       (r->rank[i].path[TOPO_BIND_NEAR] == TOPO_SYS) == near_too)
			i++;
		if (i == first)
			continue;
		used += (size_t)snprintf(text + used, size - used, used ? ",%u" : "%u", first);
		if (i - first > 1)
			used += (size_t)snprintf(text + used, size - used, "-%u", i - 1);
	}
	return text;
}

static bool is_one(const char *list)
{
	return !list[strcspn(list, ",-")];
}

static int warn_far(struct topo_report *r)
{
	char list[NAMES_TEXT];
	int rc = 0;

	far_ranks(r, TOPO_BIND_NEAR, true, list, sizeof(list));
	if (*list)
		rc = warn(r, "no_near_rail", "no rail is on the package of rank%s %s: every path from "
			  "there crosses packages (SYS)", is_one(list) ? "" : "s", list);
	far_ranks(r, TOPO_BIND_RANK, false, list, sizeof(list));
	if (*list && !rc)
		rc = warn(r, "far_rail", "by local rank, rank%s %s use%s rails of another package "
			  "(SYS); --bind near does not", is_one(list) ? "" : "s", list,
			  is_one(list) ? "s" : "");
	return rc;
}

static int warn_none(struct topo_report *r)
{
	if (rails_count(r))
		return 0;
	if (r->rail_count)
		return warn(r, "no_rails", "no port can be a rail");
	if (*r->none)
		return warn(r, "no_device", "no RDMA device: %s", r->none);
	return warn(r, "no_device", "no RDMA device%s", r->file ? "" :
		    ": programs use the software HCA (railgauge topo --soft ideal shows its ports)");
}

int topo_warn(struct topo_report *r)
{
	int rc = warn_none(r);

	if (!rc)
		rc = warn_shares(r);
	for (int i = 0; i < r->rail_count && !rc; i++) {
		rc = warn_slow(r, i);
		if (!rc)
			rc = warn_place(r, i);
		if (!rc)
			rc = warn_port(r, i);
	}
	if (!rc)
		rc = warn_unequal(r);
	return rc ? rc : warn_far(r);
}
