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
 *
 * Longer slices cost fewer records; shorter ones let the receiver begin sooner, and stay in smaller caches.
 * Which is best differs between processors, sizes and loads, so the length is a part of the scheme (scheme.h):
 * ASK tells the length of an offer that leaves the choice, of others the sender's way.  The sender alone cuts,
 * and the receiver takes slices of any length.
 */
#ifndef RAIL_SLICES_H
#define RAIL_SLICES_H

#include <stdbool.h>
#include <stdint.h>

struct op;
struct rail_peer;
struct rail_way;

enum rail_slicing {
	SLICES_USUAL,			/* 8 fill a ring: 32 KiB in one of 256 KiB */
	SLICES_SHORT,			/* 16 */
	SLICES_LONG,			/* 4, the longest that a ring takes */
	SLICINGS,
};

/* The lengths of slices to a connected peer; 0: none can go. */
void rail_slice_lengths(const struct rail_peer *peer, uint32_t bytes[SLICINGS]);

/* Does a way want slices?  *slicing: which, unchanged if it does not. */
bool rail_way_slices(const struct rail_way *way, enum rail_slicing *slicing);

/* The receiver has asked for slices: post what there is room for, the rest in rndv_slices_advance. */
void rndv_slices_start(struct op *op);
/* True while any message still waits. */
bool rndv_slices_advance(struct rail_peer *peer);

#endif
