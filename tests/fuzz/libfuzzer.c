/*
 * libfuzzer.c - `make fuzz`: libFuzzer begins with an empty input of at most 4 KiB.  Where a target
 * takes no notice of inputs that short, it would never get farther: inputs begin with the target's
 * own seeds.
 */
#include <stdio.h>
#include <stdlib.h>

#include "fuzz.h"

enum { LONGEST = 1 << 16, ARGUMENTS = 64 };	/* as driver.c */

int LLVMFuzzerInitialize(int *argc, char ***argv);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed);

/* Flags of the command line come later and win. */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static char flag[32], *more[ARGUMENTS + 2];
	int i;

	if (*argc > ARGUMENTS)
		return 0;
	snprintf(flag, sizeof(flag), "-max_len=%d", LONGEST);
	more[0] = (*argv)[0];
	more[1] = flag;
	for (i = 1; i < *argc; i++)
		more[i + 1] = (*argv)[i];
	*argv = more;
	++*argc;
	return 0;
}

/* The number of seeds, and the length of the shortest. */
static unsigned seeds(size_t *shortest)
{
	static unsigned char seed[LONGEST];
	static unsigned count;
	static size_t least;

	if (!count) {
		size_t bytes;

		least = LONGEST;
		for (; (bytes = fuzz_seed(count, seed, sizeof(seed))); count++)
			least = bytes < least ? bytes : least;
	}
	*shortest = least;
	return count;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed)
{
	size_t shortest, bytes = 0;
	unsigned count = seeds(&shortest);

	if (count && size < shortest)
		bytes = fuzz_seed(seed % count, data, most);
	return LLVMFuzzerMutate(data, bytes ? bytes : size, most);
}
