/* hostile.h - between the victim (hostile.c), which checks, and the attacker (attacker.c). */
#ifndef HOSTILE_H
#define HOSTILE_H

#include "kit.h"

/*
 * Run the attacker, on a queue pair that is connected with the victim's, until the
 * victim closes the sides' socket.  Ends the process.
 */
void attack(struct side *s, struct end *e) __attribute__((noreturn));

#endif
