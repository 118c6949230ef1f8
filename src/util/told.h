/*
 * told.h - the layer's report to the watcher of `railgauge exec` that it is at work.
 *
 * The report goes through a socket with a name that is no file.  The name is in the environment, so
 * it passes through shells and interpreters that close descriptors, and leaves no file.
 */
#ifndef RG_UTIL_TOLD_H
#define RG_UTIL_TOLD_H

#include <stdbool.h>

/* Is there a listener? */
bool told_listens(void);
/*
 * Open a socket for the report of this process's children, and name it in the environment.  The
 * socket or -errno.
 */
int told_listen(void);
/* Report; without a listener no effect. */
void told_say(void);

#endif
