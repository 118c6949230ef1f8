/* open.c - contexts: ports, adapters, and information about them. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rail/peer/bound_rail.h"
#include "util/clock.h"
#include "util/err.h"
#include "rail/lane/lane_ring.h"
#include "rail/memory/mapped.h"
#include "rail/memory/mr.h"
#include "rail/peer/on_demand.h"
#include "rail/message/op_queue.h"
#include "rail/peer/peer_end.h"
#include "rail/programs.h"
#include "rail/plan.h"
#include "rail/rail.h"
#include "rail/lane/cq.h"
#include "rail/open/events.h"
#include "rail/open/peer_gids.h"
#include "rail/open/rail_ctx.h"
#include "rail/memory/memory.h"
#include "rail/open/costs.h"
#include "rail/open/options.h"
#include "rail/peer/peer.h"
#include "rail/lane/pool.h"
#include "rail/open/select.h"
#include "rail/open/trace.h"
#include "rail/message/rndv.h"
#include "softhca/softhca.h"
#include "rail/lane/staging.h"
#include "rail/message/table.h"
#include "util/units.h"
#include "verbs/vrb.h"

static bool on_softhca(const struct rail_ctx *ctx)
{
	return ctx->cfg.use_softhca;
}

/* The number of all rails, the local one included. */
static int all_rails(const struct rail_ctx *ctx)
{
	return ctx->rail_count + (ctx->local >= 0);
}

/* ---- Ports and adapters ------------------------------------------------- */

static struct softhca_config softhca_of(const struct rail_ctx *ctx)
{
	return (struct softhca_config){
		.spec = ctx->settings.soft,
		.fabric = ctx->cfg.fabric,
		.node = (int)ctx->cfg.node,
		.secret = ctx->cfg.secret,
	};
}

/* A spec may be right, and wrong for the interfaces of one host. */
static int soft_ports_fail(int rc)
{
	char host[256] = "";

	switch (rc) {
	case -ENODEV:
	case -ENETDOWN:
	case -EADDRNOTAVAIL:
	case -ENOTUNIQ:
		gethostname(host, sizeof(host) - 1);
		rg_error("--soft, on %s: %s", host, softhca_last_error());
		break;
	case -EINVAL:
	case -EEXIST:
		rg_error("--soft: %s", softhca_last_error());
		break;
	default:
		rg_error("software HCA: %s", softhca_last_error());
	}
	return rc;
}

static int soft_ports_find(const struct softhca_config *soft, struct vrb_ports *out)
{
	struct ibv_device **list = softhca_get_device_list(soft, NULL);

	return list ? vrb_ports_scan(list, out) : soft_ports_fail(errno ? -errno : -EIO);
}

static int ports_find(struct rail_ctx *ctx)
{
	struct softhca_config soft = softhca_of(ctx);

	return on_softhca(ctx) ? soft_ports_find(&soft, &ctx->ports) :
				 vrb_ports_scan_real(ibv_get_device_list(NULL), &ctx->ports);
}

/* ---- Peers on this node ------------------------------------------------- */

static struct softhca_config local_of(const struct rail_ctx *ctx)
{
	return (struct softhca_config){
		.spec = "ideal,ports=1",
		.fabric = ctx->cfg.local_fabric,
	};
}

static bool has_neighbour(const struct rail_config *cfg)
{
	for (unsigned i = 0; i < cfg->peer_count; i++)
		if (i != cfg->index && config_shares_node(cfg, i))
			return true;
	return false;
}

/* Is the local rail of use?  An untimed software HCA in memory is that already. */
static bool wants_local(const struct rail_ctx *ctx)
{
	struct softhca_model model;

	/* Two limited members of a partition do not talk: such a process has no rail to itself. */
	if (ctx->limited && ctx->cfg.local_fabric && !has_neighbour(&ctx->cfg))
		return true;
	if (ctx->settings.intranode != RAIL_INTRANODE_SOFT || !ctx->cfg.local_fabric ||
	    !has_neighbour(&ctx->cfg))
		return false;
	return !on_softhca(ctx) ||
	       (softhca_query_model(ctx->rail[0].port->device, &model) == 0 &&
		(model.timed || model.net));
}

static int local_open(struct rail_ctx *ctx)
{
	struct softhca_config soft = local_of(ctx);
	struct vrb_port *port;
	int rc;

	if (!wants_local(ctx))
		return 0;
	rc = soft_ports_find(&soft, &ctx->local_ports);
	if (rc)
		return rc;
	port = &ctx->local_ports.port[0];
	snprintf(port->name, sizeof(port->name), "local");
	ctx->local = ctx->rail_count;
	ctx->rail[ctx->local] = (struct rail){ .port = port };
	return 0;
}

static int active_count(const struct vrb_ports *ports)
{
	int active = 0;

	for (int i = 0; i < ports->count; i++)
		active += ports->port[i].usable && ports->port[i].state == IBV_PORT_ACTIVE;
	return active;
}

int rail_probe(const struct rail_settings *set, int *active_ports)
{
	struct vrb_ports ports;
	int rc = vrb_ports_scan_real(ibv_get_device_list(NULL), &ports);

	(void)set;
	if (rc)
		return rc;
	*active_ports = active_count(&ports);
	vrb_ports_free(&ports);
	return 0;
}

const char *rail_probe_why(char *why, size_t size)
{
	struct vrb_ports ports;

	*why = 0;
	if (vrb_ports_scan_real(ibv_get_device_list(NULL), &ports))
		return why;
	if (!active_count(&ports))
		vrb_ports_why_none(&ports, "", why, size);
	vrb_ports_free(&ports);
	return why;
}

static bool same_device(const struct rail *a, const struct rail *b)
{
	return a->port->device == b->port->device;
}

static int adapters_open(struct rail_ctx *ctx)
{
	for (int r = 0; r < all_rails(ctx); r++) {
		struct rail *rail = &ctx->rail[r];
		int rc, first = 0;

		while (!same_device(&ctx->rail[first], rail))
			first++;
		rail->adapter = first < r ? ctx->rail[first].adapter : ctx->adapter_count;
		rc = first < r ? vrb_adapter_ask_order(&ctx->adapter[rail->adapter], rail->port) :
				 vrb_adapter_open(&ctx->adapter[rail->adapter], rail->port);
		if (rc)
			return rc;
		ctx->adapter_count += first == r;
	}
	for (int a = 0; a < ctx->adapter_count; a++) {
		const struct ibv_device_attr *attr = &ctx->adapter[a].attr;

		ctx->bulk_depth = rail_plan_depth_fits(ctx->bulk_depth, (uint32_t)attr->max_qp_wr,
						       (uint32_t)attr->max_cqe);
		ctx->cq_most = rail_plan_cq_least(ctx->cq_most, (uint32_t)attr->max_cqe);
	}
	ctx->polled = true;
	for (int a = 0; a < ctx->adapter_count; a++)
		ctx->polled &= rail_adapter_polls(&ctx->adapter[a]) && !ctx->adapter[a].withholds;
	rail_events_open(ctx);
	return 0;
}

/* ---- Descriptions ------------------------------------------------------- */

static enum rail_fabric port_fabric(const struct vrb_port *port)
{
	static const enum rail_fabric of[] = {
		[VRB_HARDWARE] = RAIL_FABRIC_HARDWARE,
		[VRB_KERNEL_SOFTWARE] = RAIL_FABRIC_KERNEL_SOFTWARE,
		[VRB_SOFTHCA] = RAIL_FABRIC_SOFTHCA,
	};

	if (port->net)
		return RAIL_FABRIC_SOFTHCA_TCP;
	/* A software HCA in the place of libibverbs is an adapter to all but the reader of results. */
	return strncmp(port->firmware, "softhca-", 8) == 0 ? RAIL_FABRIC_SOFTHCA : of[port->kind];
}

enum rail_fabric rail_fabric_kind(const struct rail_ctx *ctx)
{
	enum rail_fabric kind = RAIL_FABRIC_HARDWARE;

	/* A single rail in software makes all numbers software's. */
	for (int r = 0; r < ctx->rail_count; r++)
		if (port_fabric(ctx->rail[r].port) > kind)
			kind = port_fabric(ctx->rail[r].port);
	return kind;
}

/* Functions of a card are one adapter. */
static bool same_card(const struct rail *a, const struct rail *b)
{
	return same_device(a, b) || (a->port->card && a->port->card == b->port->card);
}

/* The first rail of the same card. */
static int card_of(const struct rail_ctx *ctx, int r)
{
	int first = 0;

	while (!same_card(&ctx->rail[first], &ctx->rail[r]))
		first++;
	return first;
}

static int cards_count(const struct rail_ctx *ctx)
{
	int count = 0;

	for (int r = 0; r < ctx->rail_count; r++)
		count += card_of(ctx, r) == r;
	return count;
}

/* Functions of one card on two buses, as of two sockets; those of one device differ after the dot. */
static bool is_socket_direct(const struct vrb_port *a, const struct vrb_port *b)
{
	const size_t n = strcspn(a->pci, ".");

	return n && *b->pci && strncmp(a->pci, b->pci, n);
}

static void describe_add(struct rail_ctx *ctx, const char *is, const char *a, const char *b)
{
	const size_t used = strlen(ctx->text);

	snprintf(ctx->text + used, sizeof(ctx->text) - used, "; %s%s%s", a, is, b);
}

static void describe_cards(struct rail_ctx *ctx)
{
	for (int r = 0; r < ctx->rail_count; r++) {
		const struct vrb_port *port = ctx->rail[r].port, *first = ctx->rail[card_of(ctx, r)].port;

		if (port->lag)
			describe_add(ctx, " is a LAG", port->name, "");
		if (is_socket_direct(first, port))
			describe_add(ctx, " is Socket Direct with ", port->name, first->name);
	}
}

static void describe_rails(struct rail_ctx *ctx)
{
	static const char *const kinds[] = {
		[RAIL_FABRIC_HARDWARE] = "hardware",
		[RAIL_FABRIC_KERNEL_SOFTWARE] = "kernel software",
		[RAIL_FABRIC_SOFTHCA] = "software HCA in place of libibverbs",
	};
	const int cards = cards_count(ctx);
	const struct vrb_port *port = ctx->rail[0].port;
	struct softhca_model model;
	char rate[64] = "";

	if (on_softhca(ctx)) {
		if (softhca_query_model(port->device, &model))
			return;
		snprintf(ctx->text, sizeof(ctx->text), "software HCA%s (libsofthca), %s",
			 model.net ? " over TCP" : "", model.text);
		snprintf(ctx->spec, sizeof(ctx->spec), "%s", model.spec);
		return;
	}
	if (port->rate_bytes_per_s)
		rg_format_rate(port->rate_bytes_per_s, rate, sizeof(rate));
	snprintf(ctx->text, sizeof(ctx->text), "%s, %s, %d rail%s on %d adapter%s%s%s%s",
		 kinds[rail_fabric_kind(ctx)],
		 port->link_layer == IBV_LINK_LAYER_ETHERNET ? "RoCE" : "InfiniBand",
		 ctx->rail_count, ctx->rail_count > 1 ? "s" : "", cards,
		 cards > 1 ? "s" : "", *rate ? ", " : "", rate,
		 *rate ? " per port and direction" : "");
	describe_cards(ctx);
}

static void ctx_describe(struct rail_ctx *ctx)
{
	size_t used;

	describe_rails(ctx);
	used = strlen(ctx->text);
	if (ctx->local >= 0)
		snprintf(ctx->text + used, sizeof(ctx->text) - used,
			 "; %s by memory (untimed software HCA)", has_neighbour(&ctx->cfg) ?
			 "ranks of one node" : "a rank to itself");
}

/* ---- Opening and closing ------------------------------------------------ */

/* No copy of it stays in memory that others may get. */
static void secret_free(const char *secret)
{
	if (secret)
		explicit_bzero((char *)secret, strlen(secret));
	free((char *)secret);
}

static void ctx_free(struct rail_ctx *ctx)
{
	for (unsigned i = 0; ctx->peer && i < ctx->cfg.peer_count; i++)
		if (ctx->peer[i]) {
			rail_on_demand_forget(ctx->peer[i]);
			rail_peer_free(ctx->peer[i]);
		}
	rail_on_demand_close(ctx);
	rail_pools_free(ctx);
	rail_staging_free(ctx);
	rail_mapped_close(ctx);
	rail_mr_cache_fini(&ctx->mr);
	rail_cq_free(ctx);
	for (int a = 0; a < ctx->adapter_count; a++)
		vrb_adapter_close(&ctx->adapter[a]);
	vrb_ports_free(&ctx->ports);
	vrb_ports_free(&ctx->local_ports);
	rail_table_fini(&ctx->table);
	free(ctx->peer);
	free(ctx->lane);
	free(ctx->poll);
	free(ctx->near_of);
	rail_gids_free(ctx);
	free((char *)ctx->settings.rails);
	free((char *)ctx->settings.soft);
	free((char *)ctx->settings.costs);
	free((char *)ctx->settings.pkey);
	free((char *)ctx->settings.gid_index);
	free((char *)ctx->cfg.fabric);
	free((char *)ctx->cfg.local_fabric);
	secret_free(ctx->cfg.secret);
	free((void *)ctx->cfg.node_of);
	free(ctx);
}

/* NULL stays NULL.  False: no memory. */
static bool copy_text(const char **text)
{
	char *copy = *text ? strdup(*text) : NULL;
	bool ok = copy || !*text;

	*text = copy;
	return ok;
}

static bool copy_nodes(struct rail_config *cfg)
{
	size_t bytes = cfg->peer_count * sizeof(*cfg->node_of);
	unsigned *copy;

	if (!cfg->node_of)
		return true;
	copy = malloc(bytes ? bytes : 1);
	if (copy)
		memcpy(copy, cfg->node_of, bytes);
	cfg->node_of = copy;
	return copy;
}

static struct rail_ctx *ctx_make(const struct rail_config *cfg)
{
	struct rail_ctx *ctx = calloc(1, sizeof(*ctx));
	bool ok;

	if (!ctx)
		return NULL;
	ctx->cfg = *cfg;
	gethostname(ctx->host, sizeof(ctx->host) - 1);
	ctx->settings = *cfg->settings;
	ctx->cfg.settings = &ctx->settings;
	ctx->local = -1;
	ctx->eager_max = ctx->settings.eager;
	ctx->part_bytes = RAIL_PART_BYTES;
	if (ctx->settings.chunk == RAIL_AUTO)
		ctx->settings.chunk = 0;
	ctx->settings.chunk &= ~(uint64_t)(RAIL_STRIPE_ALIGN - 1);
	ctx->plan_ranks = cfg->peer_count;
	ctx->probed_ns = rg_now_ns();
	queue_init(&ctx->completed);
	rail_eager_choice_init(&ctx->eager_choice);
	rail_scheme_init(&ctx->schemes);
	/* Every copy is made, also after a failure: ctx_free frees all pointers of ctx. */
	ok = copy_text(&ctx->settings.rails);
	ok &= copy_text(&ctx->settings.soft);
	ok &= copy_text(&ctx->settings.costs);
	ok &= copy_text(&ctx->settings.pkey);
	ok &= copy_text(&ctx->settings.gid_index);
	ok &= copy_text(&ctx->cfg.fabric);
	ok &= copy_text(&ctx->cfg.local_fabric);
	ok &= copy_text(&ctx->cfg.secret);
	ok &= copy_nodes(&ctx->cfg);
	ctx->peer = calloc(cfg->peer_count ? cfg->peer_count : 1, sizeof(*ctx->peer));
	if (!ok || !ctx->peer || rail_table_init(&ctx->table)) {
		ctx_free(ctx);
		return NULL;
	}
	return ctx;
}

bool rail_copied(const struct rail_ctx *ctx)
{
	for (int a = 0; a < ctx->adapter_count; a++)
		if (!ctx->adapter[a].copies)
			return false;
	return true;
}

static bool eager_is_valid(const struct rail_settings *set)
{
	return set->eager <= RAIL_EAGER_MAX || set->eager == RAIL_AUTO;
}

/* A queue pair of a LAG is on one of its cables; of a job all hosts know (common.c). */
static void qps_choose(struct rail_ctx *ctx)
{
	bool lag = ctx->lag;

	for (int r = 0; r < ctx->rail_count; r++)
		lag |= ctx->rail[r].port->lag;
	ctx->settings.qps = rail_plan_qps(ctx->settings.qps, lag && !ctx->narrow);
}

static void shares_choose(struct rail_ctx *ctx)
{
	if (ctx->narrow && ctx->plan_ranks < RAIL_PLAN_MANY)
		ctx->plan_ranks = RAIL_PLAN_MANY;
	ctx->bulk_depth = rail_plan_bulk_depth(ctx->plan_ranks);
	if (ctx->settings.eager == RAIL_AUTO)
		ctx->eager_max = rail_plan_eager(ctx->plan_ranks, ctx->rail[0].port->net);
}

int rail_open(const struct rail_config *cfg, struct rail_ctx **out)
{
	struct rail_ctx *ctx;
	int rc;

	if (!eager_is_valid(cfg->settings) || !cfg->peer_count || !cfg->on_message) {
		rg_error("rail_open: a configuration that makes no sense");
		return -EINVAL;
	}
	ctx = ctx_make(cfg);
	if (!ctx) {
		rg_error("no memory for the rails");
		return -ENOMEM;
	}
	if (!on_softhca(ctx))
		vrb_fork_init();
	rc = ports_find(ctx);
	if (!rc && cfg->local_rank == 0)
		vrb_ports_tell_unopened(&ctx->ports);
	if (!rc)
		rc = rail_select(ctx);
	if (!rc) {
		qps_choose(ctx);
		shares_choose(ctx);
	}
	if (!rc)
		rc = local_open(ctx);
	if (!rc)
		rc = adapters_open(ctx);
	if (!rc)
		rc = rail_memory_open(ctx);
	if (!rc)
		rc = rail_mapped_open(ctx);
	if (!rc)
		rc = rail_bound_find(ctx);
	if (!rc)
		rc = rail_costs_apply(ctx, ctx->settings.costs);
	if (rc) {
		ctx_free(ctx);
		return rc;
	}
	ctx_describe(ctx);
	if (cfg->on_eager)
		rail_trace_start(ctx);
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
	struct softhca_config soft = softhca_of(ctx), local = local_of(ctx);

	if ((on_softhca(ctx) && softhca_fabric_close(&soft)) ||
	    (ctx->local >= 0 && softhca_fabric_close(&local)))
		rg_warn("software HCA: %s", softhca_last_error());
}

int rail_count(const struct rail_ctx *ctx)
{
	return ctx->rail_count;
}

int rail_local(const struct rail_ctx *ctx)
{
	return ctx->local;
}

void rail_info(const struct rail_ctx *ctx, int rail, struct rail_info *out)
{
	const struct vrb_port *port = ctx->rail[rail].port;

	memset(out, 0, sizeof(*out));
	snprintf(out->name, sizeof(out->name), "%s", port->name);
	out->local = rail == ctx->local;
	out->fabric = port_fabric(port);
	memcpy(out->netdev, port->netdev, sizeof(out->netdev));
	out->rate = port->rate_bytes_per_s;
	out->mtu_bytes = vrb_mtu_bytes(port->mtu);
	out->polls_memory = rail_adapter_polls(&ctx->adapter[ctx->rail[rail].adapter]);
	snprintf(out->firmware, sizeof(out->firmware), "%s", port->firmware);
	if (port->gid_index >= 0)
		inet_ntop(AF_INET6, port->gid.raw, out->gid, sizeof(out->gid));
}

const char *rail_unwatched(const struct rail_ctx *ctx)
{
	return ctx->unwatched;
}

const char *rail_fabric_text(const struct rail_ctx *ctx)
{
	return ctx->text;
}

const char *rail_fabric_doubt(struct rail_ctx *ctx)
{
	if (on_softhca(ctx) && softhca_model_doubt(ctx->rail[0].port->device, ctx->doubt,
						   sizeof(ctx->doubt)) > 0)
		return ctx->doubt;
	return "";
}

const char *rail_fabric_spec(const struct rail_ctx *ctx)
{
	return ctx->spec;
}
