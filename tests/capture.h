/* capture.h - what a piece of code writes to a file descriptor. */
#ifndef RG_TESTS_CAPTURE_H
#define RG_TESTS_CAPTURE_H

#include <stddef.h>

/* Divert fd (1 or 2) into a temporary file until capture_end. */
void capture_begin(int fd);
/* The text so far, NUL-terminated, in a static buffer of 64 KiB; fd is restored. */
const char *capture_end(void);

/* The same without its last line if that is the verdict, which tests/report/test_citable.c has. */
const char *capture_table(void);

#endif
