/* fft.c - the transform of the lines in a tile. */
#include "nas/tile.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/*
 * Vectors of the machine that the compiler builds for.  Without options they have 16 bytes: SSE2 on
 * x86-64, NEON on ARM.
 */
#ifdef __AVX__
#define VEC_BYTES 32
#else
#define VEC_BYTES 16
#endif
typedef double vec __attribute__((vector_size(VEC_BYTES), may_alias));
enum { VECS = FFT_LANES * sizeof(double) / VEC_BYTES };	/* per part */

#ifndef M_PI
#define M_PI 3.14159265358979323846
#endif

/* ---- Plans and memory ---------------------------------------------------------- */

int fft_plan_open(struct fft_plan *p, size_t n)
{
	*p = (struct fft_plan){ .n = n, .root = malloc(n * sizeof(p->root[0])) };
	if (!p->root)
		return -ENOMEM;
	fft_plan_roots(p);
	return 0;
}

void fft_plan_roots(struct fft_plan *p)
{
	for (size_t k = 0; k < p->n; k++) {
		double angle = -2 * M_PI * (double)k / (double)p->n;

		p->root[k] = (struct fft_complex){ cos(angle), sin(angle) };
	}
}

void fft_plan_close(struct fft_plan *p)
{
	free(p->root);
	p->root = NULL;
}

size_t fft_work_bytes(size_t n)
{
	return 2 * (FFT_TILE / FFT_LANES) * n * sizeof(struct fft_lanes);
}

int fft_work_open(struct fft_work *w, size_t n)
{
	struct fft_lanes *all = aligned_alloc(sizeof(*all), fft_work_bytes(n));
	size_t half = FFT_TILE / FFT_LANES * n;

	*w = (struct fft_work){ .tile = NULL };
	if (!all)
		return -ENOMEM;
	/* Lanes without a line are transformed as well. */
	for (size_t i = 0; i < 2 * half; i++)
		all[i] = (struct fft_lanes){ .part = { { 0 } } };
	*w = (struct fft_work){ .tile = all, .other = all + half };
	return 0;
}

void fft_work_close(struct fft_work *w)
{
	free(w->tile);
	*w = (struct fft_work){ .tile = NULL };
}

/* ---- Passes ---------------------------------------------------------------------- */

static inline const vec *in(const struct fft_lanes *x)
{
	return (const vec *)x;
}

static inline vec *out(struct fft_lanes *x)
{
	return (vec *)x;
}

/*
 * Four inputs, `quarter` apart, become four outputs, s apart.  turned: outputs 1, 2, 3
 * are multiplied by w[0], w[1], w[2].
 */
static inline __attribute__((always_inline)) void
butterfly4(const struct fft_lanes *restrict x, struct fft_lanes *restrict y, size_t quarter,
	   size_t s, const struct fft_complex *w, bool turned)
{
	const vec *a = in(x), *b = in(x + quarter), *c = in(x + 2 * quarter),
		  *d = in(x + 3 * quarter);
	vec *y0 = out(y), *y1 = out(y + s), *y2 = out(y + 2 * s), *y3 = out(y + 3 * s);

	for (int v = 0; v < VECS; v++) {
		const int i = v + VECS;		/* imaginary parts */
		vec pr = a[v] + c[v], pi = a[i] + c[i];		/* a + c */
		vec mr = a[v] - c[v], mi = a[i] - c[i];		/* a - c */
		vec qr = b[v] + d[v], qi = b[i] + d[i];		/* b + d */
		vec nr = b[i] - d[i], ni = d[v] - b[v];		/* -i (b - d) */
		vec r1 = mr + nr, i1 = mi + ni;
		vec r2 = pr - qr, i2 = pi - qi;
		vec r3 = mr - nr, i3 = mi - ni;

		y0[v] = pr + qr;
		y0[i] = pi + qi;
		if (turned) {
			y1[v] = r1 * w[0].re - i1 * w[0].im;
			y1[i] = r1 * w[0].im + i1 * w[0].re;
			y2[v] = r2 * w[1].re - i2 * w[1].im;
			y2[i] = r2 * w[1].im + i2 * w[1].re;
			y3[v] = r3 * w[2].re - i3 * w[2].im;
			y3[i] = r3 * w[2].im + i3 * w[2].re;
		} else {
			y1[v] = r1;
			y1[i] = i1;
			y2[v] = r2;
			y2[i] = i2;
			y3[v] = r3;
			y3[i] = i3;
		}
	}
}

/*
 * A pass of radix 4 over s sub-transforms of length n / s: element q + s (p + k m) of x, k = 0 ..
 * 3, goes to q + s (4 p + k) of y; m = n / s / 4.
 */
static void pass4(const struct fft_plan *plan, size_t s, const struct fft_lanes *restrict x,
		  struct fft_lanes *restrict y)
{
	size_t quarter = plan->n / 4, m = quarter / s;

	/* p = 0: the factors are 1. */
	for (size_t q = 0; q < s; q++)
		butterfly4(x + q, y + q, quarter, s, NULL, false);
	for (size_t p = 1; p < m; p++) {
		const struct fft_complex w[3] = {
			plan->root[p * s], plan->root[2 * p * s], plan->root[3 * p * s],
		};

		for (size_t q = 0; q < s; q++)
			butterfly4(x + s * p + q, y + 4 * s * p + q, quarter, s, w, true);
	}
}

/* The last pass, if the length is not a power of four. */
static void pass2(size_t half, const struct fft_lanes *restrict x, struct fft_lanes *restrict y)
{
	for (size_t q = 0; q < half; q++) {
		const vec *a = in(x + q), *b = in(x + half + q);
		vec *y0 = out(y + q), *y1 = out(y + half + q);

		for (int v = 0; v < 2 * VECS; v++) {
			y0[v] = a[v] + b[v];
			y1[v] = a[v] - b[v];
		}
	}
}

/* FFT_LANES lines at x; true: the result is at y. */
static bool transform(const struct fft_plan *plan, struct fft_lanes *x, struct fft_lanes *y)
{
	size_t s = 1;
	bool moved = false;

	for (; 4 * s <= plan->n; s *= 4, moved = !moved)
		pass4(plan, s, moved ? y : x, moved ? x : y);
	if (2 * s == plan->n) {
		pass2(s, moved ? y : x, moved ? x : y);
		moved = !moved;
	}
	return moved;
}

void fft_lines(const struct fft_plan *p, struct fft_work *w, enum fft_sign sign,
	       const struct fft_view *from, const struct fft_view *to, size_t lines,
	       const struct fft_scale *scale)
{
	bool swapped = sign == FFT_INVERSE, moved = false;

	for (size_t first = 0; first < lines; first += FFT_TILE) {
		size_t count = lines - first < FFT_TILE ? lines - first : FFT_TILE;

		tile_load(w->tile, from, p->n, first, count, swapped, scale);
		for (size_t g = 0; g * FFT_LANES < count; g++)
			moved = transform(p, w->tile + g * p->n, w->other + g * p->n);
		tile_store(moved ? w->other : w->tile, to, p->n, first, count, swapped);
	}
}
