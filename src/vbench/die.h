/* die.h - the end of a job that cannot go on. */
#ifndef VBENCH_DIE_H
#define VBENCH_DIE_H

/* Ends the job after one line: the rank, what failed, why. */
void vb_die(const char *what, const char *why);

#endif
