/* personality.c - values of personalities: of nodes, of ports, tables of ports. */
#include "softhca/model/personality.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "softhca/model/spec_key.h"

static uint64_t *field_of(const struct hca_key *k, struct hca_personality *p)
{
	return (uint64_t *)(void *)((char *)p + k->offset);
}

static const uint64_t *value_of(const struct hca_key *k, const struct hca_personality *p)
{
	return (const uint64_t *)(const void *)((const char *)p + k->offset);
}

/* Ends the text before the separator and returns what follows it; NULL: nothing does. */
static char *split(char *text, char separator)
{
	char *next = strchr(text, separator);

	if (next)
		*next++ = '\0';
	return next;
}

/* ---- Scalars ------------------------------------------------------------- */

/* The position of a word in "first|second". */
static int parse_word(const char *words, const char *text, uint64_t *value)
{
	size_t n = strlen(text);

	for (*value = 0; n; ++*value) {
		size_t width = strcspn(words, "|");

		if (width == n && strncmp(words, text, n) == 0)
			return 0;
		if (!words[width])
			break;
		words += width + 1;
	}
	return -EINVAL;
}

static bool write_word(const char *words, uint64_t value, struct hca_text *t)
{
	while (value--)
		words += strcspn(words, "|") + 1;
	return hca_append(t, "%.*s", (int)strcspn(words, "|"), words);
}

static int parse_hex(const char *text, size_t digits, uint64_t *value)
{
	const size_t n = strlen(text);

	if (!n || n > digits || strspn(text, "0123456789abcdefABCDEF") != n)
		return -EINVAL;
	*value = strtoull(text, NULL, 16);
	return 0;
}

static int parse_scalar(const struct hca_key *k, const char *text, uint64_t *value)
{
	if (k->kind == HCA_KIND_WORD)
		return parse_word(k->words, text, value);
	if (k->kind == HCA_KIND_PREFIX)
		return parse_hex(text, 16, value);
	if (k->none && strcmp(text, "none") == 0) {
		*value = HCA_NONE;
		return 0;
	}
	return hca_number_parse(k->kind, text, value) || *value < k->min || *value > k->max
		       ? -EINVAL : 0;
}

static bool write_scalar(const struct hca_key *k, uint64_t value, struct hca_text *t)
{
	if (k->kind == HCA_KIND_WORD)
		return write_word(k->words, value, t);
	if (k->kind == HCA_KIND_PREFIX)
		return hca_append(t, "%016" PRIx64, value);
	if (k->none && value == HCA_NONE)
		return hca_append(t, "none");
	return hca_append(t, "%" PRIu64, value);
}

/* "A+B": port 1, 2, ...; the last one also of all further ports. */
static int parse_ports(const struct hca_key *k, char *text, uint64_t to[HCA_PORTS_MAX])
{
	char *next;
	int n = 0;

	for (; text; text = next, n++) {
		next = split(text, '+');
		if (n == HCA_PORTS_MAX || parse_scalar(k, text, &to[n]))
			return -EINVAL;
	}
	for (; n < HCA_PORTS_MAX; n++)
		to[n] = to[n - 1];
	return 0;
}

static bool write_ports(const struct hca_key *k, const uint64_t *of, struct hca_text *t)
{
	int n = HCA_PORTS_MAX;
	bool fits = true;

	while (n > 1 && of[n - 2] == of[n - 1])
		n--;
	for (int i = 0; i < n; i++) {
		fits &= !i || hca_append(t, "+");
		fits &= write_scalar(k, of[i], t);
	}
	return fits;
}

/* ---- P_Keys -------------------------------------------------------------- */

static int parse_pkey_table(char *text, uint16_t *table, uint8_t *count)
{
	uint64_t value;
	char *next;

	memset(table, 0, HCA_PKEYS_MAX * sizeof(*table));
	for (*count = 0; text; text = next, ++*count) {
		next = split(text, ':');
		if (*count == HCA_PKEYS_MAX || parse_hex(text, 4, &value))
			return -EINVAL;
		table[*count] = (uint16_t)value;
	}
	return 0;
}

int hca_pkeys_parse(char *text, struct hca_personality *p)
{
	char *next;
	int n = 0;

	for (; text; text = next, n++) {
		next = split(text, '+');
		if (n == HCA_PORTS_MAX || parse_pkey_table(text, p->pkey[n], &p->pkeys[n]))
			return -EINVAL;
	}
	for (; n < HCA_PORTS_MAX; n++) {
		memcpy(p->pkey[n], p->pkey[n - 1], sizeof(p->pkey[n]));
		p->pkeys[n] = p->pkeys[n - 1];
	}
	return 0;
}

static bool same_pkeys(const struct hca_personality *p, int a, int b)
{
	return p->pkeys[a] == p->pkeys[b] &&
	       memcmp(p->pkey[a], p->pkey[b], p->pkeys[a] * sizeof(p->pkey[a][0])) == 0;
}

bool hca_pkeys_format(const struct hca_personality *p, struct hca_text *t)
{
	int n = HCA_PORTS_MAX;
	bool fits = true;

	while (n > 1 && same_pkeys(p, n - 2, n - 1))
		n--;
	for (int port = 0; port < n; port++)
		for (int i = 0; i < p->pkeys[port]; i++)
			fits &= hca_append(t, "%s%04x", i ? ":" : port ? "+" : "",
					   p->pkey[port][i]);
	return fits;
}

/* ---- GIDs ---------------------------------------------------------------- */

static const char *const gid_kinds[] = {
	[HCA_GID_GAP] = "gap", [HCA_GID_LL] = "ll", [HCA_GID_IP4] = "ip4",
	[HCA_GID_ALT4] = "alt4", [HCA_GID_IP6] = "ip6",
};

enum { GID_KINDS = sizeof(gid_kinds) / sizeof(*gid_kinds) };

/* "gap", "ll.v1", "ip4.v2!" */
static int parse_gid(char *text, struct hca_gid_entry *e)
{
	char *version = split(text, '.');
	size_t n = version ? strlen(version) : 0;

	*e = (struct hca_gid_entry){ 0 };
	if (!version)
		return strcmp(text, gid_kinds[HCA_GID_GAP]) == 0 ? 0 : -EINVAL;
	e->fails = n && version[n - 1] == '!';
	if (e->fails)
		version[n - 1] = '\0';
	e->v2 = strcmp(version, "v2") == 0;
	if (!e->v2 && strcmp(version, "v1") != 0)
		return -EINVAL;
	for (e->kind = HCA_GID_LL; e->kind < GID_KINDS; e->kind++)
		if (strcmp(text, gid_kinds[e->kind]) == 0)
			return 0;
	return -EINVAL;
}

static int parse_gid_table(char *text, struct hca_gid_entry *table, uint8_t *count)
{
	char *next;

	memset(table, 0, HCA_GIDS_MAX * sizeof(*table));
	for (*count = 0; text; text = next, ++*count) {
		next = split(text, ':');
		if (*count == HCA_GIDS_MAX || parse_gid(text, &table[*count]))
			return -EINVAL;
	}
	return 0;
}

int hca_gids_parse(char *text, struct hca_personality *p)
{
	char *next;
	int n = 0;

	for (; text; text = next, n++) {
		next = split(text, '+');
		if (n == HCA_PORTS_MAX || parse_gid_table(text, p->gid[n], &p->gids[n]))
			return -EINVAL;
	}
	for (; n < HCA_PORTS_MAX; n++) {
		memcpy(p->gid[n], p->gid[n - 1], sizeof(p->gid[n]));
		p->gids[n] = p->gids[n - 1];
	}
	return 0;
}

static bool same_gids(const struct hca_personality *p, int a, int b)
{
	return p->gids[a] == p->gids[b] &&
	       memcmp(p->gid[a], p->gid[b], p->gids[a] * sizeof(p->gid[a][0])) == 0;
}

static bool write_gid(const struct hca_gid_entry *e, struct hca_text *t)
{
	if (e->kind == HCA_GID_GAP)
		return hca_append(t, "%s", gid_kinds[HCA_GID_GAP]);
	return hca_append(t, "%s.v%d%s", gid_kinds[e->kind], e->v2 ? 2 : 1, e->fails ? "!" : "");
}

bool hca_gids_format(const struct hca_personality *p, struct hca_text *t)
{
	int n = HCA_PORTS_MAX;
	bool fits = true;

	while (n > 1 && same_gids(p, n - 2, n - 1))
		n--;
	for (int port = 0; port < n; port++)
		for (int i = 0; i < p->gids[port]; i++) {
			fits &= hca_append(t, "%s", i ? ":" : port ? "+" : "");
			fits &= write_gid(&p->gid[port][i], t);
		}
	return fits;
}

void hca_tables_standard(struct hca_personality *p)
{
	char key[] = "ffff", gids[] = "ll.v2:ip4.v2";

	hca_pkeys_parse(key, p);
	hca_gids_parse(gids, p);
}

/* ---- Traits -------------------------------------------------------------- */

static bool is_trait(const struct hca_key *k)
{
	return k->scope != HCA_OF_FABRIC && k->kind != HCA_KIND_LIKE;
}

static bool is_scalar(const struct hca_key *k)
{
	return k->kind != HCA_KIND_PKEYS && k->kind != HCA_KIND_GIDS;
}

static void standard(struct hca_personality *p)
{
	unsigned i, port;

	memset(p, 0, sizeof(*p));
	for (i = 0; i < hca_key_count; i++) {
		const struct hca_key *k = &hca_keys[i];

		for (port = 0; is_trait(k) && is_scalar(k) &&
			       port < (k->scope == HCA_OF_PORT ? HCA_PORTS_MAX : 1); port++)
			field_of(k, p)[port] = k->standard;
	}
	hca_tables_standard(p);
}

void hca_traits_standard(struct hca_spec *spec)
{
	for (int n = 0; n < HCA_PERSONALITIES; n++)
		standard(&spec->personality[n]);
}

int hca_trait_parse_node(const struct hca_key *k, char *text, struct hca_personality *p)
{
	if (k->kind == HCA_KIND_PKEYS)
		return hca_pkeys_parse(text, p);
	if (k->kind == HCA_KIND_GIDS)
		return hca_gids_parse(text, p);
	return k->scope == HCA_OF_PORT ? parse_ports(k, text, field_of(k, p))
				       : parse_scalar(k, text, field_of(k, p));
}

/* "A/B": node 0, 1, ...; the last one also of all further nodes. */
int hca_trait_parse(const struct hca_key *k, char *text, struct hca_spec *spec)
{
	char piece[HCA_SPEC_MAX], *next;
	int n = 0, rc = 0;

	for (; text && !rc; text = next) {
		next = split(text, '/');
		if (n == HCA_PERSONALITIES || strlen(text) >= sizeof(piece))
			return -EINVAL;
		/* A parser takes its text apart; the last value is of several nodes. */
		do {
			strcpy(piece, text);
			rc = hca_trait_parse_node(k, piece, &spec->personality[n++]);
		} while (!rc && !next && n < HCA_PERSONALITIES);
	}
	return rc;
}

static bool same(const struct hca_key *k, const struct hca_personality *a,
		 const struct hca_personality *b)
{
	if (k->kind == HCA_KIND_PKEYS)
		return memcmp(a->pkey, b->pkey, sizeof(a->pkey)) == 0 &&
		       memcmp(a->pkeys, b->pkeys, sizeof(a->pkeys)) == 0;
	if (k->kind == HCA_KIND_GIDS)
		return memcmp(a->gid, b->gid, sizeof(a->gid)) == 0 &&
		       memcmp(a->gids, b->gids, sizeof(a->gids)) == 0;
	return memcmp(value_of(k, a), value_of(k, b),
		      (k->scope == HCA_OF_PORT ? HCA_PORTS_MAX : 1) * sizeof(uint64_t)) == 0;
}

bool hca_trait_is_standard(const struct hca_key *k, const struct hca_spec *spec)
{
	struct hca_personality p;

	if (!is_trait(k))
		return true;
	standard(&p);
	for (int n = 0; n < HCA_PERSONALITIES; n++)
		if (!same(k, &p, &spec->personality[n]))
			return false;
	return true;
}

bool hca_trait_fits(const struct hca_key *k, const struct hca_spec *spec)
{
	const int last = (int)spec->ports - 1;

	for (int n = 0; k->scope == HCA_OF_PORT && n < HCA_PERSONALITIES; n++)
		for (int port = last + 1; port < HCA_PORTS_MAX; port++) {
			const struct hca_personality *p = &spec->personality[n];
			bool fits = k->kind == HCA_KIND_PKEYS ? same_pkeys(p, last, port) :
				    k->kind == HCA_KIND_GIDS ? same_gids(p, last, port) :
				    value_of(k, p)[last] == value_of(k, p)[port];

			if (!fits)
				return false;
		}
	return true;
}

static bool write_node(const struct hca_key *k, const struct hca_personality *p,
		       struct hca_text *t)
{
	if (k->kind == HCA_KIND_PKEYS)
		return hca_pkeys_format(p, t);
	if (k->kind == HCA_KIND_GIDS)
		return hca_gids_format(p, t);
	return k->scope == HCA_OF_PORT ? write_ports(k, value_of(k, p), t)
				       : write_scalar(k, *value_of(k, p), t);
}

bool hca_trait_format(const struct hca_key *k, const struct hca_spec *spec, struct hca_text *t)
{
	const struct hca_personality *p = spec->personality;
	int n = HCA_PERSONALITIES;
	bool fits = true;

	if (k->kind == HCA_KIND_LIKE)
		return hca_append(t, "...");
	while (n > 1 && same(k, &p[n - 2], &p[n - 1]))
		n--;
	for (int i = 0; i < n; i++) {
		fits &= !i || hca_append(t, "/");
		fits &= write_node(k, &p[i], t);
	}
	return fits;
}
