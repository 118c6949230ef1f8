/* patch.c - see patch.h. */
#include "config.h"		/* _GNU_SOURCE */

#include "memwatch/patch.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { STUBS_BYTES = 4096, STUB_BYTES = 16, STUBS_MAX = STUBS_BYTES / STUB_BYTES };

#if defined(__x86_64__)

#define REACH ((intptr_t)1 << 30)

/* endbr64 at an entry is only a mark. */
static const unsigned char *behind_mark(const unsigned char *code)
{
	static const unsigned char endbr64[4] = { 0xf3, 0x0f, 0x1e, 0xfa };

	return memcmp(code, endbr64, sizeof(endbr64)) ? code : code + sizeof(endbr64);
}

void *patch_jump_target(const void *function)
{
	const unsigned char *code = behind_mark(function);
	int32_t distance;
	uint64_t target;

	if (code[0] == 0xe9) {				/* jmp distance */
		memcpy(&distance, code + 1, sizeof(distance));
		return (void *)(uintptr_t)(code + 5 + distance);
	}
	if (code[0] == 0xff && code[1] == 0x25) {	/* jmp *distance(%rip) */
		memcpy(&distance, code + 2, sizeof(distance));
		memcpy(&target, code + 6 + distance, sizeof(target));
		return (void *)(uintptr_t)target;
	}
	/* movabs $target, %r11; jmp *%r11 */
	if (code[0] == 0x49 && code[1] == 0xbb && !memcmp(code + 10, "\x41\xff\xe3", 3)) {
		memcpy(&target, code + 2, sizeof(target));
		return (void *)(uintptr_t)target;
	}
	return NULL;
}

/* jmp *0(%rip), followed by the address. */
static void stub_write(unsigned char *stub, const void *hook)
{
	static const unsigned char jump[6] = { 0xff, 0x25 };

	memcpy(stub, jump, sizeof(jump));
	memcpy(stub + sizeof(jump), &hook, sizeof(hook));
}

/* jmp distance: five bytes, with the present last bytes of the same word. */
static int jump_plan(struct patch *p, void *function)
{
	unsigned offset = (uintptr_t)function % sizeof(patch_word);
	int32_t distance = (int32_t)((char *)p->stub - ((char *)function + 5));
	unsigned char word[sizeof(patch_word)];

	if (offset + 5 > sizeof(word))
		return -ENOTSUP;
	p->at = (_Atomic patch_word *)((uintptr_t)function - offset);
	memcpy(word, (const void *)p->at, sizeof(word));
	word[offset] = 0xe9;
	memcpy(word + offset + 1, &distance, sizeof(distance));
	memcpy(&p->jump, word, sizeof(word));
	return 0;
}

#elif defined(__aarch64__)

#define REACH ((intptr_t)120 << 20)

/* bti c, or paciasp: an indirect call may arrive there. */
static const uint32_t *behind_mark(const uint32_t *code)
{
	return *code == 0xd503245f || *code == 0xd503233f ? code + 1 : code;
}

void *patch_jump_target(const void *function)
{
	const uint32_t *code = behind_mark(function);
	uint64_t target;

	if (code[0] >> 26 == 0x05) {			/* b distance */
		int32_t words = (int32_t)(code[0] << 6) >> 6;

		return (void *)(uintptr_t)(code + words);
	}
	if (code[0] == 0x58000050 && code[1] == 0xd61f0200) {	/* ldr x16, 8; br x16 */
		memcpy(&target, code + 2, sizeof(target));
		return (void *)(uintptr_t)target;
	}
	return NULL;
}

static void stub_write(unsigned char *stub, const void *hook)
{
	static const uint32_t jump[2] = { 0x58000050, 0xd61f0200 };

	memcpy(stub, jump, sizeof(jump));
	memcpy(stub + sizeof(jump), &hook, sizeof(hook));
}

static int jump_plan(struct patch *p, void *function)
{
	uint32_t *at = function;
	intptr_t words;

	/* After a landing mark; a function that signs its return address is left alone. */
	if (*at == 0xd503233f)
		return -ENOTSUP;
	at += *at == 0xd503245f;
	words = (uint32_t *)p->stub - at;
	p->at = (_Atomic patch_word *)at;
	p->jump = 0x14000000 | ((uint32_t)words & 0x03ffffff);
	return 0;
}

#else

#define REACH ((intptr_t)0)

void *patch_jump_target(const void *function)
{
	(void)function;
	return NULL;
}

static void stub_write(unsigned char *stub, const void *hook)
{
	(void)stub;
	(void)hook;
}

static int jump_plan(struct patch *p, void *function)
{
	(void)p;
	(void)function;
	return -ENOTSUP;
}

#endif

static uintptr_t page_bytes(void)
{
	return (uintptr_t)sysconf(_SC_PAGESIZE);
}

static bool in_reach(const void *stubs, const void *function)
{
	intptr_t distance = (intptr_t)stubs - (intptr_t)function;

	return distance > -REACH && distance < REACH;
}

/* A page for stubs: the first free one below the function or above it, in steps. */
static void *stubs_near(const void *function)
{
	const intptr_t step = (intptr_t)1 << 20;
	uintptr_t base = (uintptr_t)function & ~(page_bytes() - 1);

	for (intptr_t away = step; away < REACH - step; away += step)
		for (int side = -1; side <= 1; side += 2) {
			void *hint = (void *)(base + (uintptr_t)(side * away));
			void *at = mmap(hint, page_bytes(), PROT_READ | PROT_WRITE,
					MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

			if (at == MAP_FAILED)
				return NULL;
			if (in_reach(at, function))
				return at;
			munmap(at, page_bytes());
		}
	return NULL;
}

/* All functions are of one library: one page serves them. */
static int stub_make(struct patch *p, const void *function, const void *hook)
{
	static unsigned char *stubs;
	static unsigned used;

	if (!stubs)
		stubs = stubs_near(function);
	if (!stubs || used == STUBS_MAX || !in_reach(stubs, function))
		return -ENOMEM;
	p->stub = stubs + (size_t)used++ * STUB_BYTES;
	if (mprotect(stubs, page_bytes(), PROT_READ | PROT_WRITE | PROT_EXEC))
		return -errno;
	stub_write(p->stub, hook);
	__builtin___clear_cache((char *)p->stub, (char *)p->stub + STUB_BYTES);
	return mprotect(stubs, page_bytes(), PROT_READ | PROT_EXEC) ? -errno : 0;
}

static int jump_write(const struct patch *p)
{
	void *page = (void *)((uintptr_t)p->at & ~(page_bytes() - 1));

	/* Other threads may be executing other code on this page. */
	if (mprotect(page, page_bytes(), PROT_READ | PROT_WRITE | PROT_EXEC))
		return -errno;
	atomic_store(p->at, p->jump);
	__builtin___clear_cache((char *)p->at, (char *)(p->at + 1));
	return mprotect(page, page_bytes(), PROT_READ | PROT_EXEC) ? -errno : 0;
}

int patch_set(struct patch *p, void *function, void *hook)
{
	int rc = p->stub ? 0 : stub_make(p, function, hook);

	if (!rc)
		rc = jump_plan(p, function);
	return rc ? rc : jump_write(p);
}
