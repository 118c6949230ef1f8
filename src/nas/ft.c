/* ft.c - the steps of FT between its exchanges. */
#include "nas/ft.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "nas/lcg.h"

#define ALPHA 1e-6
#ifndef M_PI
#define M_PI 3.14159265358979323846
#endif

struct ft_grid ft_divide(int nx, int ny, int nz, int ranks, int rank)
{
	int p2 = ranks < nz ? ranks : nz, p1 = ranks / p2;

	return (struct ft_grid){
		.nx = nx, .ny = ny, .nz = nz,
		.p1 = p1, .p2 = p2, .r1 = rank / p2, .r2 = rank % p2,
		.xl = nx / p1, .yl = ny / p1, .ym = ny / p2, .zl = nz / p2,
	};
}

size_t ft_points(const struct ft_grid *g)
{
	return (size_t)g->zl * (size_t)g->yl * (size_t)g->nx;
}

int ft_open(struct ft *f)
{
	const struct ft_grid *g = &f->grid;
	int longest = g->nx > g->ny ? g->nx : g->ny;
	size_t lines = (size_t)g->ym * (size_t)g->xl;

	longest = longest > g->nz ? longest : g->nz;
	f->x = f->y = f->z = (struct fft_plan){ .n = 0 };
	f->work = (struct fft_work){ .tile = NULL };
	f->line = malloc(lines * sizeof(f->line[0]));
	f->element = malloc((size_t)g->nz * sizeof(f->element[0]));
	if (f->line && f->element && !fft_plan_open(&f->x, (size_t)g->nx) &&
	    !fft_plan_open(&f->y, (size_t)g->ny) && !fft_plan_open(&f->z, (size_t)g->nz) &&
	    !fft_work_open(&f->work, (size_t)longest))
		return 0;
	ft_close(f);
	return -ENOMEM;
}

void ft_roots(struct ft *f)
{
	fft_plan_roots(&f->x);
	fft_plan_roots(&f->y);
	fft_plan_roots(&f->z);
}

void ft_close(struct ft *f)
{
	fft_plan_close(&f->x);
	fft_plan_close(&f->y);
	fft_plan_close(&f->z);
	fft_work_close(&f->work);
	free(f->line);
	free(f->element);
	f->line = f->element = NULL;
}

/*
 * Each plane has yl lines in sequence; with one rank per row the lines of all planes are in
 * sequence.
 */
void ft_initial(struct ft *f)
{
	const struct ft_grid *g = &f->grid;
	size_t stretch = (size_t)g->yl * (size_t)g->nx;

	for (int z = 0; z < g->zl; z++) {
		uint64_t before = (uint64_t)g->nx * ((uint64_t)g->r1 * (uint64_t)g->yl +
			(uint64_t)g->ny * ((uint64_t)g->r2 * (uint64_t)g->zl + (uint64_t)z));

		lcg_fill(lcg_skip(LCG_SEED, 2 * before), (double *)(f->a + (size_t)z * stretch),
			 2 * stretch);
	}
}

/* ---- Where lines are ------------------------------------------------------------- */

/* Lines of x from line `first` on, elements in sequence: X. */
static struct fft_view lines_of_x(const struct ft_grid *g, struct fft_complex *at, size_t first)
{
	return (struct fft_view){ .at = at + first * (size_t)g->nx, .line = (size_t)g->nx,
				  .stride = 1, .group = (size_t)g->nx };
}

/* All lines of x, as an exchange in the row has them: a block per stretch of x. */
static struct fft_view blocks_of_x(const struct ft_grid *g, struct fft_complex *at)
{
	size_t xl = (size_t)g->xl;

	return (struct fft_view){ .at = at, .line = xl, .stride = 1, .group = xl,
				  .group_stride = (size_t)g->zl * (size_t)g->yl * xl };
}

/*
 * Lines of y in plane z, as an exchange has them: a block per `rows` elements, yl in the row and ym
 * in the column.  With one rank in the group the blocks are Y itself.
 */
static struct fft_view lines_of_y(const struct ft_grid *g, struct fft_complex *at, int z, int rows)
{
	size_t xl = (size_t)g->xl, plane = (size_t)rows * xl;

	return (struct fft_view){ .at = at + (size_t)z * plane, .line = 1, .stride = xl,
				  .group = (size_t)rows, .group_stride = (size_t)g->zl * plane };
}

static struct fft_view lines_of_z(const struct ft_grid *g, struct fft_complex *at)
{
	return (struct fft_view){ .at = at, .line = 1, .stride = (size_t)g->ym * (size_t)g->xl,
				  .group = (size_t)g->nz };
}

static void swap_row(struct ft *f, const struct fft_complex *send, struct fft_complex *recv)
{
	f->exchange(f->user, FT_ROW, send, recv, ft_points(&f->grid) / (size_t)f->grid.p1);
}

static void swap_column(struct ft *f, const struct fft_complex *send, struct fft_complex *recv)
{
	f->exchange(f->user, FT_COLUMN, send, recv, ft_points(&f->grid) / (size_t)f->grid.p2);
}

/* ---- Steps ------------------------------------------------------------------------- */

/* The lines of x of one plane, in place. */
static void plane_x(struct ft *f, enum fft_sign sign, int z)
{
	struct fft_view v = lines_of_x(&f->grid, f->a, (size_t)z * (size_t)f->grid.yl);

	fft_lines(&f->x, &f->work, sign, &v, &v, (size_t)f->grid.yl, NULL);
}

static void plane_y(struct ft *f, enum fft_sign sign, const struct fft_view *from,
		    const struct fft_view *to)
{
	fft_lines(&f->y, &f->work, sign, from, to, (size_t)f->grid.xl, NULL);
}

/* All lines of x, between X in a and blocks for the row in b. */
static void all_x(struct ft *f, enum fft_sign sign)
{
	struct fft_view lines = lines_of_x(&f->grid, f->a, 0), blocks = blocks_of_x(&f->grid, f->b);
	size_t count = (size_t)f->grid.zl * (size_t)f->grid.yl;

	if (sign == FFT_FORWARD)
		fft_lines(&f->x, &f->work, sign, &lines, &blocks, count, NULL);
	else
		fft_lines(&f->x, &f->work, sign, &blocks, &lines, count, NULL);
}

void ft_forward(struct ft *f)
{
	const struct ft_grid *g = &f->grid;
	struct fft_complex *to = g->p2 > 1 ? f->b : f->spectrum;
	struct fft_view z;

	if (g->p1 > 1) {
		all_x(f, FFT_FORWARD);
		swap_row(f, f->b, f->a);
	}
	/* In slabs a plane stays in the caches from x to y. */
	for (int plane = 0; plane < g->zl; plane++) {
		struct fft_view here = lines_of_y(g, f->a, plane, g->yl),
				there = lines_of_y(g, to, plane, g->ym);

		if (g->p1 == 1)
			plane_x(f, FFT_FORWARD, plane);
		plane_y(f, FFT_FORWARD, &here, &there);
	}
	if (g->p2 > 1)
		swap_column(f, f->b, f->spectrum);
	z = lines_of_z(g, f->spectrum);
	fft_lines(&f->z, &f->work, FFT_FORWARD, &z, &z, (size_t)g->ym * (size_t)g->xl, NULL);
}

/* exp(-4 alpha pi^2 t k^2) of position i of n, where k runs from -n/2 to n/2 - 1. */
static double decay(int i, int n, int t)
{
	double k = i < n / 2 ? i : i - n;

	return exp(-4 * ALPHA * M_PI * M_PI * t * k * k);
}

/* The factor of a point is the product of the factors of x, y and z. */
static void factors_set(struct ft *f, int t)
{
	const struct ft_grid *g = &f->grid;
	double *line = f->line;

	for (int z = 0; z < g->nz; z++)
		f->element[z] = decay(z, g->nz, t);
	/* The first line of y holds the factors of x, and is multiplied last. */
	for (int x = 0; x < g->xl; x++)
		line[x] = decay(g->r1 * g->xl + x, g->nx, t);
	for (int y = g->ym - 1; y >= 0; y--) {
		double of_y = decay(g->r2 * g->ym + y, g->ny, t);

		for (int x = 0; x < g->xl; x++)
			line[(size_t)y * (size_t)g->xl + (size_t)x] = line[x] * of_y;
	}
}

void ft_inverse(struct ft *f, int t)
{
	const struct ft_grid *g = &f->grid;
	struct fft_scale scale = { f->line, f->element };
	struct fft_view from = lines_of_z(g, f->spectrum), to = lines_of_z(g, f->a);
	struct fft_complex *y = g->p2 > 1 ? f->b : f->a;

	factors_set(f, t);
	fft_lines(&f->z, &f->work, FFT_INVERSE, &from, &to, (size_t)g->ym * (size_t)g->xl, &scale);
	if (g->p2 > 1)
		swap_column(f, f->a, f->b);
	for (int plane = 0; plane < g->zl; plane++) {
		struct fft_view here = lines_of_y(g, y, plane, g->ym),
				there = lines_of_y(g, f->a, plane, g->yl);

		plane_y(f, FFT_INVERSE, &here, &there);
		if (g->p1 == 1)
			plane_x(f, FFT_INVERSE, plane);
	}
	if (g->p1 > 1) {
		swap_row(f, f->a, f->b);
		all_x(f, FFT_INVERSE);
	}
}

/* Points (j mod nx, 3 j mod ny, 5 j mod nz), j = 1 .. 1024. */
struct fft_complex ft_checksum(const struct ft *f)
{
	const struct ft_grid *g = &f->grid;
	double points = (double)g->nx * g->ny * g->nz;
	struct fft_complex sum = { 0, 0 };

	for (int j = 1; j <= FT_CHECKSUM_POINTS; j++) {
		int x = j % g->nx, y = 3 * j % g->ny, z = 5 * j % g->nz;
		size_t at;

		if (y / g->yl != g->r1 || z / g->zl != g->r2)
			continue;
		at = ((size_t)(z % g->zl) * (size_t)g->yl + (size_t)(y % g->yl)) *
			(size_t)g->nx + (size_t)x;
		sum.re += f->a[at].re;
		sum.im += f->a[at].im;
	}
	return (struct fft_complex){ sum.re / points, sum.im / points };
}
