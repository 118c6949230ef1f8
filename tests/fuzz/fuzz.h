/* fuzz.h - the definitions of a fuzz target. */
#ifndef RG_TESTS_FUZZ_H
#define RG_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* Run one input; aborts on an error.  The name is libFuzzer's. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Initial input number `index`; returns its size, 0 after the last one. */
size_t fuzz_seed(unsigned index, unsigned char *to, size_t most);

/* The number of inputs that `make check` runs. */
extern const unsigned fuzz_rounds;

#endif
