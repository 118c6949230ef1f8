/*
 * step.c - a process is killed at any instruction.
 *
 * A victim, single-stepped by ptrace, carries out one verb and is killed after
 * k instructions; then another victim after another k.  In long verbs: some
 * instructions after entering or leaving a system call.  The survivor must detect
 * it, find a message whole or not at all, and be able to go on: receive from
 * others into the same queues, use the lock of the adapter's atomics, have all
 * receives of a shared queue, see others join.
 *
 * Usage: step [SECONDS [SEED]]	0 s: at every instruction of the short verbs
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kit.h"
#include "softhca/softhca.h"

enum {
	BYTES = 200,
	DEPTH = 4,			/* the shared receive queue's */
	AFTER = 300,			/* instructions at most after a system call */
	FULL_LONG = 20,			/* in a full run: kills per system call of a long verb */
	QUICK_MS = 10000,
};

/* The objects of a side. */
struct place {
	struct side s;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct end e, shared;		/* to the other side */
	struct buffer mapped, unmapped;
};

struct addresses {
	struct peer_address e, shared;
	uint64_t mapped, unmapped;
	uint32_t mapped_key, unmapped_key;
};

static bool have_srq;

/* ---- Both sides ---------------------------------------------------------- */

static void open_place(struct place *p, int sock)
{
	memset(p, 0, sizeof(*p));
	p->s = side_open(0, 0, sock);
	p->cq = ibv_create_cq(p->s.ctx, 256, NULL, NULL, 0);
	require(p->cq != NULL);
}

static struct end rc_end(struct place *p, struct ibv_srq *srq)
{
	struct ibv_qp_init_attr init = {
		.send_cq = p->cq, .recv_cq = p->cq, .srq = srq, .qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 16, .max_recv_wr = srq ? 0 : 8, .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};
	struct end e = { .config = end_defaults, .cq = p->cq };

	e.config.timeout = 10;		/* 4 ms */
	e.config.access = ACCESS_ALL | IBV_ACCESS_REMOTE_ATOMIC;
	e.qp = ibv_create_qp(p->s.pd, &init);
	require(e.qp != NULL);
	return e;
}

static void make_ends(struct place *p)
{
	p->e = rc_end(p, NULL);
	if (have_srq)
		p->shared = rc_end(p, p->srq);
}

static void tell_addresses(struct place *p)
{
	struct addresses a = { .e = end_address(&p->s, &p->e),
			       .mapped = (uintptr_t)p->mapped.at, .mapped_key = p->mapped.mr->rkey,
			       .unmapped = (uintptr_t)p->unmapped.at,
			       .unmapped_key = p->unmapped.mr->rkey };

	if (have_srq)
		a.shared = end_address(&p->s, &p->shared);
	require_equal(send(p->s.sock, &a, sizeof(a), MSG_NOSIGNAL), sizeof(a));
}

static void to_rts(struct place *p, struct end *e, const struct peer_address *to)
{
	require_equal(end_to_init(&p->s, e), 0);
	require_equal(end_to_rtr(&p->s, e, to), 0);
	require_equal(end_to_rts(e), 0);
}

static void hear_addresses(struct place *p, struct addresses *a)
{
	if (recv(p->s.sock, a, sizeof(*a), MSG_WAITALL) != (ssize_t)sizeof(*a))
		fail("the other side has ended");
	to_rts(p, &p->e, &a->e);
	if (have_srq)
		to_rts(p, &p->shared, &a->shared);
	p->mapped.addr = a->mapped;
	p->mapped.rkey = a->mapped_key;
	p->unmapped.addr = a->unmapped;
	p->unmapped.rkey = a->unmapped_key;
}

static struct buffer make_buffer(struct place *p, bool arena, size_t bytes)
{
	struct options o = side_options;
	struct buffer b;

	o.arena = arena;
	p->s.options = &o;
	b = buffer_new(&p->s, bytes, ACCESS_ALL | IBV_ACCESS_REMOTE_ATOMIC);
	p->s.options = &side_options;
	return b;
}

/* ---- The victim: what it does between two stops --------------------------- */

static struct addresses theirs;

static void do_write(struct place *p)
{
	struct ibv_sge sge = sge_of(&p->mapped, 0, BYTES);

	post(&p->e, write_wr(&p->mapped, &sge, 1));
}

static void do_send(struct place *p)
{
	struct ibv_sge sge = sge_of(&p->mapped, 0, BYTES);

	post(&p->e, send_wr(&sge, 1));
}

static void do_send_shared(struct place *p)
{
	struct ibv_sge sge = sge_of(&p->mapped, 0, BYTES);

	post(&p->shared, send_wr(&sge, 1));
}

static void add_to(struct place *p, struct buffer *to)
{
	struct ibv_sge sge = sge_of(&p->mapped, 1024, 8);
	struct ibv_send_wr wr = send_wr(&sge, 1);

	wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
	wr.wr.atomic.remote_addr = to->addr + 2048;
	wr.wr.atomic.compare_add = 1;
	wr.wr.atomic.rkey = to->rkey;
	post(&p->e, wr);
}

static void do_add_mapped(struct place *p)
{
	add_to(p, &p->mapped);
}

static void do_add_unmapped(struct place *p)
{
	add_to(p, &p->unmapped);
}

static void do_send_unmapped(struct place *p)
{
	struct ibv_sge sge = sge_of(&p->mapped, 0, BYTES);

	post(&p->e, write_wr(&p->unmapped, &sge, 1));
}

/* Take the survivor's message and post its receive again. */
static void do_poll(struct place *p)
{
	struct ibv_sge sge = sge_of(&p->mapped, 0, BYTES);
	struct ibv_wc wc;

	if (ibv_poll_cq(p->cq, 1, &wc) == 1)
		post_receive(&p->e, 2, &sge, 1);
}

static void do_modify(struct place *p)
{
	require_equal(end_to(&p->e, IBV_QPS_RESET), 0);
	to_rts(p, &p->e, &theirs.e);
	require_equal(end_to(&p->e, IBV_QPS_ERR), 0);
}

static void do_create(struct place *p)
{
	struct end e = rc_end(p, NULL);

	require_equal(end_to_init(&p->s, &e), 0);
	require_equal(ibv_destroy_qp(e.qp), 0);
}

static void do_register(struct place *p)
{
	static unsigned char memory[4096];
	struct ibv_mr *mr = ibv_reg_mr(p->s.pd, memory, sizeof(memory), ACCESS_ALL);

	require(mr != NULL);
	require_equal(ibv_dereg_mr(mr), 0);
}

static void do_channel(struct place *p)
{
	struct ibv_comp_channel *channel = ibv_create_comp_channel(p->s.ctx);
	struct ibv_cq *cq = channel ? ibv_create_cq(p->s.ctx, 16, NULL, channel, 0) : NULL;

	if (!cq)
		return;
	require_equal(ibv_req_notify_cq(cq, 0), 0);
	require_equal(ibv_destroy_cq(cq), 0);
	require_equal(ibv_destroy_comp_channel(channel), 0);
}

static void do_join(struct place *p)
{
	open_place(p, -1);
}

static void do_leave(struct place *p)
{
	require_equal(ibv_destroy_qp(p->e.qp), 0);
	require_equal(ibv_close_device(p->s.ctx), 0);
}

static const struct verb {
	const char *name;
	void (*run)(struct place *p);
	bool joins;		/* the process joins in the verb */
	bool is_long;
} verbs[] = {
	{ "write", do_write, false, false },
	{ "write, unmapped", do_send_unmapped, false, false },
	{ "send", do_send, false, false },
	{ "send to an SRQ", do_send_shared, false, false },
	{ "atomic", do_add_mapped, false, false },
	{ "atomic, unmapped", do_add_unmapped, false, false },
	{ "poll and post", do_poll, false, false },
	{ "modify", do_modify, false, true },
	{ "create and destroy", do_create, false, true },
	{ "register", do_register, false, true },
	{ "channel", do_channel, false, true },
	{ "join", do_join, true, true },
	{ "leave", do_leave, false, true },
};

/* Send first messages: they find and map memory. */
static void warm_up(struct place *p)
{
	struct ibv_sge sge = sge_of(&p->mapped, 1024, 8);
	struct end *e[2] = { &p->e, &p->shared };
	struct buffer *to[2] = { &p->mapped, &p->unmapped };
	int i;

	for (i = 0; i < 4; i++)
		if (e[i / 2]->qp) {
			struct ibv_send_wr wr = write_wr(to[i % 2], &sge, 1);

			wr.wr.rdma.remote_addr += 2056;
			post(e[i / 2], wr);
			wait_ok(p->cq);
		}
}

static void victim(const struct verb *v, int sock)
{
	struct ibv_sge sge;
	struct place p;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
		_exit(77);
	if (!v->joins) {
		open_place(&p, sock);
		p.mapped = make_buffer(&p, true, 4096);
		p.unmapped = make_buffer(&p, false, 4096);
		fill(p.mapped.at, 5, BYTES);
		if (have_srq) {
			struct ibv_srq_init_attr a = { .attr = { .max_wr = 4, .max_sge = 1 } };

			p.srq = ibv_create_srq(p.s.pd, &a);
		}
		make_ends(&p);
		tell_addresses(&p);
		hear_addresses(&p, &theirs);
		sge = sge_of(&p.mapped, 0, BYTES);
		post_receive(&p.e, 1, &sge, 1);
		barrier(&p.s);
		warm_up(&p);
		barrier(&p.s);	/* the survivor has sent */
	}
	raise(SIGSTOP);
	v->run(&p);
	raise(SIGSTOP);
	_exit(0);
}

/* ---- The survivor ---------------------------------------------------------- */

struct survivor {
	struct place p;
	struct end loop[2], shared_loop[2];	/* connected with each other */
	struct buffer in;
};

enum { ID_SEND = 100, ID_PROBE = 101, ID_LOOP = 102, ID_RECEIVE = 200, ID_SHARED = 300 };

static void connect_loop(struct place *p, struct end *e, struct ibv_srq *srq)
{
	struct peer_address a, b;

	e[0] = rc_end(p, NULL);
	e[1] = rc_end(p, srq);
	a = end_address(&p->s, &e[0]);
	b = end_address(&p->s, &e[1]);
	to_rts(p, &e[0], &b);
	to_rts(p, &e[1], &a);
}

static void post_shared(struct survivor *v)
{
	struct ibv_sge sge = sge_of(&v->in, 1024, 512);
	struct ibv_recv_wr wr = { .wr_id = ID_SHARED, .sg_list = &sge, .num_sge = 1 }, *bad;

	require_equal(ibv_post_srq_recv(v->p.srq, &wr, &bad), 0);
}

static void open_survivor(struct survivor *v)
{
	struct ibv_srq_init_attr a = { .attr = { .max_wr = DEPTH, .max_sge = 1 } };
	int i;

	open_place(&v->p, -1);
	v->p.mapped = make_buffer(&v->p, true, 4096);
	v->p.unmapped = make_buffer(&v->p, false, 4096);
	memset(v->p.mapped.at, 0, 4096);
	memset(v->p.unmapped.at, 0, 4096);
	v->in = make_buffer(&v->p, true, 4096);
	v->p.srq = ibv_create_srq(v->p.s.pd, &a);
	have_srq = v->p.srq != NULL;
	connect_loop(&v->p, v->loop, NULL);
	if (have_srq)
		connect_loop(&v->p, v->shared_loop, v->p.srq);
	for (i = 0; have_srq && i < DEPTH; i++)
		post_shared(v);
}

/* Check that a message of the victim is whole. */
static void take(struct survivor *v, const struct ibv_wc *wc)
{
	size_t at = wc->wr_id == ID_SHARED ? 1024 : 0;

	if (wc->wr_id != ID_RECEIVE && wc->wr_id != ID_SHARED)
		return;
	if (wc->status == IBV_WC_SUCCESS) {
		require_equal(wc->byte_len, BYTES);
		check(v->in.at + at, 5, BYTES, "a message from the dead");
	}
	if (wc->wr_id == ID_SHARED)
		post_shared(v);
}

static struct ibv_wc wait_for(struct survivor *v, uint64_t id, const char *what)
{
	uint64_t end = now_ns() + 60000000000u;
	struct ibv_wc wc;

	while (now_ns() < end) {
		if (ibv_poll_cq(v->p.cq, 1, &wc) != 1)
			continue;
		if (wc.wr_id == id)
			return wc;
		take(v, &wc);
	}
	fail("%s: nothing for 60 s", what);
}

/* The queue pair to the dead fails, and its receives are back. */
static void learn(struct survivor *v)
{
	struct ibv_sge sge = sge_of(&v->in, 0, 0);
	struct ibv_send_wr wr = send_wr(&sge, ID_PROBE), *bad;
	struct ibv_wc wc;

	wr.opcode = IBV_WR_RDMA_WRITE;
	wr.num_sge = 0;
	wr.wr.rdma.remote_addr = v->p.mapped.addr;
	wr.wr.rdma.rkey = v->p.mapped.rkey;
	if (ibv_post_send(v->p.e.qp, &wr, &bad))
		return;
	wc = wait_for(v, ID_PROBE, "a write to the dead");
	if (wc.status == IBV_WC_SUCCESS)
		fail("a write to the dead succeeded");
}

static void send_around(struct survivor *v, struct end *e, uint64_t id, const char *what)
{
	struct ibv_sge sge = sge_of(&v->p.mapped, 3000, BYTES), in = sge_of(&v->in, 0, 512);
	struct ibv_wc wc;

	fill(v->p.mapped.at + 3000, 5, BYTES);
	if (id != ID_SHARED)
		post_receive(&e[1], id, &in, 1);
	post(&e[0], send_wr(&sge, ID_LOOP));
	wc = wait_for(v, id, what);
	if (wc.status)
		fail("%s: %s", what, ibv_wc_status_str(wc.status));
}

/* The lock of the adapter's atomics is free. */
static void add_around(struct survivor *v)
{
	struct ibv_sge sge = sge_of(&v->in, 2048, 8);
	struct ibv_send_wr wr = send_wr(&sge, ID_SEND);

	wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
	wr.wr.atomic.remote_addr = (uintptr_t)v->p.unmapped.at + 1024;
	wr.wr.atomic.compare_add = 1;
	wr.wr.atomic.rkey = v->p.unmapped.mr->rkey;
	post(&v->loop[0], wr);
	require_equal(wait_for(v, ID_SEND, "an atomic operation").status, IBV_WC_SUCCESS);
}

/* Use all receives of the shared queue before any is posted again. */
static void drain_shared(struct survivor *v)
{
	int i;

	for (i = 0; i < DEPTH; i++)
		send_around(v, v->shared_loop, ID_SHARED, "the shared receive queue");
	for (i = 0; i < DEPTH; i++)
		post_shared(v);
}

static void go_on(struct survivor *v)
{
	send_around(v, v->loop, ID_LOOP + 1, "a message");
	add_around(v);
	if (have_srq)
		drain_shared(v);
}

/* Another process can join. */
static void others_join(void)
{
	int status;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		struct place p;

		alarm(120);
		open_place(&p, -1);
		_exit(ibv_destroy_cq(p.cq) || ibv_dealloc_pd(p.s.pd) ||
		      ibv_close_device(p.s.ctx));
	}
	require_equal(waitpid(pid, &status, 0), pid);
	require_equal(status, 0);
}

/* ---- One kill ---------------------------------------------------------------- */

static void wait_stop(pid_t pid, int want)
{
	int status;

	require_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
		fprintf(stderr, "skipped: ptrace is not allowed here\n");
		exit(77);
	}
	if (!WIFSTOPPED(status) || WSTOPSIG(status) != want)
		fail("the victim: status 0x%x", (unsigned)status);
}

/*
 * Run the victim for `stops` stops at system calls (entering, leaving) or `stops`
 * instructions, or until it is done; returns the number that it took.
 */
static uint64_t walk(pid_t pid, bool by_calls, uint64_t stops)
{
	uint64_t k;
	int status;

	for (k = 0; k < stops; k++) {
		if (ptrace(by_calls ? PTRACE_SYSCALL : PTRACE_SINGLESTEP, pid, NULL, NULL))
			fail("ptrace: %s", strerror(errno));
		require_equal(waitpid(pid, &status, __WALL), pid);
		if (!WIFSTOPPED(status))
			fail("the victim: status 0x%x after %llu stops", (unsigned)status,
			     (unsigned long long)k);
		if (WSTOPSIG(status) == SIGSTOP)
			break;
		require_equal(WSTOPSIG(status), SIGTRAP);
	}
	return k;
}

static void connect_victim(struct survivor *v, int sock)
{
	struct ibv_sge sge = sge_of(&v->in, 0, 512);
	struct ibv_sge out = sge_of(&v->p.mapped, 3000, BYTES);
	struct addresses a;

	v->p.s.sock = sock;
	make_ends(&v->p);
	tell_addresses(&v->p);
	hear_addresses(&v->p, &a);
	post_receive(&v->p.e, ID_RECEIVE, &sge, 1);
	barrier(&v->p.s);
	post(&v->p.e, send_wr(&out, ID_SEND));
	require_equal(wait_for(v, ID_SEND, "a message to the victim").status, IBV_WC_SUCCESS);
	barrier(&v->p.s);
}

/* Returns the number of system calls or instructions. */
static uint64_t kill_at(struct survivor *v, const struct verb *verb, uint64_t stops)
{
	int pair[2], status;
	uint64_t done;
	pid_t pid;

	require_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	fflush(NULL);
	pid = fork();
	require(pid >= 0);
	if (pid == 0) {
		close(pair[0]);
		victim(verb, pair[1]);
	}
	close(pair[1]);
	if (!verb->joins)
		connect_victim(v, pair[0]);
	wait_stop(pid, SIGSTOP);
	done = walk(pid, verb->is_long, stops);
	if (verb->is_long && done == stops)
		walk(pid, false, (uint64_t)random() % AFTER);
	kill(pid, SIGKILL);
	require_equal(waitpid(pid, &status, 0), pid);
	close(pair[0]);
	if (!verb->joins) {
		learn(v);
		go_on(v);
		require_equal(ibv_destroy_qp(v->p.e.qp), 0);
		if (have_srq)
			require_equal(ibv_destroy_qp(v->p.shared.qp), 0);
	} else {
		others_join();
	}
	return done;
}

/* Kill at random places of one verb within some time; 0: at all of them. */
static void kill_in(struct survivor *v, const struct verb *verb, uint64_t limit_ns)
{
	uint64_t began = now_ns(), total = kill_at(v, verb, UINT64_MAX), kills = 0, wanted;

	wanted = verb->is_long ? FULL_LONG * total : total;
	while (limit_ns ? now_ns() - began < limit_ns : kills < wanted) {
		kill_at(v, verb, (limit_ns ? (uint64_t)random() : kills) % total);
		kills++;
	}
	others_join();
	printf("%-20s %llu %s, %llu kills, %.1f s\n", verb->name, (unsigned long long)total,
	       verb->is_long ? "stops at system calls" : "instructions",
	       (unsigned long long)kills, (double)(now_ns() - began) / 1e9);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : QUICK_MS / 1e3;
	unsigned seed = drawn_seed(argc > 2 ? argv[2] : NULL);
	const unsigned count = sizeof(verbs) / sizeof(*verbs);
	struct survivor v;
	unsigned i;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	/* Their own instructions would be most of those stepped through. */
	fprintf(stderr, "skipped: with a sanitizer\n");
	return 77;
#endif
	if (!getenv("LD_BIND_NOW")) {	/* the linker's instructions are not tested */
		setenv("LD_BIND_NOW", "1", 1);
		execv("/proc/self/exe", argv);
	}
	printf("seed %u\n", seed);
	srandom(seed);
	fabric_new("step");
	setenv("SOFTHCA_REMAP", "never", 1);
	open_survivor(&v);
	go_on(&v);
	for (i = 0; i < count; i++)
		if (have_srq || verbs[i].run != do_send_shared)
			kill_in(&v, &verbs[i], (uint64_t)(seconds * 1e9) / count);
	require_equal(ibv_close_device(v.p.s.ctx), 0);
	require(!fabric_is_left());
	return 0;
}
