/*
 * fuzz_segment.c - a connection to a peer whose segments have arbitrary contents.
 *
 * The peer is a process that sleeps and holds descriptors: a process segment, a
 * table that it has signed and a memory segment, all written by this test.  An
 * input begins with their contents (struct image); the rest is a script: verbs of
 * this process, and words written into its shared memory, as any peer could.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "softhca/base/proc.h"
#include "softhca/base/segment.h"
#include "fuzz.h"
#include "softhca/link/memory/peer.h"
#include "softhca/link/memory/state.h"
#include "softhca/object/qp.h"
#include "softhca/softhca.h"

const unsigned fuzz_rounds = 20000;

enum {
	SLOT = 5, GENERATION = 7, ENTRY = 1000, ENTRY_GENERATION = 1,
	QPN = ENTRY << HCA_QPN_GEN_BITS | ENTRY_GENERATION,
	KEY = 1 << HCA_KEY_GEN_BITS | 1,
	HEAP = 4096,
	BUFFER = 4096,
	THEIRS = 1 << 20,	/* their buffer: offset in the memory segment */
};

/* Content put into the peer's segment. */
struct image {
	struct hca_shm_qp qp;
	struct hca_shm_mr mr[2];	/* [1]: their buffer */
	struct hca_shm_wakeup wakeup[4];
	unsigned char heap[HEAP];	/* line 0: receive ring; line 32: mailbox */
};

static struct {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	struct ibv_port_attr port;
	unsigned char *buffer;
	struct hca_fabric *fabric;

	pid_t peer;
	int process_fd, table_fd, memory_fd, pipe[2];
	struct hca_shm_process *theirs;
	struct hca_shm_table *table;
	char name[32];
} fuzz;

/* ---- The two processes ----------------------------------------------------- */

static void clean_up(void)
{
	char path[80];

	if (fuzz.peer > 0)
		kill(fuzz.peer, SIGKILL);
	snprintf(path, sizeof(path), "/dev/shm/softhca.%u.%s", (unsigned)geteuid(), fuzz.name);
	unlink(path);
}

static void start_peer(void)
{
	struct hca_shm_slot *s = &fuzz.fabric->shm->slot[SLOT];
	int ready[2];
	char byte;

	if (pipe(ready))
		abort();
	fuzz.peer = fork();
	if (fuzz.peer < 0)
		abort();
	if (fuzz.peer == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		flock(fuzz.table_fd, LOCK_UN);		/* our lock, or a former peer's */
		if (flock(fuzz.table_fd, LOCK_EX | LOCK_NB) || write(ready[1], "r", 1) != 1)
			abort();
		for (;;)
			pause();
	}
	close(ready[1]);
	if (read(ready[0], &byte, 1) != 1)
		abort();
	close(ready[0]);
	fuzz.table->magic = HCA_TABLE_MAGIC;
	fuzz.table->abi = HCA_ABI;
	fuzz.table->slot = SLOT;
	fuzz.table->generation = GENERATION;
	fuzz.table->nonce = fuzz.fabric->link_state->nonce;
	fuzz.table->pid = fuzz.peer;
	fuzz.table->start_time = hca_process_start_time(fuzz.peer);
	s->pid = fuzz.peer;
	s->start_time = hca_process_start_time(fuzz.peer);
	s->pid_ns = fuzz.fabric->shm->slot[fuzz.fabric->slot].pid_ns;
	s->memory_bits = 48;
	s->process_fd = fuzz.process_fd;
	s->table_fd = fuzz.table_fd;
	s->memory_fd = fuzz.memory_fd;
	s->node = 0;
	atomic_store(&s->generation, GENERATION);
	atomic_store(&s->phase, HCA_PRESENT);
	atomic_store(&fuzz.fabric->shm->qp[ENTRY], hca_shm_qp_entry(0, SLOT, ENTRY_GENERATION));
}

/* A process that is no member is not tried. */
static void require_peer(void)
{
	struct hca_shm_process *t = fuzz.theirs;
	struct hca_peer *peer;

	t->magic = HCA_PROCESS_MAGIC;
	t->abi = HCA_ABI;
	t->slot = SLOT;
	t->nonce = fuzz.fabric->link_state->nonce;
	t->generation = GENERATION;
	if (hca_peer_get(fuzz.fabric, SLOT, &peer))
		abort();
	hca_peer_put(peer);
}

static void make_segments(void)
{
	unsigned guards;
	void *table;

	fuzz.process_fd = hca_segment_create("fuzz-process", HCA_PROCESS_BYTES);
	fuzz.memory_fd = hca_segment_create("fuzz-memory", HCA_MEMORY_BYTES);
	fuzz.table_fd = hca_segment_create_own("fuzz-table", sizeof(*fuzz.table), &table, &guards);
	if (fuzz.process_fd < 0 || fuzz.memory_fd < 0 || fuzz.table_fd < 0 || pipe(fuzz.pipe))
		abort();
	fuzz.table = table;
	fuzz.theirs = hca_segment_map(fuzz.process_fd, 0, HCA_PROCESS_BYTES);
	if (!fuzz.theirs)
		abort();
	fuzz.theirs->heap_bytes = HCA_HEAP_BYTES;
}

static void make_objects(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .cap = {
		.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 2, .max_recv_sge = 2 } };

	fuzz.ctx = list && list[0] ? ibv_open_device(list[0]) : NULL;
	fuzz.buffer = softhca_arena_alloc(BUFFER);
	if (!fuzz.ctx || !fuzz.buffer || ibv_query_port(fuzz.ctx, 1, &fuzz.port))
		abort();
	ibv_free_device_list(list);
	fcntl(fuzz.ctx->async_fd, F_SETFL, O_NONBLOCK);
	fuzz.pd = ibv_alloc_pd(fuzz.ctx);
	fuzz.channel = ibv_create_comp_channel(fuzz.ctx);
	fcntl(fuzz.channel->fd, F_SETFL, O_NONBLOCK);
	fuzz.cq = ibv_create_cq(fuzz.ctx, 16, NULL, fuzz.channel, 0);
	init.send_cq = init.recv_cq = fuzz.cq;
	fuzz.qp = ibv_create_qp(fuzz.pd, &init);
	fuzz.mr = ibv_reg_mr(fuzz.pd, fuzz.buffer, BUFFER, IBV_ACCESS_LOCAL_WRITE |
			     IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
	if (!fuzz.qp || !fuzz.mr)
		abort();
	fuzz.fabric = hca_qp_of(fuzz.qp)->fabric;
}

static void prepare(void)
{
	static bool done;

	if (done)
		return;
	done = true;
	snprintf(fuzz.name, sizeof(fuzz.name), "fuzz.%d", (int)getpid());
	setenv("SOFTHCA_EXPOSE", "1", 1);
	setenv("SOFTHCA_FABRIC", fuzz.name, 1);
	unsetenv("SOFTHCA_SPEC");
	make_objects();
	make_segments();
	atexit(clean_up);
	start_peer();
	require_peer();
}

/* ---- Seeds ------------------------------------------------------------------ */

/* A peer as it should be: its memory mapped or not; a receive posted. */
static void good_image(struct image *m, bool mapped)
{
	struct hca_shm_recv *r = (struct hca_shm_recv *)(void *)m->heap;
	struct stat st;

	memset(m, 0, sizeof(*m));
	fstat(fuzz.pipe[0], &st);
	m->qp.accept = 1ull << 32 | fuzz.qp->qp_num;
	m->qp.access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
		       IBV_ACCESS_REMOTE_ATOMIC;
	m->qp.qpn = QPN;
	m->qp.pd = m->qp.rq_pd = 1;
	m->qp.rq_line = 0;
	m->qp.rq_count = 4;
	m->qp.rq_stride = HCA_LINE;
	m->qp.cq = 32ull << 32 | 8;
	m->qp.reads = 4;
	m->qp.wakeup[0] = 1;
	m->mr[1] = (struct hca_shm_mr){
		.stamp = 1ull << 32 | KEY, .access = m->qp.access, .pd = 1, .iova = THEIRS, .addr = THEIRS,
		.length = BUFFER, .mapped = mapped ? THEIRS : 0,
		.mapped_end = mapped ? THEIRS + BUFFER : 0 };
	m->wakeup[0].fd = fuzz.pipe[0];
	m->wakeup[0].ino = st.st_ino;
	r->state = hca_shm_state(0, HCA_POSTED);
	r->sge_count = 1;
	memcpy(r->sge, &(struct hca_shm_sge){ THEIRS, BUFFER, KEY }, sizeof(r->sge[0]));
}

size_t fuzz_seed(unsigned index, unsigned char *to, size_t most)
{
	/* Each verb; words written into queue pair, mailbox, bells, adapter of ours. */
	static const unsigned char script[] = {
		0, 8, 1, 40, 2, 64, 3, 8, 4, 8, 5, 6, 5, 7, 9, 0, 8, 5, 10, 0, 0, 1, 0, 0, 0, 5,
		10, 1, 4, 2, 0, 0, 0, 11, 5, 10, 2, 0, 1, 1, 1, 1, 12, 0, 200, 5, 13, 5,
	};

	prepare();
	if (index >= 4 || most < sizeof(struct image) + sizeof(script))
		return 0;
	good_image((struct image *)(void *)to, index % 2);
	memcpy(to + sizeof(struct image), script, sizeof(script));
	return sizeof(struct image) + (index < 2 ? sizeof(script) : 2 * (index + 1));
}

/* ---- The script ----------------------------------------------------------------- */

struct script {
	const uint8_t *at, *end;
};

static uint8_t next(struct script *s)
{
	return s->at < s->end ? *s->at++ : 0;
}

static void post(struct script *s, enum ibv_wr_opcode op)
{
	uint32_t bytes = (uint32_t)next(s) * 8;
	struct ibv_sge sge = { (uintptr_t)fuzz.buffer, bytes, fuzz.mr->lkey };
	struct ibv_send_wr wr = { .wr_id = 1, .sg_list = &sge, .num_sge = 1, .opcode = op,
				  .send_flags = IBV_SEND_SIGNALED }, *bad;

	if (op == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		sge.length = 8;
		wr.wr.atomic.remote_addr = THEIRS + (bytes & ~7u);
		wr.wr.atomic.rkey = KEY;
	} else {
		wr.wr.rdma.remote_addr = THEIRS + bytes % 64;
		wr.wr.rdma.rkey = KEY;
	}
	ibv_post_send(fuzz.qp, &wr, &bad);
}

static void receive(void)
{
	struct ibv_sge sge = { (uintptr_t)fuzz.buffer, 64, fuzz.mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = 2, .sg_list = &sge, .num_sge = 1 }, *bad;

	ibv_post_recv(fuzz.qp, &wr, &bad);
}

/* A program that trusts its completions must not be led astray. */
static void take(void)
{
	struct ibv_wc wc[4];
	int i, n = ibv_poll_cq(fuzz.cq, 4, wc);

	if (n < 0 || n > 4)
		abort();
	for (i = 0; i < n; i++) {
		if (wc[i].wr_id != 1 && wc[i].wr_id != 2)
			abort();
		if (wc[i].status > IBV_WC_GENERAL_ERR || wc[i].qp_num != fuzz.qp->qp_num)
			abort();
		if (wc[i].status)
			continue;
		if ((wc[i].wr_id == 2) != !!(wc[i].opcode & IBV_WC_RECV) ||
		    (wc[i].opcode == IBV_WC_RECV && wc[i].byte_len > 64))
			abort();
	}
}

static void take_events(void)
{
	struct ibv_async_event event;
	struct ibv_cq *cq;
	void *context;
	int i;

	for (i = 0; i < 16 && ibv_get_async_event(fuzz.ctx, &event) == 0; i++)
		ibv_ack_async_event(&event);
	for (i = 0; i < 16 && ibv_get_cq_event(fuzz.channel, &cq, &context) == 0; i++)
		ibv_ack_cq_events(cq, 1);
}

/* A word of what we share, as a peer may write it. */
static void patch(struct script *s)
{
	struct hca_shm_process *own = fuzz.fabric->self;
	uint8_t area = next(s), where = next(s);
	uint32_t value = 0, *word;
	int i;

	for (i = 0; i < 4; i++)
		value = value << 8 | next(s);
	switch (area % 6) {
	case 0:
		word = (uint32_t *)(void *)&own->qp[0] + where % (sizeof(own->qp[0]) / 4);
		break;
	case 1:		/* receive ring, mailbox */
		word = (uint32_t *)(void *)own->heap + (uint32_t)(area / 6) * 256 + where;
		break;
	case 2:
		word = (uint32_t *)(void *)own->wakeup + where;
		break;
	case 3:
		word = (uint32_t *)(void *)&fuzz.fabric->shm->adapter[0] + where;
		break;
	case 4:
		word = (uint32_t *)(void *)own->invalidated + where;
		break;
	default:
		word = (uint32_t *)(void *)&own->bounce[0] + where % 16;
	}
	*(volatile uint32_t *)word = value;
}

/* Their registration goes or comes; or it is a window, taken away or not. */
static void change_row(uint8_t how)
{
	const uint64_t stamp = 1ull << 32 | KEY;

	atomic_store(&fuzz.table->mr[1].stamp, how & 1 ? 0 : stamp);
	fuzz.table->mr[1].qpn = how & 2 ? QPN : 0;
	atomic_store(&fuzz.theirs->invalidated[1], how & 4 ? stamp : 0);
}

static void run_script(struct script *s)
{
	static const enum ibv_wr_opcode ops[] = { IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ,
		IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_ATOMIC_FETCH_AND_ADD };
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr a;
	int steps;

	for (steps = 0; s->at < s->end && steps < 64; steps++) {
		uint8_t op = next(s) % 14;

		if (op < 5)
			post(s, ops[op]);
		else if (op == 5)
			take();
		else if (op == 6 || op == 7)
			receive();
		else if (op == 8)
			take_events();
		else if (op == 9)
			ibv_req_notify_cq(fuzz.cq, next(s) & 1);
		else if (op == 10 || op == 11)
			patch(s);
		else if (op == 12)
			change_row(next(s));
		else
			ibv_query_qp(fuzz.qp, &a, IBV_QP_STATE, &init);
	}
}

/* ---- One input ------------------------------------------------------------------- */

/* A wait for a process that seems to be at work would take a second each time. */
static void nobody_works(void)
{
	atomic_store(&fuzz.theirs->qp[0].access_section, 0);
	atomic_store(&fuzz.fabric->self->qp[0].access_section, 0);
}

static void install(const struct image *m)
{
	struct hca_shm_process *t = fuzz.theirs;

	memcpy(&t->qp[0], &m->qp, sizeof(m->qp));
	memcpy(fuzz.table->mr, m->mr, sizeof(m->mr));
	memset(t->invalidated, 0, 2 * sizeof(t->invalidated[0]));
	memcpy(t->wakeup, m->wakeup, sizeof(m->wakeup));
	memcpy(t->heap, m->heap, sizeof(m->heap));
	nobody_works();
}

static void connect_to_peer(void)
{
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_INIT, .port_num = 1, .path_mtu = fuzz.port.active_mtu,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
		.dest_qp_num = QPN, .max_dest_rd_atomic = 1, .max_rd_atomic = 1, .timeout = 1,
		.ah_attr = { .dlid = fuzz.port.lid, .port_num = 1 },
	};

	if (ibv_modify_qp(fuzz.qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			  IBV_QP_ACCESS_FLAGS))
		abort();
	a.qp_state = IBV_QPS_RTR;
	if (ibv_modify_qp(fuzz.qp, &a, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
			  IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
			  IBV_QP_MIN_RNR_TIMER))
		abort();
	a.qp_state = IBV_QPS_RTS;
	if (ibv_modify_qp(fuzz.qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
			  IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ibv_qp_attr reset = { .qp_state = IBV_QPS_RESET };
	struct image m;
	struct script s;

	prepare();
	if (size < sizeof(m))
		return 0;
	if (waitpid(fuzz.peer, NULL, WNOHANG) == fuzz.peer) {
		start_peer();
		require_peer();
	}
	memcpy(&m, data, sizeof(m));
	s.at = data + sizeof(m);
	s.end = data + size;
	install(&m);
	connect_to_peer();
	run_script(&s);
	take();
	nobody_works();
	if (ibv_modify_qp(fuzz.qp, &reset, IBV_QP_STATE))
		abort();
	take_events();
	return 0;
}
