/* ft_class.h - the problems of FT, and their published results. */
#ifndef RG_NAS_FT_CLASS_H
#define RG_NAS_FT_CLASS_H

#include "nas/fft.h"
#include "nas/nas.h"

enum { FT_ITERATIONS_MAX = 20, FT_CHECKSUM_POINTS = 1024 };

struct ft_class {
	int nx, ny, nz, iterations;
	const struct fft_complex *sums;		/* published, one per iteration */
};
extern const struct ft_class ft_classes[NAS_CLASSES];

/* Operations of all iterations, as NPB counts them. */
double ft_operations(const struct ft_class *c);
/* Is this the published sum of iteration t (from 1)?  Relative difference up to 1e-12. */
bool ft_sum_matches(const struct ft_class *c, int t, struct fft_complex sum);
int ft_ranks_max(enum nas_class c);
uint64_t ft_memory_bytes(enum nas_class c, int ranks);

#endif
