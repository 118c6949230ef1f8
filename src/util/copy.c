/* copy.c - see copy.h. */
#include "util/copy.h"

enum { BLOCK = 1024, BLOCKS_MOST = 16 * BLOCK, SHORT_MOST = 2 * BLOCK, SHORT_BLOCK = 256 };

/*
 * From about 2 KiB on the C library copies by one string instruction, which some processors execute
 * four times slower where both ends have nearly the same place in their pages.  For long copies the
 * instruction is the better one.
 */
static void copy_in(size_t block, unsigned char *out, const unsigned char *in, size_t bytes)
{
	if (bytes <= BLOCKS_MOST)
		for (; bytes > block; bytes -= block) {
			memmove(out, in, block);
			out += block;
			in += block;
		}
	memmove(out, in, bytes);
}

void rg_copy_blocks(void *to, const void *from, size_t bytes)
{
	copy_in(BLOCK, to, from, bytes);
}

/*
 * Up to 256 bytes the C library loads all before it stores; in its loop for more, loads wait for stores of
 * the same place in a page, which take long where another core has the line.
 */
void rg_copy_to_other_core(void *to, const void *from, size_t bytes)
{
	copy_in(bytes < SHORT_MOST ? SHORT_BLOCK : BLOCK, to, from, bytes);
}
