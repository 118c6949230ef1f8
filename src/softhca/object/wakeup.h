/*
 * wakeup.h - waking a sleeping process from another one.
 *
 * A wake-up is a pipe of its owner.  A process that wakes the owner opens the
 * pipe through /proc/<pid>/fd, which requires only read access to the process
 * (PTRACE_MODE_READ: granted under Yama, too), or asks the owner for it, and writes
 * a byte.  So the owner sleeps on a descriptor that fits poll.  Without /proc, where
 * a pipe cannot be opened twice, a wake-up is a pair of sockets.
 *
 * A wake-up carries no information.  The owner empties the pipe, then examines
 * its own state, and sends itself another wake-up if something stays pending.
 * Superfluous or false wake-ups are harmless; a full pipe is readable anyhow.
 */
#ifndef HCA_WAKEUP_H
#define HCA_WAKEUP_H

#include <stdbool.h>
#include <stdint.h>

#include "softhca/base/layout.h"

struct hca_fabric;

struct hca_wakeup {
	int fd;			/* the read end, which the program polls */
	int own;		/* the library's own open file of the pipe, never blocks */
	bool is_socket;		/* `own` is the other end: bytes sent there arrive at `fd` */
	uint32_t number;	/* index in self->wakeup + 1 */
};

/*
 * Make a wake-up and publish it.  `adapter` (hca_wakeup_adapter, or
 * HCA_WAKEUP_CHANNEL) is its purpose.  0 or -errno.
 */
int hca_wakeup_make(struct hca_fabric *f, uint32_t adapter, struct hca_wakeup *b);
/* Withdraw it and close both descriptors. */
void hca_wakeup_free(struct hca_fabric *f, struct hca_wakeup *b);

/* Another descriptor of a wake-up of this process, by its index in self->wakeup; or -1. */
int hca_wakeup_duplicate(struct hca_fabric *f, uint32_t index);

/* Make a wake-up of this process readable. */
void hca_wakeup_send(const struct hca_wakeup *b);
/*
 * Empty the pipe; the state that it announced is examined after that.  True if a
 * wake-up had been sent.
 */
bool hca_wakeup_drain(const struct hca_wakeup *b);
/* Does the program's end block (no O_NONBLOCK)? */
bool hca_wakeup_blocks(const struct hca_wakeup *b);
/*
 * Wait for a wake-up, until another descriptor (-1: none) is readable, or for the timeout: 0, or -1
 * and errno (EINTR).
 */
int hca_wakeup_wait(const struct hca_wakeup *b, int other, uint64_t timeout_ns);

/* Write a byte into a pipe, which wakes its readers: 0 or -errno; errno is preserved. */
int hca_wakeup_write(int fd);

static inline uint32_t hca_wakeup_adapter(uint32_t node, uint32_t hca)
{
	return node * HCA_HCAS_MAX + hca;
}

#endif
