/* metric.h - metrics of a table: names and units. */
#ifndef REPORT_METRIC_H
#define REPORT_METRIC_H

enum report_metric {
	REPORT_LATENCY,		/* us, lower is better: time of a sample / messages */
	REPORT_BANDWIDTH,	/* MB/s, MB = 10^6: bytes of all pairs together / time */
	REPORT_RATE,		/* messages per second, of all pairs together */
	REPORT_MOPS,		/* operations / 10^6 / time of the slowest rank of a program */
};
enum { REPORT_METRIC_COUNT = 4 };

const char *report_metric_name(enum report_metric metric);	/* "latency" */
const char *report_metric_unit(enum report_metric metric);	/* "us" */
/* The metric of that name, or -1. */
int report_metric_find(const char *name);

#endif
