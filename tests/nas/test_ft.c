/*
 * test_ft.c - FT on any number of ranks, which are threads here: spectra and values
 * against the definition on small grids, the published sums on the sample problem.
 */
#include "cmocka_all.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "nas/ft.h"
#include "nas/lcg.h"

#define PI 3.14159265358979323846

/* ---- Ranks ----------------------------------------------------------------------- */

struct job {
	int nx, ny, nz, ranks, iterations;
	pthread_barrier_t barrier;
	const struct fft_complex **send;	/* buffers by rank, in an exchange */
	struct fft_complex *spectrum;		/* [z][y][x], if somebody wants it */
	struct fft_complex *values;		/* at time 1, [z][y][x] */
	struct fft_complex *part;		/* parts of sums by iteration and rank */
};

struct rank { struct job *job; int number; struct ft ft; pthread_t thread; };

/* Rank k of my row or column. */
static int member(const struct ft_grid *g, enum ft_group group, int k)
{
	return group == FT_ROW ? k * g->p2 + g->r2 : g->r1 * g->p2 + k;
}

static void exchange(void *user, enum ft_group group, const struct fft_complex *send,
		     struct fft_complex *recv, size_t block)
{
	struct rank *me = user;
	const struct ft_grid *g = &me->ft.grid;
	int size = group == FT_ROW ? g->p1 : g->p2, mine = group == FT_ROW ? g->r1 : g->r2;

	me->job->send[me->number] = send;
	pthread_barrier_wait(&me->job->barrier);
	for (int k = 0; k < size; k++)
		memcpy(recv + (size_t)k * block,
		       me->job->send[member(g, group, k)] + (size_t)mine * block,
		       block * sizeof(*recv));
	pthread_barrier_wait(&me->job->barrier);
}

/* Z of this rank, into the whole. */
static void keep_spectrum(const struct rank *me)
{
	const struct ft_grid *g = &me->ft.grid;
	const struct fft_complex *at = me->ft.spectrum;

	for (int z = 0; z < g->nz; z++)
		for (int y = 0; y < g->ym; y++)
			for (int x = 0; x < g->xl; x++)
				me->job->spectrum[(z * g->ny + g->r2 * g->ym + y) * g->nx +
						  g->r1 * g->xl + x] = *at++;
}

/* X of this rank, into the whole. */
static void keep_values(const struct rank *me)
{
	const struct ft_grid *g = &me->ft.grid;
	const struct fft_complex *at = me->ft.a;

	for (int z = 0; z < g->zl; z++)
		for (int y = 0; y < g->yl; y++)
			for (int x = 0; x < g->nx; x++)
				me->job->values[((g->r2 * g->zl + z) * g->ny + g->r1 * g->yl + y) *
						g->nx + x] = *at++;
}

static void *rank_run(void *user)
{
	struct rank *me = user;
	struct job *j = me->job;
	struct ft *f = &me->ft;
	size_t bytes;

	f->grid = ft_divide(j->nx, j->ny, j->nz, j->ranks, me->number);
	f->exchange = exchange;
	f->user = me;
	bytes = ft_points(&f->grid) * sizeof(struct fft_complex);
	f->spectrum = malloc(bytes);
	f->a = malloc(bytes);
	f->b = j->ranks > 1 ? malloc(bytes) : NULL;
	if (!f->spectrum || !f->a || (j->ranks > 1 && !f->b) || ft_open(f))
		abort();
	/* Twice: nothing may be left of the first time. */
	for (int i = 0; i < 2; i++) {
		ft_initial(f);
		ft_forward(f);
	}
	if (j->spectrum)
		keep_spectrum(me);
	for (int t = 1; t <= j->iterations; t++) {
		ft_inverse(f, t);
		if (t == 1 && j->values)
			keep_values(me);
		j->part[(t - 1) * j->ranks + me->number] = ft_checksum(f);
	}
	ft_close(f);
	free(f->spectrum);
	free(f->a);
	free(f->b);
	return NULL;
}

/* sums: of each iteration; may be NULL. */
static void job_run(struct job *j, struct fft_complex *sums)
{
	struct rank *rank = calloc((size_t)j->ranks, sizeof(*rank));
	pthread_attr_t small;

	assert_non_null(rank);
	j->send = calloc((size_t)j->ranks, sizeof(j->send[0]));
	j->part = calloc((size_t)(j->ranks * j->iterations), sizeof(j->part[0]));
	pthread_barrier_init(&j->barrier, NULL, (unsigned)j->ranks);
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 256 << 10);
	for (int r = 0; r < j->ranks; r++) {
		rank[r] = (struct rank){ .job = j, .number = r };
		assert_int_equal(pthread_create(&rank[r].thread, &small, rank_run, &rank[r]), 0);
	}
	for (int r = 0; r < j->ranks; r++)
		pthread_join(rank[r].thread, NULL);
	for (int t = 0; sums && t < j->iterations; t++) {
		sums[t] = (struct fft_complex){ 0, 0 };
		for (int r = 0; r < j->ranks; r++) {
			sums[t].re += j->part[t * j->ranks + r].re;
			sums[t].im += j->part[t * j->ranks + r].im;
		}
	}
	pthread_attr_destroy(&small);
	pthread_barrier_destroy(&j->barrier);
	free(j->part);
	free(j->send);
	free(rank);
}

/* ---- The definition ------------------------------------------------------------------ */

static double wave(int i, int n)
{
	return (i + n / 2) % n - n / 2;
}

/* sum over all points of in * exp(sign 2 pi i (...)), of one point of the result. */
static struct fft_complex point(const struct fft_complex *in, int nx, int ny, int nz, int at,
				int sign)
{
	int kx = at % nx, ky = at / nx % ny, kz = at / nx / ny;
	struct fft_complex sum = { 0, 0 };

	for (int i = 0; i < nx * ny * nz; i++) {
		double turns = (double)(i % nx * kx % nx) / nx +
			(double)(i / nx % ny * ky % ny) / ny + (double)(i / nx / ny * kz % nz) / nz;
		double c = cos(2 * PI * turns), s = sign * sin(2 * PI * turns);

		sum.re += in[i].re * c - in[i].im * s;
		sum.im += in[i].re * s + in[i].im * c;
	}
	return sum;
}

static bool near(struct fft_complex a, struct fft_complex b, double limit)
{
	return hypot(a.re - b.re, a.im - b.im) <= limit;
}

static void check_grid(int nx, int ny, int nz, int ranks)
{
	int points = nx * ny * nz;
	struct fft_complex *initial = calloc((size_t)points, sizeof(*initial)),
			   *decayed = calloc((size_t)points, sizeof(*decayed));
	struct job j = { .nx = nx, .ny = ny, .nz = nz, .ranks = ranks, .iterations = 1 };

	j.spectrum = calloc((size_t)points, sizeof(*j.spectrum));
	j.values = calloc((size_t)points, sizeof(*j.values));
	job_run(&j, NULL);
	lcg_fill(LCG_SEED, (double *)initial, 2 * (size_t)points);
	/* Every seventh point, of every row, column and plane in the end. */
	for (int i = 0; i < points; i += 7)
		assert_true(near(j.spectrum[i], point(initial, nx, ny, nz, i, -1), 1e-9));
	for (int i = 0; i < points; i++) {
		double kx = wave(i % nx, nx), ky = wave(i / nx % ny, ny), kz = wave(i / nx / ny, nz);
		double f = exp(-4e-6 * PI * PI * (kx * kx + ky * ky + kz * kz));

		decayed[i] = (struct fft_complex){ j.spectrum[i].re * f, j.spectrum[i].im * f };
	}
	for (int i = 0; i < points; i += 7)
		assert_true(near(j.values[i], point(decayed, nx, ny, nz, i, 1), 1e-9 * points));
	free(initial);
	free(decayed);
	free(j.spectrum);
	free(j.values);
}

/* A single rank, slabs, pencils up to the last rank that has work. */
static void test_grids(void **state)
{
	(void)state;
	for (int ranks = 1; ranks <= 4 * 8; ranks *= 2)
		check_grid(16, 8, 4, ranks);
	for (int ranks = 1; ranks <= 8 * 8; ranks *= 2)
		check_grid(8, 8, 8, ranks);
	for (int ranks = 1; ranks <= 2 * 8; ranks *= 2)
		check_grid(8, 32, 2, ranks);
}

static void test_published(void **state)
{
	static const int ranks[] = { 1, 2, 8, 64, 128, 256 };
	const struct ft_class *c = &ft_classes[NAS_S];

	(void)state;
	for (size_t i = 0; i < sizeof(ranks) / sizeof(ranks[0]); i++) {
		struct fft_complex sums[FT_ITERATIONS_MAX];
		struct job j = { .nx = c->nx, .ny = c->ny, .nz = c->nz, .ranks = ranks[i],
				 .iterations = c->iterations };

		job_run(&j, sums);
		for (int t = 1; t <= c->iterations; t++)
			assert_true(ft_sum_matches(c, t, sums[t - 1]));
	}
}

static void test_sums(void **state)
{
	const struct ft_class *c = &ft_classes[NAS_B];
	struct fft_complex sum = c->sums[19];

	(void)state;
	assert_true(ft_sum_matches(c, 20, sum));
	sum.im *= 1 + 1e-13;
	assert_true(ft_sum_matches(c, 20, sum));
	sum.im *= 1 + 1e-11;
	assert_false(ft_sum_matches(c, 20, sum));
	sum.im = NAN;
	assert_false(ft_sum_matches(c, 20, sum));
	assert_false(ft_sum_matches(c, 19, c->sums[19]));
}

/* Class A has the well-known 7.14 Gop. */
static void test_operations(void **state)
{
	(void)state;
	assert_true(fabs(ft_operations(&ft_classes[NAS_A]) / 7.1364e9 - 1) < 1e-4);
	assert_int_equal(ft_ranks_max(NAS_S), 4096);
	assert_int_equal(ft_ranks_max(NAS_W), 4096);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_grids),
		cmocka_unit_test(test_published),
		cmocka_unit_test(test_sums),
		cmocka_unit_test(test_operations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
