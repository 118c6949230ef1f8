/* spec.c - the spec string: one table row per key. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base.h"
#include "softhca.h"
#include "spec.h"
#include "units.h"

const struct hca_profile hca_profiles[] = {
	{ "ideal", "", "one adapter with two ports, untimed: as fast as this machine's memory" },
	{ NULL, NULL, NULL },
};

enum kind {
	COUNT,		/* 0 spelled `none` where the row allows it */
	RATE,
	TIME,
	SIZE,
	BUS,		/* READ/WRITE[:half|full] */
	LATER,		/* understood, refused: not yet */
};

struct key {
	const char *name;
	enum kind kind;
	size_t offset;
	uint64_t standard, min, max;
	bool none;			/* `none`: no limit */
	const char *accepted;
	const char *meaning;
	int (*check)(const char *value);	/* LATER: is it well formed? */
};

static int check_fraction(const char *value);
static int check_duration(const char *value);
static int check_count(const char *value);
static int check_fault(const char *value);

#define FIELD(f) offsetof(struct hca_spec, f)
#define SECOND 1000000000ull

/* In canonical order. */
static const struct key keys[] = {
	{ "hcas", COUNT, FIELD(hcas), 1, 1, HCA_HCAS_MAX, false, "1 to 8",
	  "adapters per node", NULL },
	{ "ports", COUNT, FIELD(ports), 2, 1, HCA_PORTS_MAX, false, "1 to 8",
	  "ports per adapter", NULL },
	{ "rate", RATE, FIELD(rate), 0, 1000, 1000000000000ull, true,
	  "1kB/s to 1000GB/s, or none", "of each port, per direction", NULL },
	{ "latency", TIME, FIELD(latency_ns), 0, 0, 10 * SECOND, false, "0 to 10s with a unit",
	  "one way: the wire and both adapters", NULL },
	{ "bus", BUS, FIELD(bus_read), 0, 1000, 1000000000000ull, true,
	  "READ/WRITE[:half|full] with rates such as 2GB/s/2GB/s:full, or none",
	  "host bus of an adapter; half: both directions share it", NULL },
	{ "cap", RATE, FIELD(cap), 0, 1000, 1000000000000ull, true,
	  "1kB/s to 1000GB/s, or none", "of an adapter, per direction, all its ports together",
	  NULL },
	{ "msg", TIME, FIELD(msg_ns), 0, 0, SECOND, false, "0 to 1s with a unit",
	  "a port's time per message", NULL },
	{ "pkt", TIME, FIELD(pkt_ns), 0, 0, SECOND, false, "0 to 1s with a unit",
	  "a port's time per packet", NULL },
	{ "mtu", SIZE, FIELD(mtu), 4096, 256, 4096, false, "256, 512, 1024, 2048 or 4096",
	  "largest packet", NULL },
	{ "window", COUNT, FIELD(window), 0, 1, 1 << 20, true, "1 to 1048576 packets, or none",
	  "unacknowledged packets per queue pair", NULL },
	{ "outstanding", COUNT, FIELD(outstanding), 0, 1, 1 << 20, true,
	  "1 to 1048576 messages, or none", "unacknowledged messages per queue pair", NULL },
	{ "reads", COUNT, FIELD(reads), 16, 1, 128, false, "1 to 128",
	  "RDMA reads in flight per queue pair", NULL },
	{ "loss", LATER, 0, 0, 0, 0, false, "0 to 1", "share of packets lost", check_fraction },
	{ "jitter", LATER, 0, 0, 0, 0, false, "a time with a unit", "spread of the latency",
	  check_duration },
	{ "seed", LATER, 0, 0, 0, 0, false, "a whole number", "of loss and jitter", check_count },
	{ "down", LATER, 0, 0, 0, 0, false, "PORT@WHEN such as 1/soft0:2@10ms",
	  "a port goes down", check_fault },
	{ "up", LATER, 0, 0, 0, 0, false, "PORT@WHEN such as 1/soft0:2@20ms",
	  "a port comes back", check_fault },
};

enum { KEYS = sizeof(keys) / sizeof(*keys) };

bool hca_spec_key(unsigned i, const char **name, const char **accepted, const char **meaning)
{
	if (i >= KEYS || keys[i].kind == LATER)
		return false;
	*name = keys[i].name;
	*accepted = keys[i].accepted;
	*meaning = keys[i].meaning;
	return true;
}

static int check_fraction(const char *value)
{
	size_t digits = strspn(value, "0123456789");

	if (strcmp(value, "1") == 0 || strcmp(value, "0") == 0)
		return 0;
	return digits == 1 && value[0] == '0' && value[1] == '.' && value[2] &&
	       strspn(value + 2, "0123456789") == strlen(value + 2) ? 0 : -EINVAL;
}

static int check_duration(const char *value)
{
	uint64_t ns;

	return rg_parse_time(value, &ns);
}

static int check_count(const char *value)
{
	uint64_t n;

	return rg_parse_count(value, &n);
}

static int check_fault(const char *value)
{
	const char *at = strchr(value, '@');
	uint64_t ns;

	return at && at > value ? rg_parse_time(at + 1, &ns) : -EINVAL;
}

/* Append, never beyond the buffer; false once something did not fit. */
struct text {
	char *buf;
	size_t size, used;
};

__attribute__((format(printf, 2, 3))) static bool append(struct text *t, const char *fmt, ...)
{
	va_list args;
	int n;

	va_start(args, fmt);
	n = vsnprintf(t->buf + t->used, t->size - t->used, fmt, args);
	va_end(args);
	if (n < 0 || (size_t)n >= t->size - t->used) {
		t->used = t->size - 1;
		return false;
	}
	t->used += (size_t)n;
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

static int parse_value(const struct key *k, char *text, struct hca_spec *spec)
{
	uint64_t *field = (uint64_t *)(void *)((char *)spec + k->offset);
	uint64_t value;

	if (k->kind == LATER)
		return k->check(text) ? -EINVAL : -EOPNOTSUPP;
	if (k->none && strcmp(text, "none") == 0) {
		*field = 0;
		if (k->kind == BUS) {
			spec->bus_write = 0;
			spec->bus_half = false;
		}
		return 0;
	}
	if (k->kind == BUS)
		return parse_bus(k, text, spec);
	if (parse_number(k->kind, text, &value) || value < k->min || value > k->max ||
	    (k->kind == SIZE && (value & (value - 1))))
		return -EINVAL;
	*field = value;
	return 0;
}

/* ---- The string ---------------------------------------------------------- */

static const struct hca_profile *profile_find(const char *name)
{
	const struct hca_profile *p;

	for (p = hca_profiles; p->name; p++)
		if (strcmp(p->name, name) == 0)
			return p;
	return NULL;
}

static void say_keys(char *why, size_t size, const char *what)
{
	struct text t = { why, size, 0 };
	unsigned i;

	append(&t, "spec: '%.40s': unknown key (accepted:", what);
	for (i = 0; i < KEYS; i++)
		append(&t, " %s%s", keys[i].name, i + 1 < KEYS ? "," : ")");
}

static void say_profiles(char *why, size_t size, const char *what)
{
	struct text t = { why, size, 0 };
	const struct hca_profile *p;

	append(&t, "spec: '%.40s': unknown profile (accepted:", what);
	for (p = hca_profiles; p->name; p++)
		append(&t, " %s%s", p->name, p[1].name ? "," : ", then key=value...)");
}

static int parse_item(char *item, struct hca_spec *spec, uint32_t *given, char *why, size_t size)
{
	char *value = strchr(item, '=');
	char shown[48];
	unsigned i;
	int rc;

	if (value)
		*value++ = '\0';
	for (i = 0; i < KEYS && strcmp(keys[i].name, item) != 0; i++)
		;
	if (i == KEYS) {
		say_keys(why, size, item);
		return -EINVAL;
	}
	if (*given & 1u << i) {
		snprintf(why, size, "spec: %s: given twice (accepted: each key once)", item);
		return -EINVAL;
	}
	*given |= 1u << i;
	snprintf(shown, sizeof(shown), "%s", value ? value : "");
	rc = value ? parse_value(&keys[i], value, spec) : -EINVAL;
	if (rc == -EOPNOTSUPP)
		snprintf(why, size, "spec: %s=%s: understood, but not yet in this version", item,
			 shown);
	else if (rc)
		snprintf(why, size, "spec: %s=%s: not accepted (accepted: %s)", item, shown,
			 keys[i].accepted);
	return rc ? -EINVAL : 0;
}

/* Items of a profile or of the user's string; `given` guards against a key twice. */
static int parse_items(const char *text, bool user, struct hca_spec *spec, char *why, size_t size)
{
	char copy[1024], *item, *next;
	uint32_t given = 0;
	int rc = 0;

	if (strlen(text) >= sizeof(copy)) {
		snprintf(why, size, "spec: longer than %zu characters", sizeof(copy) - 1);
		return -EINVAL;
	}
	strcpy(copy, text);
	for (item = copy; item && !rc; item = next) {
		const struct hca_profile *p;

		next = strchr(item, ',');
		if (next)
			*next++ = '\0';
		if (user && item == copy && !strchr(item, '=')) {
			p = *item ? profile_find(item) : hca_profiles;
			if (!p) {
				say_profiles(why, size, item);
				return -EINVAL;
			}
			rc = parse_items(p->spec, false, spec, why, size);
		} else if (*item || user) {
			rc = parse_item(item, spec, &given, why, size);
		}
	}
	return rc;
}

static bool write_value(const struct key *k, const struct hca_spec *spec, struct text *t)
{
	uint64_t value = *(const uint64_t *)(const void *)((const char *)spec + k->offset);
	char number[32], other[32];

	if (k->none && value == 0)
		return append(t, "none");
	switch (k->kind) {
	case COUNT:
	case SIZE:
		return append(t, "%" PRIu64, value);
	case TIME:
		return append(t, "%s", rg_format_time(value, number, sizeof(number)));
	case BUS:
		return append(t, "%s/%s:%s", rg_format_rate(value, number, sizeof(number)),
			      rg_format_rate(spec->bus_write, other, sizeof(other)),
			      spec->bus_half ? "half" : "full");
	default:
		return append(t, "%s", rg_format_rate(value, number, sizeof(number)));
	}
}

static bool write_canonical(struct hca_spec *spec)
{
	struct text t = { spec->text, sizeof(spec->text), 0 };
	unsigned i;

	for (i = 0; i < KEYS; i++)
		if (keys[i].kind != LATER &&
		    (!append(&t, "%s%s=", i ? "," : "", keys[i].name) ||
		     !write_value(&keys[i], spec, &t)))
			return false;
	return true;
}

int hca_spec_parse(const char *text, struct hca_spec *spec, char *why, size_t why_size)
{
	struct hca_spec s = { 0 };
	unsigned i;
	int rc;

	for (i = 0; i < KEYS; i++)
		if (keys[i].kind != LATER && keys[i].kind != BUS)
			*(uint64_t *)(void *)((char *)&s + keys[i].offset) = keys[i].standard;
	rc = parse_items(text, true, &s, why, why_size);
	if (rc)
		return rc;
	s.timed = s.rate || s.latency_ns || s.bus_read || s.cap || s.msg_ns || s.pkt_ns;
	if (!write_canonical(&s)) {
		snprintf(why, why_size, "spec: more digits than %d characters can hold",
			 HCA_SPEC_MAX - 1);
		return -EINVAL;
	}
	*spec = s;
	return 0;
}

/* "1GB/s" -> "1 GB/s" */
static const char *spaced(const char *text, char *buf, size_t size)
{
	int digits = (int)strspn(text, "0123456789.");

	snprintf(buf, size, "%.*s %s", digits, text, text + digits);
	return buf;
}

void hca_spec_describe(const struct hca_spec *s, char *buf, size_t size)
{
	struct text t = { buf, size, 0 };
	char number[32], one[40], two[40];

	if (s->hcas > 1)
		append(&t, "%" PRIu64 " adapters with ", s->hcas);
	append(&t, "%" PRIu64 " port%s", s->ports, s->ports > 1 ? "s" : "");
	if (!s->timed)
		append(&t, ", untimed");
	if (s->rate)
		append(&t, ", %s per port and direction",
		       spaced(rg_format_rate(s->rate, number, sizeof(number)), one, sizeof(one)));
	if (s->latency_ns)
		append(&t, ", %s", spaced(rg_format_time(s->latency_ns, number, sizeof(number)),
					  one, sizeof(one)));
	if (s->cap)
		append(&t, ", adapter %s",
		       spaced(rg_format_rate(s->cap, number, sizeof(number)), one, sizeof(one)));
	if (s->bus_read) {
		spaced(rg_format_rate(s->bus_read, number, sizeof(number)), one, sizeof(one));
		spaced(rg_format_rate(s->bus_write, number, sizeof(number)), two, sizeof(two));
		append(&t, ", bus %s read, %s write%s", one, two,
		       s->bus_half ? ", half duplex" : "");
	}
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
