/* domains.c - lists of CPUs of the kernel. */
#include "mpi/job/domains.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CPUS = DOMAIN_WORDS * 64, CACHES = 8 };

void domains_parse(const char *list, uint64_t cpus[DOMAIN_WORDS])
{
	memset(cpus, 0, DOMAIN_WORDS * sizeof(*cpus));
	while (*list >= '0' && *list <= '9') {
		char *end;
		unsigned long first = strtoul(list, &end, 10), last = first;

		if (*end == '-')
			last = strtoul(end + 1, &end, 10);
		for (unsigned long c = first; c <= last && c < CPUS; c++)
			cpus[c / 64] |= (uint64_t)1 << (c % 64);
		list = *end == ',' ? end + 1 : "";
	}
}

/* Files of the kernel tell no size.  False: there is no such file. */
static bool list_read(const char *dir, const char *name, uint64_t cpus[DOMAIN_WORDS])
{
	char path[512], text[4096] = "";
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "re");
	if (!f)
		return false;
	if (!fgets(text, sizeof(text), f))
		*text = '\0';
	fclose(f);
	domains_parse(text, cpus);
	return true;
}

static int first_of(const uint64_t cpus[DOMAIN_WORDS])
{
	for (int w = 0; w < DOMAIN_WORDS; w++)
		if (cpus[w])
			return w * 64 + __builtin_ctzll(cpus[w]);
	return 0;
}

static int count_of(const uint64_t cpus[DOMAIN_WORDS])
{
	int count = 0;

	for (int w = 0; w < DOMAIN_WORDS; w++)
		count += __builtin_popcountll(cpus[w]);
	return count;
}

/* The last cache is the one that most CPUs share. */
void domains_read(const char *dir, const uint64_t mine[DOMAIN_WORDS], struct domains *out)
{
	const int cpu = first_of(mine);
	uint64_t cache[DOMAIN_WORDS];
	char name[64];

	memset(out, 0, sizeof(*out));
	list_read(dir, "online", out->online);
	snprintf(name, sizeof(name), "cpu%d/topology/package_cpus_list", cpu);
	if (!list_read(dir, name, out->package)) {
		snprintf(name, sizeof(name), "cpu%d/topology/core_siblings_list", cpu);
		list_read(dir, name, out->package);
	}
	for (int i = 0; i < CACHES; i++) {
		snprintf(name, sizeof(name), "cpu%d/cache/index%d/shared_cpu_list", cpu, i);
		if (list_read(dir, name, cache) && count_of(cache) >= count_of(out->cache))
			memcpy(out->cache, cache, sizeof(cache));
	}
}

static bool is_within(const uint64_t cpus[DOMAIN_WORDS], const uint64_t domain[DOMAIN_WORDS])
{
	for (int w = 0; w < DOMAIN_WORDS; w++)
		if (cpus[w] & ~domain[w])
			return false;
	return true;
}

static bool is_outside(const uint64_t cpus[DOMAIN_WORDS], const uint64_t domain[DOMAIN_WORDS])
{
	for (int w = 0; w < DOMAIN_WORDS; w++)
		if (cpus[w] & domain[w])
			return false;
	return true;
}

enum rail_place domains_place(const struct domains *d, const uint64_t mine[DOMAIN_WORDS],
			      const uint64_t theirs[DOMAIN_WORDS])
{
	const int online = count_of(d->online);

	if (!online || !count_of(mine) || !count_of(theirs))
		return RAIL_PLACE_HOST;
	if (count_of(mine) >= online || count_of(theirs) >= online)
		return RAIL_PLACE_UNBOUND;
	if (is_within(mine, d->cache) && is_within(theirs, d->cache))
		return RAIL_PLACE_CACHE;
	if (!count_of(d->package))
		return RAIL_PLACE_HOST;
	if (!is_within(mine, d->package))
		return RAIL_PLACE_UNBOUND;
	return is_within(theirs, d->package) ? RAIL_PLACE_PACKAGE :
	       is_outside(theirs, d->package) ? RAIL_PLACE_APART : RAIL_PLACE_UNBOUND;
}
