/* domains.h - the CPUs that share the last cache, or the package, with those of this process. */
#ifndef RAILMPI_DOMAINS_H
#define RAILMPI_DOMAINS_H

#include <stdbool.h>
#include <stdint.h>

#include "rail/learned.h"

enum { DOMAIN_WORDS = 16 };		/* 64 CPUs each, as in hello.h */

struct domains {
	uint64_t online[DOMAIN_WORDS];
	uint64_t cache[DOMAIN_WORDS], package[DOMAIN_WORDS];	/* around a CPU that this process may use */
};

#pragma GCC visibility push(hidden)

/*
 * Read a directory as /sys/devices/system/cpu; what cannot be read is empty.  mine: the CPUs that this
 * process may use.
 */
void domains_read(const char *dir, const uint64_t mine[DOMAIN_WORDS], struct domains *out);
/*
 * The place of a process on the same host.  A process that may use all CPUs, or those of several places, is
 * not bound.
 */
enum rail_place domains_place(const struct domains *d, const uint64_t mine[DOMAIN_WORDS],
			      const uint64_t theirs[DOMAIN_WORDS]);
/* Parse "0-3,8" into bits; CPUs beyond them are left out. */
void domains_parse(const char *list, uint64_t cpus[DOMAIN_WORDS]);

#pragma GCC visibility pop

#endif
