/* machines.h - the sides of each case in two machines.  What goes wrong there ends the process with 3. */
#ifndef MACHINES_H
#define MACHINES_H

#include <stdbool.h>

/* How many sides of a case ended so. */
struct ends {
	int failed, skipped, alone;
};

/* ":PORT" of this machine, which has side 0; "HOST:PORT": side 0 is there. */
void machines_join(const char *address);
bool machines_joined(void);
int machines_side(void);
/* The socket between the sides of the case that comes next on both machines. */
int machines_case(const char *name);
/* The other machine's are added. */
void machines_add(struct ends *e);

#endif
