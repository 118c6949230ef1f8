/*
 * driver.c - runs a libFuzzer target without libFuzzer, so that `make check`
 * needs no clang: on the files named on the command line, or else on the target's
 * own seeds and many mutations of them, from a fixed seed of the generator or
 * RG_SEED; --rounds N: so many.  --seeds DIRECTORY writes the seeds to that directory.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "random.h"

enum { LARGEST = 1 << 16 };

static uint64_t random_state = 1;

static uint64_t draw(uint64_t limit)
{
	return random_below(&random_state, limit);
}

static size_t mutate(unsigned char *data, size_t size)
{
	uint64_t times = 1 + draw(6);

	while (times--) {
		size_t at = (size_t)draw(size + 1), n;

		switch (draw(5)) {
		case 0:				/* another byte */
			if (at < size)
				data[at] = (unsigned char)draw(256);
			break;
		case 1:				/* a bit */
			if (at < size)
				data[at] ^= (unsigned char)(1u << draw(8));
			break;
		case 2:				/* cut */
			size = draw(4) ? size : at;
			break;
		case 3:				/* a further one */
			if (size < LARGEST) {
				memmove(data + at + 1, data + at, size - at);
				data[at] = (unsigned char)draw(256);
				size++;
			}
			break;
		default:			/* repeat a piece */
			n = (size_t)draw(16);
			if (at + n <= size && size + n <= LARGEST) {
				memmove(data + at + n, data + at, size - at);
				size += n;
			}
		}
	}
	return size;
}

/* A target with a mutation of its own gets changed bytes, too, in each fourth input. */
static size_t change(unsigned char *data, size_t size)
{
	if (!fuzz_mutate)
		return mutate(data, size);
	size = fuzz_mutate(data, size, LARGEST, &random_state);
	return draw(4) ? size : mutate(data, size);
}

/* As libFuzzer does: what is read behind an input of its own is an error to ASan. */
static void run_input(const unsigned char *data, size_t size)
{
	unsigned char *exact = malloc(size ? size : 1);

	if (!exact)
		abort();
	memcpy(exact, data, size);
	LLVMFuzzerTestOneInput(exact, size);
	free(exact);
}

static int run_file(const char *path)
{
	static unsigned char data[LARGEST];
	FILE *f = fopen(path, "rb");
	size_t size;

	if (!f) {
		perror(path);
		return 1;
	}
	size = fread(data, 1, sizeof(data), f);
	fclose(f);
	run_input(data, size);
	return 0;
}

/* Inputs from which libFuzzer may begin. */
static int write_seeds(const char *directory)
{
	static unsigned char data[LARGEST];
	char path[512];
	unsigned i;
	size_t size;
	FILE *f;

	for (i = 0; (size = fuzz_seed(i, data, LARGEST)) != 0; i++) {
		snprintf(path, sizeof(path), "%s/seed%u", directory, i);
		f = fopen(path, "wb");
		if (!f || fwrite(data, 1, size, f) != size) {
			perror(path);
			return 1;
		}
		fclose(f);
	}
	return 0;
}

int main(int argc, char **argv)
{
	static unsigned char data[LARGEST + 16];
	const char *seed = getenv("RG_SEED");
	unsigned i, seeds = 0, rounds = fuzz_rounds;
	size_t size;
	int rc = 0;

	if (seed)
		random_state = strtoull(seed, NULL, 10);
	if (argc == 3 && strcmp(argv[1], "--rounds") == 0) {
		rounds = (unsigned)strtoul(argv[2], NULL, 10);
		argc = 1;
	}
	if (argc == 3 && strcmp(argv[1], "--seeds") == 0)
		return write_seeds(argv[2]);
	for (i = 1; i < (unsigned)argc; i++)
		rc |= run_file(argv[i]);
	if (argc > 1)
		return rc;
	while (fuzz_seed(seeds, data, LARGEST))
		seeds++;
	for (i = 0; i < rounds; i++) {
		size = fuzz_seed(i % seeds, data, LARGEST);
		if (i >= seeds)
			size = change(data, size);
		run_input(data, size);
	}
	printf("%u inputs from %u seeds, RG_SEED=%s\n", i, seeds, seed ? seed : "1");
	return 0;
}
