/*
 * figures.c - how near the named profiles come to the papers' figures.
 *
 * Each figure is measured through the verbs under a profile and set beside what
 * the paper reports.  "calibrated" means that this very figure gave a key of
 * the profile its value (src/softhca/model/profile.c says which); all others follow
 * from the model, and their error says how good a model it is.
 *
 * P1: Liu, Mamidala, Vishnu, Panda, InfiniBand with PCI Express (the longer
 * version; two ports both ways from the abstract of the shorter).  P4: transport
 * services over wide-area networks.  P5: comparison of cluster interconnects
 * (MB = 2^20 there).  Figures that the papers report at the MPI level are not here.
 */
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "../tests/softhca/timed.h"

enum { ATTEMPTS = 3, MIB = 1 << 20 };

struct figure {
	const char *paper, *profile, *what;
	double reported;
	bool calibrated;
	double (*latency)(struct side *s);	/* us; NULL: */
	struct flow flow;			/* MB/s */
	double scale;				/* of the paper's unit; 0: 1 */
};

#define WRITE .flow.opcode = IBV_WR_RDMA_WRITE, .flow.bytes = MIB
#define UC .flow.opcode = IBV_WR_RDMA_WRITE, .flow.type = IBV_QPT_UC, .flow.bytes = MIB
#define READ .flow.opcode = IBV_WR_RDMA_READ, .flow.bytes = MIB
#define FAR26 .flow.round_trip_ns = 26 * MS
#define FAR163 .flow.round_trip_ns = 163 * MS

static const struct figure figures[] = {
	{ "P1", "mt25208-pcie", "RDMA write, latency", 3.8, true, write_latency },
	{ "P1", "mt25208-pcie", "SEND, latency", 4.8, true, send_latency },
	{ "P1", "mt25208-pcie", "RDMA read, latency", 9.0, false, read_latency },
	{ "P1", "mt25208-pcie", "fetch-and-add, latency", 9.0, false, atomic_latency },
	{ "P1", "mt25208-pcie", "one port, one way", 972, true, WRITE, .flow.messages = 300 },
	{ "P1", "mt25208-pcie", "one port, both ways", 1932, false, WRITE, .flow.messages = 300,
	  .flow.both = true },
	{ "P1", "mt25208-pcie", "two ports, one way", 1486, true, WRITE, .flow.messages = 200,
	  .flow.ports = 2 },
	{ "P1", "mt25208-pcie", "two ports, one way, two pairs", 1500, false, WRITE,
	  .flow.messages = 100, .flow.ports = 2, .flow.per_port = 2 },
	{ "P1", "mt25208-pcie", "two ports, both ways", 2729, false, WRITE, .flow.messages = 200,
	  .flow.ports = 2, .flow.both = true },
	{ "P1", "mt23108-pcix", "RDMA write, latency", 4.8, true, write_latency },
	{ "P1", "mt23108-pcix", "SEND, latency", 6.9, true, send_latency },
	{ "P1", "mt23108-pcix", "RDMA read, latency", 12.4, false, read_latency },
	{ "P1", "mt23108-pcix", "fetch-and-add, latency", 12.4, false, atomic_latency },
	{ "P1", "mt23108-pcix", "one port, one way", 781, true, WRITE, .flow.messages = 300 },
	{ "P1", "mt23108-pcix", "one port, both ways", 946, false, WRITE, .flow.messages = 300,
	  .flow.both = true },
	{ "P1", "mt23108-pcix", "two ports, one way", 768, false, WRITE, .flow.messages = 150,
	  .flow.ports = 2 },
	{ "P1", "mt23108-pcix", "two ports, both ways", 948, false, WRITE, .flow.messages = 150,
	  .flow.ports = 2, .flow.both = true },
	{ "P5", "mt23108-p5", "RDMA write, latency", 6.0, true, write_latency },
	{ "P5", "mt23108-p5", "SEND, latency", 7.8, true, send_latency },
	{ "P5", "mt23108-p5", "one way", 831, true, WRITE, .flow.messages = 300,
	  .scale = 1.048576 },
	{ "P5", "mt23108-p5", "both ways", 901, false, WRITE, .flow.messages = 300,
	  .flow.both = true, .scale = 1.048576 },
	{ "P4", "wan-1400mi", "SEND, latency (the distance)", 13000, true, send_latency },
	{ "P4", "wan-1400mi", "RDMA read, latency", 26000, false, read_latency },
	{ "P4", "wan-1400mi", "UC, one way", 941, true, UC, .flow.messages = 500 },
	{ "P4", "wan-1400mi", "UC, both ways", 1887, false, UC, .flow.messages = 500,
	  .flow.both = true },
	{ "P4", "wan-1400mi", "RC, one way", 935, false, WRITE, FAR26, .flow.messages = 500 },
	{ "P4", "wan-1400mi", "RC, both ways", 1761, false, WRITE, FAR26, .flow.messages = 500,
	  .flow.both = true },
	{ "P4", "wan-8600mi", "UC, one way", 941, false, UC, .flow.messages = 1000 },
	{ "P4", "wan-8600mi", "RC, one way, 1 MiB", 906, true, WRITE, FAR163,
	  .flow.messages = 1136 },
	{ "P4", "wan-8600mi", "RC, one way, 4 MiB", 906, false, .flow.opcode = IBV_WR_RDMA_WRITE,
	  .flow.bytes = 4 * MIB, FAR163, .flow.messages = 300 },
	{ "P4", "wan-8600mi", "RC, one way, four queue pairs", 934, false, WRITE, FAR163,
	  .flow.per_port = 4, .flow.messages = 300 },
};

static double measure(struct side *s, const void *arg)
{
	const struct figure *f = arg;

	return f->latency ? f->latency(s) : flow_rate(s, &f->flow);
}

/* The nearest to what is on time: the lowest latency, the middle of the rates. */
static double best_of(const struct figure *f)
{
	double value[ATTEMPTS], low, high;
	int i;

	for (i = 0; i < ATTEMPTS; i++)
		value[i] = timed_run(f->what, f->profile, measure, f);
	low = fmin(fmin(value[0], value[1]), value[2]);
	high = fmax(fmax(value[0], value[1]), value[2]);
	return f->latency ? low : value[0] + value[1] + value[2] - low - high;
}

int main(void)
{
	const char *path = timed_fabric("figures"), *last = "";
	double worst = 0;
	unsigned i;

	for (i = 0; i < sizeof(figures) / sizeof(*figures); i++) {
		const struct figure *f = &figures[i];
		double value = best_of(f) / (f->scale ? f->scale : 1), error;

		if (strcmp(last, f->profile) != 0)
			printf("%s, %s:\n", f->profile, f->paper);
		last = f->profile;
		error = (value / f->reported - 1) * 100;
		printf("  %-32s %-4s paper %9.1f  model %9.1f  %+6.1f %%%s\n", f->what,
		       f->latency ? "us" : f->scale ? "MiB/s" : "MB/s", f->reported, value, error,
		       f->calibrated ? "  calibrated" : "");
		fflush(stdout);
		if (!f->calibrated && fabs(error) > fabs(worst))
			worst = error;
	}
	printf("largest error of a figure that was not calibrated: %+.1f %%\n", worst);
	if (access(path, F_OK) == 0)
		fail("%s is still there", path);
	return 0;
}
