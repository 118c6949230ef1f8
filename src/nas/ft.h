/*
 * ft.h - a partial differential equation solved by 3-D FFTs, without the messages.
 *
 * RNR-94-007, section 2.7: du/dt = alpha laplace u on an nx x ny x nz grid, x fastest.
 * The initial values are numbers of the generator, real and imaginary part in turn.
 * U = FFT(u); at time t, exp(-4 alpha pi^2 |k|^2 t) U is transformed back, and 1024 of
 * its points are added up.
 *
 * Ranks form a grid of p1 x p2; rank r is (r / p2, r % p2) = (r1, r2).  With
 * xl = nx / p1, yl = ny / p1, ym = ny / p2, zl = nz / p2, a rank holds
 *
 *	X  [zl][yl][nx]		values: all of x; y divided by p1, z by p2
 *	Y  [zl][ny][xl]		the intermediate layout
 *	Z  [nz][ym][xl]		the spectrum: all of z; x divided by p1, y by p2
 *
 * X and Y differ by an exchange among the p1 ranks of a row (the same r2), Y and Z by
 * one among the p2 ranks of a column (the same r1).  p1 is 1 unless there are more ranks
 * than nz: these are slabs, which need only the second exchange.
 *
 * Three arrays hold the points.  spectrum: Z.  a, b: the copies into and out of the tiles of an
 * FFT write data to the places that an exchange sends from and read them where it received them,
 * so that nothing is packed or unpacked in a pass of its own.
 */
#ifndef RG_NAS_FT_H
#define RG_NAS_FT_H

#include "nas/fft.h"
#include "nas/ft_class.h"

enum ft_group { FT_ROW, FT_COLUMN };

struct ft_grid {
	int nx, ny, nz;
	int p1, p2, r1, r2;
	int xl, yl, ym, zl;
};
/* ranks is a power of two, up to nz * min(nx, ny). */
struct ft_grid ft_divide(int nx, int ny, int nz, int ranks, int rank);
size_t ft_points(const struct ft_grid *g);	/* per rank */

/*
 * Block i of send goes to rank i of the group; the block from rank i becomes block i of recv.
 * Blocks have `block` elements.
 */
typedef void ft_exchange_fn(void *user, enum ft_group group, const struct fft_complex *send,
			    struct fft_complex *recv, size_t block);

struct ft {
	struct ft_grid grid;
	struct fft_complex *spectrum, *a, *b;	/* owned by the caller; b NULL with one rank */
	ft_exchange_fn *exchange;
	void *user;
	/* Set by ft_open. */
	struct fft_plan x, y, z;
	struct fft_work work;
	double *line, *element;			/* factors: of ym * xl lines; of nz elements */
};

/* grid, the arrays, exchange and user must be set.  0 or -ENOMEM. */
int ft_open(struct ft *f);
void ft_close(struct ft *f);

/* Compute the roots of unity again: NPB's timed part includes it. */
void ft_roots(struct ft *f);
void ft_initial(struct ft *f);		/* a: initial values, X */
void ft_forward(struct ft *f);		/* a -> spectrum; overwrites a and b */
void ft_inverse(struct ft *f, int t);	/* spectrum at time t -> a: values, X, times nx ny nz */
/* This rank's part of the sum of points of a (X), divided by nx ny nz. */
struct fft_complex ft_checksum(const struct ft *f);

#endif
