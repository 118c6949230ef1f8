/* options.h - values, choices, and what does not go together. */
#ifndef VBENCH_OPTIONS_H
#define VBENCH_OPTIONS_H

#include "vbench/lanes.h"

bool vb_side_is_active(int side);
/* Does the program send a message at a time, without a window? */
bool vb_is_single(void);
/* Do groups arrive at this rank? */
bool vb_is_target(const struct bench *b);
/* Does the side that groups arrive at reply to each? */
bool vb_has_replies(void);
/* Do groups follow each other without a gap? */
bool vb_streams(void);
int vb_check(void);
int vb_check_way(int way);
/* RAILMPI_USES_ALL and RAILMPI_CUTS of an enum railmpi_way. */
unsigned vb_way_traits(int way);
void vb_describe(char *text, size_t size);
/* The way to find arrivals, with "auto" resolved. */
enum vbench_arrival vb_arrival(void);
/* The place of message n of a batch in the buffers, times b->step. */
int vb_place(const struct bench *b, uint64_t n);
/* The largest group of all rows, where a window has so many messages. */
int vb_group_max(int window);

#endif
