/* ft - a differential equation solved by 3-D FFTs, transposed among ranks. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "nas/ft.h"
#include "nas_program.h"

static struct nas_values values;
static const struct opt rows[] = NAS_OPTIONS;

static struct {
	const struct ft_class *c;
	struct ft ft;
	MPI_Comm group[2];		/* the current way's, by enum ft_group */
	struct bench_turn *turn;
	struct fft_complex sum[FT_ITERATIONS_MAX];	/* rank 0 */
} ft;

/* ---- Before ---------------------------------------------------------------------- */

static int ft_check(int ranks, uint64_t available, char *why, size_t why_size)
{
	static const struct nas_kernel kernel = { "FT", ft_ranks_max, ft_memory_bytes };

	return nas_check(&kernel, (enum nas_class)values.class, ranks, available, why, why_size);
}

static void ft_problem(struct bench_problem *out)
{
	const struct ft_class *c = &ft_classes[values.class];

	*out = (struct bench_problem){
		.class = nas_class_name((enum nas_class)values.class),
		.bytes = (uint64_t)c->nx * (uint64_t)c->ny * (uint64_t)c->nz *
			sizeof(struct fft_complex),
		.iterations = c->iterations,
		.operations = ft_operations(c),
		.operation = "floating point",
	};
	snprintf(out->size, sizeof(out->size), "%dx%dx%d", c->nx, c->ny, c->nz);
}

/* A transposition: MPI_Alltoall among the ranks of a row or column. */
static void exchange(void *user, enum ft_group group, const struct fft_complex *send,
		     struct fft_complex *recv, size_t block)
{
	int numbers = (int)(2 * block), size = group == FT_ROW ? ft.ft.grid.p1 : ft.ft.grid.p2;
	uint64_t begun = bench_communication_begin();

	MPI_Alltoall(send, numbers, MPI_DOUBLE, recv, numbers, MPI_DOUBLE, ft.group[group]);
	bench_communication_end(ft.turn, begun, (uint64_t)(size - 1) * block * sizeof(*send));
}

static int memory_open(void)
{
	size_t bytes;

	bytes = ft_points(&ft.ft.grid) * sizeof(struct fft_complex);
	ft.ft.spectrum = bench_alloc(bytes);
	ft.ft.a = bench_alloc(bytes);
	if (ft.ft.grid.p1 * ft.ft.grid.p2 > 1)
		ft.ft.b = bench_alloc(bytes);
	if (!ft.ft.spectrum || !ft.ft.a || (ft.ft.grid.p1 * ft.ft.grid.p2 > 1 && !ft.ft.b))
		return -ENOMEM;
	return ft_open(&ft.ft);
}

static int ft_app_open(int rank, int ranks)
{
	ft.c = &ft_classes[values.class];
	ft.ft.grid = ft_divide(ft.c->nx, ft.c->ny, ft.c->nz, ranks, rank);
	ft.ft.exchange = exchange;
	return memory_open();
}

static void ft_app_close(void)
{
	ft_close(&ft.ft);
	bench_free(ft.ft.spectrum);
	bench_free(ft.ft.a);
	bench_free(ft.ft.b);
}

/* ---- A turn ------------------------------------------------------------------------ */

/* Slabs have a single column of all ranks, and no rows. */
static void groups_open(MPI_Comm comm)
{
	const struct ft_grid *g = &ft.ft.grid;

	ft.group[FT_ROW] = MPI_COMM_NULL;
	ft.group[FT_COLUMN] = comm;
	if (g->p1 == 1)
		return;
	MPI_Comm_split(comm, g->r2, g->r1, &ft.group[FT_ROW]);
	MPI_Comm_split(comm, g->r1, g->r2, &ft.group[FT_COLUMN]);
}

static void groups_close(void)
{
	if (ft.ft.grid.p1 == 1)
		return;
	MPI_Comm_free(&ft.group[FT_ROW]);
	MPI_Comm_free(&ft.group[FT_COLUMN]);
}

static void checksum(struct bench_turn *t, int iteration)
{
	struct fft_complex mine = ft_checksum(&ft.ft);
	uint64_t begun = bench_communication_begin();

	MPI_Reduce(&mine, &ft.sum[iteration - 1], 2, MPI_DOUBLE, MPI_SUM, 0, t->comm);
	bench_communication_end(t, begun, t->size > 1 ? sizeof(mine) : 0);
}

static void verify(struct bench_turn *t)
{
	for (int i = 1; i <= ft.c->iterations && t->rank == 0; i++) {
		const struct fft_complex *is = &ft.sum[i - 1], *should = &ft.c->sums[i - 1];

		if (ft_sum_matches(ft.c, i, *is))
			continue;
		snprintf(t->wrong, sizeof(t->wrong), "iteration %d: checksum %.12e %.12e, "
			 "expected %.12e %.12e", i, is->re, is->im, should->re, should->im);
		break;
	}
}

static void ft_run(struct bench_turn *t)
{
	ft.turn = t;
	memset(ft.sum, 0xff, sizeof(ft.sum));	/* no numbers: no sums of another way */
	groups_open(t->comm);
	/* Once without a clock, for pages, caches and connections. */
	ft_initial(&ft.ft);
	ft_forward(&ft.ft);
	bench_turn_begin(t);
	ft_roots(&ft.ft);
	ft_initial(&ft.ft);
	ft_forward(&ft.ft);
	for (int i = 1; i <= ft.c->iterations; i++) {
		ft_inverse(&ft.ft, i);
		checksum(t, i);
	}
	bench_turn_end(t);
	groups_close();
	verify(t);
}

static const struct bench_app app = {
	.remark = NAS_REMARK,
	.check = ft_check,
	.problem = ft_problem,
	.open = ft_app_open,
	.run = ft_run,
	.close = ft_app_close,
};

const struct bench_def bench_def = {
	.name = "ft",
	.summary = "Solution of a differential equation by 3-D FFTs, NAS-style",
	BENCH_APP_DEF,
};
