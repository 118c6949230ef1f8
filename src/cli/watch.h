/* watch.h - see watch.c. */
#ifndef CLI_WATCH_H
#define CLI_WATCH_H

#include "cli/cli.h"

/*
 * Watch this process, which the program `name` will replace: at its end rank 0 warns if the layer
 * saw no MPI_Init.
 */
void cli_watch(const char *name);

#endif
