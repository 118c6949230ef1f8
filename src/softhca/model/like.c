/* like.c - the personalities of adapters, by name.  PERSONALITIES.md has the source of each value. */
#include <errno.h>
#include <string.h>

#include "softhca/model/spec_key.h"

#define CORE_GIDS ",gids=ll.v1:ll.v2:ip4.v1:ip4.v2"

static const struct {
	const char *name, *spec;
} sets[] = {
#define MLX5 "order=rts,srqwr=32767,inline=828,maxwr=32768,maxsge=30,maxcqe=4194303,rdatom=16,rdinit=16"
	{ "mlx5-ib", MLX5 ",link=ib" },
	{ "mlx5-roce", MLX5 ",link=eth" CORE_GIDS },
	{ "mlx5-vf", MLX5 ",qps=4096,link=ib,grh=required" },
	{ "mlx4", "order=never,srq=65472,srqwr=16383,inline=928,maxwr=16351,maxsge=32,maxcqe=4194303,"
	  "rdatom=16,rdinit=128,link=ib" },
	{ "irdma-e810", "order=never,srq=0,uc=no,atomics=no,inline=101,maxwr=4063,maxsge=13,maxcqe=1048574,"
	  "rdatom=127,rdinit=128,link=eth,gids=ll.v2:ip4.v2" },
	{ "bnxt_re", "order=never,uc=no,atomics=no,inline=96,maxsge=6,rdatom=126,rdinit=126,link=eth" CORE_GIDS },
	{ "hns-hip08", "order=never,ud=no,uc=no,inline=32,maxwr=32768,maxsge=32,qps=4096,rdatom=128,rdinit=128,"
	  "link=eth" CORE_GIDS },
};

enum { SETS = sizeof(sets) / sizeof(*sets), SET_MAX = 512 };

bool hca_like_set(unsigned i, const char **name, const char **spec)
{
	if (i >= SETS)
		return false;
	*name = sets[i].name;
	*spec = sets[i].spec;
	return true;
}

static const char *set_find(const char *name)
{
	for (unsigned i = 0; i < SETS; i++)
		if (strcmp(sets[i].name, name) == 0)
			return sets[i].spec;
	return NULL;
}

static const struct hca_key *key_find(const char *name, size_t n)
{
	for (unsigned i = 0; i < hca_key_count; i++)
		if (strlen(hca_keys[i].name) == n && strncmp(hca_keys[i].name, name, n) == 0)
			return &hca_keys[i];
	return NULL;
}

/* Applies each "key=value" in order, for one node. */
static int apply(const char *set, struct hca_personality *p)
{
	char copy[SET_MAX], *item, *next, *value;
	int rc = 0;

	if (strlen(set) >= sizeof(copy))
		return -EINVAL;
	strcpy(copy, set);
	for (item = copy; item && !rc; item = next) {
		const struct hca_key *k;

		next = strchr(item, ',');
		if (next)
			*next++ = '\0';
		value = strchr(item, '=');
		k = value ? key_find(item, (size_t)(value - item)) : NULL;
		rc = k && k->scope != HCA_OF_FABRIC && k->kind != HCA_KIND_LIKE
			     ? hca_trait_parse_node(k, value + 1, p) : -EINVAL;
	}
	return rc;
}

int hca_like_parse(char *text, struct hca_spec *spec)
{
	char *next;
	int n = 0, rc = 0;

	for (; text && !rc; text = next) {
		const char *set;

		next = strchr(text, '/');
		if (next)
			*next++ = '\0';
		set = set_find(text);
		if (!set || n == HCA_PERSONALITIES)
			return -EINVAL;
		do
			rc = apply(set, &spec->personality[n++]);
		while (!rc && !next && n < HCA_PERSONALITIES);
	}
	return rc;
}
