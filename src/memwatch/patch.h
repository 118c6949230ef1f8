/* patch.h - replacement of the first instruction of a function by a jump. */
#ifndef RG_MEMWATCH_PATCH_H
#define RG_MEMWATCH_PATCH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#if defined(__x86_64__)
typedef uint64_t patch_word;
#define PATCH_WORKS 1
#elif defined(__aarch64__)
typedef uint32_t patch_word;
#define PATCH_WORKS 1
#else
typedef uint32_t patch_word;
#define PATCH_WORKS 0
#endif

struct patch {
	_Atomic patch_word *at;		/* the place of the jump; NULL: not patched */
	patch_word jump;		/* the instruction that the patch writes there */
	void *stub;			/* within reach of the function: jumps on to the hook */
};

/* The target of the function's first instruction if it is a jump; else NULL. */
void *patch_jump_target(const void *function);

/*
 * Redirect every call of function to hook; can be repeated after another library has patched
 * it.  One aligned store, so that other threads execute the old instruction or the new one.
 * 0 or -errno.
 */
int patch_set(struct patch *p, void *function, void *hook);

static inline bool patch_is_valid(const struct patch *p)
{
	return atomic_load_explicit(p->at, memory_order_relaxed) == p->jump;
}

#endif
