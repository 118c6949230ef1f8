/* run_answer.h - do several rails make a program faster?  Yes or no, and why not. */
#ifndef CLI_RUN_ANSWER_H
#define CLI_RUN_ANSWER_H

#include <stdio.h>

#include "cli/run_launches.h"

/* Print medians of wall times and the answer.  0 or -errno after one error line. */
int run_answer(const struct run_launches *r, FILE *out);

#endif
