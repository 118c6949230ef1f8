/* memory.c - memory that the adapters reach: mapping, registration, invalidation. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "util/err.h"
#include "memwatch/memwatch.h"
#include "rail/memory/mr.h"
#include "rail/rail.h"
#include "rail/open/rail_ctx.h"
#include "rail/memory/memory.h"
#include "softhca/softhca.h"
#include "verbs/vrb.h"

enum { MR_ENTRIES = 1024 };

void *rail_memory_map(struct rail_ctx *ctx, size_t bytes)
{
	void *addr;

	if (ctx->cfg.use_softhca || ctx->local >= 0)
		return softhca_arena_alloc(bytes);
	addr = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return addr == MAP_FAILED ? NULL : addr;
}

void rail_memory_unmap(struct rail_ctx *ctx, void *addr, size_t bytes)
{
	if (ctx->cfg.use_softhca || ctx->local >= 0)
		softhca_arena_free(addr);
	else
		munmap(addr, bytes);
}

void *rail_alloc(struct rail_ctx *ctx, size_t bytes)
{
	void *addr;
	int rc;

	bytes = bytes ? bytes : 1;
	addr = rail_memory_map(ctx, bytes);
	if (!addr) {
		rg_error("no memory for a buffer of %zu bytes", bytes);
		return NULL;
	}
	rc = rail_mr_pin(&ctx->mr, addr, bytes);
	if (rc) {
		rg_error("cannot register a buffer of %zu bytes: %s%s", bytes, strerror(-rc),
			 rail_mr_hint(rc));
		rail_memory_unmap(ctx, addr, bytes);
		errno = -rc;
		return NULL;
	}
	return addr;
}

void rail_free(struct rail_ctx *ctx, void *addr)
{
	size_t bytes;
	int rc;

	if (!addr)
		return;
	rc = rail_mr_unpin(&ctx->mr, addr, &bytes);
	if (rc)
		rg_error("rail_free: %p is %s", addr, rc == -EBUSY ?
			 "in use by an operation" : "not from rail_alloc");
	else
		rail_memory_unmap(ctx, addr, bytes);
}

enum rail_mem_kind rail_mem_kind_of(const struct rail_ctx *ctx, const void *addr)
{
	return rail_mr_is_pinned(&ctx->mr, addr) ? RAIL_MEM_ARENA : RAIL_MEM_HOST;
}

static void mr_detach(void *user, struct rail_mr *mr)
{
	(void)user;
	for (int a = 0; a < RAIL_ALL; a++) {
		vrb_mr_deregister(mr->on[a]);
		mr->on[a] = NULL;
	}
}

static int mr_attach(void *user, struct rail_mr *mr)
{
	struct rail_ctx *ctx = user;
	int rc = 0;

	for (int a = 0; a < ctx->adapter_count && !rc; a++)
		rc = vrb_mr_register(&ctx->adapter[a], (void *)mr->start, mr->bytes, VRB_MR_BULK,
				     &mr->on[a]);
	if (rc)
		mr_detach(user, mr);
	return rc;
}

static void memory_goes(enum rg_mem_call call, uintptr_t start, size_t bytes)
{
	rail_mr_invalidate((const void *)start, bytes);
}

/*
 * The software HCA registers memory outside its arena as a range of addresses: it copies data
 * into the pages that are there when the data comes.  Such a registration cannot go stale,
 * unless the user asks the software HCA to remap pages.
 */
static bool pages_are_named(const struct rail_ctx *ctx)
{
	const char *remap = getenv("SOFTHCA_REMAP");

	return !ctx->cfg.use_softhca || (remap && strcmp(remap, "never"));
}

int rail_memory_open(struct rail_ctx *ctx)
{
	ctx->mr.attach = mr_attach;
	ctx->mr.detach = mr_detach;
	ctx->mr.user = ctx;
	ctx->mr.max_entries = MR_ENTRIES;
	ctx->mr.max_bytes = (size_t)sysconf(_SC_PHYS_PAGES) / 2 * (size_t)sysconf(_SC_PAGESIZE);
	ctx->mr.each = ctx->settings.registration == RAIL_REGISTER_EACH;
	if (!ctx->mr.each && pages_are_named(ctx)) {
		ctx->mr.watched = !rg_memwatch_start(memory_goes, &ctx->unwatched);
		ctx->mr.each = !ctx->mr.watched;
	}
	return rail_mr_cache_init(&ctx->mr);
}
