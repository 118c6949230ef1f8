/* test_fft.c - transforms of lines anywhere in memory, against the definition. */
#include "cmocka_all.h"

#include <math.h>
#include <stdlib.h>

#include "nas/fft.h"

#define TWO_PI 6.283185307179586476925286766559

static struct fft_complex *numbers(size_t count, unsigned seed)
{
	struct fft_complex *c = malloc(count * sizeof(*c));

	assert_non_null(c);
	srand(seed);
	for (size_t i = 0; i < count; i++)
		c[i] = (struct fft_complex){ rand() / (double)RAND_MAX - 0.5,
					     rand() / (double)RAND_MAX - 0.5 };
	return c;
}

static struct fft_complex *element(const struct fft_view *v, size_t l, size_t j)
{
	return v->at + l * v->line + j / v->group * v->group_stride + j % v->group * v->stride;
}

/* sum of x[j] exp(-+ 2 pi i j k / n) */
static struct fft_complex naive(const struct fft_complex *x, size_t n, size_t k,
				enum fft_sign sign)
{
	long double re = 0, im = 0;

	for (size_t j = 0; j < n; j++) {
		long double angle = (sign == FFT_FORWARD ? -TWO_PI : TWO_PI) *
			(long double)(j * k % n) / (long double)n;
		long double c = cosl(angle), s = sinl(angle);

		re += x[j].re * c - x[j].im * s;
		im += x[j].re * s + x[j].im * c;
	}
	return (struct fft_complex){ (double)re, (double)im };
}

static void near(struct fft_complex a, struct fft_complex b)
{
	assert_true(fabs(a.re - b.re) < 1e-12 && fabs(a.im - b.im) < 1e-12);
}

/* `total` elements of memory, of which the views name some; the others must stay. */
static void check(size_t n, size_t lines, enum fft_sign sign, struct fft_view from,
		  struct fft_view to, size_t total, const struct fft_scale *scale)
{
	bool in_place = from.at == to.at;
	const unsigned seed = (unsigned)(n + lines), other = in_place ? seed : 77;
	struct fft_complex *source = numbers(total, seed), *given = numbers(total, seed),
			   *result = in_place ? source : numbers(total, other),
			   *before = numbers(total, other), *x;
	unsigned char *named = calloc(total, 1);
	struct fft_plan plan;
	struct fft_work work;

	from.at = source;
	to.at = result;
	assert_int_equal(fft_plan_open(&plan, n), 0);
	assert_int_equal(fft_work_open(&work, n), 0);
	fft_lines(&plan, &work, sign, &from, &to, lines, scale);
	x = malloc(n * sizeof(*x));
	from.at = given;
	for (size_t l = 0; l < lines; l++) {
		for (size_t j = 0; j < n; j++) {
			double f = scale ? scale->line[l] * scale->element[j] : 1;

			x[j] = *element(&from, l, j);
			x[j].re *= f;
			x[j].im *= f;
		}
		for (size_t k = 0; k < n; k++) {
			struct fft_complex *at = element(&to, l, k);

			near(*at, naive(x, n, k, sign));
			assert_int_equal(named[at - result]++, 0);
		}
	}
	for (size_t i = 0; i < total; i++)
		if (!named[i])
			assert_memory_equal(&result[i], &before[i], sizeof(result[i]));
	fft_plan_close(&plan);
	fft_work_close(&work);
	free(x);
	free(named);
	if (!in_place)
		free(result);
	free(source);
	free(given);
	free(before);
}

static struct fft_complex here[1], there[1];	/* places of memory */

/* Rows of a matrix, with a gap after each. */
static struct fft_view along(struct fft_complex *at, size_t n)
{
	return (struct fft_view){ .at = at, .line = n + 3, .stride = 1, .group = n };
}

/* The matrix's columns. */
static struct fft_view across(struct fft_complex *at, size_t n, size_t lines)
{
	return (struct fft_view){ .at = at, .line = 1, .stride = lines + 5, .group = n };
}

static void test_lengths(void **state)
{
	(void)state;
	for (size_t n = 1; n <= 512; n *= 2)
		for (int sign = 0; sign < 2; sign++) {
			check(n, 4, (enum fft_sign)sign, along(here, n), along(here, n), 4 * (n + 3),
			      NULL);
			check(n, 4, (enum fft_sign)sign, across(here, n, 4), across(here, n, 4),
			      9 * n, NULL);
		}
}

static void test_numbers_of_lines(void **state)
{
	(void)state;
	for (size_t lines = 1; lines <= 37; lines++) {
		size_t total = 16 * (lines + 5) + 19 * lines;

		check(16, lines, FFT_FORWARD, along(here, 16), along(here, 16), total, NULL);
		check(16, lines, FFT_INVERSE, across(here, 16, lines), across(here, 16, lines),
		      total, NULL);
		check(16, lines, FFT_FORWARD, along(here, 16), across(there, 16, lines), total,
		      NULL);
		check(16, lines, FFT_INVERSE, across(here, 16, lines), along(there, 16), total,
		      NULL);
	}
}

/* Blocks, as an exchange leaves them: every group of elements is somewhere else. */
static void test_groups(void **state)
{
	(void)state;
	for (size_t group = 1; group <= 32; group *= 2)
		for (size_t lines = 1; lines <= 21; lines += 5) {
			struct fft_view columns = { .at = here, .line = 1, .stride = lines,
						    .group = group,
						    .group_stride = group * lines + 7 };
			struct fft_view stretches = { .at = there, .line = group, .stride = 1,
						      .group = group,
						      .group_stride = group * lines + 1 };
			size_t total = (32 / group) * (group * lines + 7);

			check(32, lines, FFT_FORWARD, columns, stretches, total, NULL);
			check(32, lines, FFT_INVERSE, stretches, columns, total, NULL);
			check(32, lines, FFT_FORWARD, columns, columns, total, NULL);
			check(32, lines, FFT_INVERSE, stretches, stretches, total, NULL);
		}
}

static void test_scale(void **state)
{
	double line[33], element_factor[64];
	const struct fft_scale scale = { line, element_factor };

	(void)state;
	for (int i = 0; i < 33; i++)
		line[i] = 1.0 / (i + 1);
	for (int i = 0; i < 64; i++)
		element_factor[i] = 0.5 + i / 100.0;
	for (size_t lines = 1; lines <= 33; lines += 4) {
		check(64, lines, FFT_FORWARD, across(here, 64, lines), across(there, 64, lines),
		      64 * (lines + 5), &scale);
		check(64, lines, FFT_INVERSE, across(here, 64, lines), across(here, 64, lines),
		      64 * (lines + 5), &scale);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lengths),
		cmocka_unit_test(test_numbers_of_lines),
		cmocka_unit_test(test_groups),
		cmocka_unit_test(test_scale),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
