/* launched.h - a rank that the launcher of another MPI library has started: alone in its world. */
#ifndef RAILMPI_LAUNCHED_H
#define RAILMPI_LAUNCHED_H

#include <stdbool.h>

#pragma GCC visibility push(hidden)

/* Called before the library's MPI_Init: ends this process, with a line of rank 0, if it would be alone. */
void launched_check(void);
/* Called after it.  True, after a line of rank 0, if this rank is alone and should not be. */
bool launched_alone(void);

#pragma GCC visibility pop

#endif
