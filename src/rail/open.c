/* open.c - contexts: from ports to adapters, memory, and what can be asked. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "clock.h"
#include "err.h"
#include "rail_int.h"
#include "softhca.h"
#include "units.h"

enum { MR_ENTRIES = 1024 };

/* ---- Memory ------------------------------------------------------------- */

static bool on_softhca(const struct rail_ctx *ctx)
{
	return ctx->cfg.use_softhca;
}

void *rail_memory_map(struct rail_ctx *ctx, size_t bytes)
{
	void *addr;

	if (on_softhca(ctx))
		return softhca_arena_alloc(bytes);
	addr = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return addr == MAP_FAILED ? NULL : addr;
}

void rail_memory_unmap(struct rail_ctx *ctx, void *addr, size_t bytes)
{
	if (on_softhca(ctx))
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
	for (int a = 0; a < RAIL_MAX; a++) {
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

static int mr_open(struct rail_ctx *ctx)
{
	ctx->mr.attach = mr_attach;
	ctx->mr.detach = mr_detach;
	ctx->mr.user = ctx;
	ctx->mr.max_entries = MR_ENTRIES;
	ctx->mr.max_bytes = (size_t)sysconf(_SC_PHYS_PAGES) / 2 * (size_t)sysconf(_SC_PAGESIZE);
	/*
	 * The software HCA's registrations of memory that is not its arena's are a range
	 * of addresses: data is copied there when it comes, whatever pages are there then.
	 * They cannot go stale, unless the user asks it to remap pages.
	 */
	if (!on_softhca(ctx) || getenv("SOFTHCA_REMAP"))
		rail_memhook_start();
	return rail_mr_cache_init(&ctx->mr);
}

/* ---- Ports and adapters ------------------------------------------------- */

static struct softhca_config softhca_of(const struct rail_ctx *ctx)
{
	return (struct softhca_config){
		.spec = ctx->settings.soft,
		.fabric = ctx->cfg.fabric,
		.node = (int)ctx->cfg.node,
	};
}

/* Real devices; software ones may stand in the same list under the softhca command. */
static struct ibv_device **real_devices(void)
{
	struct ibv_device **list;
	int count, kept = 0;

	errno = 0;
	list = ibv_get_device_list(&count);
	for (int i = 0; list && i < count; i++)
		if (!softhca_is_device(list[i]))
			list[kept++] = list[i];
	if (list)
		list[kept] = NULL;
	return list;
}

static int ports_find(struct rail_ctx *ctx)
{
	struct softhca_config soft = softhca_of(ctx);
	struct ibv_device **list;

	if (!on_softhca(ctx))
		return vrb_ports_scan(real_devices(), &ctx->ports);
	list = softhca_get_device_list(&soft, NULL);
	if (!list) {
		int rc = errno ? -errno : -ENODEV;

		rg_error("%s: %s", rc == -EINVAL || rc == -EEXIST ? "--soft" : "software HCA",
			 softhca_last_error());
		return rc;
	}
	return vrb_ports_scan(list, &ctx->ports);
}

int rail_probe(const struct rail_settings *set, int *active_ports)
{
	struct vrb_ports ports;
	int rc = vrb_ports_scan(real_devices(), &ports);
	int active = 0;

	(void)set;
	if (rc)
		return rc;
	for (int i = 0; i < ports.count; i++)
		active += ports.port[i].usable && ports.port[i].state == IBV_PORT_ACTIVE;
	vrb_ports_free(&ports);
	*active_ports = active;
	return 0;
}

/* Everything that all queue pairs of all peers may have in the CQ at once. */
static int cq_entries(const struct rail_ctx *ctx, int rails)
{
	int eager = rails < 3 ? rails : 3;
	uint64_t per_peer = (uint64_t)rails * (2 * ctx->bulk_depth + 2) +
			    (uint64_t)eager * (2 * EAGER_SQ + 2);
	uint64_t all = per_peer * ctx->cfg.peer_count;

	return all < INT32_MAX ? (int)all : INT32_MAX;
}

static bool same_device(const struct rail *a, const struct rail *b)
{
	return a->port->device == b->port->device;
}

static int adapters_open(struct rail_ctx *ctx)
{
	for (int r = 0; r < ctx->rail_count; r++) {
		struct rail *rail = &ctx->rail[r];
		int rails = 0, rc, first = 0;

		while (!same_device(&ctx->rail[first], rail))
			first++;
		rail->adapter = first < r ? ctx->rail[first].adapter : ctx->adapter_count;
		if (first < r)
			continue;
		for (int i = 0; i < ctx->rail_count; i++)
			rails += same_device(&ctx->rail[i], rail);
		rc = vrb_adapter_open(&ctx->adapter[ctx->adapter_count], rail->port,
				      cq_entries(ctx, rails));
		if (rc)
			return rc;
		ctx->adapter_count++;
	}
	ctx->polled = true;
	for (int a = 0; a < ctx->adapter_count; a++)
		ctx->polled &= ctx->adapter[a].in_order &&
			       ctx->adapter[a].inline_bytes >= sizeof(struct rail_slot);
	return 0;
}

/* ---- Words for people --------------------------------------------------- */

enum rail_fabric rail_fabric_kind(const struct rail_ctx *ctx)
{
	static const enum rail_fabric of[] = {
		[VRB_HARDWARE] = RAIL_FABRIC_HARDWARE,
		[VRB_KERNEL_SOFTWARE] = RAIL_FABRIC_KERNEL_SOFTWARE,
		[VRB_SOFTHCA] = RAIL_FABRIC_SOFTHCA,
	};
	enum rail_fabric kind = RAIL_FABRIC_HARDWARE;

	/* One rail in software is enough for the numbers not to be hardware's. */
	for (int r = 0; r < ctx->rail_count; r++)
		if (of[ctx->rail[r].port->kind] > kind)
			kind = of[ctx->rail[r].port->kind];
	return kind;
}

static void describe(struct rail_ctx *ctx)
{
	static const char *const kinds[] = { "hardware", "kernel software" };
	const struct vrb_port *port = ctx->rail[0].port;
	struct softhca_model model;
	char rate[64] = "";

	if (on_softhca(ctx)) {
		if (softhca_query_model(port->device, &model))
			return;
		snprintf(ctx->text, sizeof(ctx->text), "software HCA (libsofthca), %s", model.text);
		snprintf(ctx->spec, sizeof(ctx->spec), "%s", model.spec);
		return;
	}
	if (port->rate_bytes_per_s)
		rg_format_rate(port->rate_bytes_per_s, rate, sizeof(rate));
	snprintf(ctx->text, sizeof(ctx->text), "%s, %s, %d rail%s on %d adapter%s%s%s%s",
		 kinds[rail_fabric_kind(ctx)],
		 port->link_layer == IBV_LINK_LAYER_ETHERNET ? "RoCE" : "InfiniBand",
		 ctx->rail_count, ctx->rail_count > 1 ? "s" : "", ctx->adapter_count,
		 ctx->adapter_count > 1 ? "s" : "", *rate ? ", " : "", rate,
		 *rate ? " per port and direction" : "");
}

/* ---- Opening and closing ------------------------------------------------ */

static void ctx_free(struct rail_ctx *ctx)
{
	for (unsigned i = 0; ctx->peer && i < ctx->cfg.peer_count; i++)
		if (ctx->peer[i])
			rail_peer_free(ctx->peer[i]);
	rail_staging_free(ctx);
	rail_mr_cache_fini(&ctx->mr);
	for (int a = 0; a < ctx->adapter_count; a++)
		vrb_adapter_close(&ctx->adapter[a]);
	vrb_ports_free(&ctx->ports);
	rail_table_fini(&ctx->table);
	free(ctx->peer);
	free(ctx->lane);
	free(ctx->poll);
	free((char *)ctx->settings.rails);
	free((char *)ctx->settings.soft);
	free((char *)ctx->cfg.fabric);
	free(ctx);
}

/* NULL stays NULL; false only when there is no memory. */
static bool copy_text(const char **text)
{
	char *copy = *text ? strdup(*text) : NULL;
	bool ok = copy || !*text;

	*text = copy;
	return ok;
}

static struct rail_ctx *ctx_make(const struct rail_config *cfg)
{
	struct rail_ctx *ctx = calloc(1, sizeof(*ctx));
	bool ok;

	if (!ctx)
		return NULL;
	ctx->cfg = *cfg;
	ctx->settings = *cfg->settings;
	ctx->cfg.settings = &ctx->settings;
	ctx->eager_max = ctx->settings.eager;
	ctx->bulk_depth = BULK_DEPTH_MAX;
	while (ctx->bulk_depth > BULK_DEPTH_MIN && ctx->bulk_depth * cfg->peer_count > 4096)
		ctx->bulk_depth /= 2;
	ctx->probed_ns = rg_now_ns();
	queue_init(&ctx->completed);
	/* All of them, whatever fails: what is in ctx is freed with it. */
	ok = copy_text(&ctx->settings.rails);
	ok &= copy_text(&ctx->settings.soft);
	ok &= copy_text(&ctx->cfg.fabric);
	ctx->peer = calloc(cfg->peer_count ? cfg->peer_count : 1, sizeof(*ctx->peer));
	if (!ok || !ctx->peer || rail_table_init(&ctx->table)) {
		ctx_free(ctx);
		return NULL;
	}
	return ctx;
}

int rail_open(const struct rail_config *cfg, struct rail_ctx **out)
{
	struct rail_ctx *ctx;
	int rc;

	if (cfg->settings->eager > RAIL_EAGER_MAX || !cfg->peer_count || !cfg->on_message) {
		rg_error("rail_open: a configuration that makes no sense");
		return -EINVAL;
	}
	ctx = ctx_make(cfg);
	if (!ctx) {
		rg_error("no memory for the rails");
		return -ENOMEM;
	}
	/* Before any registration, so that a child of fork cannot pull pages away from a device. */
	if (!on_softhca(ctx))
		ibv_fork_init();
	rc = ports_find(ctx);
	if (!rc)
		rc = rail_select(ctx);
	if (!rc)
		rc = adapters_open(ctx);
	if (!rc)
		rc = mr_open(ctx);
	if (rc) {
		ctx_free(ctx);
		return rc;
	}
	describe(ctx);
	*out = ctx;
	return 0;
}

void rail_close(struct rail_ctx *ctx)
{
	rail_drain(ctx);
	ctx_free(ctx);
}

void rail_all_attached(struct rail_ctx *ctx)
{
	struct softhca_config soft = softhca_of(ctx);

	if (on_softhca(ctx) && softhca_fabric_close(&soft))
		rg_warn("software HCA: %s", softhca_last_error());
}

int rail_count(const struct rail_ctx *ctx)
{
	return ctx->rail_count;
}

void rail_info(const struct rail_ctx *ctx, int rail, struct rail_info *out)
{
	const struct vrb_port *port = ctx->rail[rail].port;

	memset(out, 0, sizeof(*out));
	snprintf(out->name, sizeof(out->name), "%s", port->name);
	out->fabric = port->kind == VRB_HARDWARE ? RAIL_FABRIC_HARDWARE :
		      port->kind == VRB_SOFTHCA ? RAIL_FABRIC_SOFTHCA :
						  RAIL_FABRIC_KERNEL_SOFTWARE;
	out->rate = port->rate_bytes_per_s;
	out->mtu_bytes = vrb_mtu_bytes(port->mtu);
	out->polls_memory = ctx->polled;
}

void rail_ledger(const struct rail_ctx *ctx, int rail, struct rail_ledger *out)
{
	*out = ctx->rail[rail].ledger;
}

const char *rail_fabric_text(const struct rail_ctx *ctx)
{
	return ctx->text;
}

const char *rail_fabric_spec(const struct rail_ctx *ctx)
{
	return ctx->spec;
}
