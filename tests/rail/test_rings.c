/*
 * test_rings.c - the cost of polling many rings, by a count of the rings that are looked at: each has
 * a page of its own, to which the first access faults.  The same of many completion queues, which
 * count their polls.
 */
#include "config.h"		/* _GNU_SOURCE */
#include "cmocka_all.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "../page.h"
#include "rail/lane/cq.h"
#include "rail/lane/lane_ring.h"
#include "rail/open/rail_ctx.h"
#include "rail/peer/peer.h"
#include "util/clock.h"

enum { RINGS_MOST = 1024, FEW = 16 };

static struct rings {
	struct rail_ctx *ctx;
	struct rail_peer *peer;
	struct rail_lane lane;
	struct rail_ledger ledger;
	struct rail_rx rx[RINGS_MOST];
	unsigned char *page;
	int count;
	volatile sig_atomic_t looked;
	int messages;
} rings;

static void on_fault(int signal, siginfo_t *info, void *context)
{
	unsigned char *at = info->si_addr;

	(void)signal;
	(void)context;
	if (at < rings.page || at >= rings.page + RINGS_MOST * PAGE)
		abort();
	rings.looked++;
	mprotect(rings.page + (at - rings.page) / PAGE * PAGE, PAGE, PROT_READ | PROT_WRITE);
}

static void on_message(void *user, const struct rail_message *msg)
{
	(void)user;
	assert_int_equal(msg->bytes, 0);
	rings.messages++;
}

static void rings_open(int count)
{
	struct sigaction action = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO };

	memset(&rings, 0, sizeof(rings));
	sigaction(SIGSEGV, &action, NULL);
	rings.ctx = calloc(1, sizeof(*rings.ctx));
	rings.peer = aligned_alloc(64, (sizeof(*rings.peer) + 63) & ~(size_t)63);
	assert_non_null(rings.peer);
	memset(rings.peer, 0, sizeof(*rings.peer));
	rings.ctx->cfg.on_message = on_message;
	rings.ctx->polled = true;
	rings.ctx->probed_ns = rg_now_ns();
	rings.peer->ctx = rings.ctx;
	rings.lane = (struct rail_lane){ .ctx = rings.ctx, .peer = rings.peer,
					 .ledger = &rings.ledger };
	rings.page = mmap(NULL, RINGS_MOST * PAGE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(rings.page, MAP_FAILED);
	for (rings.count = 0; rings.count < count; rings.count++) {
		struct rail_rx *rx = &rings.rx[rings.count];
		struct rail_slot *slot = (struct rail_slot *)(void *)(rings.page + rings.count * PAGE);

		*rx = (struct rail_rx){ .lane = &rings.lane, .seq = 1, .slots = (void *)slot,
					.geometry.slots = PAGE / sizeof(*slot) };
		assert_int_equal(rail_poll_add(rings.ctx, &(struct rail_poll){
			.mark = &slot->record.mark, .seq = 1, .rx = rx }), 0);
	}
}

static void rings_close(void)
{
	signal(SIGSEGV, SIG_DFL);
	munmap(rings.page, RINGS_MOST * PAGE);
	free(rings.ctx->poll);
	free(rings.ctx);
	free(rings.peer);
}

/* The rings that one call of rail_progress looks at. */
static int looked_at(void)
{
	rings.looked = 0;
	mprotect(rings.page, RINGS_MOST * PAGE, PROT_NONE);
	rail_progress(rings.ctx);
	mprotect(rings.page, RINGS_MOST * PAGE, PROT_READ | PROT_WRITE);
	return rings.looked;
}

/* The peer has written its next message into a ring. */
static void arrive(int ring)
{
	struct rail_rx *rx = &rings.rx[ring];
	struct rail_slot *slot = (struct rail_slot *)(void *)rx->slots + (rx->seq - 1);

	atomic_store(&slot->record.mark, rx->seq << 8 | RECORD_EAGER);
}

/* Of all calls, those too that read the clock and poll what is rare. */
static void test_idle(void **state)
{
	int few = 0;

	(void)state;
	for (int count = 1; count <= RINGS_MOST; count *= 2) {
		rings_open(count);
		for (int i = 0; i < 100; i++) {
			const int looked = looked_at();

			if (count <= FEW) {
				assert_int_equal(looked, count);
				few = looked;
			}
			assert_true(looked <= 2 * few);
		}
		rings_close();
	}
}

/* A message is found within as many calls as the others take their turn. */
static void test_found(void **state)
{
	(void)state;
	rings_open(RINGS_MOST);
	for (int round = 0; round < 3; round++)
		for (int ring = 0; ring < RINGS_MOST; ring++) {
			const int before = rings.messages;

			arrive(ring);
			for (int i = 0; i < RINGS_MOST / FEW; i++)
				rail_rings_poll(rings.ctx);
			assert_int_equal(rings.messages, before + 1);
		}
	rings_close();
}

/* The peers that send are polled in every call. */
static void test_hot(void **state)
{
	(void)state;
	rings_open(RINGS_MOST);
	for (int i = 0; i < FEW; i++)
		arrive(1000 - i);
	for (int i = 0; i < RINGS_MOST / FEW; i++)
		rail_rings_poll(rings.ctx);
	assert_int_equal(rings.messages, FEW);
	for (int round = 2; round < 12; round++) {
		for (int i = 0; i < FEW; i++)
			arrive(1000 - i);
		assert_int_equal(rail_rings_poll(rings.ctx), FEW);
	}
	rings_close();
}

/* All at once: rail_progress_whole. */
static void test_all(void **state)
{
	(void)state;
	rings_open(RINGS_MOST);
	for (int i = 0; i < RINGS_MOST; i++)
		arrive(i);
	assert_int_equal(rail_rings_poll_all(rings.ctx), RINGS_MOST);
	rings_close();
}

/* ---- Completion queues ------------------------------------------------------ */

enum { CQS_MOST = 64 };

static struct {
	struct ibv_context context;
	struct ibv_cq cq[CQS_MOST];
	struct rail_cq of[CQS_MOST];
	int polls[CQS_MOST];
} queues;

static int poll_counts(struct ibv_cq *cq, int most, struct ibv_wc *wc)
{
	(void)most;
	(void)wc;
	queues.polls[cq - queues.cq]++;
	return 0;
}

static struct rail_ctx *queues_open(int adapters, int count)
{
	struct rail_ctx *ctx = calloc(1, sizeof(*ctx));

	assert_non_null(ctx);
	memset(&queues, 0, sizeof(queues));
	queues.context.ops.poll_cq = poll_counts;
	ctx->adapter_count = adapters;
	ctx->probed_ns = rg_now_ns();
	for (ctx->cq_count = 0; ctx->cq_count < count; ctx->cq_count++) {
		struct rail_cq *of = &queues.of[ctx->cq_count];

		of->cq = &queues.cq[ctx->cq_count];
		of->cq->context = &queues.context;
		ctx->cq[ctx->cq_count] = of;
	}
	return ctx;
}

static int polls(void)
{
	int n = 0;

	for (int c = 0; c < CQS_MOST; c++)
		n += queues.polls[c];
	return n;
}

/* Eager lanes by SEND: every call polls for messages.  Few peers have one queue an adapter. */
static void test_queues(void **state)
{
	enum { CALLS = 1000 };

	(void)state;
	for (int adapters = 1; adapters <= 8; adapters *= 2)
		for (int count = adapters; count <= CQS_MOST; count *= 2) {
			struct rail_ctx *ctx = queues_open(adapters, count);

			for (int i = 0; i < CALLS; i++)
				rail_progress(ctx);
			assert_true(polls() <= 2 * adapters * (CALLS + CALLS / 64 + 1));
			for (int c = 0; c < count; c++)
				assert_true(queues.polls[c] >= CALLS * adapters / count);
			/* rail_progress_whole polls all. */
			memset(queues.polls, 0, sizeof(queues.polls));
			rail_progress_whole(ctx);
			for (int c = 0; c < count; c++)
				assert_true(queues.polls[c] > 0);
			free(ctx);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_idle), cmocka_unit_test(test_found),
		cmocka_unit_test(test_hot), cmocka_unit_test(test_all),
		cmocka_unit_test(test_queues),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
