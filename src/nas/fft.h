/*
 * fft.h - FFTs of many lines of the same length, with any strides.
 *
 * Stockham's autosort algorithm (no bit reversal), radix 4, with one pass of radix 2 where
 * the length needs it.  Source: C. Van Loan, Computational Frameworks for the Fast Fourier
 * Transform, section 1.7.  FFT_TILE lines at a time are copied into a buffer that stays in
 * the caches, four of them side by side, so that vector units work on lines in parallel for
 * any stride in memory.  The lines are copied back to the same or to another place, so that a
 * transposition for an exchange costs no pass of its own.
 */
#ifndef RG_NAS_FFT_H
#define RG_NAS_FFT_H

#include <stdbool.h>
#include <stddef.h>

struct fft_complex { double re, im; };

enum { FFT_LANES = 4, FFT_TILE = 16 };

/* FFT_LANES elements, one of each line: parts, then lines. */
struct fft_lanes { _Alignas(64) double part[2][FFT_LANES]; };

struct fft_plan {
	size_t n;
	struct fft_complex *root;	/* root[k] = exp(-2 pi i k / n) */
};
/* n is a power of two.  0 or -ENOMEM. */
int fft_plan_open(struct fft_plan *p, size_t n);
void fft_plan_roots(struct fft_plan *p);	/* compute them again */
void fft_plan_close(struct fft_plan *p);

struct fft_work {
	struct fft_lanes *tile, *other;
};
/* For lines of n elements at most.  0 or -ENOMEM. */
int fft_work_open(struct fft_work *w, size_t n);
void fft_work_close(struct fft_work *w);
size_t fft_work_bytes(size_t n);

/*
 * Element j of line l is at[l * line + (j / group) * group_stride + (j % group) * stride].
 * Either lines lie side by side (line 1) or elements do (stride 1).  group divides n.
 */
struct fft_view {
	struct fft_complex *at;
	size_t line, stride, group, group_stride;
};

/* Element j of line l is multiplied by line[l] * element[j] before it is transformed. */
struct fft_scale { const double *line, *element; };

enum fft_sign { FFT_FORWARD, FFT_INVERSE };	/* exp(-2 pi i ..), exp(2 pi i ..); no 1/n */

/*
 * Transform `lines` lines.  from and to are the same view, or do not overlap.
 * scale: NULL, or for lines that lie side by side.
 */
void fft_lines(const struct fft_plan *p, struct fft_work *w, enum fft_sign sign,
	       const struct fft_view *from, const struct fft_view *to, size_t lines,
	       const struct fft_scale *scale);

#endif
