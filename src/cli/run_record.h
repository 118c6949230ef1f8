/* run_record.h - the record of a launch: is it whole; and that of a program which writes none. */
#ifndef CLI_RUN_RECORD_H
#define CLI_RUN_RECORD_H

#include "cli/cli.h"

/* The one way of a program that is timed as a whole, by its launcher. */
#define RUN_RECORD_WAY "launch"

/* Has the file the end of a launch of this program that ended well?  Prints nothing. */
bool run_record_is_whole(const char *path, const char *program);
/*
 * Write a record with one row, the wall time of a launch in us.  words: its command, then a NULL.
 * 0 or -errno after one error line.
 */
int run_record_write(const char *path, const char *program, char *const *words, double seconds);
/* The time in such a record, which is whole. */
double run_record_seconds(const char *path);

#endif
