/*
 * cut.c - a process is killed at any system call of the copied path.
 *
 * Three processes send each other messages that the kernel copies, to receives of
 * each queue pair's own and to those of a shared queue.  The victim is killed on
 * entering or leaving its k-th system call, for each k: while it sends, while it
 * receives.  In half of the cuts the other one is stopped meanwhile with an entry in
 * the survivor's completion queue claimed and not filled, so that what the victim
 * had completed waits behind it.  Then
 *	- what the victim was told is sent has arrived, in order and without a hole,
 *	  before anything is flushed, and nothing arrives after that,
 *	- the shared queue has all its receives,
 *	- every message between survivor and other arrives, in order,
 *	- both see an error on their queue pairs to the dead.
 *
 * Usage: cut [SECONDS [SEED]]	0 s: at every system call
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../conformance/conformance.h"
#include "cq.h"

enum { SURVIVOR, OTHER, VICTIM, ROLES };
enum { OWN, SHARED, KINDS };

enum {
	BYTES = 300,
	OWN_DEPTH = 8, SHARED_DEPTH = 16,
	SHARED_SLOTS = 2 * SHARED_DEPTH,	/* what is lost may be in some */
	SLOTS = ROLES * OWN_DEPTH + SHARED_SLOTS,
	MESSAGES = 3,			/* of each kind, while it is cut */
	SENT = 1 << 24, PROBE = 1 << 25,	/* in a wr_id */
	LOOK_US = 11000, POLLS = 130,	/* then who still lives is looked at, once */
	PATIENCE_S = 60,
	QUICK_MS = 6000,
};

struct header {
	uint32_t from, seq;
};

struct link {
	struct end e[KINDS];
	uint32_t sent[KINDS], received[KINDS], flushed[KINDS];
	uint32_t waiting;		/* sends that are not complete */
	bool failed;
};

/* What each process has. */
struct place {
	int me;
	struct side s;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct buffer in, out;
	struct link link[ROLES];
	bool keeps;		/* what the shared queue gives is not posted again */
	uint32_t kept[SHARED_SLOTS], kept_count;
	bool busy[SHARED_SLOTS];
};

/* What the victim was told before it was killed. */
static struct told {
	_Atomic uint32_t sent[KINDS];
} *told;

static struct options options = { .port = 1, .gid_index = -2 };

/* ---- A process's queues ---------------------------------------------------- */

static void post_own(struct place *p, int from, uint32_t slot)
{
	struct ibv_sge sge = sge_of(&p->in, ((size_t)from * OWN_DEPTH + slot) * BYTES, BYTES);

	post_receive(&p->link[from].e[OWN], (uint64_t)from << 8 | slot, &sge, 1);
}

static bool post_shared(struct place *p, uint32_t slot)
{
	struct ibv_sge sge = sge_of(&p->in, (ROLES * OWN_DEPTH + (size_t)slot) * BYTES, BYTES);
	struct ibv_recv_wr wr = { .wr_id = ROLES << 8 | slot, .sg_list = &sge, .num_sge = 1 };
	struct ibv_recv_wr *bad;
	int rc = ibv_post_srq_recv(p->srq, &wr, &bad);

	p->busy[slot] = !rc;
	require(!rc || rc == ENOMEM);
	return !rc;
}

static void open_place(struct place *p, int me, int sock)
{
	struct ibv_srq_init_attr a = { .attr = { .max_wr = SHARED_DEPTH, .max_sge = 1 } };
	struct ibv_device **list = ibv_get_device_list(NULL);
	uint32_t i;

	require(list != NULL && list[0] != NULL);
	memset(p, 0, sizeof(*p));
	p->me = me;
	p->s = (struct side){ .options = &options, .port_num = 1, .gid_index = -1, .sock = sock };
	p->s.ctx = ibv_open_device(list[0]);
	require(p->s.ctx != NULL);
	ibv_free_device_list(list);
	require_equal(ibv_query_port(p->s.ctx, 1, &p->s.port), 0);
	p->s.pd = ibv_alloc_pd(p->s.ctx);
	p->cq = ibv_create_cq(p->s.ctx, 128, NULL, NULL, 0);
	require(p->s.pd && p->cq);
	p->srq = ibv_create_srq(p->s.pd, &a);
	require(p->srq != NULL);
	p->in = buffer_new(&p->s, SLOTS * BYTES, ACCESS_ALL);
	p->out = buffer_new(&p->s, BYTES, ACCESS_ALL);
	for (i = 0; i < SHARED_DEPTH; i++)
		require(post_shared(p, i));
}

static void make_link(struct place *p, int to)
{
	struct ibv_qp_init_attr init = {
		.send_cq = p->cq, .recv_cq = p->cq, .qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 32, .max_recv_wr = OWN_DEPTH, .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};
	struct link *l = &p->link[to];
	int k;

	memset(l, 0, sizeof(*l));
	for (k = 0; k < KINDS; k++) {
		if (k == SHARED) {
			init.srq = p->srq;
			init.cap.max_recv_wr = 0;
		}
		l->e[k] = (struct end){ .config = end_defaults, .cq = p->cq };
		l->e[k].config.timeout = 10;		/* 4 ms */
		l->e[k].qp = ibv_create_qp(p->s.pd, &init);
		require(l->e[k].qp != NULL);
	}
}

static void connect_link(struct place *p, int to, const struct peer_address address[KINDS])
{
	struct link *l = &p->link[to];
	uint32_t i;
	int k;

	for (k = 0; k < KINDS; k++) {
		require_equal(end_to_init(&p->s, &l->e[k]), 0);
		for (i = 0; k == OWN && i < OWN_DEPTH; i++)
			post_own(p, to, i);
		require_equal(end_to_rtr(&p->s, &l->e[k], &address[k]), 0);
		require_equal(end_to_rts(&l->e[k]), 0);
	}
}

static void drop_link(struct place *p, int to)
{
	int k;

	for (k = 0; k < KINDS; k++)
		require_equal(ibv_destroy_qp(p->link[to].e[k].qp), 0);
	memset(&p->link[to], 0, sizeof(p->link[to]));
}

/* ---- Messages ---------------------------------------------------------------- */

static void send_one(struct place *p, int to, int kind)
{
	struct header h = { .from = (uint32_t)p->me, .seq = p->link[to].sent[kind]++ };
	struct ibv_sge sge = sge_of(&p->out, 0, BYTES);

	memcpy(p->out.at, &h, sizeof(h));
	fill(p->out.at + sizeof(h), h.seq + 7 * h.from, BYTES - sizeof(h));
	post(&p->link[to].e[kind], send_wr(&sge, SENT | (uint64_t)to << 8 | (unsigned)kind));
	p->link[to].waiting++;
}

static void take_message(struct place *p, const struct ibv_wc *wc)
{
	int owner = (int)(wc->wr_id >> 8), kind = owner == ROLES ? SHARED : OWN;
	uint32_t slot = (uint32_t)wc->wr_id & 0xff;
	const unsigned char *at = p->in.at + ((size_t)owner * OWN_DEPTH + slot) * BYTES;
	struct header h;
	struct link *l;

	require_equal(wc->byte_len, BYTES);
	memcpy(&h, at, sizeof(h));
	require(h.from < ROLES && (kind == SHARED || (int)h.from == owner));
	check(at + sizeof(h), h.seq + 7 * h.from, BYTES - sizeof(h), "a message");
	l = &p->link[h.from];
	if (l->flushed[kind])
		fail("message %u of kind %d from %u after a receive was flushed", h.seq, kind,
		     h.from);
	if (h.seq != l->received[kind])
		fail("message %u of kind %d from %u, not %u", h.seq, kind, h.from,
		     l->received[kind]);
	l->received[kind]++;
	if (kind == OWN)
		post_own(p, owner, slot);
	else if (p->keeps)
		p->kept[p->kept_count++] = slot;
	else
		require(post_shared(p, slot));
}

/* One completion, if there is one. */
static bool take(struct place *p)
{
	struct ibv_wc wc;
	int to;

	if (ibv_poll_cq(p->cq, 1, &wc) != 1)
		return false;
	to = (int)(wc.wr_id >> 8 & 0xff);
	if (wc.wr_id & (SENT | PROBE)) {
		p->link[to].waiting--;
		p->link[to].failed |= wc.status != IBV_WC_SUCCESS;
		if (p->me == VICTIM && to == SURVIVOR && !wc.status)
			atomic_fetch_add(&told->sent[wc.wr_id & 0xff], 1);
	} else if (wc.status == IBV_WC_SUCCESS) {
		take_message(p, &wc);
	} else {
		require_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
		require(to < ROLES);
		p->link[to].flushed[OWN]++;
		p->link[to].failed = true;
	}
	return true;
}

static void wait_sent(struct place *p, int to)
{
	uint64_t until = now_ns() + PATIENCE_S * 1000000000ull;

	while (p->link[to].waiting)
		if (!take(p) && now_ns() > until)
			fail("%d: a send to %d is not complete after %d s", p->me, to, PATIENCE_S);
}

static void wait_received(struct place *p, int from, int kind, uint32_t count)
{
	uint64_t until = now_ns() + PATIENCE_S * 1000000000ull;

	while (p->link[from].received[kind] < count)
		if (!take(p) && now_ns() > until)
			fail("%u messages of kind %d from %d, not %u, within %d s",
			     p->link[from].received[kind], kind, from, count, PATIENCE_S);
}

/* A queue pair to the dead shows it, if nothing has before. */
static void learn(struct place *p, int dead)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED };
	struct ibv_send_wr *bad;
	struct link *l = &p->link[dead];
	int k;

	wait_sent(p, dead);
	for (k = 0; k < KINDS; k++) {
		l->failed = false;
		wr.wr_id = PROBE | (uint64_t)dead << 8 | (unsigned)k;
		require_equal(ibv_post_send(l->e[k].qp, &wr, &bad), 0);
		l->waiting++;
		wait_sent(p, dead);
		if (!l->failed)
			fail("%d: a write to the dead succeeded", p->me);
	}
}

/* ---- The others: what they are told to do ------------------------------------- */

enum word_type { MAKE, CONNECT, SEND, POST, STEP, ACT_SEND, ACT_RECEIVE, TAKE, LEARN };

struct word {
	enum word_type type;
	int peer, kind;
	uint32_t count;
	struct peer_address address[KINDS];
};

static void send_to_survivor(struct place *p)
{
	int i, k;

	for (i = 0; i < MESSAGES; i++)
		for (k = 0; k < KINDS; k++) {
			send_one(p, SURVIVOR, k);
			wait_sent(p, SURVIVOR);
		}
}

/* Take what has come, post anew, have the completion queue and memory moved, and look around. */
static void receive_from_all(struct place *p)
{
	struct buffer more;
	int from, k, i;

	for (from = 0; from < VICTIM; from++)
		for (k = 0; k < KINDS; k++)
			wait_received(p, from, k, MESSAGES);
	require_equal(ibv_resize_cq(p->cq, 256), 0);
	more = buffer_new(&p->s, 8192, ACCESS_ALL);
	buffer_free(&p->s, &more);
	usleep(LOOK_US);
	for (i = 0; i < POLLS; i++)
		take(p);
}

static void act(struct place *p, enum word_type what)
{
	static bool traced;

	if (!traced && ptrace(PTRACE_TRACEME, 0, NULL, NULL))
		_exit(77);
	traced = true;
	raise(SIGSTOP);
	if (what == STEP)
		send_one(p, SURVIVOR, OWN);
	else
		(what == ACT_SEND ? send_to_survivor : receive_from_all)(p);
	raise(SIGSTOP);
	wait_sent(p, SURVIVOR);
}

static void obey(struct place *p, struct word *w)
{
	uint32_t i;
	int k;

	switch (w->type) {
	case MAKE:
		make_link(p, w->peer);
		for (k = 0; k < KINDS; k++)
			w->address[k] = end_address(&p->s, &p->link[w->peer].e[k]);
		break;
	case CONNECT:
		connect_link(p, w->peer, w->address);
		break;
	case SEND:
	case POST:
		for (i = 0; i < w->count; i++)
			send_one(p, w->peer, w->kind);
		if (w->type == SEND)
			wait_sent(p, w->peer);
		break;
	case TAKE:
		wait_received(p, w->peer, w->kind, w->count);
		break;
	case LEARN:
		learn(p, w->peer);
		drop_link(p, w->peer);
		break;
	default:
		act(p, w->type);
	}
}

static void member(int me, int sock)
{
	struct place p;
	struct word w;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	open_place(&p, me, sock);
	while (recv(sock, &w, sizeof(w), 0) == (ssize_t)sizeof(w)) {
		obey(&p, &w);
		if (send(sock, &w, sizeof(w), MSG_NOSIGNAL) != (ssize_t)sizeof(w))
			break;
	}
	_exit(0);
}

/* ---- The survivor --------------------------------------------------------------- */

static struct place here;
static struct seat {
	pid_t pid;
	int sock;
} seat[ROLES];
static uint32_t from_other[KINDS];	/* how many messages it has been told to send us */
static bool quiet;			/* we do not poll */

static void start(int who)
{
	int pair[2];

	require_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	fflush(NULL);
	seat[who].pid = fork();
	require(seat[who].pid >= 0);
	if (seat[who].pid == 0)
		member(who, pair[1]);
	close(pair[1]);
	seat[who].sock = pair[0];
}

static void say(int who, struct word w)
{
	require_equal(send(seat[who].sock, &w, sizeof(w), MSG_NOSIGNAL), sizeof(w));
}

/* What it waits for may wait for us, unless nothing is to be polled now. */
static struct word hear(int who)
{
	struct word w;
	ssize_t n;

	do
		n = recv(seat[who].sock, &w, sizeof(w), quiet ? 0 : MSG_DONTWAIT);
	while (n < 0 && errno == EAGAIN && (take(&here) || !sched_yield()));
	if (n != (ssize_t)sizeof(w)) {
		int status = 0;

		waitpid(seat[who].pid, &status, 0);
		if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
			exit(77);
		fail("process %d ended with status 0x%x", who, (unsigned)status);
	}
	return w;
}

static struct word ask(int who, struct word w)
{
	if (who == SURVIVOR)
		obey(&here, &w);
	else
		say(who, w);
	return who == SURVIVOR ? w : hear(who);
}

static void introduce(int a, int b)
{
	struct word of_a = ask(a, (struct word){ .type = MAKE, .peer = b });
	struct word of_b = ask(b, (struct word){ .type = MAKE, .peer = a });

	of_a.type = of_b.type = CONNECT;
	of_a.peer = a;
	of_b.peer = b;
	ask(a, of_b);
	ask(b, of_a);
}

static void other_sends(int kind, uint32_t count)
{
	ask(OTHER, (struct word){ .type = SEND, .peer = SURVIVOR, .kind = kind, .count = count });
	from_other[kind] += count;
}

static void wait_stop(int who)
{
	int status;

	require_equal(waitpid(seat[who].pid, &status, 0), seat[who].pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
		fprintf(stderr, "skipped: ptrace is not allowed here\n");
		exit(77);
	}
	if (!WIFSTOPPED(status) || WSTOPSIG(status) != SIGSTOP)
		fail("process %d: status 0x%x", who, (unsigned)status);
}

/* One step, or up to a system call; false: it is through. */
static bool step(int who, int how)
{
	int status;

	if (ptrace(how, seat[who].pid, NULL, NULL))
		fail("ptrace: %s", strerror(errno));
	require_equal(waitpid(seat[who].pid, &status, __WALL), seat[who].pid);
	if (!WIFSTOPPED(status))
		fail("process %d: status 0x%x", who, (unsigned)status);
	return WSTOPSIG(status) != SIGSTOP;
}

static bool some_entry_is_claimed(void)
{
	const struct hca_mailbox *m = &hca_cq_of(here.cq)->mailbox;
	uint32_t i;

	for (i = 0; i <= m->mask; i++)
		if (hca_shm_kind(atomic_load(&m->shm->slot[i].state)) == HCA_CLAIMED)
			return true;
	return false;
}

/* The bytes of the other one's next message. */
static bool bytes_are_here(void)
{
	uint32_t seq = from_other[OWN];
	struct header h;

	memcpy(&h, here.in.at + ((size_t)OTHER * OWN_DEPTH + seq % OWN_DEPTH) * BYTES, sizeof(h));
	return h.from == OTHER && h.seq == seq;
}

/* The other one has claimed an entry of our completion queue, and stops there. */
static void hold_other(void)
{
	require(!some_entry_is_claimed());
	say(OTHER, (struct word){ .type = STEP });
	wait_stop(OTHER);
	while (!some_entry_is_claimed())
		if (!step(OTHER, bytes_are_here() ? PTRACE_SINGLESTEP : PTRACE_SYSCALL))
			fail("the other one did not send at once");
	from_other[OWN]++;
}

static void let_other_go(void)
{
	require_equal(ptrace(PTRACE_CONT, seat[OTHER].pid, NULL, NULL), 0);
	wait_stop(OTHER);
	require_equal(ptrace(PTRACE_CONT, seat[OTHER].pid, NULL, NULL), 0);
	hear(OTHER);
}

/* What the victim had in hand is over. */
static void settle(void)
{
	struct link *l = &here.link[VICTIM];
	uint64_t until = now_ns() + PATIENCE_S * 1000000000ull;

	while (l->flushed[OWN] < OWN_DEPTH)
		if (!take(&here) && now_ns() > until)
			fail("%u receives of the dead's queue pair are flushed, not %d",
			     l->flushed[OWN], OWN_DEPTH);
	if (l->received[OWN] < atomic_load(&told->sent[OWN]))
		fail("%u messages from the dead, who was told that %u had arrived",
		     l->received[OWN], atomic_load(&told->sent[OWN]));
	wait_received(&here, VICTIM, SHARED, atomic_load(&told->sent[SHARED]));
}

/* All its receives are there: none is posted again before as many have come. */
static void use_shared_up(void)
{
	uint32_t i;

	here.keeps = true;
	other_sends(SHARED, SHARED_DEPTH);
	wait_received(&here, OTHER, SHARED, from_other[SHARED]);
	here.keeps = false;
	memset(here.busy, 0, sizeof(here.busy));
	for (i = 0; i < here.kept_count; i++)
		require(post_shared(&here, here.kept[i]));
	here.kept_count = 0;
}

/* Receives whose completions have gone with their queue pair. */
static void fill_shared(void)
{
	uint32_t i;

	for (i = 0; i < SHARED_SLOTS; i++)
		if (!here.busy[i] && !post_shared(&here, i))
			return;
}

static uint64_t walk(uint64_t stops)
{
	uint64_t k;

	for (k = 0; k < stops && step(VICTIM, PTRACE_SYSCALL); k++)
		;
	return k;
}

static void kill_victim(void)
{
	int status;

	kill(seat[VICTIM].pid, SIGKILL);
	require_equal(waitpid(seat[VICTIM].pid, &status, 0), seat[VICTIM].pid);
	close(seat[VICTIM].sock);
}

static void begin(enum word_type what)
{
	int k;

	for (k = 0; k < KINDS; k++)
		atomic_store(&told->sent[k], 0);
	start(VICTIM);
	introduce(SURVIVOR, VICTIM);
	introduce(OTHER, VICTIM);
	if (what == ACT_RECEIVE)
		for (k = 0; k < KINDS; k++) {
			ask(OTHER, (struct word){ .type = SEND, .peer = VICTIM, .kind = k,
						  .count = MESSAGES });
			ask(SURVIVOR, (struct word){ .type = SEND, .peer = VICTIM, .kind = k,
						     .count = MESSAGES });
		}
}

static void finish(void)
{
	int k;

	ask(OTHER, (struct word){ .type = LEARN, .peer = VICTIM });
	learn(&here, VICTIM);
	drop_link(&here, VICTIM);
	for (k = 0; k < KINDS; k++)
		wait_received(&here, OTHER, k, from_other[k]);
	use_shared_up();
}

/* How many stops there were. */
static uint64_t cut_before(uint64_t stops, bool hold)
{
	uint64_t done;

	begin(ACT_SEND);
	say(VICTIM, (struct word){ .type = ACT_SEND });
	wait_stop(VICTIM);
	quiet = true;
	other_sends(OWN, 1);
	other_sends(SHARED, 1);
	if (hold)
		hold_other();
	done = walk(stops);
	if (!hold)
		other_sends(SHARED, 1);
	quiet = false;
	kill_victim();
	return done;
}

static uint64_t cut_sender(uint64_t stops, bool hold)
{
	uint64_t done = cut_before(stops, hold);

	settle();
	if (hold)
		let_other_go();
	other_sends(OWN, 1);
	finish();
	return done;
}

/* The queue pair goes before anything is polled, and leaves all receives to the shared queue. */
static uint64_t cut_dropped(uint64_t stops, bool hold)
{
	uint64_t done = cut_before(stops, hold);
	int k;

	drop_link(&here, VICTIM);
	if (hold)
		let_other_go();
	ask(OTHER, (struct word){ .type = LEARN, .peer = VICTIM });
	for (k = 0; k < KINDS; k++)
		wait_received(&here, OTHER, k, from_other[k]);
	fill_shared();
	use_shared_up();
	return done;
}

static uint64_t cut_receiver(uint64_t stops, bool hold)
{
	uint64_t done;
	int k;

	begin(ACT_RECEIVE);
	say(VICTIM, (struct word){ .type = ACT_RECEIVE });
	wait_stop(VICTIM);
	if (hold)
		hold_other();
	done = walk(stops);
	/* It is stopped there, and has receives; or has not posted them again. */
	for (k = 0; k < KINDS; k++) {
		if (!hold)
			ask(OTHER, (struct word){ .type = POST, .peer = VICTIM, .kind = k,
						  .count = 2 });
		ask(SURVIVOR, (struct word){ .type = POST, .peer = VICTIM, .kind = k,
					     .count = 2 });
	}
	kill_victim();
	if (hold)
		let_other_go();
	other_sends(OWN, 1);
	finish();
	return done;
}

static const struct part {
	const char *name;
	uint64_t (*cut)(uint64_t stops, bool hold);
	bool hold;
} parts[] = {
	{ "a sender", cut_sender, false },
	{ "a sender behind one who is stopped", cut_sender, true },
	{ "a sender, to nobody", cut_dropped, false },
	{ "a sender, to nobody, behind one who is stopped", cut_dropped, true },
	{ "a receiver", cut_receiver, false },
	{ "a receiver while one is stopped", cut_receiver, true },
};

/* First at its end, where all that it sent waits; then at random, or everywhere. */
static void cut_all(const struct part *part, uint64_t limit_ns)
{
	uint64_t began = now_ns(), total = part->cut(UINT64_MAX, part->hold), cuts = 0;

	while (limit_ns ? now_ns() - began < limit_ns && cuts < total : cuts < total) {
		part->cut(limit_ns ? (uint64_t)random() % total : cuts, part->hold);
		cuts++;
	}
	printf("%-48s %llu stops at system calls, %llu cuts, %.1f s\n", part->name,
	       (unsigned long long)total, (unsigned long long)cuts + 1,
	       (double)(now_ns() - began) / 1e9);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : QUICK_MS / 1e3;
	unsigned seed = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : (unsigned)getpid();
	const unsigned count = sizeof(parts) / sizeof(*parts);
	char fabric[32], path[80];
	unsigned i;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	/* Their own system calls would be most of those cut at. */
	fprintf(stderr, "skipped: with a sanitizer\n");
	return 77;
#endif
	signal(SIGPIPE, SIG_IGN);
	printf("seed %u\n", seed);
	srandom(seed);
	snprintf(fabric, sizeof(fabric), "cut.%d", (int)getpid());
	snprintf(path, sizeof(path), "/dev/shm/softhca.%u.%s", (unsigned)geteuid(), fabric);
	setenv("SOFTHCA_EXPOSE", "1", 1);
	setenv("SOFTHCA_FABRIC", fabric, 1);
	setenv("SOFTHCA_REMAP", "never", 1);
	setenv("SOFTHCA_COPY", "kernel", 1);
	unsetenv("SOFTHCA_SPEC");
	told = mmap(NULL, sizeof(*told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	require(told != MAP_FAILED);
	start(OTHER);
	open_place(&here, SURVIVOR, -1);
	introduce(SURVIVOR, OTHER);
	other_sends(OWN, 1);
	use_shared_up();
	for (i = 0; i < count; i++)
		cut_all(&parts[i], (uint64_t)(seconds * 1e9) / count);
	kill(seat[OTHER].pid, SIGKILL);
	waitpid(seat[OTHER].pid, NULL, 0);
	require_equal(ibv_close_device(here.s.ctx), 0);
	if (access(path, F_OK) == 0)
		fail("%s is still there", path);
	return 0;
}
