/* maps.h - what is mapped where in this process. */
#ifndef HCA_MAPS_H
#define HCA_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One mapping, as /proc/self/maps has it. */
struct hca_map {
	uint64_t start, end;
	uint64_t offset;		/* in its file */
	uint64_t inode;			/* 0: anonymous */
	unsigned dev_major, dev_minor;
	bool readable, writable, shared;
	bool stack;
};

/* Mappings that overlap [addr, addr + bytes), ascending, one per call. */
struct hca_maps;
int hca_maps_open(uint64_t addr, uint64_t bytes, struct hca_maps **out);
/* True and *map, or false at the end. */
bool hca_maps_next(struct hca_maps *m, struct hca_map *map);
void hca_maps_close(struct hca_maps *m);

/* 0 if every byte is mapped and readable (writable), else EFAULT.  No bytes: 0. */
int hca_maps_check(const void *addr, size_t bytes, bool write);

#endif
