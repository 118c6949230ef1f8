/* spec.c - the spec string: one table row per key. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "softhca/base/base.h"
#include "softhca/softhca.h"
#include "softhca/model/spec_key.h"

enum { TEXT_MAX = 2048, PORTS = 2 /* if not given */ };

bool hca_spec_key(unsigned i, const char **name, const char **accepted, const char **meaning)
{
	if (i >= hca_key_count)
		return false;
	*name = hca_keys[i].name;
	*accepted = hca_keys[i].accepted;
	*meaning = hca_keys[i].meaning;
	return true;
}

/* ---- The string ---------------------------------------------------------- */

static void say_keys(char *why, size_t size, const char *what)
{
	struct hca_text t = { why, size, 0 };
	unsigned i;

	hca_append(&t, "spec: '%.40s': unknown key (accepted:", what);
	for (i = 0; i < hca_key_count; i++)
		hca_append(&t, " %s%s", hca_keys[i].name, i + 1 < hca_key_count ? "," : ")");
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
	uint64_t given;			/* keys by index, by any text */
	char *why;			/* the line of an error */
	size_t size;
};

static void say_item(const struct parser *p, const struct hca_key *k, const char *value, int rc)
{
	if (rc == -E2BIG)
		snprintf(p->why, p->size, "spec: %s: too many (accepted: %d changes and events together)",
			 k->name, HCA_CHANGES_MAX);
	else if (rc == -EEXIST)
		snprintf(p->why, p->size, "spec: %s=%s: one is named twice (accepted: each once)",
			 k->name, value);
	else
		snprintf(p->why, p->size, "spec: %s=%s: not accepted (accepted: %s)", k->name, value,
			 k->accepted);
}

/* `given` detects a key that this text repeats. */
static int parse_item(struct parser *p, char *item, uint64_t *given)
{
	char *value = strchr(item, '=');
	char shown[64];
	unsigned i;
	int rc;

	if (value)
		*value++ = '\0';
	for (i = 0; i < hca_key_count && strcmp(hca_keys[i].name, item) != 0; i++)
		;
	if (i == hca_key_count) {
		say_keys(p->why, p->size, item);
		return -EINVAL;
	}
	if (*given & UINT64_C(1) << i) {
		snprintf(p->why, p->size, "spec: %s: given twice (accepted: each key once)", item);
		return -EINVAL;
	}
	*given |= UINT64_C(1) << i;
	p->given |= UINT64_C(1) << i;
	snprintf(shown, sizeof(shown), "%s", value ? value : "");
	rc = value ? hca_key_parse(&hca_keys[i], value, p->spec) : -EINVAL;
	if (rc)
		say_item(p, &hca_keys[i], shown, rc);
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

static const char like[] = "like=";

/* The items that are names for others, or all others. */
static int parse_items(struct parser *p, const char *text, unsigned known, bool names,
		       uint64_t *given)
{
	char copy[TEXT_MAX], *item, *next;
	int rc = 0;

	strcpy(copy, text);
	for (item = copy; item && !rc; item = next) {
		bool profile;

		next = strchr(item, ',');
		if (next)
			*next++ = '\0';
		profile = item == copy && !strchr(item, '=');
		if ((profile || strncmp(item, like, sizeof(like) - 1) == 0) != names)
			continue;
		if (!profile)
			rc = parse_item(p, item, given);
		else if (*item)
			rc = parse_profile(p, item, known);
	}
	return rc;
}

/* An empty text, or an empty first item, is skipped.  Names come first: keys override them. */
static int parse_text(struct parser *p, const char *text, unsigned known)
{
	uint64_t given = 0;
	int rc;

	if (strlen(text) >= TEXT_MAX) {
		snprintf(p->why, p->size, "spec: longer than %d characters (accepted: fewer)",
			 TEXT_MAX - 1);
		return -EINVAL;
	}
	rc = parse_items(p, text, known, true, &given);
	return rc ? rc : parse_items(p, text, known, false, &given);
}

static bool write_canonical(struct hca_spec *spec)
{
	struct hca_text t = { spec->text, sizeof(spec->text), 0 };
	unsigned i;

	for (i = 0; i < hca_key_count; i++) {
		if (spec->nets ? !hca_key_is_on_net(&hca_keys[i]) : hca_keys[i].kind == HCA_KIND_NETS)
			continue;
		if (hca_key_is_standard(&hca_keys[i], spec))
			continue;
		if (!hca_append(&t, "%s%s=", t.used ? "," : "", hca_keys[i].name) ||
		    !hca_key_format(&hca_keys[i], spec, &t))
			return false;
	}
	return true;
}

/* Called after all keys are parsed: `ports` follows from `net`, model keys exclude it. */
static int check_nets(struct parser *p)
{
	struct hca_spec *s = p->spec;
	unsigned i;

	for (i = 0; i < hca_key_count; i++) {
		struct hca_text t = { p->why, p->size, 0 };

		if (!(p->given & UINT64_C(1) << i) || hca_key_is_on_net(&hca_keys[i]))
			continue;
		hca_append(&t, "spec: %s=", hca_keys[i].name);
		hca_key_format(&hca_keys[i], s, &t);
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

static int check_port(const struct parser *p, const char *key, const struct hca_port_name *at)
{
	const struct hca_spec *s = p->spec;
	char name[HCA_PORT_NAME];

	if (hca_spec_has_port(s, at))
		return 0;
	snprintf(p->why, p->size, "spec: %s=%s: no such port (accepted: 0/soft0:1 to %u/soft%u:%u)",
		 key, hca_port_name_format(at, name, sizeof(name)), hca_spec_nodes(s) - 1,
		 (unsigned)s->hcas - 1, (unsigned)s->ports);
	return -EINVAL;
}

/* Called after all keys are parsed, since the ports that exist depend on them. */
static int check_ports(const struct parser *p)
{
	static const char *const names[] = {
		[HCA_CHANGE_DOWN] = "down", [HCA_CHANGE_UP] = "up", [HCA_CHANGE_FATAL] = "fatal",
		[HCA_CHANGE_EVENT] = "event",
	};
	const struct hca_spec *s = p->spec;
	uint32_t i;
	int rc = 0;

	for (i = 0; i < s->schedule.count && !rc; i++)
		rc = check_port(p, names[s->schedule.change[i].kind], &s->schedule.change[i].at);
	for (i = 0; i < s->unreached_count && !rc; i++) {
		rc = check_port(p, "reach", &s->unreached[i].a);
		if (!rc)
			rc = check_port(p, "reach", &s->unreached[i].b);
	}
	for (i = 0; i < hca_key_count && !rc; i++)
		if (!hca_trait_fits(&hca_keys[i], s)) {
			snprintf(p->why, p->size, "spec: %s: more values than ports (accepted: one "
				 "for all, or at most %u)", hca_keys[i].name, (unsigned)s->ports);
			rc = -EINVAL;
		}
	return rc;
}

static uint64_t largest_lid(const struct hca_spec *s)
{
	uint64_t most = 1;

	for (int n = 0; n < HCA_PERSONALITIES; n++)
		for (int port = 0; port < HCA_PORTS_MAX; port++)
			if (s->personality[n].lid[port] > most)
				most = s->personality[n].lid[port];
	return most;
}

uint32_t hca_spec_nodes(const struct hca_spec *s)
{
	/* LIDs end at 0xBFFF. */
	uint32_t most = s->nets ? 1 : (uint32_t)((0xc000 - largest_lid(s)) / (s->hcas * s->ports));

	return most < HCA_NODES_MAX ? most : HCA_NODES_MAX;
}

/* ---- Which ports reach each other ---------------------------------------- */

static bool same_network(const struct hca_personality *a, uint32_t i,
			 const struct hca_personality *b, uint32_t j)
{
	const bool ib = a->link[i] == HCA_LINK_IB;

	return ib == (b->link[j] == HCA_LINK_IB) && (!ib || a->prefix[i] == b->prefix[j]);
}

static bool is_divided(const struct hca_spec *s)
{
	const struct hca_personality *p = s->personality;

	for (int n = 0; n < HCA_PERSONALITIES; n++)
		for (uint32_t port = 0; port < s->ports; port++)
			if (!same_network(&p[0], 0, &p[n], port))
				return true;
	return s->unreached_count;
}

static uint32_t address_of(const struct hca_spec *s, const struct hca_port_name *n)
{
	return hca_address(s, n->node, n->hca, n->port);
}

bool hca_reaches(const struct hca_spec *s, uint32_t from, uint32_t to)
{
	const struct hca_personality *a, *b;
	uint32_t i, j;

	if (likely(!s->divided))
		return true;
	a = hca_personality_at(s, from, &i);
	b = hca_personality_at(s, to, &j);
	if (!same_network(a, i, b, j))
		return false;
	for (i = 0; i < s->unreached_count; i++) {
		uint32_t x = address_of(s, &s->unreached[i].a);
		uint32_t y = address_of(s, &s->unreached[i].b);

		if ((x == from && y == to) || (x == to && y == from))
			return false;
	}
	return true;
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
	int rc;

	hca_key_standards(&s);
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
		rc = check_ports(&p);
	if (rc)
		return rc;
	s.timed = !s.nets && (s.rate[0] || s.latency_ns || s.bus_read || s.cap || s.msg_ns ||
			      s.pkt_ns || s.cqe_ns || s.jitter_ns);
	s.divided = is_divided(&s);
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
	char why[HCA_WHY_MAX];
	struct hca_spec spec;
	int rc = hca_spec_parse(text, &spec, why, sizeof(why));

	if (rc)
		return hca_fail(-rc, "%s", why);
	if (strlen(spec.text) >= size)
		return hca_fail(ENOSPC, "spec: the buffer is too small");
	strcpy(buf, spec.text);
	return 0;
}
