/*
 * withdraw.c - withdrawn memory is not written to, by any message.
 *
 * A few processes send datagrams to one queue pair as fast as they can.  Its
 * owner withdraws, in turns, the registration of the buffers, the queue pair
 * (reset, destroyed), the shared receive queue; from the return of the verb on the
 * memory must not change.  Then everything is created anew, and messages must
 * arrive again.
 * Usage: withdraw [ROUNDS]
 */
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kit.h"

enum { SENDERS = 3, BYTES = 1000, SLOT = 1088, SLOTS = 32, QKEY = 3 };

/* The target of messages; the senders read it before each message. */
struct target {
	_Atomic uint32_t qpn;		/* 0: nowhere for now; UINT32_MAX: end */
	_Atomic uint32_t lid;
	_Atomic uint32_t ready;
};

static struct target *target;

static void ready(struct end *e)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY };

	require_equal(ibv_modify_qp(e->qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				    IBV_QP_QKEY), 0);
	a.qp_state = IBV_QPS_RTR;
	require_equal(ibv_modify_qp(e->qp, &a, IBV_QP_STATE), 0);
	a.qp_state = IBV_QPS_RTS;
	require_equal(ibv_modify_qp(e->qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
}

/* ---- A sender ------------------------------------------------------------ */

static void run_sender(int who)
{
	struct side s = side_open(1 + who, 0, -1);
	struct buffer b = buffer_new(&s, BYTES, ACCESS_ALL);
	struct end_config c = end_defaults;
	struct ibv_ah_attr a = { .port_num = 1 };
	struct ibv_ah *ah;
	struct end e;
	uint32_t qpn;

	c.type = IBV_QPT_UD;
	e = end_new(&s, &c);
	ready(&e);
	memset(b.at, 0x11 + who, BYTES);
	a.dlid = (uint16_t)atomic_load(&target->lid);
	ah = ibv_create_ah(s.pd, &a);
	require(ah != NULL);
	atomic_fetch_add(&target->ready, 1);
	while ((qpn = atomic_load(&target->qpn)) != UINT32_MAX) {
		struct ibv_sge sge = sge_of(&b, 0, BYTES);
		struct ibv_send_wr wr = send_wr(&sge, 1);

		if (!qpn) {
			usleep(100);
			continue;
		}
		wr.wr.ud.ah = ah;
		wr.wr.ud.remote_qpn = qpn;
		wr.wr.ud.remote_qkey = QKEY;
		post(&e, wr);
		expect(e.cq, 1, IBV_WC_SUCCESS);	/* lost or not */
	}
	exit(0);
}

/* ---- The owner ----------------------------------------------------------- */

struct owner {
	struct side side;
	struct ibv_cq *cq;
	struct ibv_srq *srq;		/* or NULL */
	struct end e;
	unsigned char *memory;
	struct ibv_mr *mr;
};

static void owner_post(struct owner *o, uint64_t slot)
{
	struct ibv_sge sge = { (uintptr_t)o->memory + slot * SLOT, SLOT, o->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = slot, .sg_list = &sge, .num_sge = 1 }, *bad;

	require_equal(o->srq ? ibv_post_srq_recv(o->srq, &wr, &bad)
			     : ibv_post_recv(o->e.qp, &wr, &bad), 0);
}

static void owner_make(struct owner *o, bool shared)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = SLOTS, .max_sge = 1 } };
	struct end_config c = end_defaults;
	uint64_t i;

	o->mr = ibv_reg_mr(o->side.pd, o->memory, SLOTS * SLOT, IBV_ACCESS_LOCAL_WRITE);
	require(o->mr != NULL);
	o->srq = shared ? ibv_create_srq(o->side.pd, &init) : NULL;
	require(!shared || o->srq);
	c.type = IBV_QPT_UD;
	c.cq = o->cq;
	c.srq = o->srq;
	c.recv_wr = SLOTS;
	o->e = end_new(&o->side, &c);
	ready(&o->e);
	for (i = 0; i < SLOTS; i++)
		owner_post(o, i);
	atomic_store(&target->qpn, o->e.qp->qp_num);
}

/* Receive `count` messages and post their receives again. */
static void owner_receive(struct owner *o, int count)
{
	while (count--) {
		struct ibv_wc wc = wait_ok(o->cq);
		const unsigned char *at = o->memory + wc.wr_id * SLOT + 40;
		int i;

		require_equal(wc.byte_len, BYTES + 40);
		require(*at >= 0x11 && *at < 0x11 + SENDERS);
		for (i = 0; i < BYTES; i++)
			require_equal(at[i], *at);
		owner_post(o, wc.wr_id);
	}
}

/* Check that no process writes from now on. */
static void must_stay(struct owner *o, const char *what)
{
	uint64_t end;

	memset(o->memory, 0xdd, SLOTS * SLOT);
	for (end = now_ns() + 300000; now_ns() < end;)
		;
	check_untouched(o->memory, 0xdd, SLOTS * SLOT, what);
}

static void take_away(struct owner *o, int what)
{
	switch (what) {
	case 0:
		require_equal(ibv_dereg_mr(o->mr), 0);
		o->mr = NULL;
		must_stay(o, "after ibv_dereg_mr");
		break;
	case 1:
		require_equal(end_to(&o->e, IBV_QPS_RESET), 0);
		must_stay(o, "after a reset");
		break;
	default:
		break;
	}
	atomic_store(&target->qpn, 0);
	end_free(&o->e);
	must_stay(o, "after ibv_destroy_qp");
	if (o->srq)
		require_equal(ibv_destroy_srq(o->srq), 0);
	if (o->mr)
		require_equal(ibv_dereg_mr(o->mr), 0);
	must_stay(o, "after everything");
}

static void run_owner(struct side *side, int rounds)
{
	struct owner o = { .side = *side };
	int i;

	o.memory = mmap(NULL, SLOTS * SLOT, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			-1, 0);
	require(o.memory != MAP_FAILED);
	o.cq = ibv_create_cq(o.side.ctx, 256, NULL, NULL, 0);
	require(o.cq != NULL);
	for (i = 0; i < rounds; i++) {
		owner_make(&o, i % 2);
		owner_receive(&o, 20 + i % 50);
		take_away(&o, i / 2 % 3);
	}
	require_equal(ibv_destroy_cq(o.cq), 0);
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 100, i, status;
	pid_t pid[SENDERS];
	struct side s;

	alarm(300);
	fabric_new("withdraw");
	target = mmap(NULL, sizeof(*target), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		      -1, 0);
	require(target != MAP_FAILED);
	/* LID 1: the port of node 0, where the owner is. */
	atomic_store(&target->lid, 1);
	for (i = 0; i < SENDERS; i++) {
		pid[i] = fork();
		require(pid[i] >= 0);
		if (pid[i] == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);	/* the test may fail */
			run_sender(i);
		}
	}
	s = side_open(0, 0, -1);
	require_equal(s.port.lid, 1);
	while (atomic_load(&target->ready) < SENDERS) {
		require(waitpid(-1, &status, WNOHANG) == 0);
		usleep(1000);
	}
	run_owner(&s, rounds);
	atomic_store(&target->qpn, UINT32_MAX);
	for (i = 0; i < SENDERS; i++) {
		require_equal(waitpid(pid[i], &status, 0), pid[i]);
		require(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	}
	side_close(&s);
	printf("%d rounds\n", rounds);
	return 0;
}
