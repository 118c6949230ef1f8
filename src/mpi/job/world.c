/*
 * world.c - the job: agreement on a fabric, rails opened, addresses of all peers.
 *
 * The start is collective over MPI_COMM_WORLD, by a handful of native collectives: an Allgather of
 * hosts and options of all ranks, an Allreduce after each step that can fail, an Allgather of
 * addresses.  After a failure all ranks return an error and one of them prints it.
 */
#include "mpi/job/world.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "mpi/abi/bypass.h"
#include "mpi/abi/native.h"
#include "mpi/coll/coll.h"
#include "mpi/coll/coll_data.h"
#include "mpi/comm/comm.h"
#include "mpi/comm/lost.h"
#include "mpi/comm/peers.h"
#include "mpi/job/calibrate.h"
#include "mpi/job/handshake.h"
#include "mpi/job/options.h"
#include "mpi/job/progress.h"
#include "mpi/p2p/match.h"
#include "mpi/p2p/request.h"
#include "mpi/p2p/unexpected.h"
#include "mpi/railmpi.h"
#include "mpi/type/dtype.h"
#include "mpi/watch/call_count.h"
#include "mpi/watch/trace.h"
#include "rail/rail.h"
#include "util/clock.h"
#include "util/compiler.h"
#include "util/err.h"
#include "util/random.h"

/* A rank's message to all others. */
struct hello {
	char host[WORLD_HOST_BYTES];
	uint64_t option[OPT_ROWS_MAX];	/* opt_digest of each value, by row */
	uint64_t cpus[16];	/* affinity */
	uint64_t nonce;
	int32_t ports;		/* ACTIVE ports, or -errno */
};

#define MEET_LOST_NS 60000000000u
#define MEET_PAUSE_NS 1000000u

static unsigned nodes;
static bool wanted;		/* rails, whether or not they could be had */
static char fabric_name[64], local_name[80];

/* ---- Agreement ------------------------------------------------------------------------ */

/* The lowest rank that failed prints its error; all return a failure. */
static int agree(int rc)
{
	int mine[2] = {rc ? layer.world_rank : layer.world_size, rc}, all[2];

	native.Allreduce(&mine[0], &all[0], 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
	rg_errors_release(all[0] == layer.world_rank);
	if (all[0] == layer.world_size)
		return 0;
	native.Bcast(&mine[1], 1, MPI_INT, all[0], MPI_COMM_WORLD);
	return mine[1];
}

static void options_digest(uint64_t option[OPT_ROWS_MAX])
{
	const struct opt *rows = world_table.rows;
	char text[1024];

	for (int i = 0; rows[i].name; i++)
		option[i] = rows[i].check == coll_check ? coll_digest() :
			    opt_digest(opt_text(&world_table, &rows[i], text, sizeof(text)));
}

static int options_compare(const struct hello *all)
{
	int i, row;

	for (i = 0; i < layer.world_size; i++)
		for (row = 0; world_table.rows[row].name; row++)
			if (all[i].option[row] != all[0].option[row]) {
				rg_error("--%s (RAILGAUGE_ variables%s): rank %d has another value than "
					 "rank 0 (accepted: the same on all ranks)",
					 world_table.rows[row].name,
					 world_table.rows[row].check == coll_check ?
					 ", contents of @FILE" : "", i);
				return -EINVAL;
			}
	return 0;
}

/* Any rank may be without its file: all learn why, and rank 0, which is never silent, says so. */
static int coll_agree(void)
{
	char why[OPT_WHY_BYTES], place[32] = "";
	int rc = coll_set(world_settings.coll, why, sizeof(why));
	int mine = rc ? layer.world_rank : layer.world_size, who;

	native.Allreduce(&mine, &who, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
	if (who == layer.world_size)
		return 0;
	native.Bcast(why, sizeof(why), MPI_CHAR, who, MPI_COMM_WORLD);
	if (who)
		snprintf(place, sizeof(place), "rank %d: ", who);
	if (layer.world_rank == 0)
		rg_error("%s--coll %s", place, why);
	return -EINVAL;
}

static void hello_fill(struct hello *h)
{
	cpu_set_t set;
	int cpu;

	memset(h, 0, sizeof(*h));
	gethostname(h->host, sizeof(h->host) - 1);
	options_digest(h->option);
	CPU_ZERO(&set);
	sched_getaffinity(0, sizeof(set), &set);
	for (cpu = 0; cpu < 1024; cpu++)
		if (CPU_ISSET(cpu, &set))
			h->cpus[cpu / 64] |= (uint64_t)1 << (cpu % 64);
	h->nonce = rg_random();
	if (rail_probe(&world_settings.rail, &h->ports))
		h->ports = 0;
}

/* More ranks on this host than CPUs that any of them may use? */
static bool is_oversubscribed(const struct hello *all)
{
	const struct hello *me = &all[layer.world_rank];
	unsigned ranks = 0, cpus = 0;
	uint64_t set[16] = {0};
	int i, w;

	for (i = 0; i < layer.world_size; i++) {
		if (strcmp(all[i].host, me->host))
			continue;
		ranks++;
		for (w = 0; w < 16; w++)
			set[w] |= all[i].cpus[w];
	}
	for (w = 0; w < 16; w++)
		cpus += (unsigned)__builtin_popcountll(set[w]);
	return ranks > cpus;
}

/* ---- Which fabric ------------------------------------------------------------------------ */

/* Ports that are network interfaces join hosts. */
static bool is_net(void)
{
	const char *soft = world_settings.rail.soft;

	return soft && (!strncmp(soft, "net=", 4) || strstr(soft, ",net="));
}

static bool names_software(const char *rails)
{
	return rails && !strncmp(rails, "soft", 4);
}

/*
 * Real devices when every rank has an ACTIVE port; the software HCA when it was
 * asked for, or when no rank has one and all share a host.
 */
static int choose_fabric(const struct hello *all, bool *soft)
{
	bool asked = world_settings.rail.soft || names_software(world_settings.rail.rails);
	int i, with = 0, without = -1, other_host = -1;

	if (options_compare(all))
		return -EINVAL;
	for (i = 0; i < layer.world_size; i++) {
		if (all[i].ports > 0)
			with++;
		else if (without < 0)
			without = i;
		if (other_host < 0 && strcmp(all[i].host, all[0].host))
			other_host = i;
	}
	*soft = asked || with == 0;
	if (!*soft && without >= 0) {
		rg_error("no ACTIVE RDMA port on host %s (rank %d), others have one; fix the port or use "
			 "--over native", all[without].host, without);
		return -ENODEV;
	}
	if (!*soft || other_host < 0 || is_net())
		return 0;
	if (asked) {
		rg_error("--soft: without net= the software HCA joins ranks of one host only, rank 0 is on %s "
			 "and rank %d on %s (accepted: --soft net=INTERFACE+..., --rails all, or --over "
			 "native)", all[0].host, other_host, all[other_host].host);
		return -EINVAL;
	}
	rg_error("no ACTIVE RDMA port on host %s, and rank %d is on %s (accepted: --soft "
		 "net=INTERFACE+..., or --over native)", all[0].host, other_host,
		 all[other_host].host);
	return -ENODEV;
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

static int place_on_virtual_nodes(struct rail_config *cfg)
{
	int n = layer.world_size, i;

	nodes = (unsigned)world_settings.nodes;
	if (nodes > (unsigned)n) {
		if (n > 1) {
			rg_error("--nodes %u: more virtual nodes than ranks (accepted: 1 to %d)", nodes, n);
			return -EINVAL;
		}
		nodes = 1;
	}
	/* Blocks: rank r is on node r * nodes / n. */
	for (i = 0; i < n; i++)
		world_node_of[i] = (unsigned)((uint64_t)i * nodes / (unsigned)n);
	cfg->node = world_node_of[layer.world_rank];
	return 0;
}

static void place_on_hosts(const struct hello *all)
{
	int i, first;

	nodes = 0;
	for (i = 0; i < layer.world_size; i++) {
		for (first = 0; strcmp(all[first].host, all[i].host); first++)
			;
		world_node_of[i] = (unsigned)first;
	}
}

/* ---- The secret of the job ------------------------------------------------------------------- */

enum { SECRET_BYTES = 32, SECRET_DIGITS = 2 * SECRET_BYTES };

/*
 * Rank 0 draws the secret that the processes of the job have in common, and deals it out by the MPI
 * library.  NULL: the kernel has no random bytes, so that the user's file has the secret.
 */
static const char *deal_secret(char secret[SECRET_DIGITS + 1])
{
	unsigned char bytes[SECRET_BYTES];

	if (layer.world_rank == 0 && getrandom(bytes, sizeof(bytes), 0) == (ssize_t)sizeof(bytes))
		for (int i = 0; i < SECRET_BYTES; i++)
			snprintf(secret + 2 * i, 3, "%02x", bytes[i]);
	explicit_bzero(bytes, sizeof(bytes));
	native.Bcast(secret, SECRET_DIGITS + 1, MPI_CHAR, 0, MPI_COMM_WORLD);
	return *secret ? secret : NULL;
}

/* ---- Opening --------------------------------------------------------------------------------- */

static int open_rails(const struct hello *all)
{
	struct rail_config cfg = {
		.settings = &world_settings.rail,
		.fabric = fabric_name,
		.index = (unsigned)layer.world_rank,
		.peer_count = (unsigned)layer.world_size,
		.on_message = match_on_message,
		.on_part = req_on_part,
		.on_cancel = match_on_cancel,
		.on_peer_error = lost_peer,
		.on_watch = lost_watch,
	};
	char secret[SECRET_DIGITS + 1] = "";
	int rc = choose_fabric(all, &cfg.use_softhca);

	if (rc)
		return rc;
	snprintf(fabric_name, sizeof(fabric_name), "job-%016llx", (unsigned long long)all[0].nonce);
	world_node_of = malloc((size_t)layer.world_size * sizeof(*world_node_of));
	world_host_of = calloc((size_t)layer.world_size, sizeof(*world_host_of));
	if (!world_node_of || !world_host_of) {
		rg_error("no memory for the places of %d ranks", layer.world_size);
		return -ENOMEM;
	}
	for (int i = 0; i < layer.world_size; i++)
		memcpy(world_host_of[i], all[i].host, sizeof(all[i].host) - 1);
	if (!cfg.use_softhca || is_net())
		place_on_hosts(all);
	else if ((rc = place_on_virtual_nodes(&cfg)))
		return rc;
	place_among_neighbours(&cfg);
	if (is_net())
		cfg.secret = deal_secret(secret);
	rc = trace_open(world_settings.trace, &cfg);
	if (!rc)
		rc = rail_open(&cfg, &layer.rails);
	explicit_bzero(secret, sizeof(secret));
	if (!rc)
		trace_begin();
	return rc;
}

static int add_all(const unsigned char *addresses)
{
	int i, rc = 0;

	for (i = 0; i < layer.world_size && !rc; i++)
		rc = rail_peer_add(layer.rails, (unsigned)i,
				   addresses + (size_t)i * RAIL_ADDRESS_BYTES, &world_peer[i]);
	return rc;
}

/* All ranks learn the addresses of all; connections are made when messages want them. */
static int know_peers(void)
{
	size_t n = (size_t)layer.world_size;
	unsigned char mine[RAIL_ADDRESS_BYTES], *all = calloc(n, RAIL_ADDRESS_BYTES);
	int rc = -ENOMEM;

	world_peer = calloc(n, sizeof(*world_peer));
	rg_errors_hold();
	if (world_peer && all)
		rc = rail_address(layer.rails, mine);
	rc = agree(rc);
	if (rc)
		goto out;
	native.Allgather(mine, RAIL_ADDRESS_BYTES, MPI_BYTE, all, RAIL_ADDRESS_BYTES, MPI_BYTE,
			 MPI_COMM_WORLD);
	rg_errors_hold();
	rc = agree(add_all(all));
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

static int open_world(void)
{
	struct hello mine, *all = calloc((size_t)layer.world_size, sizeof(*all));
	int rc;

	rg_errors_hold();
	rc = agree(all ? 0 : -ENOMEM);
	if (rc)
		goto out;
	hello_fill(&mine);
	native.Allgather(&mine, sizeof(mine), MPI_BYTE, all, sizeof(mine), MPI_BYTE, MPI_COMM_WORLD);
	layer.oversubscribed = is_oversubscribed(all);
	rg_errors_hold();
	rc = agree(open_rails(all));
	if (!rc)
		rc = know_peers();
out:
	free(all);
	return rc;
}

static void close_rails(void)
{
	if (layer.rails)
		rail_close(layer.rails);
	layer.rails = NULL;
	trace_close();
	free(world_peer);
	world_peer = NULL;
	free(world_node_of);
	world_node_of = NULL;
	free(world_host_of);
	world_host_of = NULL;
}

int railmpi_open(void)
{
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
	handshake();		/* a rank with wrong options is there all the same */
	rc = agree(rc);
	if (rc)
		return rc;
	rc = coll_agree();
	rc = rc ? rc : open_world();
	if (!rc) {
		rg_errors_hold();
		rc = req_start();
		rc = rc ? rc : open_sentinel();
		rc = rc ? rc : lost_start();
		rc = rc ? rc : comm_start();
		rc = rc ? rc : dtype_start();
		rc = rc ? rc : layer_start_progress();
		rc = agree(rc);
	}
	if (rc) {
		layer_stop_progress();
		close_rails();
	} else if (world_settings.ledger) {
		calls_start();
	}
	return rc;
}

/* ---- MPI_COMM_WORLD ---------------------------------------------------------------------------- */

int world_start(void)
{
	struct rail_way w;
	int way, rc;

	/* Errors are printed once, by railmpi_open. */
	rg_errors_hold();
	rc = world_options();
	rg_errors_release(false);
	if (!rc && world_settings.over == RAILMPI_NATIVE)
		return 0;
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
	/* Our sends must be gone and the others' answered before anything is taken down. */
	layer_enter();
	while (rail_busy(layer.rails))
		layer_poll(&idle);
	together = meet();
	layer_leave();
	calls_end(together);
	layer_stop_progress();
	comm_stop();
	dtype_stop();
	lost_stop();
	unexpected_stop();
	coll_stop();
	close_rails();
	native.Cancel(&layer.sentinel);
	native.Wait(&layer.sentinel, MPI_STATUS_IGNORE);
	native.Comm_free(&layer.self);
	req_stop();
}

/* ---- railmpi.h --------------------------------------------------------------------------------- */

void railmpi_fabric(struct railmpi_fabric *out)
{
	static const char *const kinds[] = {
		[RAIL_FABRIC_HARDWARE] = "hardware",
		[RAIL_FABRIC_KERNEL_SOFTWARE] = "kernel software",
		[RAIL_FABRIC_SOFTHCA] = "software HCA",
	};
	struct rail_ledger ledger;
	struct rail_info info;
	int i;

	memset(out, 0, sizeof(*out));
	out->kind = "none";
	out->text = out->spec = out->doubt = out->threshold = "";
	if (!layer.rails)
		return;
	out->kind = kinds[rail_fabric_kind(layer.rails)];
	out->software_hca = rail_fabric_kind(layer.rails) == RAIL_FABRIC_SOFTHCA;
	out->hardware = rail_fabric_kind(layer.rails) == RAIL_FABRIC_HARDWARE;
	out->text = rail_fabric_text(layer.rails);
	out->spec = rail_fabric_spec(layer.rails);
	out->doubt = rail_fabric_doubt(layer.rails);
	out->threshold = calibrate_text();
	out->nodes = nodes;
	out->rail_count = rail_count(layer.rails);
	out->has_local = rail_local(layer.rails) >= 0;
	for (i = 0; i < out->rail_count; i++) {
		rail_info(layer.rails, i, &info);
		memcpy(out->rail[i].name, info.name, sizeof(info.name));
		out->rail[i].rate_bytes_per_s = info.rate;
		out->rail[i].mtu_bytes = info.mtu_bytes;
		out->rail[i].polls_memory = info.polls_memory;
		memcpy(out->rail[i].firmware, info.firmware, sizeof(info.firmware));
		memcpy(out->rail[i].gid, info.gid, sizeof(info.gid));
		out->rail[i].counts_retries = rail_ledger(layer.rails, i, &ledger);
		out->modelled |= info.fabric == RAIL_FABRIC_SOFTHCA && !info.net && info.rate;
		out->net |= info.net;
	}
}
