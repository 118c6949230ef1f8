/*
 * reg_speed.c - what registering memory costs on the software HCA.
 *
 * Ratios of things that take turns in one process, one line each launch:
 *
 *	reg first	ibv_reg_mr of 64 MiB that are registered for the first time
 *			/ the kernel's floor: 64 MiB copied by memcpy into a new
 *			memfd's mapping, which that populates
 *	reg arena	ibv_reg_mr of 64 MiB of the arena / 1 ms
 *	reg again	ibv_reg_mr of 64 MiB that were registered before / 1 ms
 *
 * Each is the median of TURNS turns.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "softhca/softhca.h"

enum { TURNS = 9 };
static const size_t bytes = 64 << 20;

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void stop(const char *what)
{
	fprintf(stderr, "reg_speed: %s: %s\n", what, strerror(errno));
	exit(4);
}

static void *fresh(void)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		stop("mmap");
	memset(at, 0x5a, bytes);
	return at;
}

static double floor_ms(void)
{
	void *from = fresh(), *to;
	double start = now_ms(), took;
	int fd = memfd_create("floor", MFD_CLOEXEC);

	if (fd < 0 || ftruncate(fd, (off_t)bytes))
		stop("memfd");
	to = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (to == MAP_FAILED)
		stop("mmap");
	memcpy(to, from, bytes);
	took = now_ms() - start;
	munmap(to, bytes);
	close(fd);
	munmap(from, bytes);
	return took;
}

static double reg_ms(struct ibv_pd *pd, void *at)
{
	double start = now_ms(), took;
	struct ibv_mr *mr = ibv_reg_mr(pd, at, bytes, IBV_ACCESS_LOCAL_WRITE |
				       IBV_ACCESS_REMOTE_WRITE);

	if (!mr)
		stop("ibv_reg_mr");
	took = now_ms() - start;
	ibv_dereg_mr(mr);
	return took;
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double median(double *v)
{
	qsort(v, TURNS, sizeof(*v), ascending);
	return v[TURNS / 2];
}

int main(void)
{
	double least[TURNS], first[TURNS], again[TURNS], arena[TURNS], floor;
	struct softhca_config cfg = { .node = -1, .remap = SOFTHCA_REMAP_AUTO };
	struct ibv_device **list = softhca_get_device_list(&cfg, NULL);
	struct ibv_context *c = list ? ibv_open_device(list[0]) : NULL;
	struct ibv_pd *pd = c ? ibv_alloc_pd(c) : NULL;
	void *own;
	int i;

	if (!pd) {
		fprintf(stderr, "reg_speed: %s\n", softhca_last_error());
		return 4;
	}
	own = softhca_arena_alloc(bytes);
	if (!own)
		stop("arena");
	for (i = 0; i < TURNS; i++) {
		void *at;

		least[i] = floor_ms();
		at = fresh();
		first[i] = reg_ms(pd, at);
		again[i] = reg_ms(pd, at);
		munmap(at, bytes);
		arena[i] = reg_ms(pd, own);
	}
	floor = median(least);
	printf("reg first %.3f\nreg arena %.4f\nreg again %.4f\n", median(first) / floor,
	       median(arena), median(again));
	fprintf(stderr, "floor %.2f ms, first %.2f ms, arena %.4f ms, again %.4f ms\n", floor,
		first[TURNS / 2], arena[TURNS / 2], again[TURNS / 2]);
	softhca_arena_free(own);
	ibv_dealloc_pd(pd);
	ibv_close_device(c);
	ibv_free_device_list(list);
	return 0;
}
