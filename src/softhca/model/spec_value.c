/* spec_value.c - the values of keys: parsed, and written. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "softhca/base/netif.h"
#include "softhca/model/spec_key.h"
#include "util/units.h"

/* "2GB/s/1GB/s:half": the slash between the rates is the second one. */
static int parse_bus(const struct hca_key *k, char *text, struct hca_spec *spec)
{
	char *mode = strchr(text, ':');
	char *slash = strstr(text, "s/");
	uint64_t in, out;
	bool half = false;

	if (strcmp(text, "none") == 0) {
		spec->bus_read = spec->bus_write = 0;
		spec->bus_half = false;
		return 0;
	}
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
static int parse_rates(const struct hca_key *k, char *text, struct hca_spec *spec)
{
	uint64_t rate[HCA_PORTS_MAX];
	char *next;
	int count = 0;

	if (strcmp(text, "none") == 0) {
		memset(spec->rate, 0, sizeof(spec->rate));
		spec->rate_count = 0;
		return 0;
	}
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

/* The changes replace a profile's changes of the same kind. */
static int parse_changes(const char *text, enum hca_change_kind kind, struct hca_schedule *s)
{
	struct hca_schedule others = { 0 };
	uint32_t i;

	for (i = 0; i < s->count; i++)
		if (s->change[i].kind != kind)
			others.change[others.count++] = s->change[i];
	*s = others;
	return strcmp(text, "none") == 0 ? 0 : hca_schedule_parse(text, kind, s);
}

/* "0/soft0:1-1/soft0:1": a name has no '-'. */
static int parse_pair(char *text, struct hca_port_pair *pair)
{
	char *other = strchr(text, '-');

	if (!other)
		return -EINVAL;
	*other++ = '\0';
	return hca_port_name_parse(text, &pair->a) && hca_port_name_parse(other, &pair->b)
		       ? 0 : -EINVAL;
}

static int parse_pairs(char *text, struct hca_spec *spec)
{
	char *next;

	spec->unreached_count = 0;
	if (strcmp(text, "none") == 0)
		return 0;
	for (; text; text = next) {
		next = strchr(text, '+');
		if (next)
			*next++ = '\0';
		if (spec->unreached_count == HCA_PAIRS_MAX ||
		    parse_pair(text, &spec->unreached[spec->unreached_count++]))
			return -EINVAL;
	}
	return 0;
}

/* A number, or `none` where that is accepted. */
static int parse_one(const struct hca_key *k, char *text, struct hca_spec *spec)
{
	uint64_t *field = (uint64_t *)(void *)((char *)spec + k->offset), value;

	if (k->none && strcmp(text, "none") == 0) {
		*field = 0;
		return 0;
	}
	if (hca_number_parse(k->kind, text, &value) || value < k->min || value > k->max ||
	    (k->kind == HCA_KIND_SIZE && (value & (value - 1))))
		return -EINVAL;
	*field = value;
	return 0;
}

int hca_key_parse(const struct hca_key *k, char *text, struct hca_spec *spec)
{
	if (k->kind == HCA_KIND_LIKE)
		return hca_like_parse(text, spec);
	if (k->scope != HCA_OF_FABRIC)
		return hca_trait_parse(k, text, spec);
	switch (k->kind) {
	case HCA_KIND_CHANGES:
		return parse_changes(text, (enum hca_change_kind)k->standard, &spec->schedule);
	case HCA_KIND_PAIRS:
		return parse_pairs(text, spec);
	case HCA_KIND_FRACTION:
		return parse_fraction(text, (uint64_t *)(void *)((char *)spec + k->offset));
	case HCA_KIND_NETS:
		return parse_nets(text, spec);
	case HCA_KIND_BUS:
		return parse_bus(k, text, spec);
	case HCA_KIND_RATES:
		return parse_rates(k, text, spec);
	default:
		return parse_one(k, text, spec);
	}
}

void hca_key_standards(struct hca_spec *spec)
{
	for (unsigned i = 0; i < hca_key_count; i++)
		if (hca_keys[i].scope == HCA_OF_FABRIC && hca_keys[i].kind != HCA_KIND_CHANGES &&
		    hca_keys[i].standard)
			*(uint64_t *)(void *)((char *)spec + hca_keys[i].offset) =
				hca_keys[i].standard;
	hca_traits_standard(spec);
}

/* ---- Written ------------------------------------------------------------- */

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

static bool write_changes(enum hca_change_kind kind, const struct hca_spec *s,
			  struct hca_text *t)
{
	if (!hca_schedule_format(&s->schedule, kind, t->buf + t->used, t->size - t->used))
		return false;
	t->used += strlen(t->buf + t->used);
	return true;
}

static bool write_pairs(const struct hca_spec *s, struct hca_text *t)
{
	char a[HCA_PORT_NAME], b[HCA_PORT_NAME];
	bool fits = s->unreached_count ? true : hca_append(t, "none");

	for (unsigned i = 0; i < s->unreached_count; i++)
		fits &= hca_append(t, "%s%s-%s", i ? "+" : "",
				   hca_port_name_format(&s->unreached[i].a, a, sizeof(a)),
				   hca_port_name_format(&s->unreached[i].b, b, sizeof(b)));
	return fits;
}

static bool write_bus(const struct hca_spec *s, struct hca_text *t)
{
	char in[32], out[32];

	return hca_append(t, "%s/%s:%s", rg_format_rate(s->bus_read, in, sizeof(in)),
			  rg_format_rate(s->bus_write, out, sizeof(out)),
			  s->bus_half ? "half" : "full");
}

static bool write_number(const struct hca_key *k, uint64_t value, struct hca_text *t)
{
	char number[32];

	switch (k->kind) {
	case HCA_KIND_TIME:
		return hca_append(t, "%s", rg_format_time(value, number, sizeof(number)));
	case HCA_KIND_FRACTION:
		return hca_append(t, "%s", hca_fraction_format((uint32_t)value, number,
							       sizeof(number)));
	case HCA_KIND_RATE:
		return hca_append(t, "%s", rg_format_rate(value, number, sizeof(number)));
	default:
		return hca_append(t, "%" PRIu64, value);
	}
}

bool hca_key_format(const struct hca_key *k, const struct hca_spec *spec, struct hca_text *t)
{
	uint64_t value;

	if (k->scope != HCA_OF_FABRIC)
		return hca_trait_format(k, spec, t);
	if (k->kind == HCA_KIND_NETS)
		return write_nets(spec, t);
	if (k->kind == HCA_KIND_CHANGES)
		return write_changes((enum hca_change_kind)k->standard, spec, t);
	if (k->kind == HCA_KIND_PAIRS)
		return write_pairs(spec, t);
	value = *(const uint64_t *)(const void *)((const char *)spec + k->offset);
	if (k->none && value == 0)
		return hca_append(t, "none");
	if (k->kind == HCA_KIND_RATES)
		return write_rates(spec, t);
	return k->kind == HCA_KIND_BUS ? write_bus(spec, t) : write_number(k, value, t);
}

static bool has_change(const struct hca_schedule *s, uint64_t kind)
{
	for (uint32_t i = 0; i < s->count; i++)
		if (s->change[i].kind == kind)
			return true;
	return false;
}

bool hca_key_is_standard(const struct hca_key *k, const struct hca_spec *spec)
{
	if (k->scope != HCA_OF_FABRIC)
		return hca_trait_is_standard(k, spec);
	if (k->kind == HCA_KIND_CHANGES && k->standard > HCA_CHANGE_UP)
		return !has_change(&spec->schedule, k->standard);
	return k->kind == HCA_KIND_PAIRS && !spec->unreached_count;
}
