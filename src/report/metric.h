/* metric.h - metrics of a table: names and units. */
#ifndef REPORT_METRIC_H
#define REPORT_METRIC_H

enum report_metric {
	REPORT_LATENCY,		/* us, lower is better */
	REPORT_BANDWIDTH,	/* MB/s, MB = 10^6 */
	REPORT_RATE,		/* messages per second */
	REPORT_MOPS,		/* millions of operations per second, of a program as a whole */
};
enum { REPORT_METRIC_COUNT = 4 };

const char *report_metric_name(enum report_metric metric);	/* "latency" */
const char *report_metric_unit(enum report_metric metric);	/* "us" */
/* The metric of that name, or -1. */
int report_metric_find(const char *name);

#endif
