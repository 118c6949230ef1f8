/*
 * trace.h - --trace: a line for each message of this rank, in a file of its own.
 *
 * The lines are a ring: of more messages than it has lines the last ones are kept, and the head
 * of the file says so.  Each line is written when its message has left or arrived, so that the
 * file of a rank that was killed is whole.  A message that waits, or of which only the request has
 * been sent, has no line yet: --dump-signal tells of such messages.
 *
 * Without --trace the path of a message has no branch and no call more: librail's lanes, send_done
 * and recv_done are pointers to functions, and trace.c puts its own functions in front.
 */
#ifndef RAILMPI_TRACE_H
#define RAILMPI_TRACE_H

#include "rail/rail.h"

enum { TRACE_LINES = 1 << 16 };

/*
 * Open this rank's file and set the functions of cfg that trace.  name NULL: nothing.  0 or
 * -errno.
 */
int trace_open(const char *name, struct rail_config *cfg);
/* The rails are open: the head of the file. */
void trace_begin(void);
/* The rails are closed, or there are none. */
void trace_close(void);

#endif
