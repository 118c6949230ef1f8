/*
 * known_clock.h - a clock that stops until its program says how much time has passed. It replaces
 * src/util/clock.c in the program and in the harness in it, not in the layer and the MPI library:
 * what they measure is known to the nanosecond, whatever else the machine does.
 */
#ifndef KNOWN_CLOCK_H
#define KNOWN_CLOCK_H

#include <stdint.h>

void known_clock_pass(uint64_t ns);
/* Each reading of the clock advances it by this time from now on, for loops that end at a time. */
void known_clock_look(uint64_t ns);
/* All ranks of the job: as late as it is at any of them, as after a wait for the last one. */
void known_clock_meet(void);

#endif
