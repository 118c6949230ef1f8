/* fuzz_costs.c - the parser of files of costs on arbitrary input. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "rail/open/costs.h"
#include "rail/rail.h"

static const char *const seeds[] = {
	"costs 1 cpu\ncosts-end 0\n",
	"# made\ncosts 1 cpu\ncell receive host alone 16K read read=812 halves=1300\ncosts-end 1\n",
	"bcast 2 0 chain\ncosts 1 cpu\ncell a b c 0 x-1 x-1=4294967295 y_2=0\ncosts-end 1\nscan 0 0 x\n",
	"costs 1 cpu\ncell r h q 1T a a=1 b=2 c=3 d=4 e=5 f=6 g=7 h=8 # eight\ncosts-end 1",
	"costs 1 cpu\r\ncell send host row 64K eager offer=9 eager=7\r\ncosts-end 1\r\n",
	"costs 1 cpu\ncell receive host queued 64K ring-short read=9 ring=7 ring-short=6 ring-long=0\ncosts-end 1\n",
	"costs 1 other\ncosts-end 0\n", "costs 2 cpu\ncosts-end 0\n", "costs 1 cpu\n", "",
};

const unsigned fuzz_rounds = 40000;

size_t fuzz_seed(unsigned index, unsigned char *to, size_t most)
{
	return fuzz_seed_text(seeds, sizeof(seeds) / sizeof(*seeds), index, to);
}

/* An accepted cell has one meaning: what is written of it reads the same. */
static int cell_again(void *user, const struct rail_learned *cell)
{
	struct rail_learned again;
	char text[RAIL_LEARNED_TEXT], copy[RAIL_LEARNED_TEXT], why[128];

	(void)user;
	if (cell->chosen >= cell->schemes || cell->schemes > RAIL_LEARNED_SCHEMES)
		abort();
	rail_learned_text(cell, text, sizeof(text));
	memcpy(copy, text, sizeof(copy));
	if (rail_cell_parse(copy, &again, why, sizeof(why)))
		abort();
	rail_learned_text(&again, copy, sizeof(copy));
	if (strcmp(text, copy))
		abort();
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1), why[512];
	int rc;

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	memset(why, 'x', sizeof(why));
	rc = rail_costs_parse(text, size, "cpu", cell_again, NULL, why, sizeof(why));
	if (rc && (!memchr(why, '\0', sizeof(why)) || !strstr(why, "accepted: ")))
		abort();
	free(text);
	return 0;
}
