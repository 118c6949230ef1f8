/*
 * tile.c - copies of lines into a tile and back.
 *
 * Across: the same element of all lines is contiguous memory.  Along: the elements of a line are
 * contiguous; four lines are read at once.  In both cases each contiguous stretch is used up while
 * its cache line is in the cache.
 */
#include "nas/tile.h"

/* Two doubles, with the alignment of one. */
typedef double pair __attribute__((vector_size(16), may_alias, aligned(8)));

/* ---- Four elements ------------------------------------------------------------- */

/* Elements a and b become lanes 0 and 1 of re and im. */
static inline void in2(double *re, double *im, const struct fft_complex *a,
		       const struct fft_complex *b)
{
	pair x = *(const pair *)a, y = *(const pair *)b;

	*(pair *)re = (pair){ x[0], y[0] };
	*(pair *)im = (pair){ x[1], y[1] };
}

static inline void out2(struct fft_complex *a, struct fft_complex *b, const double *re,
			const double *im)
{
	pair r = *(const pair *)re, i = *(const pair *)im;

	*(pair *)a = (pair){ r[0], i[0] };
	*(pair *)b = (pair){ r[1], i[1] };
}

static inline void multiply4(struct fft_lanes *x, const double *line, double element)
{
	for (int part = 0; part < 2; part++)
		for (int k = 0; k < FFT_LANES; k += 2)
			*(pair *)&x->part[part][k] *= *(const pair *)&line[k] * element;
}

/* ---- Across ------------------------------------------------------------------------ */

/* Load an element of count lines, from s[0], s[1], ...; n: distance of lane groups. */
static inline void row_in(struct fft_lanes *x, size_t n, const struct fft_complex *s, size_t count,
			  bool swapped)
{
	for (; count >= FFT_LANES; count -= FFT_LANES, x += n, s += FFT_LANES) {
		double *re = x->part[swapped], *im = x->part[!swapped];

		in2(re, im, s, s + 1);
		in2(re + 2, im + 2, s + 2, s + 3);
	}
	for (size_t k = 0; k < count; k++) {
		x->part[swapped][k] = s[k].re;
		x->part[!swapped][k] = s[k].im;
	}
}

static inline void row_out(const struct fft_lanes *x, size_t n, struct fft_complex *s,
			   size_t count, bool swapped)
{
	for (; count >= FFT_LANES; count -= FFT_LANES, x += n, s += FFT_LANES) {
		const double *re = x->part[swapped], *im = x->part[!swapped];

		out2(s, s + 1, re, im);
		out2(s + 2, s + 3, re + 2, im + 2);
	}
	for (size_t k = 0; k < count; k++)
		s[k] = (struct fft_complex){ x->part[swapped][k], x->part[!swapped][k] };
}

static inline void row_scale(struct fft_lanes *x, size_t n, const double *line, double element,
			     size_t count)
{
	for (; count >= FFT_LANES; count -= FFT_LANES, x += n, line += FFT_LANES)
		multiply4(x, line, element);
	for (size_t k = 0; k < count; k++) {
		x->part[0][k] *= line[k] * element;
		x->part[1][k] *= line[k] * element;
	}
}

static void load_across(struct fft_lanes *tile, const struct fft_view *from, size_t n,
			size_t first, size_t count, bool swapped, const struct fft_scale *scale)
{
	size_t j = 0;

	for (size_t g = 0; j < n; g++) {
		const struct fft_complex *s = from->at + first + g * from->group_stride;

		for (size_t k = 0; k < from->group; k++, j++, s += from->stride) {
			row_in(tile + j, n, s, count, swapped);
			if (scale)
				row_scale(tile + j, n, scale->line + first, scale->element[j],
					  count);
		}
	}
}

static void store_across(const struct fft_lanes *tile, const struct fft_view *to, size_t n,
			 size_t first, size_t count, bool swapped)
{
	size_t j = 0;

	for (size_t g = 0; j < n; g++) {
		struct fft_complex *s = to->at + first + g * to->group_stride;

		for (size_t k = 0; k < to->group; k++, j++, s += to->stride)
			row_out(tile + j, n, s, count, swapped);
	}
}

/* ---- Along ------------------------------------------------------------------------- */

/* count elements of up to four lines, which are `line` apart. */
static void stretch_in(struct fft_lanes *x, const struct fft_complex *s, size_t line, size_t lines,
		       size_t count, bool swapped)
{
	for (size_t k = 0; lines == FFT_LANES && k < count; k++, s++) {
		double *re = x[k].part[swapped], *im = x[k].part[!swapped];

		in2(re, im, s, s + line);
		in2(re + 2, im + 2, s + 2 * line, s + 3 * line);
	}
	for (size_t k = 0; lines < FFT_LANES && k < count; k++)
		for (size_t l = 0; l < lines; l++) {
			x[k].part[swapped][l] = s[l * line + k].re;
			x[k].part[!swapped][l] = s[l * line + k].im;
		}
}

static void stretch_out(const struct fft_lanes *x, struct fft_complex *s, size_t line,
			size_t lines, size_t count, bool swapped)
{
	for (size_t k = 0; lines == FFT_LANES && k < count; k++, s++) {
		const double *re = x[k].part[swapped], *im = x[k].part[!swapped];

		out2(s, s + line, re, im);
		out2(s + 2 * line, s + 3 * line, re + 2, im + 2);
	}
	for (size_t k = 0; lines < FFT_LANES && k < count; k++)
		for (size_t l = 0; l < lines; l++)
			s[l * line + k] = (struct fft_complex){ x[k].part[swapped][l],
								x[k].part[!swapped][l] };
}

static size_t lanes_of(size_t count, size_t l)
{
	return count - l < FFT_LANES ? count - l : FFT_LANES;
}

static void load_along(struct fft_lanes *tile, const struct fft_view *from, size_t n, size_t first,
		       size_t count, bool swapped)
{
	for (size_t l = 0; l < count; l += FFT_LANES)
		for (size_t j = 0; j < n; j += from->group)
			stretch_in(tile + l / FFT_LANES * n + j, from->at +
				   (first + l) * from->line + j / from->group * from->group_stride,
				   from->line, lanes_of(count, l), from->group, swapped);
}

static void store_along(const struct fft_lanes *tile, const struct fft_view *to, size_t n,
			size_t first, size_t count, bool swapped)
{
	for (size_t l = 0; l < count; l += FFT_LANES)
		for (size_t j = 0; j < n; j += to->group)
			stretch_out(tile + l / FFT_LANES * n + j, to->at +
				    (first + l) * to->line + j / to->group * to->group_stride,
				    to->line, lanes_of(count, l), to->group, swapped);
}

/* ---- Either ------------------------------------------------------------------------ */

void tile_load(struct fft_lanes *tile, const struct fft_view *from, size_t n, size_t first,
	       size_t count, bool swapped, const struct fft_scale *scale)
{
	if (from->line == 1)
		load_across(tile, from, n, first, count, swapped, scale);
	else
		load_along(tile, from, n, first, count, swapped);
}

void tile_store(const struct fft_lanes *tile, const struct fft_view *to, size_t n, size_t first,
		size_t count, bool swapped)
{
	if (to->line == 1)
		store_across(tile, to, n, first, count, swapped);
	else
		store_along(tile, to, n, first, count, swapped);
}
