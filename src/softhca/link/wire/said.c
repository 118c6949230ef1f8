/*
 * said.c - a line about a host on a rail comes once, until a minute has passed without a cause for it.
 *
 * The processes of a job on one host find the same together: the first one has the line.  A word of the fabric's
 * segment has a hash of the line and the second of its last cause.  Without a job's secret, processes write for
 * people of their own, and their words are their own, too.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "softhca/link/wire/wire.h"
#include "softhca/object/fabric.h"
#include "util/clock.h"

#define QUIET_S 60u
#define SEC_NS 1000000000ull

/* FNV-1a */
static uint32_t hash(uint32_t sum, const void *bytes, size_t count)
{
	const unsigned char *at = bytes;

	while (count--)
		sum = (sum ^ *at++) * 16777619u;
	return sum;
}

/* A descriptor that the program has closed is an affair of this process. */
static uint32_t key_of(const struct hca_wire *wire, unsigned rail, const union ibv_gid *host,
		       enum hca_wire_line line)
{
	const uint32_t mine = wire->of_job && line != HCA_WIRE_TAKEN ? 0 : wire->fabric->claim;
	const uint32_t words[] = { rail, line, mine };

	return hash(hash(2166136261u, words, sizeof(words)), host, sizeof(*host));
}

/* The word of a line, or the one to use for it: that of the oldest cause.  *seen: its value. */
static _Atomic uint64_t *word_find(struct hca_shm_fabric *shm, uint32_t key, uint64_t *seen)
{
	_Atomic uint64_t *oldest = &shm->said[0];
	unsigned i;

	*seen = atomic_load_explicit(oldest, memory_order_relaxed);
	for (i = 0; i < HCA_SAID; i++) {
		const uint64_t word = atomic_load_explicit(&shm->said[i], memory_order_relaxed);

		if (word && word >> 32 == key) {
			*seen = word;
			return &shm->said[i];
		}
		if ((uint32_t)word < (uint32_t)*seen) {
			*seen = word;
			oldest = &shm->said[i];
		}
	}
	return oldest;
}

/* Notes a cause; true: it is due for a line, which is this process's. */
static bool is_due(struct hca_shm_fabric *shm, uint32_t key, uint32_t now_s)
{
	uint64_t seen;

	for (unsigned tries = 0; tries < HCA_SAID; tries++) {
		_Atomic uint64_t *word = word_find(shm, key, &seen);
		const bool due = seen >> 32 != key || now_s - (uint32_t)seen >= QUIET_S;

		if (atomic_compare_exchange_strong_explicit(word, &seen, (uint64_t)key << 32 | now_s,
							    memory_order_relaxed, memory_order_relaxed))
			return due;
	}
	return true;
}

void hca_wire_say(struct hca_wire *wire, unsigned rail, const union ibv_gid *host,
		  enum hca_wire_line line, const char *fmt, ...)
{
	const uint32_t now_s = (uint32_t)(rg_now_ns() / SEC_NS) + 1;
	char text[480];
	va_list args;

	if (!is_due(wire->fabric->shm, key_of(wire, rail, host, line), now_s))
		return;
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	hca_say("rail %u, %s: %s", rail + 1, wire->fabric->netif[rail].name, text);
}
