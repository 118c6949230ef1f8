/*
 * told.h - a word to whoever started this job by `railgauge exec`: the layer is at work.
 *
 * A socket by a name that is no file, which the environment carries: it passes through shells and
 * interpreters that close descriptors, and nothing of it stays behind.
 */
#ifndef RG_UTIL_TOLD_H
#define RG_UTIL_TOLD_H

/* A socket that waits for the word of this process's children, named in its environment.  Or -errno. */
int told_listen(void);
/* Say it.  Without anyone who listens, nothing happens. */
void told_say(void);

#endif
