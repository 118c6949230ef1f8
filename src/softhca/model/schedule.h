/*
 * schedule.h - names of ports, and when ports go down and come back.
 *
 * A port is NODE/softH:P, such as 1/soft0:2: the virtual node, then adapter and
 * port as verbs name them.
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

/* Is it a well-formed name?  Whether the port exists is not checked. */
bool hca_port_name_parse(const char *text, struct hca_port_name *name);
char *hca_port_name_format(const struct hca_port_name *name, char *buf, size_t size);

enum hca_change_kind {
	HCA_CHANGE_DOWN,
	HCA_CHANGE_UP,
	HCA_CHANGE_FATAL,		/* of the port's adapter */
	HCA_CHANGE_EVENT,
};

struct hca_change {
	uint64_t when_ns;		/* after the fabric's first queue pair was ready to send */
	struct hca_port_name at;
	bool up;			/* the kind is HCA_CHANGE_UP */
	uint8_t kind;			/* enum hca_change_kind */
	uint8_t event;			/* HCA_CHANGE_EVENT: enum ibv_event_type */
	bool moves;			/* the port's LID, or its GIDs, become others */
};

enum { HCA_CHANGES_MAX = 32 };

/* Changes in order of time; of changes at the same time, changes to down come first. */
struct hca_schedule {
	uint32_t count;
	struct hca_change change[HCA_CHANGES_MAX];
};

/*
 * Add "PORT@WHEN+PORT@WHEN...", of events "EVENT:PORT@WHEN...", to the schedule.  0, -EINVAL:
 * malformed, -E2BIG: too many.
 */
int hca_schedule_parse(const char *text, enum hca_change_kind kind, struct hca_schedule *s);
/* The changes of a kind, in the same form; "none" without any.  False: did not fit. */
bool hca_schedule_format(const struct hca_schedule *s, enum hca_change_kind kind, char *buf,
			 size_t size);

#endif
