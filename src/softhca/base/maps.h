/*
 * maps.h - the mappings of this process.
 *
 * These functions do not allocate: they run in the child of a fork, where the
 * heap may not be touched yet.
 */
#ifndef HCA_MAPS_H
#define HCA_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A mapping, as /proc/self/maps lists it. */
struct hca_map {
	uint64_t start, end;
	uint64_t offset;		/* in its file */
	uint64_t inode;			/* 0: anonymous */
	unsigned dev_major, dev_minor;
	bool readable, writable, executable, shared;
	bool stack;
};

/* A walk over the mappings that overlap a range, ascending. */
struct hca_maps {
	uint64_t at, end;
	int fd;
	bool text;			/* the kernel can only print all of them */
	size_t used, next;
	char buf[8192];
};

/* 0 or -errno. */
int hca_maps_open(uint64_t addr, uint64_t bytes, struct hca_maps *m);
/* True and *map, or false at the end. */
bool hca_maps_next(struct hca_maps *m, struct hca_map *map);
void hca_maps_close(struct hca_maps *m);

/* 0 if every byte is mapped and readable (writable), else EFAULT.  No bytes: 0. */
int hca_maps_check(const void *addr, size_t bytes, bool write);

#endif
