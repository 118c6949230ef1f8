/*
 * slices.h - offered messages that go through the ring of the eager lane, slice by slice.
 *
 *	RTS  -->
 *	     <--  ASK
 *	slices  -->
 *
 * Each byte is copied twice, by the sender into the ring and by the receiver out of it.  Both copies
 * run at once and in caches, so where processors copy fast and the kernel slowly, two are faster than
 * one by the kernel.  Slices are records between others of the lane, in their order, so that other
 * messages to the peer wait for one ring at most.
 *
 * Memory in several pieces is gathered slice by slice, and scattered out of the ring: while one end gathers
 * a slice, the other one scatters the slice before it.
 */
#ifndef RAIL_SLICES_H
#define RAIL_SLICES_H

#include <stdbool.h>
#include <stdint.h>

struct op;
struct rail_peer;

/* The length of slices to a connected peer; 0: none can go. */
uint32_t rail_slice_bytes(const struct rail_peer *peer);

/* The receiver has asked for slices: post what there is room for, the rest in rndv_slices_advance. */
void rndv_slices_start(struct op *op);
/* True while any message still waits. */
bool rndv_slices_advance(struct rail_peer *peer);

#endif
