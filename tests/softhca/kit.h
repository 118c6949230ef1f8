/*
 * kit.h - common parts of the tests of libsofthca: a fabric of the program's own, sides on its first
 * device, cases of two sides, random numbers of a process.
 */
#ifndef KIT_H
#define KIT_H

#include "../conformance/conformance.h"

/*
 * Set up a fabric for this process and its children; returns the path of its file.  The name has the
 * prefix, the pid, and a number that is another in each call.
 */
const char *fabric_new(const char *prefix);
/* True: the file is still there although all members have left.  A line says so; the file is removed. */
bool fabric_is_left(void);

/* Options of all sides here: port 1, addresses by LID, no arena. */
extern struct options side_options;

/* A side with the first device that this node has: attributes of device and port 1, a protection domain. */
struct side side_open(int node, int me, int sock);
/* The same, on a device that is known. */
struct side side_on(struct ibv_device *device, int me, int sock);
void side_close(struct side *s);

/* Call `run` on two sides (two_sides), and print "ok" or "FAIL" and the name; true: a side has failed. */
bool run_case(const char *name, void (*run)(int me, int sock, const void *arg), const void *arg);

/* The random numbers of this process: a seed; the next one, from 0 to limit - 1. */
void draw_from(uint64_t seed);
uint64_t draw(uint64_t limit);

#endif
