/* spec.c - the spec string: one table row per key. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "softhca/base/base.h"
#include "softhca/base/netif.h"
#include "softhca/softhca.h"
#include "softhca/model/spec.h"
#include "softhca/model/text.h"
#include "util/units.h"

enum kind {
	COUNT,		/* 0 spelled `none` where the row allows it */
	RATE,
	RATES,		/* RATE+RATE...: port 1, 2, ...; the last one also for all later ports */
	TIME,
	SIZE,
	BUS,		/* READ/WRITE[:half|full] */
	FRACTION,	/* parts per billion */
	NETS,		/* interface or subnet, +... */
	DOWN, UP,	/* PORT@WHEN+... */
};

struct key {
	const char *name;
	enum kind kind;
	size_t offset;
	uint64_t standard, min, max;
	bool none;			/* `none`: no limit */
	const char *accepted;
	const char *meaning;
};

#define FIELD(f) offsetof(struct hca_spec, f)
#define SECOND 1000000000ull

/* In canonical order. */
static const struct key keys[] = {
	{ "hcas", COUNT, FIELD(hcas), 1, 1, HCA_HCAS_MAX, false, "1 to 8", "adapters per node" },
	{ "ports", COUNT, FIELD(ports), 0, 1, HCA_PORTS_MAX, false, "1 to 8", "ports per adapter" },
	{ "net", NETS, FIELD(nets), 0, 0, 0, true,
	  "1 to 8 interfaces or their subnets, such as eth0+eth1, 10.0.1.0/24+10.0.2.0/24, "
	  "fd00::/64, or none", "network interfaces that are the ports; TCP reaches other hosts" },
	{ "rate", RATES, FIELD(rate), 0, 1000, 1000000000000ull, true,
	  "1kB/s to 1000GB/s, or several such as 750MB/s+250MB/s, or none",
	  "of each port, per direction; several: of port 1, port 2, ..., the last one also of "
	  "all further ports" },
	{ "latency", TIME, FIELD(latency_ns), 0, 0, 10 * SECOND, false, "0 to 10s with a unit",
	  "one way: the wire and both adapters" },
	{ "bus", BUS, FIELD(bus_read), 0, 1000, 1000000000000ull, true,
	  "READ/WRITE[:half|full] with rates such as 2GB/s/2GB/s:full, or none",
	  "host bus of an adapter; half: both directions share it" },
	{ "cap", RATE, FIELD(cap), 0, 1000, 1000000000000ull, true,
	  "1kB/s to 1000GB/s, or none", "of an adapter, per direction, all its ports together" },
	{ "msg", TIME, FIELD(msg_ns), 0, 0, SECOND, false, "0 to 1s with a unit",
	  "a port's time per message" },
	{ "pkt", TIME, FIELD(pkt_ns), 0, 0, SECOND, false, "0 to 1s with a unit",
	  "a port's time per packet" },
	{ "cqe", TIME, FIELD(cqe_ns), 0, 0, SECOND, false, "0 to 1s with a unit",
	  "until a completion is written, after the data" },
	{ "mtu", SIZE, FIELD(mtu), 4096, 256, 4096, false, "256, 512, 1024, 2048 or 4096",
	  "largest packet" },
	{ "window", COUNT, FIELD(window), 0, 1, 1 << 20, true, "1 to 1048576 packets, or none",
	  "unacknowledged packets per queue pair" },
	{ "outstanding", COUNT, FIELD(outstanding), 0, 1, 1 << 20, true,
	  "1 to 1048576 messages, or none", "unacknowledged messages per queue pair" },
	{ "reads", COUNT, FIELD(reads), 16, 1, 128, false, "1 to 128",
	  "RDMA reads in flight per queue pair" },
	{ "loss", FRACTION, FIELD(loss_ppb), 0, 0, HCA_ALL_PPB, false,
	  "0 to 1, at most 9 decimals", "share of packets lost on every path" },
	{ "jitter", TIME, FIELD(jitter_ns), 0, 0, 10 * SECOND, false, "0 to 10s with a unit",
	  "the latency of a message is up to so much longer" },
	{ "seed", COUNT, FIELD(seed), 1, 0, UINT32_MAX, false, "0 to 4294967295",
	  "of the random numbers for loss and jitter" },
	{ "down", DOWN, FIELD(schedule), 0, 0, 0, true,
	  "PORT@WHEN+PORT@WHEN... such as 1/soft0:2@10ms, or none",
	  "ports go down; time counts from when the first queue pair can send" },
	{ "up", UP, FIELD(schedule), 0, 0, 0, true,
	  "PORT@WHEN+PORT@WHEN... such as 1/soft0:2@20ms, or none", "ports come back" },
};

enum { KEYS = sizeof(keys) / sizeof(*keys), TEXT_MAX = 1024, PORTS = 2 /* if not given */ };

/* Does a key have a meaning with net=? */
static bool key_is_on_net(const struct key *k)
{
	return k->kind == NETS || k->kind == RATES || k->offset == FIELD(ports) ||
	       k->offset == FIELD(reads);
}

bool hca_spec_key(unsigned i, const char **name, const char **accepted, const char **meaning)
{
	if (i >= KEYS)
		return false;
	*name = keys[i].name;
	*accepted = keys[i].accepted;
	*meaning = keys[i].meaning;
	return true;
}

/* ---- One value ----------------------------------------------------------- */

static int parse_number(enum kind kind, const char *text, uint64_t *value)
{
	switch (kind) {
	case COUNT:
		return rg_parse_count(text, value);
	case TIME:
		return rg_parse_time(text, value);
	case SIZE:
		return rg_parse_size(text, value);
	default:
		return rg_parse_rate(text, value);
	}
}

/* "2GB/s/1GB/s:half": the slash between the rates is the second one. */
static int parse_bus(const struct key *k, char *text, struct hca_spec *spec)
{
	char *mode = strchr(text, ':');
	char *slash = strstr(text, "s/");
	uint64_t in, out;
	bool half = false;

	if (mode) {
		*mode++ = '\0';
		half = strcmp(mode, "half") == 0;
		if (!half && strcmp(mode, "full") != 0)
			return -EINVAL;
	}
	if (!slash)
		return -EINVAL;
	slash[1] = '\0';
	if (rg_parse_rate(text, &in) || rg_parse_rate(slash + 2, &out) ||
	    in < k->min || in > k->max || out < k->min || out > k->max)
		return -EINVAL;
	spec->bus_read = in;
	spec->bus_write = out;
	spec->bus_half = half;
	return 0;
}

static int parse_fraction(const char *text, uint64_t *field)
{
	uint32_t ppb;

	if (hca_fraction_parse(text, &ppb))
		return -EINVAL;
	*field = ppb;
	return 0;
}

/* "750MB/s+250MB/s" */
static int parse_rates(const struct key *k, char *text, struct hca_spec *spec)
{
	uint64_t rate[HCA_PORTS_MAX];
	char *next;
	int count = 0;

	for (; text; text = next) {
		next = strchr(text, '+');
		if (next)
			*next++ = '\0';
		if (count == HCA_PORTS_MAX || rg_parse_rate(text, &rate[count]) ||
		    rate[count] < k->min || rate[count] > k->max)
			return -EINVAL;
		count++;
	}
	for (int i = 0; i < HCA_PORTS_MAX; i++)
		spec->rate[i] = rate[i < count ? i : count - 1];
	spec->rate_count = (uint64_t)count;
	return 0;
}

/* "eth0+10.0.2.0/24"; -EEXIST: one of them twice. */
static int parse_nets(char *text, struct hca_spec *spec)
{
	char net[HCA_PORTS_MAX][HCA_NET_NAME] = { 0 }, *next;
	unsigned count = 0, i;

	if (strcmp(text, "none") == 0)
		text = NULL;
	for (; text; text = next, count++) {
		next = strchr(text, '+');
		if (next)
			*next++ = '\0';
		if (count == HCA_PORTS_MAX || strcmp(text, "none") == 0 ||
		    hca_netif_canonical(text, net[count], sizeof(net[count])))
			return -EINVAL;
		for (i = 0; i < count; i++)
			if (strcmp(net[i], net[count]) == 0)
				return -EEXIST;
	}
	memcpy(spec->net, net, sizeof(spec->net));
	spec->nets = count;
	return 0;
}

/* The changes replace a profile's changes to the same state. */
static int parse_changes(const char *text, bool up, struct hca_schedule *s)
{
	struct hca_schedule others = { 0 };
	uint32_t i;

	for (i = 0; i < s->count; i++)
		if (s->change[i].up != up)
			others.change[others.count++] = s->change[i];
	*s = others;
	return strcmp(text, "none") == 0 ? 0 : hca_schedule_parse(text, up, s);
}

static int parse_value(const struct key *k, char *text, struct hca_spec *spec)
{
	uint64_t *field = (uint64_t *)(void *)((char *)spec + k->offset);
	uint64_t value;

	if (k->kind == DOWN || k->kind == UP)
		return parse_changes(text, k->kind == UP, &spec->schedule);
	if (k->kind == FRACTION)
		return parse_fraction(text, field);
	if (k->kind == NETS)
		return parse_nets(text, spec);
	if (k->none && strcmp(text, "none") == 0) {
		*field = 0;
		if (k->kind == BUS) {
			spec->bus_write = 0;
			spec->bus_half = false;
		} else if (k->kind == RATES) {
			memset(spec->rate, 0, sizeof(spec->rate));
			spec->rate_count = 0;
		}
		return 0;
	}
	if (k->kind == BUS)
		return parse_bus(k, text, spec);
	if (k->kind == RATES)
		return parse_rates(k, text, spec);
	if (parse_number(k->kind, text, &value) || value < k->min || value > k->max ||
	    (k->kind == SIZE && (value & (value - 1))))
		return -EINVAL;
	*field = value;
	return 0;
}

/* ---- The string ---------------------------------------------------------- */

static void say_keys(char *why, size_t size, const char *what)
{
	struct hca_text t = { why, size, 0 };
	unsigned i;

	hca_append(&t, "spec: '%.40s': unknown key (accepted:", what);
	for (i = 0; i < KEYS; i++)
		hca_append(&t, " %s%s", keys[i].name, i + 1 < KEYS ? "," : ")");
}

static void say_profiles(char *why, size_t size, const char *what,
			 const struct hca_profiles *profiles)
{
	struct hca_text t = { why, size, 0 };
	unsigned i;

	hca_append(&t, "spec: '%.40s': unknown profile (accepted:", what);
	for (i = 0; i < profiles->count; i++)
		hca_append(&t, " %s%s", profiles->item[i].name,
		       i + 1 < profiles->count ? "," : ", then key=value...)");
}

/* A spec being parsed, its profiles included. */
struct parser {
	const struct hca_profiles *profiles;
	struct hca_spec *spec;
	uint32_t given;			/* keys by index, by any text */
	char *why;			/* the line of an error */
	size_t size;
};

static void say_item(const struct parser *p, const struct key *k, const char *value, int rc)
{
	if (rc == -E2BIG)
		snprintf(p->why, p->size, "spec: %s: too many (accepted: %d of down and up together)",
			 k->name, HCA_CHANGES_MAX);
	else if (rc == -EEXIST)
		snprintf(p->why, p->size, "spec: %s=%s: one is named twice (accepted: each once)",
			 k->name, value);
	else
		snprintf(p->why, p->size, "spec: %s=%s: not accepted (accepted: %s)", k->name, value,
			 k->accepted);
}

/* `given` detects a key that this text repeats. */
static int parse_item(struct parser *p, char *item, uint32_t *given)
{
	char *value = strchr(item, '=');
	char shown[64];
	unsigned i;
	int rc;

	if (value)
		*value++ = '\0';
	for (i = 0; i < KEYS && strcmp(keys[i].name, item) != 0; i++)
		;
	if (i == KEYS) {
		say_keys(p->why, p->size, item);
		return -EINVAL;
	}
	if (*given & 1u << i) {
		snprintf(p->why, p->size, "spec: %s: given twice (accepted: each key once)", item);
		return -EINVAL;
	}
	*given |= 1u << i;
	p->given |= 1u << i;
	snprintf(shown, sizeof(shown), "%s", value ? value : "");
	rc = value ? parse_value(&keys[i], value, p->spec) : -EINVAL;
	if (rc)
		say_item(p, &keys[i], shown, rc);
	return rc ? -EINVAL : 0;
}

static int parse_text(struct parser *p, const char *text, unsigned known);

/* A profile is one of the first `known` ones, so that definitions cannot be circular. */
static int parse_profile(struct parser *p, const char *name, unsigned known)
{
	const struct hca_profile *profile = hca_profile_find(p->profiles, name);

	if (!profile || profile >= &p->profiles->item[known]) {
		say_profiles(p->why, p->size, name, p->profiles);
		return -EINVAL;
	}
	return parse_text(p, profile->spec, (unsigned)(profile - p->profiles->item));
}

/* An empty text, or an empty first item, is skipped. */
static int parse_text(struct parser *p, const char *text, unsigned known)
{
	char copy[TEXT_MAX], *item, *next;
	uint32_t given = 0;
	int rc = 0;

	if (strlen(text) >= sizeof(copy)) {
		snprintf(p->why, p->size, "spec: longer than %zu characters", sizeof(copy) - 1);
		return -EINVAL;
	}
	strcpy(copy, text);
	for (item = copy; item && !rc; item = next) {
		next = strchr(item, ',');
		if (next)
			*next++ = '\0';
		if (item != copy || strchr(item, '='))
			rc = parse_item(p, item, &given);
		else if (*item)
			rc = parse_profile(p, item, known);
	}
	return rc;
}

static bool write_rates(const struct hca_spec *s, struct hca_text *t)
{
	char number[32];
	bool fits = true;

	for (uint64_t i = 0; i < hca_spec_rates(s); i++)
		fits &= hca_append(t, "%s%s", i ? "+" : "",
			       rg_format_rate(s->rate[i], number, sizeof(number)));
	return fits;
}

static bool write_nets(const struct hca_spec *s, struct hca_text *t)
{
	bool fits = true;
	unsigned i;

	for (i = 0; i < s->nets; i++)
		fits &= hca_append(t, "%s%s", i ? "+" : "", s->net[i]);
	return fits;
}

static bool write_value(const struct key *k, const struct hca_spec *spec, struct hca_text *t)
{
	const bool changes = k->kind == DOWN || k->kind == UP;
	uint64_t value;
	char number[32], other[32];

	if (k->kind == NETS)
		return write_nets(spec, t);
	value = *(const uint64_t *)(const void *)((const char *)spec + k->offset);
	if (k->none && !changes && value == 0)
		return hca_append(t, "none");
	switch (k->kind) {
	case COUNT:
	case SIZE:
		return hca_append(t, "%" PRIu64, value);
	case TIME:
		return hca_append(t, "%s", rg_format_time(value, number, sizeof(number)));
	case RATES:
		return write_rates(spec, t);
	case FRACTION:
		return hca_append(t, "%s", hca_fraction_format((uint32_t)value, number,
							   sizeof(number)));
	case DOWN:
	case UP:
		if (!hca_schedule_format(&spec->schedule, k->kind == UP, t->buf + t->used,
					 t->size - t->used))
			return false;
		t->used += strlen(t->buf + t->used);
		return true;
	case BUS:
		return hca_append(t, "%s/%s:%s", rg_format_rate(value, number, sizeof(number)),
			      rg_format_rate(spec->bus_write, other, sizeof(other)),
			      spec->bus_half ? "half" : "full");
	default:
		return hca_append(t, "%s", rg_format_rate(value, number, sizeof(number)));
	}
}

static bool write_canonical(struct hca_spec *spec)
{
	struct hca_text t = { spec->text, sizeof(spec->text), 0 };
	unsigned i;

	for (i = 0; i < KEYS; i++) {
		if (spec->nets ? !key_is_on_net(&keys[i]) : keys[i].kind == NETS)
			continue;
		if (!hca_append(&t, "%s%s=", t.used ? "," : "", keys[i].name) ||
		    !write_value(&keys[i], spec, &t))
			return false;
	}
	return true;
}

/* Called after all keys are parsed: `ports` follows from `net`, model keys exclude it. */
static int check_nets(struct parser *p)
{
	struct hca_spec *s = p->spec;
	unsigned i;

	for (i = 0; i < KEYS; i++) {
		struct hca_text t = { p->why, p->size, 0 };

		if (!(p->given & 1u << i) || key_is_on_net(&keys[i]))
			continue;
		hca_append(&t, "spec: %s=", keys[i].name);
		write_value(&keys[i], s, &t);
		hca_append(&t, ": no meaning with net=, whose ports are network interfaces (accepted: "
			   "net, ports, rate, reads)");
		return -EINVAL;
	}
	if (s->ports && s->ports != s->nets) {
		snprintf(p->why, p->size, "spec: ports=%" PRIu64 ": net= names %u (accepted: %u, or "
			 "no ports=)", s->ports, s->nets, s->nets);
		return -EINVAL;
	}
	s->ports = s->nets;
	return 0;
}

/* Called after all keys are parsed, since the ports that exist depend on them. */
static int check_schedule(const struct hca_spec *s, char *why, size_t size)
{
	char name[HCA_PORT_NAME];
	uint32_t i;

	for (i = 0; i < s->schedule.count; i++) {
		const struct hca_change *c = &s->schedule.change[i];

		if (hca_spec_has_port(s, &c->at))
			continue;
		snprintf(why, size, "spec: %s=%s: no such port (accepted: 0/soft0:1 to "
			 "%u/soft%u:%u)", c->up ? "up" : "down",
			 hca_port_name_format(&c->at, name, sizeof(name)), hca_spec_nodes(s) - 1,
			 (unsigned)s->hcas - 1, (unsigned)s->ports);
		return -EINVAL;
	}
	return 0;
}

uint32_t hca_spec_nodes(const struct hca_spec *s)
{
	/* LIDs end at 0xBFFF. */
	uint32_t most = s->nets ? 1 : 0xbfff / (uint32_t)(s->hcas * s->ports);

	return most < HCA_NODES_MAX ? most : HCA_NODES_MAX;
}

bool hca_spec_has_port(const struct hca_spec *s, const struct hca_port_name *name)
{
	return name->node < hca_spec_nodes(s) && name->hca < s->hcas && name->port >= 1 &&
	       name->port <= s->ports;
}

int hca_spec_parse_with(const struct hca_profiles *profiles, const char *text,
			struct hca_spec *spec, char *why, size_t why_size)
{
	struct hca_spec s = { 0 };
	struct parser p = { .profiles = profiles, .spec = &s, .why = why, .size = why_size };
	unsigned i;
	int rc;

	for (i = 0; i < KEYS; i++)
		if (keys[i].standard)
			*(uint64_t *)(void *)((char *)&s + keys[i].offset) = keys[i].standard;
	rc = parse_text(&p, text, profiles->count);
	if (!rc && s.nets)
		rc = check_nets(&p);
	if (!s.ports)
		s.ports = PORTS;
	if (!rc && s.rate_count > s.ports) {
		snprintf(why, why_size, "spec: rate: %u values for %u port%s (accepted: one for "
			 "all, or at most one for each)", (unsigned)s.rate_count,
			 (unsigned)s.ports, s.ports > 1 ? "s" : "");
		rc = -EINVAL;
	}
	if (!rc)
		rc = check_schedule(&s, why, why_size);
	if (rc)
		return rc;
	s.timed = !s.nets && (s.rate[0] || s.latency_ns || s.bus_read || s.cap || s.msg_ns ||
			      s.pkt_ns || s.cqe_ns || s.jitter_ns);
	if (!write_canonical(&s)) {
		snprintf(why, why_size, "spec: longer than %d characters when every key is written "
			 "out (accepted: fewer changes, fewer digits)", HCA_SPEC_MAX - 1);
		return -EINVAL;
	}
	*spec = s;
	return 0;
}

/* Files are read only for profiles that are not built in. */
int hca_spec_parse(const char *text, struct hca_spec *spec, char *why, size_t why_size)
{
	const size_t first = strcspn(text, ",");
	struct hca_profiles profiles;
	char name[64];
	int rc = 0;

	hca_profiles_own(&profiles);
	snprintf(name, sizeof(name), "%.*s", first < sizeof(name) ? (int)first : 0, text);
	if (*name && !strchr(name, '=') && !hca_profile_find(&profiles, name))
		rc = hca_profiles_load(&profiles, why, why_size);
	if (!rc)
		rc = hca_spec_parse_with(&profiles, text, spec, why, why_size);
	hca_profiles_free(&profiles);
	return rc;
}

/* ---- Public -------------------------------------------------------------- */

HCA_EXPORT int softhca_spec_check(const char *text, char *why, size_t why_size)
{
	struct hca_spec spec;

	return hca_spec_parse(text, &spec, why, why_size);
}

HCA_EXPORT int softhca_spec_canonical(const char *text, char *buf, size_t size)
{
	char why[256];
	struct hca_spec spec;
	int rc = hca_spec_parse(text, &spec, why, sizeof(why));

	if (rc)
		return hca_fail(-rc, "%s", why);
	if (strlen(spec.text) >= size)
		return hca_fail(ENOSPC, "spec: the buffer is too small");
	strcpy(buf, spec.text);
	return 0;
}
