/* fuzz.h - what a fuzz target defines. */
#ifndef RG_TESTS_FUZZ_H
#define RG_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* One input; aborts when something is wrong.  The name is libFuzzer's. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Input number `index` to begin with; its size, 0 when there is none. */
size_t fuzz_seed(unsigned index, unsigned char *to, size_t most);

/* How many inputs `make check` tries. */
extern const unsigned fuzz_rounds;

#endif
