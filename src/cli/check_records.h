/* check_records.h - what result files say, for the rules of railgauge check. */
#ifndef CLI_CHECK_RECORDS_H
#define CLI_CHECK_RECORDS_H

#include <jansson.h>

#include "report/files.h"

/*
 * The member `measured` of struct check_facts: launches of one job are merged.  kept: the records of
 * acceptance, or NULL.  0 or -ENOMEM after one line.
 */
int check_measure(const struct report_files *now, const struct report_files *kept, json_t **out);

#endif
