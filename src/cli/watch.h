/* watch.h - see watch.c. */
#ifndef CLI_WATCH_H
#define CLI_WATCH_H

#include "cli/cli.h"

/* Of the process that the program `name` will replace: at its end rank 0 tells if the layer saw nothing. */
void cli_watch(const char *name);

#endif
