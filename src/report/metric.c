/* metric.c - names and units of metrics. */
#include <string.h>

#include "report/metric.h"

static const struct { const char *name, *unit; } metrics[REPORT_METRIC_COUNT] = {
	[REPORT_LATENCY] = { "latency", "us" },
	[REPORT_BANDWIDTH] = { "bandwidth", "MB/s" },
	[REPORT_RATE] = { "rate", "messages/s" },
	[REPORT_MOPS] = { "operations", "Mop/s" },
};

const char *report_metric_name(enum report_metric metric)
{
	return metrics[metric].name;
}

const char *report_metric_unit(enum report_metric metric)
{
	return metrics[metric].unit;
}

int report_metric_find(const char *name)
{
	for (int i = 0; i < REPORT_METRIC_COUNT; i++)
		if (strcmp(metrics[i].name, name) == 0)
			return i;
	return -1;
}
