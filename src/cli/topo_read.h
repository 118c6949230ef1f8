/* topo_read.h - what is known of a machine, for railgauge topo and railgauge check. */
#ifndef CLI_TOPO_READ_H
#define CLI_TOPO_READ_H

#include "cli/topo_report.h"
#include "util/opt.h"

enum { TOPO_RANKS_AUTO = -1 };

struct topo_request {
	const char *xml;		/* a saved machine; NULL: this one */
	const char *soft;		/* ports of this software HCA; NULL: those of the machine */
	/*
	 * The directory that has error counters of ports, as /sys; NULL: /sys, and none of a saved
	 * machine.
	 */
	const char *sysfs;
	int ranks;			/* local ranks to place; TOPO_RANKS_AUTO: one per core, at most 8 */
	unsigned job;			/* ranks of the job whose needs are shown; 0: none are */
	bool gpus;			/* also GPUs, which drivers may take seconds to list */
};

/* 0 or -errno after one line.  topo_report_free in any case; *r is zero before. */
int topo_report_make(struct topo_report *r, const struct topo_request *q);
void topo_report_free(struct topo_report *r);

/* Complete the row "soft" of a table by the transport's option, with its check. */
void topo_soft_option(struct opt *rows);

/* The exit code of -errno: an error in the user's input, or a fault of the machine. */
int topo_exit_code(int rc);

#endif
