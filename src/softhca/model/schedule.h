/*
 * schedule.h - ports by name, and when they go down and come back.
 *
 * A port is NODE/softH:P, such as 1/soft0:2: adapter and port as verbs name
 * them, behind the virtual node.
 */
#ifndef HCA_SCHEDULE_H
#define HCA_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hca_port_name {
	uint32_t node, hca, port;	/* port counts from 1 */
};

enum { HCA_PORT_NAME = 24 };		/* bytes for the longest name */

/* Is it a name?  Whether there is such a port is another question. */
bool hca_port_name_parse(const char *text, struct hca_port_name *name);
char *hca_port_name_format(const struct hca_port_name *name, char *buf, size_t size);

struct hca_change {
	uint64_t when_ns;		/* after the fabric's first queue pair got ready to send */
	struct hca_port_name at;
	bool up;
};

enum { HCA_CHANGES_MAX = 32 };

/* In order of time; of changes at one time, those to down come first. */
struct hca_schedule {
	uint32_t count;
	struct hca_change change[HCA_CHANGES_MAX];
};

/* "PORT@WHEN+PORT@WHEN...": added to the schedule.  0, or -EINVAL: not that, -E2BIG: too many. */
int hca_schedule_parse(const char *text, bool up, struct hca_schedule *s);
/* The changes to up or to down, the same way; "none" if there is none.  False: did not fit. */
bool hca_schedule_format(const struct hca_schedule *s, bool up, char *buf, size_t size);

#endif
