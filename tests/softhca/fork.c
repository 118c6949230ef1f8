/*
 * fork.c - children of a process that uses a fabric, while the parent goes on.
 *
 * A child uses inherited objects, destroys them, exits: the parent and its peer are
 * unaffected.  A child that opens a device is a separate member.
 */
#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kit.h"
#include "softhca/softhca.h"

enum { BYTES = 65536, CHILDREN = 20 };

/*
 * A leak sanitizer takes locks that another thread may have held at the fork; in the
 * child they are held for ever.  So leaks are checked on request, in the parents.
 */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "leak_check_at_exit=0";
}

int __lsan_do_recoverable_leak_check(void) __attribute__((weak));

static int leaks(void)
{
	return __lsan_do_recoverable_leak_check ? __lsan_do_recoverable_leak_check() : 0;
}

/* ---- Connected ends ------------------------------------------------------ */

static struct ibv_wc write_some(struct end *e, struct buffer *b, uint64_t seed, size_t at)
{
	struct ibv_sge sge = sge_of(b, at, 1000);

	fill(b->at + at, seed, 1000);
	post(e, (struct ibv_send_wr){ .wr_id = 1, .sg_list = &sge, .num_sge = 1,
				      .opcode = IBV_WR_RDMA_WRITE,
				      .send_flags = IBV_SEND_SIGNALED,
				      .wr.rdma = { b->addr + at, b->rkey } });
	return wait_wc(e->cq);
}

/* A process connected with itself, on a device that it has just opened. */
static void loopback(struct ibv_device *device)
{
	struct side s = side_on(device, 0, -1);
	struct peer_address to[2];
	struct buffer a, b;
	struct end e[2];
	unsigned i;

	a = buffer_new(&s, BYTES, ACCESS_ALL);
	b = buffer_new(&s, BYTES, ACCESS_ALL);
	for (i = 0; i < 2; i++) {
		e[i] = end_new(&s, NULL);
		to[i] = end_address(&s, &e[i]);
	}
	for (i = 0; i < 2; i++) {
		require_equal(end_to_init(&s, &e[i]), 0);
		require_equal(end_to_rtr(&s, &e[i], &to[!i]), 0);
		require_equal(end_to_rts(&e[i]), 0);
	}
	a.addr = (uintptr_t)b.at;
	a.rkey = b.mr->rkey;
	require_equal(write_some(&e[0], &a, 77, 100).status, IBV_WC_SUCCESS);
	check(b.at + 100, 77, 1000, "in the child");
	end_free(&e[0]);
	end_free(&e[1]);
	buffer_free(&s, &a);
	buffer_free(&s, &b);
	side_close(&s);
}

/* ---- What children do ---------------------------------------------------- */

/* Objects with verbs that inline functions of verbs.h call directly. */
struct extras {
	struct ibv_cq_ex *cq;
	struct ibv_qp *qp;		/* with ibv_wr_*: batch */
	struct ibv_qp_ex *batch;
	struct ibv_srq *srq;
	struct ibv_mw *mw;
	struct ibv_ah *ah;
	struct ibv_comp_channel *channel;
};

struct inherited {
	struct side *side;
	struct end *end;
	struct buffer *buffer;
	struct ibv_device **list;
	struct extras *extras;
};

static struct extras extras_new(struct side *s)
{
	struct ibv_cq_init_attr_ex cq_init = { .cqe = 8, .wc_flags = IBV_WC_STANDARD_FLAGS };
	struct ibv_srq_init_attr srq_init = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_ah_attr to = { .dlid = s->port.lid, .port_num = 1 };
	struct extras x = { .cq = ibv_create_cq_ex(s->ctx, &cq_init) };
	struct ibv_qp_init_attr_ex qp_init = {
		.qp_type = IBV_QPT_RC, .pd = s->pd,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
	};

	require(x.cq != NULL);
	qp_init.send_cq = qp_init.recv_cq = ibv_cq_ex_to_cq(x.cq);
	x.qp = ibv_create_qp_ex(s->ctx, &qp_init);
	x.srq = ibv_create_srq(s->pd, &srq_init);
	x.mw = ibv_alloc_mw(s->pd, IBV_MW_TYPE_1);
	x.ah = ibv_create_ah(s->pd, &to);
	x.channel = ibv_create_comp_channel(s->ctx);
	require(x.qp && x.srq && x.mw && x.ah && x.channel);
	x.batch = ibv_qp_to_qp_ex(x.qp);
	require(x.batch != NULL);
	return x;
}

static void extras_free(const struct extras *x)
{
	require_equal(ibv_destroy_comp_channel(x->channel), 0);
	require_equal(ibv_destroy_ah(x->ah), 0);
	require_equal(ibv_dealloc_mw(x->mw), 0);
	require_equal(ibv_destroy_srq(x->srq), 0);
	require_equal(ibv_destroy_qp(x->qp), 0);
	require_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(x->cq)), 0);
}

static void use_extras(const struct inherited *i)
{
	struct ibv_sge sge = sge_of(i->buffer, 0, 1000);
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad = NULL;
	struct ibv_mw_bind bind = { .bind_info = { i->buffer->mr, (uintptr_t)i->buffer->at, 100,
						   IBV_ACCESS_REMOTE_READ } };
	struct ibv_poll_cq_attr poll = { 0 };

	require_equal(ibv_start_poll(i->extras->cq, &poll), ENOENT);
	require_equal(ibv_post_srq_recv(i->extras->srq, &wr, &bad), EIO);
	require(bad == &wr);
	require_equal(ibv_bind_mw(i->end->qp, i->extras->mw, &bind), EIO);
	require(!ibv_qp_to_qp_ex(i->extras->qp) && errno == EIO);
}

static void use_batch(struct ibv_qp_ex *ex)
{
	ibv_wr_start(ex);
	ibv_wr_rdma_write(ex, 1, 4096);
	ibv_wr_set_sge(ex, 1, 4096, 8);
	require_equal(ibv_wr_complete(ex), EIO);
	ibv_wr_start(ex);
	ibv_wr_abort(ex);
}

/* A verb fails as its manual page says. */
static void use_answers(const struct inherited *i)
{
	struct ibv_async_event event;
	struct ibv_gid_entry table[2];
	struct ibv_ah_attr path;
	union ibv_gid gid;
	struct ibv_wc wc = { 0 };
	struct ibv_cq *cq;
	__be16 pkey;
	void *context;

	errno = 0;
	require_equal(ibv_get_pkey_index(i->side->ctx, 1, htobe16(0xffff)), -1);
	require_equal(errno, EIO);
	require_equal(ibv_query_gid(i->side->ctx, 1, 0, &gid), -1);
	require_equal(ibv_query_pkey(i->side->ctx, 1, 0, &pkey), -1);
	require_equal(ibv_query_gid_table(i->side->ctx, table, 2, 0), -EIO);
	require_equal(ibv_query_gid_ex(i->side->ctx, 1, 0, table, 0), EIO);
	require_equal(ibv_query_qp_data_in_order(i->end->qp, IBV_WR_SEND, 0), 0);
	require_equal(ibv_init_ah_from_wc(i->side->ctx, 1, &wc, NULL, &path), -1);
	require_equal(ibv_get_cq_event(i->extras->channel, &cq, &context), -1);
	require_equal(ibv_get_async_event(i->side->ctx, &event), -1);
	require_equal(ibv_rereg_mr(i->buffer->mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0),
		      IBV_REREG_MR_ERR_CMD);
}

static void use(const struct inherited *i)
{
	struct ibv_sge sge = sge_of(i->buffer, 0, 1000);
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
				  .wr.rdma = { i->buffer->addr, i->buffer->rkey } }, *bad;
	struct ibv_recv_wr rwr = { .sg_list = &sge, .num_sge = 1 }, *rbad;
	struct ibv_port_attr port;
	struct ibv_device_attr attr;
	struct ibv_wc wc;

	require_equal(ibv_post_send(i->end->qp, &wr, &bad), EIO);
	require(bad == &wr);
	require_equal(ibv_post_recv(i->end->qp, &rwr, &rbad), EIO);
	require_equal(ibv_poll_cq(i->end->cq, 1, &wc), 0);
	require_equal(ibv_req_notify_cq(i->end->cq, 0), EIO);
	require_equal(end_to(i->end, IBV_QPS_ERR), EIO);
	require(ibv_query_port(i->side->ctx, 1, &port) != 0);
	require(ibv_query_device(i->side->ctx, &attr) != 0);
	require(ibv_alloc_pd(i->side->ctx) == NULL && errno == EIO);
	require(ibv_reg_mr(i->side->pd, i->buffer->at, 100, 0) == NULL && errno == EIO);
	require(ibv_alloc_mw(i->side->pd, IBV_MW_TYPE_1) == NULL && errno == EIO);
	use_answers(i);
	use_extras(i);
	use_batch(i->extras->batch);
}

static void destroy(const struct inherited *i)
{
	extras_free(i->extras);
	require_equal(ibv_destroy_qp(i->end->qp), 0);
	require_equal(ibv_destroy_cq(i->end->cq), 0);
	require_equal(ibv_dereg_mr(i->buffer->mr), 0);
	require_equal(ibv_dealloc_pd(i->side->pd), 0);
	require_equal(ibv_close_device(i->side->ctx), 0);
	ibv_free_device_list(i->list);
}

static void join_anew(const struct inherited *i)
{
	struct ibv_device **list;

	loopback(i->list[0]);		/* the device that the parent found */
	list = ibv_get_device_list(NULL);
	require(list && list[0]);
	loopback(list[0]);
	ibv_free_device_list(list);
}

static void scribble(const struct inherited *i)
{
	if (!side_options.arena)		/* which is shared, as documented */
		memset(i->buffer->at, 0x55, BYTES);
}

static void (*const deeds[])(const struct inherited *i) = { use, destroy, join_anew, scribble };

static void have_child(const struct inherited *i, unsigned n)
{
	const unsigned count = sizeof(deeds) / sizeof(*deeds);
	pid_t pid = fork();
	int status;

	require(pid >= 0);
	if (pid == 0) {
		alarm(120);
		deeds[n % count](i);
		if (n % count == 0)
			destroy(i);
		exit(0);		/* with all that libraries do at exit */
	}
	require_equal(waitpid(pid, &status, 0), pid);
	require_equal(status, 0);
}

/* ---- The parent ---------------------------------------------------------- */

struct worker {
	struct end end;
	struct buffer buffer;
	_Atomic bool going, stop;
};

/* Keeps locks busy, so that children inherit them held. */
static void *work(void *arg)
{
	struct worker *w = arg;
	uint64_t seed;

	for (seed = 0; !atomic_load(&w->stop); seed++) {
		require_equal(write_some(&w->end, &w->buffer, seed, 2000).status, IBV_WC_SUCCESS);
		atomic_store(&w->going, true);
	}
	return NULL;
}

static unsigned threads(void)
{
	DIR *dir = opendir("/proc/self/task");
	struct dirent *entry;
	unsigned count = 0;

	require(dir != NULL);
	while ((entry = readdir(dir)))
		count += entry->d_name[0] != '.';
	closedir(dir);
	return count;
}

/*
 * A sanitizer's allocator does not allow fork while another thread is in it: a child waits
 * for ever for its lock.  So the worker has done its allocations, and so has a modelled
 * device, which allocates for its progress thread as soon as something waits.
 */
static void settle(const struct worker *w)
{
	while (!atomic_load(&w->going) || (getenv("SOFTHCA_SPEC") && threads() < 3))
		usleep(1000);
	usleep(20000);			/* the start of a thread */
}

static void run(int me, int sock, const void *arg)
{
	struct ibv_device **list;
	struct worker w = { 0 };
	struct extras extras;
	struct buffer b;
	pthread_t thread;
	struct side s;
	struct end e;
	unsigned n;

	alarm(300);
	setenv("SOFTHCA_NODE", me ? "1" : "0", 1);
	list = ibv_get_device_list(NULL);
	require(list && list[0]);
	s = side_on(list[0], me, sock);
	e = end_new(&s, NULL);
	end_connect(&s, &e);
	w.end = end_new(&s, NULL);
	end_connect(&s, &w.end);
	b = buffer_new(&s, BYTES, ACCESS_ALL);
	buffer_swap(&s, &b);
	w.buffer = buffer_new(&s, BYTES, ACCESS_ALL);
	buffer_swap(&s, &w.buffer);
	if (me == 0) {
		extras = extras_new(&s);
		require_equal(pthread_create(&thread, NULL, work, &w), 0);
		settle(&w);
		for (n = 0; n < CHILDREN; n++) {
			have_child(&(struct inherited){ &s, &e, &b, list, &extras }, n);
			require_equal(write_some(&e, &b, n, 100 * n).status, IBV_WC_SUCCESS);
			barrier(&s);
			barrier(&s);
			check(b.at + 100 * n, n + 1000, 1000, "from the peer, after a child");
		}
		atomic_store(&w.stop, true);
		pthread_join(thread, NULL);
		extras_free(&extras);
	} else {
		for (n = 0; n < CHILDREN; n++) {
			barrier(&s);
			check(b.at + 100 * n, n, 1000, "from the parent, after a child");
			require_equal(write_some(&e, &b, n + 1000, 100 * n).status,
				      IBV_WC_SUCCESS);
			barrier(&s);
		}
	}
	barrier(&s);
	end_free(&w.end);
	end_free(&e);
	buffer_free(&s, &w.buffer);
	buffer_free(&s, &b);
	side_close(&s);
	ibv_free_device_list(list);
	exit(leaks());
}

static bool run_here(const char *name)
{
	bool failed;

	fabric_new("fork");
	failed = run_case(name, run, NULL);
	return fabric_is_left() || failed;
}

int main(void)
{
	int failed = 0;

	unsetenv("SOFTHCA_SPEC");
	setenv("SOFTHCA_REMAP", "auto", 1);
	failed |= run_here("memory remapped");
	setenv("SOFTHCA_REMAP", "never", 1);
	setenv("SOFTHCA_COPY", "bounce", 1);
	failed |= run_here("memory of its own");
	unsetenv("SOFTHCA_COPY");
	side_options.arena = true;
	failed |= run_here("memory of the arena");
	setenv("RDMAV_FORK_SAFE", "1", 1);
	failed |= run_here("RDMAV_FORK_SAFE");
	setenv("SOFTHCA_SPEC", "rate=1GB/s,latency=2us", 1);
	failed |= run_here("timed");
	return failed;
}
