/* run_why.h - why striping cannot help a program: from its ledger, and from this machine's topology. */
#ifndef CLI_RUN_WHY_H
#define CLI_RUN_WHY_H

#include <stdio.h>

#include "cli/run_ledger.h"

enum { RUN_WHY_TEXT = 512 };

/*
 * Reasons, "; " between: one rail only, no message above the threshold, one PCIe slot, ...; "": none
 * is known.  Returns buf.
 */
char *run_why(const struct run_ledger *l, const char *threshold, char buf[RUN_WHY_TEXT]);
/* The threshold of striping that a launch has without options: "8K". */
const char *run_why_threshold(char *buf, size_t size);

#endif
