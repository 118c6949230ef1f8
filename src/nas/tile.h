/* tile.h - copies of lines into a tile, which fft.c transforms, and back. */
#ifndef RG_NAS_TILE_H
#define RG_NAS_TILE_H

#include "nas/fft.h"

/*
 * Copy count lines, from number `first` on, into tile[(lane group) * n + element], and back.
 * swapped: exchange real and imaginary parts, which turns a forward transform into an
 * inverse one.
 */
void tile_load(struct fft_lanes *tile, const struct fft_view *from, size_t n, size_t first,
	       size_t count, bool swapped, const struct fft_scale *scale);
void tile_store(const struct fft_lanes *tile, const struct fft_view *to, size_t n, size_t first,
		size_t count, bool swapped);

#endif
