/*
 * test_landing.c - messages that land in memory of this process while it changes: registrations end,
 * pages move, the process forks, other processes and threads change the same words.
 */
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "memwatch/memwatch.h"
#include "responder.h"
#include "util/clock.h"

static char name[32];

static void *fresh(size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(at != MAP_FAILED);
	return at;
}

/* ---- The end of a registration ------------------------------------------- */

struct ending {
	struct own own;
	struct ibv_mr *mr;
	_Atomic int landed, asked, over;
};

static void *land_slowly(void *arg)
{
	struct ending *e = arg;
	struct hca_qp *qp = hca_qp_of(e->own.qp);
	unsigned char *at;
	int status;

	hca_landing_begin(qp->fabric);
	at = hca_remote_address(qp, e->mr->rkey, (uintptr_t)e->mr->addr, 1, IBV_ACCESS_REMOTE_WRITE,
				&status);
	assert_non_null(at);
	atomic_store(&e->landed, 1);
	while (!atomic_load(&e->asked))
		rg_yield();
	rg_sleep_ns(20000000);
	*at = 1;
	atomic_store(&e->over, 1);
	hca_landing_end(qp->fabric);
	return NULL;
}

/* It returns after a landing in progress has ended, and no later one finds the key. */
static void test_dereg_waits(void **state)
{
	struct ending e = { .own = own_make((struct own_config){ .fabric = name }) };
	unsigned char *memory = fresh(4096), *at;
	pthread_t thread;
	uint32_t key;

	e.mr = ibv_reg_mr(e.own.pd, memory, 4096, ALL_ACCESS);
	key = e.mr->rkey;
	assert_int_equal(pthread_create(&thread, NULL, land_slowly, &e), 0);
	while (!atomic_load(&e.landed))
		rg_yield();
	atomic_store(&e.asked, 1);
	assert_int_equal(ibv_dereg_mr(e.mr), 0);
	assert_int_equal(atomic_load(&e.over), 1);
	assert_int_equal(memory[0], 1);
	assert_int_equal(own_address(e.own.qp, key, (uintptr_t)memory, 1, IBV_ACCESS_REMOTE_WRITE,
				     &at), IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(pthread_join(thread, NULL), 0);
	munmap(memory, 4096);
	own_free(&e.own);
}

/* Landings of threads that overlap all the time. */
struct overlap {
	struct ibv_qp *qp;
	unsigned char *memory;
	_Atomic uint32_t key;
	_Atomic bool stop;
};

static void *land_under_key(void *arg)
{
	struct overlap *o = arg;
	struct hca_qp *qp = hca_qp_of(o->qp);
	unsigned char *at;
	int status, i;

	while (!atomic_load(&o->stop)) {
		hca_landing_begin(qp->fabric);
		at = hca_remote_address(qp, atomic_load(&o->key), (uintptr_t)o->memory, 4096,
					IBV_ACCESS_REMOTE_WRITE, &status);
		for (i = 0; at && i < 100; i++)
			memset(at, i, 64);
		hca_landing_end(qp->fabric);
	}
	return NULL;
}

/* Memory that can no longer be written to the moment its registration has ended. */
static void test_nothing_lands_later(void **state)
{
	struct own own = own_make((struct own_config){ .fabric = name,
						       .remap = SOFTHCA_REMAP_NEVER });
	unsigned char *memory = fresh(4096);
	struct overlap o[3];
	pthread_t thread[3];
	unsigned i, k;

	for (k = 0; k < 3; k++) {
		o[k] = (struct overlap){ .qp = own.qp, .memory = memory };
		assert_int_equal(pthread_create(&thread[k], NULL, land_under_key, &o[k]), 0);
	}
	for (i = 0; i < 300; i++) {
		struct ibv_mr *mr = ibv_reg_mr(own.pd, memory, 4096, ALL_ACCESS);

		assert_non_null(mr);
		for (k = 0; k < 3; k++)
			atomic_store(&o[k].key, mr->rkey);
		rg_sleep_ns(50000 + i % 7 * 20000);
		assert_int_equal(ibv_dereg_mr(mr), 0);
		assert_int_equal(mprotect(memory, 4096, PROT_NONE), 0);
		rg_yield();
		assert_int_equal(mprotect(memory, 4096, PROT_READ | PROT_WRITE), 0);
	}
	for (k = 0; k < 3; k++)
		atomic_store(&o[k].stop, true);
	for (k = 0; k < 3; k++)
		assert_int_equal(pthread_join(thread[k], NULL), 0);
	munmap(memory, 4096);
	own_free(&own);
}

/* ---- Pages that move ----------------------------------------------------- */

/* A thread counts in words, STRIDE bytes apart, by landings of one word each. */
enum { STRIDE = 512 };

struct counter {
	struct own own;
	struct ibv_mr *mr;		/* of all the memory, not moved */
	uint64_t *memory, *expected;
	size_t bytes;
	_Atomic bool stop;
	_Atomic uint64_t rounds;
};

static void land_on(struct counter *c, size_t offset)
{
	struct hca_qp *qp = hca_qp_of(c->own.qp);
	volatile uint64_t *at;
	int status;

	hca_landing_begin(qp->fabric);
	at = (volatile uint64_t *)(void *)hca_remote_address(qp, c->mr->rkey,
		(uintptr_t)c->memory + offset, 8, IBV_ACCESS_REMOTE_WRITE, &status);
	assert_non_null(at);
	*at = *at + 1;
	hca_landing_end(qp->fabric);
	c->expected[offset / STRIDE]++;
}

static void *count(void *arg)
{
	struct counter *c = arg;
	size_t at;

	while (!atomic_load(&c->stop)) {
		for (at = 0; at < c->bytes; at += STRIDE)
			land_on(c, at);
		c->rounds++;
	}
	return NULL;
}

static struct counter *counter_start(size_t bytes, pthread_t *thread)
{
	struct counter *c = calloc(1, sizeof(*c));

	assert_non_null(c);
	c->own = own_make((struct own_config){ .fabric = name, .remap = SOFTHCA_REMAP_AUTO });
	c->bytes = bytes;
	c->memory = fresh(bytes);
	c->expected = calloc(bytes / STRIDE, sizeof(uint64_t));
	assert_non_null(c->expected);
	c->mr = ibv_reg_mr(c->own.pd, c->memory, bytes, ALL_ACCESS);
	assert_non_null(c->mr);
	assert_int_equal(pthread_create(thread, NULL, count, c), 0);
	return c;
}

static void counter_stop(struct counter *c, pthread_t thread)
{
	size_t at;

	while (!atomic_load(&c->rounds))
		rg_yield();
	atomic_store(&c->stop, true);
	assert_int_equal(pthread_join(thread, NULL), 0);
	for (at = 0; at < c->bytes; at += STRIDE)
		assert_int_equal(c->memory[at / 8], c->expected[at / STRIDE]);
	assert_int_equal(ibv_dereg_mr(c->mr), 0);
	munmap(c->memory, c->bytes);
	free(c->expected);
	own_free(&c->own);
	free(c);
}

/* False under a sanitizer: nothing is moved then. */
static bool pages_move(void)
{
	return hca_remap_watch();
}

/* Registered again and again, after a move back each time, whole or a half. */
static void move_often(size_t bytes, int times)
{
	pthread_t thread;
	struct counter *c = counter_start(bytes, &thread);
	int i;

	for (i = 0; i < times; i++) {
		unsigned char *from = (unsigned char *)c->memory + (i & 1 ? bytes / 2 : 0);
		struct ibv_mr *mr;

		hca_remap_back(c->memory, bytes);
		mr = ibv_reg_mr(c->own.pd, from, bytes / 2, ALL_ACCESS);
		assert_non_null(mr);
		if (pages_move())
			assert_true(softhca_is_mapped(mr));
		assert_int_equal(ibv_dereg_mr(mr), 0);
	}
	counter_stop(c, thread);
}

static void test_moved_while_landing(void **state)
{
	move_often(1 << 20, 300);
}

/* More than is moved at once. */
static void test_much_is_moved(void **state)
{
	move_often(160 << 20, 4);
}

/* ---- Signals and forks --------------------------------------------------- */

enum { HANDLED = 100 };
static unsigned char *to_unmap[HANDLED];
static _Atomic int handled;

/* Calls that change mappings are heard here, and take the lock of moved memory. */
static void handler(int signal)
{
	munmap(to_unmap[atomic_load(&handled)], 4096);
	atomic_fetch_add(&handled, 1);
}

static void *land_with_signals(void *arg)
{
	struct hca_fabric *f = arg;
	int i;

	for (i = 0; i < HANDLED; i++) {
		hca_landing_begin(f);
		rg_sleep_ns(100000);	/* so that the other thread waits for this landing */
		raise(SIGUSR1);
		hca_landing_end(f);
	}
	return NULL;
}

/* A handler in a landing unmaps moved memory while another thread moves some. */
static void test_handler(void **state)
{
	struct own own = own_make((struct own_config){ .fabric = name,
						       .remap = SOFTHCA_REMAP_AUTO });
	unsigned char *memory = fresh(1 << 20);
	struct sigaction action = { .sa_handler = handler };
	pthread_t thread;
	int i;

	for (i = 0; i < HANDLED; i++) {
		to_unmap[i] = fresh(4096);
		assert_int_equal(ibv_dereg_mr(ibv_reg_mr(own.pd, to_unmap[i], 4096, ALL_ACCESS)), 0);
	}
	assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
	assert_int_equal(pthread_create(&thread, NULL, land_with_signals, own_fabric(&own)), 0);
	while (atomic_load(&handled) < HANDLED) {
		hca_remap_back(memory, 1 << 20);
		assert_int_equal(ibv_dereg_mr(ibv_reg_mr(own.pd, memory, 1 << 20, ALL_ACCESS)), 0);
	}
	assert_int_equal(pthread_join(thread, NULL), 0);
	munmap(memory, 1 << 20);
	own_free(&own);
}

static void *move_until_stopped(void *arg)
{
	struct counter *c = arg;

	while (!atomic_load(&c->stop)) {
		struct ibv_mr *mr = ibv_reg_mr(c->own.pd, c->memory, c->bytes, ALL_ACCESS);

		assert_non_null(mr);
		assert_int_equal(ibv_dereg_mr(mr), 0);
	}
	return NULL;
}

/* No write is lost to a fork, and the child waits for no landing of its parent. */
static void test_fork(void **state)
{
	pthread_t lander, mover;
	struct counter *c = counter_start(1 << 20, &lander);
	int i, status;

	assert_int_equal(pthread_create(&mover, NULL, move_until_stopped, c), 0);
	for (i = 0; i < 40; i++) {
		pid_t pid = fork();

		assert_true(pid >= 0);
		if (pid == 0) {
			alarm(60);
			hca_landing_enter();
			hca_landing_leave();
			hca_landings_wait();
			hca_landings_exclude();
			hca_landings_admit();
			_exit(0);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
	}
	while (!atomic_load(&c->rounds))
		rg_yield();
	atomic_store(&c->stop, true);
	assert_int_equal(pthread_join(mover, NULL), 0);
	counter_stop(c, lander);
}

/* ---- Words that others change -------------------------------------------- */

/* What the other process needs, and its answer. */
struct target {
	uint32_t qpn, rkey;
	uint64_t addr;
};

enum { ADDS = 3000 };

/* Add to the word by requests of link/memory. */
static void add_by_requests(struct own *o, struct ibv_qp *qp, struct target t)
{
	static _Thread_local uint64_t old;
	struct ibv_mr *mr = ibv_reg_mr(o->pd, &old, 8, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_sge sge = { (uintptr_t)&old, 8, mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .send_flags = IBV_SEND_SIGNALED,
		.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
		.wr.atomic = { .remote_addr = t.addr, .rkey = t.rkey, .compare_add = 1 } }, *bad;
	struct ibv_wc wc;
	int i;

	for (i = 0; i < ADDS; i++) {
		assert_int_equal(ibv_post_send(qp, &wr, &bad), 0);
		while (ibv_poll_cq(qp->send_cq, 1, &wc) == 0)
			rg_yield();
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
	}
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

static _Noreturn void child(int in, int out)
{
	struct own_config c = { .fabric = name, .without_qp = true, .remap = SOFTHCA_REMAP_NEVER };
	struct own o = own_make(c);
	struct ibv_qp *qp = own_qp(&o, &c, NULL);
	struct target t = { .qpn = qp->qp_num };

	alarm(60);
	if (write(out, &t, sizeof(t)) != sizeof(t) || read(in, &t, sizeof(t)) != sizeof(t))
		_exit(1);
	c.dest_qpn = t.qpn;
	own_receive(&o, qp, &c);
	own_send(qp);
	add_by_requests(&o, qp, t);
	_exit(0);
}

/* Add by an atomic operation that arrives: added to, or compared and swapped. */
static void add_by_arrivals(struct ibv_qp *ibv, struct target t)
{
	struct hca_qp *qp = hca_qp_of(ibv);
	uint64_t seen = 0, old = 0;
	int done = 0;

	while (done < ADDS) {
		const bool swaps = done % 2;
		int rc;

		hca_lock(&qp->lock);
		rc = swaps ? hca_remote_atomic(qp, IBV_WR_ATOMIC_CMP_AND_SWP, t.rkey, t.addr, seen,
					       seen + 1, &old) :
			     hca_remote_atomic(qp, IBV_WR_ATOMIC_FETCH_AND_ADD, t.rkey, t.addr, 1, 0,
					       &old);
		hca_unlock(&qp->lock);
		if (rc == HCA_BUSY)
			continue;
		assert_int_equal(rc, IBV_WC_SUCCESS);
		done += !swaps || old == seen;
		seen = swaps ? old : old + 1;
	}
}

struct adder {
	struct own *own;
	struct ibv_qp *qp;
	struct target target;
};

static void *add_in_thread(void *arg)
{
	struct adder *a = arg;

	add_by_requests(a->own, a->qp, a->target);
	return NULL;
}

static pid_t start_child(int *in, int *out)
{
	int up[2], down[2];
	pid_t pid;

	assert_int_equal(pipe(up) | pipe(down), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		child(down[0], up[1]);
	*in = up[0];
	*out = down[1];
	close(up[1]);
	close(down[0]);
	return pid;
}

/* Three add to one word: messages that arrive, another process, another thread of this one. */
static void add_together(bool arena, size_t shift)
{
	struct own_config c = { .fabric = name, .remap = SOFTHCA_REMAP_NEVER };
	struct target theirs, t = { .addr = 0x1000 };
	struct adder adder = { .own = NULL };
	unsigned char *memory;
	pthread_t thread;
	uint64_t word;
	int in, out, status;
	pid_t pid = start_child(&in, &out);
	struct own o = own_make(c);
	struct ibv_qp *qp = own_qp(&o, &c, NULL);
	struct ibv_mr *mr;

	memory = arena ? softhca_arena_alloc(4096) : fresh(4096);
	assert_non_null(memory);
	mr = ibv_reg_mr_iova(o.pd, memory + shift, 8, t.addr, ALL_ACCESS);
	assert_non_null(mr);
	assert_int_equal(read(in, &theirs, sizeof(theirs)), sizeof(theirs));
	c.dest_qpn = theirs.qpn;
	own_receive(&o, qp, &c);
	own_send(o.qp);
	t.qpn = qp->qp_num;
	t.rkey = mr->rkey;
	assert_int_equal(write(out, &t, sizeof(t)), sizeof(t));
	adder = (struct adder){ &o, o.qp, t };
	assert_int_equal(pthread_create(&thread, NULL, add_in_thread, &adder), 0);
	add_by_arrivals(qp, t);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	memcpy(&word, memory + shift, 8);
	assert_int_equal(word, 3 * ADDS);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	own_free(&o);
	close(in);
	close(out);
	if (arena)
		softhca_arena_free(memory);
	else
		munmap(memory, 4096);
}

/* A word that all map, one that only its owner maps, one that is not aligned. */
static void test_atomics(void **state)
{
	add_together(true, 64);
	add_together(false, 64);
	add_together(false, 4);
	add_together(true, 4);
}

/* While a living process has the lock, the operation is to be tried later; a dead one loses it. */
static void test_atomic_lock(void **state)
{
	struct own o = own_make((struct own_config){ .fabric = name,
						     .remap = SOFTHCA_REMAP_NEVER });
	struct hca_fabric *f = own_fabric(&o);
	static uint64_t word;
	struct ibv_mr *mr = ibv_reg_mr(o.pd, &word, 8, ALL_ACCESS);
	_Atomic uint64_t *lock = &f->shm->adapter[0].atomics;
	uint64_t old = 99;

	atomic_store(lock, (uint64_t)f->generation << 32 | (f->slot + 1));
	assert_int_equal(hca_remote_atomic(hca_qp_of(o.qp), IBV_WR_ATOMIC_FETCH_AND_ADD, mr->rkey,
					   (uintptr_t)&word, 5, 0, &old), HCA_BUSY);
	assert_int_equal(word, 0);
	atomic_store(lock, (uint64_t)1 << 32 | 700);
	assert_int_equal(hca_remote_atomic(hca_qp_of(o.qp), IBV_WR_ATOMIC_FETCH_AND_ADD, mr->rkey,
					   (uintptr_t)&word, 5, 0, &old), IBV_WC_SUCCESS);
	assert_int_equal(word, 5);
	assert_int_equal(old, 0);
	assert_int_equal(atomic_load(lock), 0);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	own_free(&o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_atomics),
		cmocka_unit_test(test_atomic_lock),
		cmocka_unit_test(test_dereg_waits),
		cmocka_unit_test(test_nothing_lands_later),
		cmocka_unit_test(test_moved_while_landing),
		cmocka_unit_test(test_much_is_moved),
		cmocka_unit_test(test_handler),
		cmocka_unit_test(test_fork),
	};

	alarm(300);
	unsetenv("SOFTHCA_REMAP");
	snprintf(name, sizeof(name), "landing.%d", (int)getpid());
	return cmocka_run_group_tests(tests, NULL, NULL);
}
