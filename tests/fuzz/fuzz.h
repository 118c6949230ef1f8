/* fuzz.h - the definitions of a fuzz target. */
#ifndef RG_TESTS_FUZZ_H
#define RG_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Run one input; aborts on an error.  The name is libFuzzer's. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Initial input number `index`; returns its size, 0 after the last one. */
size_t fuzz_seed(unsigned index, unsigned char *to, size_t most);

/*
 * Optional: another mutation than of bytes, by the structure of the input; returns the new size.
 * *random is a state of random.h.
 */
size_t fuzz_mutate(unsigned char *data, size_t size, size_t most, uint64_t *random)
	__attribute__((weak));

/* fuzz_seed of targets whose initial inputs are texts. */
static inline size_t fuzz_seed_text(const char *const *seeds, size_t count, unsigned index,
				    unsigned char *to)
{
	if (index >= count)
		return 0;
	memcpy(to, seeds[index], strlen(seeds[index]));
	return strlen(seeds[index]);
}

/* The number of inputs that `make check` runs. */
extern const unsigned fuzz_rounds;

#endif
