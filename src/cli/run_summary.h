/* run_summary.h - the summary of a campaign: medians over its finished launches. */
#ifndef CLI_RUN_SUMMARY_H
#define CLI_RUN_SUMMARY_H

#include <stdio.h>

#include "cli/run_launches.h"

#define RUN_SUMMARY_FILE "summary.txt"

/*
 * Print the summary, and write it into that file of the directory, which is replaced in one step.
 * 0 or -errno after one error line.
 */
int run_summary(const struct run_launches *r);
/* The tables of programs, a column per way of each build. */
int run_summary_tables(const struct run_launches *r, FILE *out);

#endif
