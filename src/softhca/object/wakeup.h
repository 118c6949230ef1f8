/*
 * bell.h - waking a process that sleeps, from another one.
 *
 * A bell is a pipe of its owner.  Whoever must wake the owner opens the pipe
 * through /proc/<pid>/fd, which asks for no more than the right to look at the
 * process (PTRACE_MODE_READ: granted under Yama, too), and writes a byte.  So a
 * sleeper needs no thread, and what it sleeps on is a descriptor for poll.
 *
 * A ring says nothing but "look": the owner empties the pipe, then looks at its
 * own state, and rings itself again if it leaves something pending.  Too many
 * rings, or false ones, do no harm; a full pipe is readable anyhow.
 */
#ifndef HCA_WAKEUP_H
#define HCA_WAKEUP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/layout.h"

struct hca_fabric;

struct hca_wakeup {
	int fd;			/* the read end: what the program polls */
	int own;		/* another opening of the pipe: ours, never blocks */
	uint32_t number;	/* index in self->wakeup + 1 */
};

/*
 * Make one and publish it.  `adapter` (hca_wakeup_adapter, or HCA_WAKEUP_CHANNEL)
 * says what it is for.  0 or -errno.
 */
int hca_wakeup_make(struct hca_fabric *f, uint32_t adapter, struct hca_wakeup *b);
/* Withdraw and close it, both descriptors. */
void hca_wakeup_free(struct hca_fabric *f, struct hca_wakeup *b);

/* Make our own readable. */
void hca_wakeup_send(const struct hca_wakeup *b);
/*
 * Empty it: what is looked at after that is what was rung for.  True if it had
 * rung.
 */
bool hca_wakeup_drain(const struct hca_wakeup *b);
/* Does the program want to wait (no O_NONBLOCK on its end)? */
bool hca_wakeup_blocks(const struct hca_wakeup *b);
/* Until it rings or the time is over: 0, or -1 and errno (EINTR). */
int hca_wakeup_wait(const struct hca_wakeup *b, uint64_t timeout_ns);

/* A byte into a pipe, which wakes who sleeps on it: 0 or -errno; errno stays. */
int hca_wakeup_write(int fd);

static inline uint32_t hca_wakeup_adapter(uint32_t node, uint32_t hca)
{
	return node * HCA_HCAS_MAX + hca;
}

#endif
