/* hostile.h - between the victim (hostile.c), which checks, and the attacker (attacker.c). */
#ifndef HOSTILE_H
#define HOSTILE_H

#include "../conformance/conformance.h"

/* A random number from 0 to sides - 1, by the seed of the round and of this process. */
uint64_t dice(uint64_t sides);

/*
 * Run the attacker, on a queue pair that is connected with the victim's, until the
 * victim closes the sides' socket.  Ends the process.
 */
void attack(struct side *s, struct end *e) __attribute__((noreturn));

#endif
