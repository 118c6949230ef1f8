/*
 * told.h - a word to the watcher that `railgauge exec` has left behind: the layer is at work.
 *
 * A socket by a name that is no file, which the environment carries: it passes through shells and
 * interpreters that close descriptors, and nothing of it stays behind.
 */
#ifndef RG_UTIL_TOLD_H
#define RG_UTIL_TOLD_H

#include <stdbool.h>

/* Is there a listener? */
bool told_listens(void);
/* A socket that waits for the word of this process's children, named in its environment.  Or -errno. */
int told_listen(void);
/* Say it; without a listener nothing happens. */
void told_say(void);

#endif
