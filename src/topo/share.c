/* share.c - the sets of rails that share PCIe links. */
#include "config.h"

#include <string.h>

#include "topo/topo.h"

/* Rails below link `at`. */
static uint32_t rails_below(const char *at, struct topo_link link[][TOPO_LINKS_MAX],
			    const int *links, int count)
{
	uint32_t rails = 0;

	for (int i = 0; i < count; i++)
		for (int l = 0; l < links[i]; l++)
			if (!strcmp(link[i][l].at, at))
				rails |= UINT32_C(1) << i;
	return rails;
}

static bool is_narrower(const struct topo_link *a, const struct topo_link *b)
{
	return a->bytes_per_s && (!b->bytes_per_s || a->bytes_per_s < b->bytes_per_s);
}

/* Insert in order of size. */
static void share_add(struct topo_share *out, int *count, uint32_t rails,
		      const struct topo_link *link)
{
	int at = *count;

	for (int i = 0; i < *count; i++)
		if (out[i].rails == rails) {
			if (is_narrower(link, &out[i].link))
				out[i].link = *link;
			return;
		}
	/* A tree has no more sets than this. */
	if (*count == TOPO_SHARES_MAX)
		return;
	while (at && __builtin_popcount(out[at - 1].rails) > __builtin_popcount(rails))
		at--;
	memmove(&out[at + 1], &out[at], (size_t)(*count - at) * sizeof(*out));
	out[at] = (struct topo_share){ .rails = rails, .link = *link };
	(*count)++;
}

int topo_shares(const struct topo *t, const struct topo_spot *const *spot, int count,
		struct topo_share out[TOPO_SHARES_MAX])
{
	struct topo_link link[TOPO_RAILS_MAX][TOPO_LINKS_MAX];
	int links[TOPO_RAILS_MAX], shares = 0;

	if (count > TOPO_RAILS_MAX)
		count = TOPO_RAILS_MAX;
	for (int i = 0; i < count; i++)
		links[i] = topo_links(t, spot[i], link[i]);
	for (int i = 0; i < count; i++)
		for (int l = 0; l < links[i]; l++)
			share_add(out, &shares, rails_below(link[i][l].at, link, links, count),
				  &link[i][l]);
	return shares;
}
