/*
 * test_wire_more.c - which sends of a stream tell the kernel that more follows (MSG_MORE): frames that
 * others follow at once, and never the last one.  After such a send the kernel holds a short segment
 * back for 200 ms.
 */
#include <errno.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "wire_end.h"

/* A message is a frame that leaves from memory, and a short one that ends it. */
enum { SENDS = 256, LONG = 100000, FRAMES = 2 * HCA_FRAME_BYTES + LONG };

/* Sends of the queue pair under test. */
static struct {
	pthread_mutex_t lock;		/* the library's thread sends, too */
	int fd;
	bool full;			/* the kernel has no room */
	unsigned count;
	bool more[SENDS];
	size_t bytes[SENDS];
} seen = { .lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1 };

ssize_t __real_send(int fd, const void *at, size_t bytes, int flags);
ssize_t __wrap_send(int fd, const void *at, size_t bytes, int flags);
ssize_t __real_sendmsg(int fd, const struct msghdr *m, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *m, int flags);
int __real_setsockopt(int fd, int level, int name, const void *value, socklen_t bytes);
int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t bytes);

static bool is_full(int fd)
{
	bool full;

	pthread_mutex_lock(&seen.lock);
	full = fd == seen.fd && seen.full;
	pthread_mutex_unlock(&seen.lock);
	if (full)
		errno = EAGAIN;
	return full;
}

static ssize_t record(int fd, ssize_t bytes, int flags)
{
	const int error = errno;

	pthread_mutex_lock(&seen.lock);
	if (fd == seen.fd && bytes >= 0 && seen.count < SENDS) {
		seen.more[seen.count] = flags & MSG_MORE;
		seen.bytes[seen.count++] = (size_t)bytes;
	}
	pthread_mutex_unlock(&seen.lock);
	errno = error;
	return bytes;
}

ssize_t __wrap_send(int fd, const void *at, size_t bytes, int flags)
{
	return is_full(fd) ? -1 : record(fd, __real_send(fd, at, bytes, flags), flags);
}

ssize_t __wrap_sendmsg(int fd, const struct msghdr *m, int flags)
{
	return is_full(fd) ? -1 : record(fd, __real_sendmsg(fd, m, flags), flags);
}

/* An end of the delay: a send of nothing. */
int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t bytes)
{
	if (level == IPPROTO_TCP && name == TCP_NODELAY)
		record(fd, 0, 0);
	return __real_setsockopt(fd, level, name, value, bytes);
}

static void watch(int fd, bool full)
{
	pthread_mutex_lock(&seen.lock);
	seen.fd = fd;
	seen.full = full;
	seen.count = 0;
	pthread_mutex_unlock(&seen.lock);
}

/* A queue pair whose requests wait until the kernel has room. */
static struct wire_qp open_full(void)
{
	struct wire_qp q = wire_qp_open((struct wire_config){ 0 });

	wire_settle();
	watch(wire_of(&q)->stream.fd, true);
	return q;
}

/* The kernel has room again, which a frame of the peer lets the queue pair find. */
static void make_room(struct wire_qp *q)
{
	pthread_mutex_lock(&seen.lock);
	seen.full = false;
	pthread_mutex_unlock(&seen.lock);
	wire_put_plain(q, HCA_FRAME_ACK, 0, 0, 0);
}

static void close_seen(struct wire_qp *q)
{
	watch(-1, false);
	wire_qp_close(q);
}

/* The peer reads a request's frames. */
static void take(struct wire_qp *q, uint32_t bytes)
{
	static unsigned char payload[HCA_STREAM_FRAME];
	struct hca_frame f;
	uint32_t done = 0;

	do {
		f = wire_expect(q, done ? HCA_FRAME_CONT : HCA_FRAME_WRITE, payload, sizeof(payload));
		done += f.bytes;
	} while (!(f.flags & HCA_FRAME_LAST));
	assert_int_equal(done, bytes);
}

/* What has been sent once all is served: the number of sends. */
static unsigned sends(bool more[SENDS], size_t bytes[SENDS])
{
	unsigned count;

	wire_settle();
	pthread_mutex_lock(&seen.lock);
	count = seen.count;
	memcpy(more, seen.more, sizeof(seen.more));
	memcpy(bytes, seen.bytes, sizeof(seen.bytes));
	pthread_mutex_unlock(&seen.lock);
	assert_true(count > 0 && count < SENDS);
	return count;
}

/*
 * A batch of so many bytes: the last send has no flag; those within the first `before` bytes have it,
 * and then nothing but bytes ends the delay.
 */
static void assert_batch(size_t all, size_t before)
{
	size_t bytes[SENDS], sent = 0;
	bool more[SENDS];
	unsigned count = sends(more, bytes), i;

	for (i = 0; i < count; i++) {
		sent += bytes[i];
		if (sent <= before)
			assert_true(more[i]);
		assert_true(bytes[i] || !before);	/* what follows ends the delay */
	}
	assert_int_equal(sent, all);
	assert_false(more[count - 1]);
}

static void assert_last_is_sent(void)
{
	size_t bytes[SENDS];
	bool more[SENDS];
	unsigned count = sends(more, bytes);

	assert_false(more[count - 1]);
}

/* ---- Batches ------------------------------ */

static void test_one_message(void **state)
{
	struct wire_qp q = open_full();

	(void)state;
	wire_post(&q, IBV_WR_RDMA_WRITE, 1, 0, LONG);
	make_room(&q);
	take(&q, LONG);
	assert_batch(FRAMES, 0);
	close_seen(&q);
}

/* Two pieces are one message, of more than one frame. */
static void test_frames_of_a_message(void **state)
{
	struct wire_qp q = open_full();
	struct ibv_sge sge[2] = { { (uintptr_t)wire.memory, HCA_STREAM_FRAME, wire.mr->lkey },
				  { (uintptr_t)wire.memory, LONG, wire.mr->lkey } };
	struct ibv_send_wr wr = { .sg_list = sge, .num_sge = 2, .opcode = IBV_WR_RDMA_WRITE }, *bad;

	(void)state;
	assert_int_equal(ibv_post_send(q.qp, &wr, &bad), 0);
	make_room(&q);
	take(&q, HCA_STREAM_FRAME + LONG);
	assert_batch(HCA_STREAM_FRAME + HCA_FRAME_BYTES + FRAMES, HCA_STREAM_FRAME + HCA_FRAME_BYTES);
	close_seen(&q);
}

static void test_messages(void **state)
{
	struct wire_qp q = open_full();
	unsigned i;

	(void)state;
	for (i = 0; i < 4; i++)
		wire_post(&q, IBV_WR_RDMA_WRITE, i, 0, LONG);
	make_room(&q);
	for (i = 0; i < 4; i++)
		take(&q, LONG);
	assert_batch(4 * FRAMES, FRAMES);
	close_seen(&q);
}

/* Short turns: frames leave in several passes. */
static void test_turns(void **state)
{
	struct wire_qp q = open_full(), other = wire_qp_open((struct wire_config){ 0 });
	unsigned i;

	(void)state;
	for (i = 0; i < 4; i++)
		wire_post(&q, IBV_WR_RDMA_WRITE, i, 0, LONG);
	atomic_store(&wire_state()->shared, true);
	make_room(&q);
	for (i = 0; i < 4; i++) {
		atomic_store(&wire_state()->shared, true);
		take(&q, LONG);
	}
	assert_last_is_sent();
	wire_qp_close(&other);
	close_seen(&q);
}

static void test_short_one_follows(void **state)
{
	struct wire_qp q = open_full();

	(void)state;
	wire_post(&q, IBV_WR_RDMA_WRITE, 1, 0, LONG);
	wire_post(&q, IBV_WR_RDMA_WRITE, 2, 0, 8);
	make_room(&q);
	take(&q, LONG);
	take(&q, 8);
	assert_batch(FRAMES + HCA_FRAME_BYTES + 8, FRAMES);
	close_seen(&q);
}

/* An answer leaves between two messages. */
static void test_answer_between(void **state)
{
	static unsigned char payload[LONG];
	struct wire_qp q = open_full();
	struct hca_frame f;

	(void)state;
	f = wire_request(&q, HCA_FRAME_READ, 0);
	f.total = LONG;
	f.rkey = wire.mr->rkey;
	f.addr = (uintptr_t)wire.memory;
	wire_put(&q, &f, NULL);
	wire_settle();
	wire_post(&q, IBV_WR_RDMA_WRITE, 1, 0, LONG);
	make_room(&q);
	wire_expect(&q, HCA_FRAME_RESPONSE, payload, LONG);
	wire_expect(&q, HCA_FRAME_RESPONSE, payload, HCA_STREAM_TAIL);
	take(&q, LONG);
	assert_batch(2 * FRAMES, FRAMES);
	close_seen(&q);
}

/* ---- The next request stays ------------------------------ */

/* Two messages; while the first one waits for room the state changes, and the second one stays. */
static void test_drained(void **state)
{
	struct wire_qp q = open_full();
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_SQD };

	(void)state;
	wire_post(&q, IBV_WR_RDMA_WRITE, 1, 0, LONG);
	wire_post(&q, IBV_WR_RDMA_WRITE, 2, 0, LONG);
	assert_int_equal(ibv_modify_qp(q.qp, &a, IBV_QP_STATE), 0);
	make_room(&q);
	take(&q, LONG);
	assert_batch(FRAMES, 0);
	close_seen(&q);
}

/* The memory of the second message is withdrawn, which fails it after the first one. */
static void test_withdrawn(void **state)
{
	struct wire_qp q = open_full();
	struct ibv_mr *mr = ibv_reg_mr(wire.pd, wire.memory, LONG, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_sge sge = { (uintptr_t)wire.memory, LONG, 0 };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE }, *bad;

	(void)state;
	assert_non_null(mr);
	sge.lkey = mr->lkey;
	wire_post(&q, IBV_WR_RDMA_WRITE, 1, 0, LONG);
	assert_int_equal(ibv_post_send(q.qp, &wr, &bad), 0);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	make_room(&q);
	take(&q, LONG);
	assert_batch(FRAMES, 0);
	wire_put_plain(&q, HCA_FRAME_ACK, 0, 0, 0);
	close_seen(&q);
}

/* The queue pair ends meanwhile. */
static void test_farewell(void **state)
{
	struct wire_qp q = open_full();
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_ERR };

	(void)state;
	wire_post(&q, IBV_WR_RDMA_WRITE, 1, 0, LONG);
	wire_post(&q, IBV_WR_RDMA_WRITE, 2, 0, LONG);
	make_room(&q);
	assert_int_equal(ibv_modify_qp(q.qp, &a, IBV_QP_STATE), 0);
	wire_expect_end(&q);
	assert_last_is_sent();
	close_seen(&q);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_message),
		cmocka_unit_test(test_frames_of_a_message),
		cmocka_unit_test(test_messages),
		cmocka_unit_test(test_turns),
		cmocka_unit_test(test_short_one_follows),
		cmocka_unit_test(test_answer_between),
		cmocka_unit_test(test_drained),
		cmocka_unit_test(test_withdrawn),
		cmocka_unit_test(test_farewell),
	};

	return cmocka_run_group_tests(tests, wire_host_open, wire_host_close);
}
