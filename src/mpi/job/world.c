/*
 * world.c - the job: agreement on a fabric, rails opened, addresses of all peers.
 *
 * The start is collective over MPI_COMM_WORLD, by a handful of native collectives: an Allgather of
 * hosts, options and rank 0's secret, an Allreduce after each step that can fail, an Allgather of
 * addresses.  After a failure all ranks return an error and one of them prints it.
 */
#include "mpi/job/world.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpi/abi/bypass.h"
#include "mpi/abi/native.h"
#include "mpi/coll/coll.h"
#include "mpi/coll/coll_data.h"
#include "mpi/coll/coll_job.h"
#include "mpi/comm/comm.h"
#include "mpi/comm/comm_table.h"
#include "mpi/comm/lost.h"
#include "mpi/comm/peers.h"
#include "mpi/job/agree.h"
#include "mpi/job/calibrate.h"
#include "mpi/job/common_rails.h"
#include "mpi/job/find_rails.h"
#include "mpi/job/domains.h"
#include "mpi/job/handshake.h"
#include "mpi/job/hello.h"
#include "mpi/job/options.h"
#include "mpi/job/places.h"
#include "mpi/job/progress.h"
#include "mpi/job/start_coll.h"
#include "mpi/p2p/match.h"
#include "mpi/p2p/request.h"
#include "mpi/p2p/unexpected.h"
#include "mpi/railmpi.h"
#include "mpi/type/dtype.h"
#include "mpi/watch/call_count.h"
#include "mpi/watch/call_table.h"
#include "mpi/watch/call_time.h"
#include "mpi/watch/sizes.h"
#include "mpi/watch/tell.h"
#include "mpi/watch/trace.h"
#include "rail/programs.h"
#include "rail/rail.h"
#include "util/clock.h"
#include "util/compiler.h"
#include "util/err.h"

#define MEET_LOST_NS 60000000000u
#define MEET_PAUSE_NS 1000000u

static unsigned nodes;
static bool wanted;		/* rails, whether or not they could be had */
static char fabric_name[64], local_name[80];

/* ---- Agreement ------------------------------------------------------------------------ */

/* A table of rg_tune has rules next to its costs, which are taken with them unless --coll is given. */
static const char *coll_asked(char *file, size_t size)
{
	if (world_settings.coll || !world_settings.rail.costs)
		return world_settings.coll;
	snprintf(file, size, "@%s", world_settings.rail.costs);
	return file;
}

static int files_read(char *text, size_t size)
{
	char why[OPT_WHY_BYTES], file[PATH_MAX];
	const char *costs = world_settings.rail.costs;

	if (costs && rail_costs_check(costs, why, sizeof(why))) {
		snprintf(text, size, "--costs %s (RAILGAUGE_COSTS): %s", costs, why);
		return -EINVAL;
	}
	if (!coll_set(coll_asked(file, sizeof(file)), why, sizeof(why)))
		return 0;
	snprintf(text, size, "%s %s", world_settings.coll ? "--coll" : "--costs (RAILGAUGE_COSTS)", why);
	return -EINVAL;
}

/* Any rank may be without its file: all learn why, and rank 0, which is never silent, says so. */
static int files_agree(void)
{
	char text[2 * OPT_WHY_BYTES], place[32] = "";
	int rc = files_read(text, sizeof(text));
	int mine = rc ? layer.world_rank : layer.world_size, who;

	start_allreduce(&mine, &who, 1, MPI_INT, MPI_MIN);
	if (who == layer.world_size)
		return 0;
	start_bcast(text, sizeof(text), MPI_CHAR, who);
	if (who)
		snprintf(place, sizeof(place), "rank %d: ", who);
	if (layer.world_rank == 0)
		rg_error("%s%s", place, text);
	return -EINVAL;
}

/* ---- Places ------------------------------------------------------------------------------ */

static bool is_soft_asked(const struct hello *all)
{
	return world_settings.rail.soft || all[0].soft;
}

/* The rank among the ranks of its node, and a name for resources that only these share. */
static void place_among_neighbours(struct rail_config *cfg)
{
	int i;

	for (i = 0; i < layer.world_rank; i++)
		cfg->local_rank += world_node_of[i] == world_node_of[layer.world_rank];
	cfg->node_of = world_node_of;
	snprintf(local_name, sizeof(local_name), "%s-node%u", fabric_name,
		 world_node_of[layer.world_rank]);
	cfg->local_fabric = local_name;
}

/* Only the software HCA of one host has virtual nodes. */
static int virtual_nodes(enum places_fabric fabric, unsigned *out)
{
	unsigned wanted_nodes = (unsigned)world_settings.nodes;

	*out = 0;
	if (fabric != PLACES_MEMORY)
		return 0;
	if (wanted_nodes > (unsigned)layer.world_size && layer.world_size > 1) {
		rg_error("--nodes %u: more virtual nodes than ranks (accepted: 1 to %d)", wanted_nodes,
			 layer.world_size);
		return -EINVAL;
	}
	*out = layer.world_size > 1 ? wanted_nodes : 1;
	return 0;
}

static int tables_make(const struct hello *all)
{
	world_node_of = malloc((size_t)layer.world_size * sizeof(*world_node_of));
	world_host_of = calloc((size_t)layer.world_size, sizeof(*world_host_of));
	if (!world_node_of || !world_host_of) {
		rg_error("no memory for the places of %d ranks", layer.world_size);
		return -ENOMEM;
	}
	for (int i = 0; i < layer.world_size; i++)
		memcpy(world_host_of[i], all[i].host, sizeof(all[i].host) - 1);
	return 0;
}

/* The fabric, and who is where. */
static int places_find(const struct hello *all, enum places_fabric *fabric)
{
	int rc = hello_options_compare(all, layer.world_size);

	if (!rc)
		rc = places_fabric(all, layer.world_size, is_soft_asked(all), fabric);
	if (!rc && *fabric != PLACES_DEVICES && !is_soft_asked(all))
		places_tell_no_ports(all, layer.world_rank);
	if (!rc && *fabric == PLACES_NET_FOUND) {
		rc = find_rails(all, &world_settings.rail.soft);
		*fabric = PLACES_NET;
	}
	if (!rc)
		rc = tables_make(all);
	if (!rc)
		rc = virtual_nodes(*fabric, &nodes);
	if (!rc)
		places_nodes(all, layer.world_size, *fabric, nodes, world_node_of);
	return rc;
}

/* ---- Opening --------------------------------------------------------------------------------- */

/* The job's secret in hex digits; NULL: it has none. */
static const char *secret_text(const struct hello *all, char text[2 * HELLO_SECRET_BYTES + 1])
{
	bool some = false;

	for (int i = 0; i < HELLO_SECRET_BYTES; i++) {
		snprintf(text + 2 * i, 3, "%02x", all[0].secret[i]);
		some |= all[0].secret[i] != 0;
	}
	return some ? text : NULL;
}

static int open_rails(const struct hello *all, enum places_fabric fabric, const struct rail_hosts *hosts)
{
	char secret[2 * HELLO_SECRET_BYTES + 1];
	struct rail_config cfg = {
		.settings = &world_settings.rail,
		.hosts = hosts,
		.fabric = fabric_name,
		.index = (unsigned)layer.world_rank,
		.peer_count = (unsigned)layer.world_size,
		.on_message = match_on_message,
		.on_part = req_on_part,
		.on_cancel = match_on_cancel,
		.on_peer_error = lost_peer,
		.on_watch = lost_watch,
	};
	int rc;

	snprintf(fabric_name, sizeof(fabric_name), "job-%016llx", (unsigned long long)all[0].nonce);
	cfg.use_softhca = fabric != PLACES_DEVICES;
	/* Over TCP a host is one node. */
	cfg.node = fabric == PLACES_MEMORY ? world_node_of[layer.world_rank] : 0;
	cfg.secret = fabric == PLACES_NET ? secret_text(all, secret) : NULL;
	place_among_neighbours(&cfg);
	rc = trace_open(world_settings.trace, &cfg);
	if (!rc && world_settings.ledger)
		sizes_open(&cfg);
	if (!rc)
		rc = rail_open(&cfg, &layer.rails);
	if (!rc)
		trace_begin();
	explicit_bzero(secret, sizeof(secret));
	return rc;
}

static int add_all(const unsigned char *addresses)
{
	int i, rc = 0;

	for (i = 0; i < layer.world_size && !rc; i++)
		rc = rail_peer_add(layer.rails, (unsigned)i,
				   addresses + (size_t)i * RAIL_ADDRESS_BYTES, &world_peer[i]);
	return rc ? rc : rail_limits_check(layer.rails);
}

/*
 * All ranks learn the addresses of all; connections are made when messages want them.  The result is this
 * rank's, its error held.
 */
static int know_peers(void)
{
	size_t n = (size_t)layer.world_size;
	unsigned char mine[RAIL_ADDRESS_BYTES], *all = calloc(n, RAIL_ADDRESS_BYTES);
	int rc = -ENOMEM;

	world_peer = calloc(n, sizeof(*world_peer));
	if (world_peer && all)
		rc = rail_address(layer.rails, mine);
	rc = agree(rc);
	rg_errors_hold();
	if (rc)
		goto out;
	start_allgather(mine, RAIL_ADDRESS_BYTES, all);
	rc = add_all(all);
	if (!rc)
		rail_all_attached(layer.rails);
out:
	free(all);
	return rc;
}

/*
 * A dup of MPI_COMM_SELF for our own calls, with a receive that nothing ever matches.  The layer
 * handles errors on it, not the error handler of MPI_COMM_SELF.
 */
static int open_sentinel(void)
{
	static char never;

	if (native.Comm_dup(MPI_COMM_SELF, &layer.self) ||
	    native.Comm_set_errhandler(layer.self, MPI_ERRORS_RETURN) ||
	    native.Irecv(&never, 1, MPI_BYTE, 0, 1, layer.self, &layer.sentinel))
		return -ENOMEM;
	return 0;
}

/* Costs between two processes of a host depend on the caches that they share. */
static void peers_place(const struct hello *all)
{
	const struct hello *mine = &all[layer.world_rank];
	struct domains d;

	domains_read("/sys/devices/system/cpu", mine->cpus, &d);
	for (int i = 0; i < layer.world_size; i++)
		if (i != layer.world_rank && rg_host_same_machine(&all[i].at, &mine->at))
			rail_peer_place(world_peer[i], domains_place(&d, mine->cpus, all[i].cpus));
}

/* The result is this rank's, its error held.  `all`: room for each rank's hello. */
static int open_world(struct hello *all)
{
	struct hello mine;
	struct rail_hosts *hosts = NULL;
	enum places_fabric fabric = PLACES_MEMORY;
	int rc;

	rg_errors_hold();
	hello_fill(&mine);
	start_allgather(&mine, sizeof(mine), all);
	layer.oversubscribed = places_oversubscribed(all, layer.world_size, layer.world_rank);
	rc = places_find(all, &fabric);
	layer.crowded_rounds = fabric == PLACES_MEMORY ? LAYER_CROWDED_ROUNDS_MEMORY : LAYER_CROWDED_ROUNDS_WIRE;
	if (fabric == PLACES_DEVICES) {
		rc = agree(rc);
		if (!rc)
			rc = common_rails(&hosts);
		rg_errors_hold();
	}
	if (!rc)
		rc = open_rails(all, fabric, hosts);
	/* All ranks have read their ports before the first queue pair, an address's, starts a model's clock. */
	rc = agree(rc);
	rg_errors_hold();
	if (!rc)
		rc = know_peers();
	if (!rc)
		peers_place(all);
	if (!rc)
		tell_open(all[0].quiet);
	rail_hosts_close(hosts);
	explicit_bzero(all, (size_t)layer.world_size * sizeof(*all));
	explicit_bzero(mine.secret, sizeof(mine.secret));
	return rc;
}

static void close_rails(void)
{
	if (layer.rails)
		rail_close(layer.rails);
	layer.rails = NULL;
	sizes_close();
	trace_close();
	free(world_peer);
	world_peer = NULL;
	free(world_node_of);
	world_node_of = NULL;
	free(world_host_of);
	world_host_of = NULL;
}

static void ledger_start(void)
{
	const char *why = call_time_start();

	calls_start();
	if (why && layer.world_rank == 0)
		rg_warn("ledger: without the time in MPI: %s", why);
}

/* Each rank takes these steps by itself, once there are rails. */
static int start_alone(void)
{
	int rc = req_start();

	rc = rc ? rc : open_sentinel();
	rc = rc ? rc : lost_start();
	rc = rc ? rc : comm_start();
	rc = rc ? rc : dtype_start();
	return rc ? rc : layer_start_progress();
}

int railmpi_open(void)
{
	struct hello *all;
	int rc, *tag_ub, found;

	if (layer.rails)
		return 0;
	wanted = true;
	native.Comm_rank(MPI_COMM_WORLD, &layer.world_rank);
	native.Comm_size(MPI_COMM_WORLD, &layer.world_size);
	native.Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &tag_ub, &found);
	layer.tag_ub = found ? *tag_ub : 32767;
	rg_errors_hold();
	rc = bypass_refuse();
	rc = rc ? rc : world_options();
	all = calloc((size_t)layer.world_size, sizeof(*all));
	rc = (rc || all) ? rc : -ENOMEM;
	handshake();		/* a rank with wrong options is there all the same */
	rc = agree(rc);
	rc = rc ? rc : files_agree();
	if (rc)
		goto out;
	rc = open_world(all);
	rc = agree(rc ? rc : start_alone());
	if (rc) {
		layer_stop_progress();
		close_rails();
	} else {
		common_rails_tell();
		if (world_settings.ledger)
			ledger_start();
	}
out:
	free(all);
	return rc;
}

/* ---- MPI_COMM_WORLD ---------------------------------------------------------------------------- */

static void start_told(int way)
{
	struct railmpi_fabric fabric;

	if (!tell_is_wanted())
		return;
	railmpi_fabric(&fabric);
	tell_start(&fabric, way, &comm_lookup(MPI_COMM_WORLD)->way);
}

int world_start(void)
{
	struct rail_way w;
	int way, rc;

	/* Errors are printed once, by railmpi_open. */
	rg_errors_hold();
	rc = world_options();
	rg_errors_release(false);
	if (!rc && world_settings.over == RAILMPI_NATIVE) {
		tell_native();
		return 0;
	}
	rc = railmpi_open();
	if (rc)
		return rc;
	way = world_settings.over;
	if (way == WORLD_OVER_AUTO)
		way = rail_count(layer.rails) > 1 && !rail_copied(layer.rails) ? RAILMPI_STRIPE :
										 RAILMPI_SINGLE;
	w = world_way(&world_settings, way);
	rc = comm_adopt(MPI_COMM_WORLD, &w);
	if (!rc && layer.world_rank == 0 && *calibrate_text())
		rg_warn("threshold %s", calibrate_text());
	if (!rc && layer.world_rank == 0 && rail_unwatched(layer.rails))
		rg_warn("memory that goes away cannot be seen (%s), so buffers are registered for each "
			"message: --registration each", rail_unwatched(layer.rails));
	if (!rc)
		start_told(way);
	return rc;
}

/*
 * Warn that no rails were wanted, without a message to other ranks, which may not have been asked.
 */
static void nothing_to_tell(void)
{
	int rank;

	if (wanted || (!world_settings.ledger && !world_settings.trace))
		return;
	native.Comm_rank(MPI_COMM_WORLD, &rank);
	if (rank == 0)
		rg_warn("%s: no rails in use, all calls were the MPI library's",
			world_settings.ledger ? "ledger" : "trace");
}

/*
 * All other ranks are here, too.  False: one of them has ended, or is lost and does not come, so
 * that no collective call ends.
 */
static bool meet(void)
{
	MPI_Request barrier;
	uint64_t until_ns = 0;
	unsigned idle = 0;
	int flag;

	lost_watch_all();
	native.Ibarrier(MPI_COMM_WORLD, &barrier);
	for (;;) {
		native.Test(&barrier, &flag, MPI_STATUS_IGNORE);
		if (flag)
			return true;
		layer_poll(&idle);
		rg_yield();
		if (likely(!lost_any()))
			continue;
		if (lost_ended())
			break;
		if (!until_ns)
			until_ns = rg_now_ns() + MEET_LOST_NS;
		if (rg_reached(until_ns, rg_now_ns()))
			break;
		rg_sleep_ns(MEET_PAUSE_NS);
	}
	rg_warn("MPI_Finalize does not wait for all ranks, since some are lost");
	return false;
}

void world_stop(void)
{
	unsigned idle = 0;
	bool together;

	if (!layer.rails) {
		nothing_to_tell();
		return;
	}
	call_time_stop();
	/* Our sends must be gone and the others' answered before anything is taken down. */
	layer_enter();
	while (rail_busy(layer.rails))
		layer_poll(&idle);
	together = meet();
	layer_leave();
	call_table_end(together);
	tell_end(together);
	layer_stop_progress();
	comm_stop();
	dtype_stop();
	lost_stop();
	unexpected_stop();
	coll_stop();
	coll_job_stop();
	close_rails();
	native.Cancel(&layer.sentinel);
	native.Wait(&layer.sentinel, MPI_STATUS_IGNORE);
	native.Comm_free(&layer.self);
	req_stop();
}

/* ---- railmpi.h --------------------------------------------------------------------------------- */

int railmpi_node_of(int rank)
{
	return layer.rails && rank >= 0 && rank < layer.world_size ? (int)world_node_of[rank] : -1;
}

void railmpi_fabric(struct railmpi_fabric *out)
{
	static const char *const kinds[] = {
		[RAIL_FABRIC_HARDWARE] = "hardware",
		[RAIL_FABRIC_KERNEL_SOFTWARE] = "kernel software",
		[RAIL_FABRIC_SOFTHCA] = "software HCA",
		[RAIL_FABRIC_SOFTHCA_TCP] = "software HCA over TCP",
	};
	static const struct rail_way whole = { .policy = RAIL_BIND, .eager = RAIL_AUTO };
	struct rail_ledger ledger;
	struct rail_info info;
	int i;

	memset(out, 0, sizeof(*out));
	out->kind = "none";
	out->text = out->spec = out->doubt = out->threshold = "";
	if (!layer.rails)
		return;
	out->kind = kinds[rail_fabric_kind(layer.rails)];
	out->software_hca = rail_fabric_kind(layer.rails) >= RAIL_FABRIC_SOFTHCA;
	out->net = rail_fabric_kind(layer.rails) == RAIL_FABRIC_SOFTHCA_TCP;
	out->hardware = rail_fabric_kind(layer.rails) == RAIL_FABRIC_HARDWARE;
	out->text = rail_fabric_text(layer.rails);
	out->spec = rail_fabric_spec(layer.rails);
	out->doubt = rail_fabric_doubt(layer.rails);
	out->threshold = calibrate_text();
	out->nodes = nodes;
	out->rail_count = rail_count(layer.rails);
	out->eager_bytes = rail_eager_limit(layer.rails, &whole);
	out->has_local = rail_local(layer.rails) >= 0;
	for (i = 0; i < out->rail_count; i++) {
		rail_info(layer.rails, i, &info);
		memcpy(out->rail[i].name, info.name, sizeof(info.name));
		out->rail[i].rate_bytes_per_s = info.rate;
		out->rail[i].mtu_bytes = info.mtu_bytes;
		out->rail[i].polls_memory = info.polls_memory;
		memcpy(out->rail[i].firmware, info.firmware, sizeof(info.firmware));
		memcpy(out->rail[i].gid, info.gid, sizeof(info.gid));
		memcpy(out->rail[i].netdev, info.netdev, sizeof(info.netdev));
		out->rail[i].counts_retries = rail_ledger(layer.rails, i, &ledger);
		/* Over TCP a rate is what the interface says of itself. */
		out->modelled |= info.fabric == RAIL_FABRIC_SOFTHCA && info.rate;
	}
}
