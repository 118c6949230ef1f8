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

/* ---- Tables of ports ---------------------------------------------------------- */

/* Where a personality has the tables of its ports, and their entries as text. */
struct table {
	size_t entries, counts;		/* offsets: [HCA_PORTS_MAX][most], [HCA_PORTS_MAX] */
	size_t bytes;			/* of an entry */
	int most;
	int (*parse)(char *text, void *entry);
	bool (*write)(const void *entry, struct hca_text *t);
};

static int parse_pkey(char *text, void *entry)
{
	uint64_t value;
	int rc = parse_hex(text, 4, &value);

	if (!rc)
		*(uint16_t *)entry = (uint16_t)value;
	return rc;
}

static bool write_pkey(const void *entry, struct hca_text *t)
{
	return hca_append(t, "%04x", *(const uint16_t *)entry);
}

static const char *const gid_kinds[] = {
	[HCA_GID_GAP] = "gap", [HCA_GID_LL] = "ll", [HCA_GID_IP4] = "ip4",
	[HCA_GID_ALT4] = "alt4", [HCA_GID_IP6] = "ip6", [HCA_GID_SAME4] = "same4",
};

enum { GID_KINDS = sizeof(gid_kinds) / sizeof(*gid_kinds) };

/* "gap", "ll.v1", "ip4.v2!" */
static int parse_gid(char *text, void *entry)
{
	struct hca_gid_entry *e = entry;
	char *version = split(text, '.');
	size_t n = version ? strlen(version) : 0;

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

static bool write_gid(const void *entry, struct hca_text *t)
{
	const struct hca_gid_entry *e = entry;

	if (e->kind == HCA_GID_GAP)
		return hca_append(t, "%s", gid_kinds[HCA_GID_GAP]);
	return hca_append(t, "%s.v%d%s", gid_kinds[e->kind], e->v2 ? 2 : 1, e->fails ? "!" : "");
}

#define MEMBER(field) offsetof(struct hca_personality, field)

static const struct table pkey_table = {
	MEMBER(pkey), MEMBER(pkeys), sizeof(uint16_t), HCA_PKEYS_MAX, parse_pkey, write_pkey,
};
static const struct table gid_table = {
	MEMBER(gid), MEMBER(gids), sizeof(struct hca_gid_entry), HCA_GIDS_MAX, parse_gid, write_gid,
};

/* NULL: the key's values are scalars. */
static const struct table *table_of(const struct hca_key *k)
{
	return k->kind == HCA_KIND_PKEYS ? &pkey_table : k->kind == HCA_KIND_GIDS ? &gid_table : NULL;
}

static char *entries_of(const struct table *k, struct hca_personality *p, int port)
{
	return (char *)p + k->entries + (size_t)(port * k->most) * k->bytes;
}

static const char *const_entries_of(const struct table *k, const struct hca_personality *p, int port)
{
	return (const char *)p + k->entries + (size_t)(port * k->most) * k->bytes;
}

static uint8_t *counts_of(const struct table *k, struct hca_personality *p)
{
	return (uint8_t *)p + k->counts;
}

static int count_at(const struct table *k, const struct hca_personality *p, int port)
{
	return ((const uint8_t *)p + k->counts)[port];
}

/* "A:B", of one port. */
static int parse_table(const struct table *k, char *text, struct hca_personality *p, int port)
{
	char *entry = entries_of(k, p, port), *next;
	int n = 0;

	memset(entry, 0, (size_t)k->most * k->bytes);
	for (; text; text = next, n++, entry += k->bytes) {
		next = split(text, ':');
		if (n == k->most || k->parse(text, entry))
			return -EINVAL;
	}
	counts_of(k, p)[port] = (uint8_t)n;
	return 0;
}

/* "A:B+C:D": port 1, 2, ...; the last one also of all further ports. */
static int parse_tables(const struct table *k, char *text, struct hca_personality *p)
{
	char *next;
	int n = 0;

	for (; text; text = next, n++) {
		next = split(text, '+');
		if (n == HCA_PORTS_MAX || parse_table(k, text, p, n))
			return -EINVAL;
	}
	for (; n < HCA_PORTS_MAX; n++) {
		memcpy(entries_of(k, p, n), entries_of(k, p, n - 1), (size_t)k->most * k->bytes);
		counts_of(k, p)[n] = counts_of(k, p)[n - 1];
	}
	return 0;
}

static bool same_table(const struct table *k, const struct hca_personality *p, int port,
		       const struct hca_personality *q, int other)
{
	const int count = count_at(k, p, port);

	return count == count_at(k, q, other) &&
	       !memcmp(const_entries_of(k, p, port), const_entries_of(k, q, other), (size_t)count * k->bytes);
}

static bool write_tables(const struct table *k, const struct hca_personality *p, struct hca_text *t)
{
	int n = HCA_PORTS_MAX;
	bool fits = true;

	while (n > 1 && same_table(k, p, n - 2, p, n - 1))
		n--;
	for (int port = 0; port < n; port++)
		for (int i = 0; i < count_at(k, p, port); i++) {
			fits &= hca_append(t, "%s", i ? ":" : port ? "+" : "");
			fits &= k->write(const_entries_of(k, p, port) + (size_t)i * k->bytes, t);
		}
	return fits;
}

static void tables_standard(struct hca_personality *p)
{
	char pkeys[] = "ffff", gids[] = "ll.v2:ip4.v2";

	parse_tables(&pkey_table, pkeys, p);
	parse_tables(&gid_table, gids, p);
}

/* ---- Traits -------------------------------------------------------------- */

static bool is_trait(const struct hca_key *k)
{
	return k->scope != HCA_OF_FABRIC && k->kind != HCA_KIND_LIKE;
}

static void standard(struct hca_personality *p)
{
	unsigned i, port;

	memset(p, 0, sizeof(*p));
	for (i = 0; i < hca_key_count; i++) {
		const struct hca_key *k = &hca_keys[i];

		for (port = 0; is_trait(k) && !table_of(k) &&
			       port < (k->scope == HCA_OF_PORT ? HCA_PORTS_MAX : 1); port++)
			field_of(k, p)[port] = k->standard;
	}
	tables_standard(p);
}

void hca_traits_standard(struct hca_spec *spec)
{
	for (int n = 0; n < HCA_PERSONALITIES; n++)
		standard(&spec->personality[n]);
}

int hca_trait_parse_node(const struct hca_key *k, char *text, struct hca_personality *p)
{
	if (table_of(k))
		return parse_tables(table_of(k), text, p);
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
	const struct table *table = table_of(k);
	bool is = true;

	for (int port = 0; table && port < HCA_PORTS_MAX; port++)
		is &= same_table(table, a, port, b, port);
	return table ? is : memcmp(value_of(k, a), value_of(k, b),
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

			if (table_of(k) ? !same_table(table_of(k), p, last, p, port) :
					  value_of(k, p)[last] != value_of(k, p)[port])
				return false;
		}
	return true;
}

static bool write_node(const struct hca_key *k, const struct hca_personality *p,
		       struct hca_text *t)
{
	if (table_of(k))
		return write_tables(table_of(k), p, t);
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
