/* check_print.h - the result of check_judge. */
#ifndef CLI_CHECK_PRINT_H
#define CLI_CHECK_PRINT_H

#include <jansson.h>
#include <stdio.h>

/*
 * A line for each rule, lines for its findings, and a last line with nodes, verdict and first finding,
 * fit for a reason.  0 or -EIO, silent.
 */
int check_print_text(const json_t *result, FILE *out);
int check_print_json(const json_t *result, FILE *out);

#endif
