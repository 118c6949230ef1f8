/*
 * world.c - the job: agree on a fabric, open rails, connect everybody.
 *
 * Collective over MPI_COMM_WORLD, by a handful of native collectives: one
 * Allgather (who is where, with which options), an Allreduce behind each step
 * that can fail, one Alltoall of connection offers.  Whatever goes wrong, all
 * ranks learn it and one of them says why.
 */
#include "world.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "err.h"

/* What every rank tells all others. */
struct hello {
	char host[64];
	uint64_t options;	/* digest */
	uint64_t cpus[16];	/* affinity */
	uint64_t nonce;
	int32_t ports;		/* ACTIVE ports, or -errno */
};

static struct rail_peer **peers;	/* by world rank */
static unsigned nodes;
static char fabric_name[64];

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

static uint64_t options_digest(void)
{
	uint64_t d = 0xcbf29ce484222325u;
	const struct opt *row;
	char text[512];
	const char *p;

	for (row = world_table.rows; row->name; row++)
		for (p = opt_text(&world_table, row, text, sizeof(text)); ; p++) {
			d = (d ^ (unsigned char)*p) * 0x100000001b3u;
			if (!*p)
				break;
		}
	return d;
}

static void hello_fill(struct hello *h)
{
	struct timespec now;
	cpu_set_t set;
	int cpu;

	memset(h, 0, sizeof(*h));
	gethostname(h->host, sizeof(h->host) - 1);
	h->options = options_digest();
	CPU_ZERO(&set);
	sched_getaffinity(0, sizeof(set), &set);
	for (cpu = 0; cpu < 1024; cpu++)
		if (CPU_ISSET(cpu, &set))
			h->cpus[cpu / 64] |= (uint64_t)1 << (cpu % 64);
	clock_gettime(CLOCK_REALTIME, &now);
	h->nonce = (uint64_t)getpid() << 32 ^ (uint64_t)now.tv_sec << 20 ^ (uint64_t)now.tv_nsec;
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

	for (i = 0; i < layer.world_size; i++) {
		if (all[i].options != all[0].options) {
			rg_error("rank %d has other transport options (RAILGAUGE_ variables) than rank 0; "
				 "all ranks must have the same", i);
			return -EINVAL;
		}
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
	if (*soft && other_host >= 0) {
		rg_error("no ACTIVE RDMA port on host %s, and the software HCA joins ranks of one host only "
			 "(rank %d is on %s); use --over native", all[0].host, other_host,
			 all[other_host].host);
		return -ENODEV;
	}
	return 0;
}

static int place_on_virtual_nodes(struct rail_config *cfg)
{
	int n = layer.world_size, rank = layer.world_rank, first;

	nodes = (unsigned)world_settings.nodes;
	if (nodes > (unsigned)n) {
		if (n > 1) {
			rg_error("--nodes %u: more virtual nodes than ranks (accepted: 1 to %d)", nodes, n);
			return -EINVAL;
		}
		nodes = 1;
	}
	/* Blocks: rank r is on node r * nodes / n. */
	cfg->node = (unsigned)((uint64_t)rank * nodes / (unsigned)n);
	for (first = rank; first > 0; first--)
		if ((uint64_t)(first - 1) * nodes / (unsigned)n != cfg->node)
			break;
	cfg->local_rank = (unsigned)(rank - first);
	return 0;
}

static void place_on_hosts(struct rail_config *cfg, const struct hello *all)
{
	int i;

	nodes = 0;
	for (i = 0; i < layer.world_rank; i++)
		if (!strcmp(all[i].host, all[layer.world_rank].host))
			cfg->local_rank++;
}

/* ---- Opening --------------------------------------------------------------------------------- */

static void on_peer_error(void *user, unsigned index, int error)
{
	/* librail has said which; its operations fail and MPI's error handler decides. */
}

static int open_rails(const struct hello *all)
{
	struct rail_config cfg = {
		.settings = &world_settings.rail,
		.fabric = fabric_name,
		.index = (unsigned)layer.world_rank,
		.peer_count = (unsigned)layer.world_size,
		.on_message = match_on_message,
		.on_peer_error = on_peer_error,
	};
	int rc = choose_fabric(all, &cfg.use_softhca);

	if (rc)
		return rc;
	snprintf(fabric_name, sizeof(fabric_name), "job-%016llx", (unsigned long long)all[0].nonce);
	if (!cfg.use_softhca)
		place_on_hosts(&cfg, all);
	else if ((rc = place_on_virtual_nodes(&cfg)))
		return rc;
	return rail_open(&cfg, &layer.rails);
}

static int offer_all(unsigned char *offers)
{
	int i, rc = 0;

	for (i = 0; i < layer.world_size && !rc; i++)
		rc = rail_peer_offer(layer.rails, (unsigned)i, &peers[i],
				     offers + (size_t)i * RAIL_OFFER_BYTES);
	return rc;
}

static int connect_all(const unsigned char *offers)
{
	int i, rc = 0;

	for (i = 0; i < layer.world_size && !rc; i++)
		rc = rail_peer_connect(peers[i], offers + (size_t)i * RAIL_OFFER_BYTES);
	return rc;
}

static int connect_peers(void)
{
	size_t n = (size_t)layer.world_size;
	unsigned char *mine = calloc(n, RAIL_OFFER_BYTES), *theirs = calloc(n, RAIL_OFFER_BYTES);
	int rc = -ENOMEM;

	peers = calloc(n, sizeof(*peers));
	rg_errors_hold();
	if (peers && mine && theirs)
		rc = offer_all(mine);
	rc = agree(rc);
	if (rc)
		goto out;
	native.Alltoall(mine, RAIL_OFFER_BYTES, MPI_BYTE, theirs, RAIL_OFFER_BYTES, MPI_BYTE,
			MPI_COMM_WORLD);
	rg_errors_hold();
	rc = agree(connect_all(theirs));
	if (!rc)
		rail_all_attached(layer.rails);
out:
	free(mine);
	free(theirs);
	return rc;
}

/* A dup of MPI_COMM_SELF for our own calls, with a receive that nothing ever matches. */
static int open_sentinel(void)
{
	static char never;

	if (native.Comm_dup(MPI_COMM_SELF, &layer.self) ||
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
		rc = connect_peers();
out:
	free(all);
	return rc;
}

static void close_rails(void)
{
	if (layer.rails)
		rail_close(layer.rails);
	layer.rails = NULL;
	free(peers);
	peers = NULL;
}

int railmpi_open(void)
{
	int rc, *tag_ub, found;

	if (layer.rails)
		return 0;
	native.Comm_rank(MPI_COMM_WORLD, &layer.world_rank);
	native.Comm_size(MPI_COMM_WORLD, &layer.world_size);
	native.Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &tag_ub, &found);
	layer.tag_ub = found ? *tag_ub : 32767;
	rg_errors_hold();
	rc = agree(world_options());
	if (rc)
		return rc;
	rc = open_world();
	if (!rc) {
		rg_errors_hold();
		rc = req_start();
		rc = rc ? rc : open_sentinel();
		rc = rc ? rc : comm_start();
		rc = rc ? rc : dtype_start();
		rc = rc ? rc : layer_start_progress();
		rc = agree(rc);
	}
	if (rc)
		close_rails();
	return rc;
}

/* ---- MPI_COMM_WORLD ---------------------------------------------------------------------------- */

int world_start(void)
{
	int way, rc = world_options();
	struct rail_way w;

	if (!rc && world_settings.over == RAILMPI_NATIVE)
		return 0;
	rc = railmpi_open();
	if (rc)
		return rc;
	way = world_settings.over;
	if (way == WORLD_OVER_AUTO)
		way = rail_count(layer.rails) > 1 ? RAILMPI_STRIPE : RAILMPI_SINGLE;
	w = world_way(&world_settings, way);
	return comm_adopt(MPI_COMM_WORLD, &w);
}

int world_peers(MPI_Comm comm, int size, struct rail_peer **peer)
{
	int *ranks = malloc((size_t)size * 2 * sizeof(*ranks)), i;
	MPI_Group world, group;

	if (!ranks)
		return -ENOMEM;
	for (i = 0; i < size; i++)
		ranks[i] = i;
	native.Comm_group(MPI_COMM_WORLD, &world);
	native.Comm_group(comm, &group);
	native.Group_translate_ranks(group, size, ranks, world, ranks + size);
	native.Group_free(&group);
	native.Group_free(&world);
	for (i = 0; i < size; i++)
		peer[i] = ranks[size + i] == MPI_UNDEFINED ? NULL : peers[ranks[size + i]];
	for (i = 0; i < size && peer[i]; i++)
		;
	free(ranks);
	return i == size ? 0 : -EINVAL;
}

void world_stop(void)
{
	MPI_Request barrier;
	unsigned idle = 0;
	int flag = 0;

	if (!layer.rails)
		return;
	/* Our sends must be gone and the others' answered before anything is taken down. */
	layer_enter();
	while (rail_busy(layer.rails))
		layer_poll(&idle);
	native.Ibarrier(MPI_COMM_WORLD, &barrier);
	for (;;) {
		native.Test(&barrier, &flag, MPI_STATUS_IGNORE);
		if (flag)
			break;
		layer_poll(&idle);
	}
	layer_leave();
	layer_stop_progress();
	comm_stop();
	dtype_stop();
	match_stop();
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
	struct rail_info info;
	int i;

	memset(out, 0, sizeof(*out));
	out->kind = "none";
	out->text = out->spec = "";
	if (!layer.rails)
		return;
	out->kind = kinds[rail_fabric_kind(layer.rails)];
	out->hardware = rail_fabric_kind(layer.rails) == RAIL_FABRIC_HARDWARE;
	out->text = rail_fabric_text(layer.rails);
	out->spec = rail_fabric_spec(layer.rails);
	out->nodes = nodes;
	out->rail_count = rail_count(layer.rails);
	for (i = 0; i < out->rail_count; i++) {
		rail_info(layer.rails, i, &info);
		memcpy(out->rail[i].name, info.name, sizeof(info.name));
		out->rail[i].rate_bytes_per_s = info.rate;
		out->rail[i].mtu_bytes = info.mtu_bytes;
		out->rail[i].polls_memory = info.polls_memory;
		out->modelled |= info.fabric == RAIL_FABRIC_SOFTHCA && info.rate;
	}
}

int railmpi_ledger(int rail, struct railmpi_ledger *out)
{
	struct rail_ledger l;

	if (!layer.rails || rail < 0 || rail >= rail_count(layer.rails))
		return -ENOENT;
	rail_ledger(layer.rails, rail, &l);
	*out = (struct railmpi_ledger){
		.tx_messages = l.tx_messages, .tx_chunks = l.tx_chunks, .tx_bytes = l.tx_bytes,
		.rx_messages = l.rx_messages, .rx_chunks = l.rx_chunks, .rx_bytes = l.rx_bytes,
		.stalls = l.stalls,
	};
	return 0;
}
