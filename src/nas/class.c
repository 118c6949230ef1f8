/* class.c - classes of problems, and the resources that they need. */
#include "nas/nas.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "util/text.h"

const struct opt_choice nas_classes[] = {
	{ "S", NAS_S, "sample: milliseconds" }, { "W", NAS_W, "workstation" },
	{ "A", NAS_A, "seconds" }, { "B", NAS_B, "four times A, or more" },
	{ "C", NAS_C, "four times B, or more" },
	{ NULL, 0, NULL },
};

const char *nas_class_name(enum nas_class c)
{
	return nas_classes[c].name;
}

static int power_of_two_check(const struct nas_kernel *k, int ranks, char *why, size_t why_size)
{
	int below = 1;

	while (2 * below <= ranks)
		below *= 2;
	if (below == ranks)
		return 0;
	snprintf(why, why_size, "%d ranks: %s is defined for powers of two, where every rank holds "
		 "as much as any other (accepted: %d or %d)", ranks, k->name, below, 2 * below);
	return -EINVAL;
}

/* The classes that so many ranks of so much memory can run: "S, W or A". */
static void fitting(const struct nas_kernel *k, int ranks, uint64_t available, char *text,
		    size_t size)
{
	const char *name[NAS_CLASSES];
	int count = 0;

	for (int c = 0; c < NAS_CLASSES; c++)
		if (ranks <= k->ranks_max((enum nas_class)c) &&
		    k->memory_bytes((enum nas_class)c, ranks) <= available)
			name[count++] = nas_classes[c].name;
	snprintf(text, size, "%s", count ? name[0] : "none");
	for (int i = 1; i < count; i++)
		rg_text_add(text, size, "%s%s",
			 i + 1 < count ? ", " : " or ", name[i]);
}

int nas_check(const struct nas_kernel *k, enum nas_class c, int ranks, uint64_t available,
	      char *why, size_t why_size)
{
	const double mib = 1024 * 1024;
	uint64_t need;
	char others[64];
	int rc = power_of_two_check(k, ranks, why, why_size);

	if (rc)
		return rc;
	fitting(k, ranks, available, others, sizeof(others));
	if (ranks > k->ranks_max(c)) {
		snprintf(why, why_size, "--class %s: %d ranks, of which %s has work for %d (accepted "
			 "here: %s; or fewer ranks)", nas_class_name(c), ranks, k->name,
			 k->ranks_max(c), others);
		return -EINVAL;
	}
	need = k->memory_bytes(c, ranks);
	if (need > available) {
		snprintf(why, why_size, "--class %s: each of %d rank%s needs %.1f MiB of memory, "
			 "%.1f MiB can be had (accepted here: %s; or more hosts)",
			 nas_class_name(c), ranks, ranks == 1 ? "" : "s", (double)need / mib,
			 (double)available / mib, others);
		return -EINVAL;
	}
	return 0;
}
