/*
 * spec_key.h - the keys of a spec: a row each, and the text of their values.
 */
#ifndef HCA_SPEC_KEY_H
#define HCA_SPEC_KEY_H

#include "softhca/model/spec.h"
#include "softhca/model/text.h"

enum hca_kind {
	HCA_KIND_COUNT,		/* 0 spelled `none` where the row allows it */
	HCA_KIND_RATE,
	HCA_KIND_RATES,		/* RATE+RATE...: port 1, 2, ...; the last one also for all later ports */
	HCA_KIND_TIME,
	HCA_KIND_SIZE,		/* a power of two */
	HCA_KIND_BYTES,		/* any number of bytes */
	HCA_KIND_BUS,		/* READ/WRITE[:half|full] */
	HCA_KIND_FRACTION,		/* parts per billion */
	HCA_KIND_NETS,		/* interface or subnet, +... */
	HCA_KIND_CHANGES,		/* PORT@WHEN+...: `standard` is the enum hca_change_kind */
	HCA_KIND_PAIRS,		/* PORT-PORT+... */
	HCA_KIND_WORD,		/* one of `words`, by its position */
	HCA_KIND_PREFIX,		/* hex digits */
	HCA_KIND_PKEYS, HCA_KIND_GIDS,	/* tables of ports */
	HCA_KIND_LIKE,		/* a set of other keys */
};

/* A key of the fabric is a field of struct hca_spec; the others of struct hca_personality. */
enum hca_scope {
	HCA_OF_FABRIC,
	HCA_OF_NODE,		/* VALUE/VALUE...: node 0, 1, ..., the last one for all others */
	HCA_OF_PORT,		/* of each node VALUE+VALUE...: port 1, 2, ..., likewise */
};

struct hca_key {
	const char *name;
	enum hca_kind kind;
	size_t offset;
	uint64_t standard, min, max;
	bool none;		/* `none`: no limit; 0 of a fabric, HCA_NONE of a node */
	const char *accepted;
	const char *meaning;
	enum hca_scope scope;
	const char *words;	/* "first|second" */
};

extern const struct hca_key hca_keys[];
extern const unsigned hca_key_count;	/* at most 64 */

/* Has the key a meaning with net=? */
bool hca_key_is_on_net(const struct hca_key *k);

/* Values that are not given. */
void hca_key_standards(struct hca_spec *spec);
/* 0; -EINVAL: not accepted; -EEXIST: something twice; -E2BIG: too many.  `text` is changed. */
int hca_key_parse(const struct hca_key *k, char *text, struct hca_spec *spec);
/* Is it as without the key, which then is not written?  Keys of a model are always written. */
bool hca_key_is_standard(const struct hca_key *k, const struct hca_spec *spec);
/* False: the text did not fit. */
bool hca_key_format(const struct hca_key *k, const struct hca_spec *spec, struct hca_text *t);

/* ---- Values of personalities (personality.c) ------------------------------ */

void hca_traits_standard(struct hca_spec *spec);
/* The value for one node, without '/'. */
int hca_trait_parse_node(const struct hca_key *k, char *text, struct hca_personality *p);
int hca_trait_parse(const struct hca_key *k, char *text, struct hca_spec *spec);
bool hca_trait_is_standard(const struct hca_key *k, const struct hca_spec *spec);
/* Are all values of ports beyond the last one the last one's? */
bool hca_trait_fits(const struct hca_key *k, const struct hca_spec *spec);
bool hca_trait_format(const struct hca_key *k, const struct hca_spec *spec, struct hca_text *t);
/* A number of a kind that both have (spec_number.c). */
int hca_number_parse(enum hca_kind kind, const char *text, uint64_t *value);
/* "SET/SET": node 0, 1, ... (like.c). */
int hca_like_parse(char *text, struct hca_spec *spec);

#endif
