/*
 * test_wire_bounds.c - what peers that have proven themselves can make this process hold, or wait for:
 * parked streams, peers of datagrams; streams and epoll; a child of fork beside connections.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../capture.h"
#include "softhca/link/wire/peers.h"
#include "softhca/object/query.h"
#include "util/clock.h"
#include "wire_end.h"

enum { PARKED = 256, QKEY = 7, GRH = 40 };
#define SECOND_NS UINT64_C(1000000000)

/* Descriptors for so many connections, or the test is skipped. */
static void need_descriptors(rlim_t count)
{
	struct rlimit r;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &r), 0);
	if (r.rlim_max < count) {
		print_message("a limit of %lu descriptors\n", (unsigned long)r.rlim_max);
		skip();
	}
	r.rlim_cur = r.rlim_cur < count ? count : r.rlim_cur;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &r), 0);
}

static unsigned count_ended(const int *fd, unsigned count)
{
	unsigned ended = 0;

	while (count)
		ended += wire_has_ended(fd[--count]);
	return ended;
}

static void close_ends(const int *fd, unsigned count)
{
	while (count)
		close(fd[--count]);
}

/* ---- Parked streams ------------------------------ */

/* Of more than PARKED the oldest go; the newest is the queue pair's when it is connected. */
static void test_parked(void **state)
{
	const struct wire_config c = { .init = true, .expects = true };
	struct wire_qp q = wire_qp_open(c);
	const struct hca_hello h = wire_hello(HCA_MEET_QP, true, q.peer_qpn, q.qp->qp_num);
	struct hca_fabric *f = hca_context_of(wire.ctx)->fabric;
	int fd[PARKED + 44];
	struct hca_frame frame;
	unsigned i;

	for (i = 0; i < PARKED + 44; i++)
		fd[i] = wire_inject(&h);
	assert_int_equal(count_ended(fd, PARKED + 44), 44);
	assert_int_equal(count_ended(fd, 44), 44);
	wire_qp_connect(&q, c);
	assert_int_equal(count_ended(fd, PARKED + 44), PARKED + 43);
	q.fd = fd[PARKED + 43];
	frame = wire_expect(&q, HCA_FRAME_ACK, NULL, 0);
	assert_int_equal(frame.flags, 0);
	wire_post(&q, IBV_WR_SEND, 1, 0, 0);
	wire_expect(&q, HCA_FRAME_SEND, NULL, 0);
	/* Another connection of the peer does not replace it. */
	i = (unsigned)wire_inject(&h);
	q.ack = 1;
	wire_put_plain(&q, HCA_FRAME_ACK, 0, 0, 0);
	wire_completion(&q, 1, IBV_WC_SUCCESS);
	assert_false(wire_has_ended((int)i));
	/* No queue pair has come for that one.  A look that began before it came says nothing of it. */
	hca_lock(&f->life);
	hca_wire_parked_expire(wire_state(), rg_now_ns() - 1);
	hca_unlock(&f->life);
	assert_false(wire_has_ended((int)i));
	meet_time_pass(61 * SECOND_NS);
	while (!wire_has_ended((int)i))
		wire_pass();
	close((int)i);
	close_ends(fd, PARKED + 43);
	wire_qp_close(&q);
}

/* A stream for a number that nobody has, or that is no connected queue pair's, is not kept. */
static void test_not_parked(void **state)
{
	struct wire_qp q = wire_qp_open((struct wire_config){ .type = IBV_QPT_UD });
	struct hca_hello h = wire_hello(HCA_MEET_QP, true, 1, q.qp->qp_num);
	int fd = wire_inject(&h);

	assert_true(wire_has_ended(fd));
	close(fd);
	h.target_qpn = 0xfffff0;
	fd = wire_inject(&h);
	assert_true(wire_has_ended(fd));
	close(fd);
	wire_qp_close(&q);
}

/* ---- Datagrams ------------------------------ */

static void put_datagram(int fd, const struct hca_datagram *d, const void *data, uint32_t bytes)
{
	const struct hca_frame f = { .kind = HCA_FRAME_DATAGRAM, .total = bytes,
				     .flags = HCA_FRAME_LAST | HCA_FRAME_GRH,
				     .bytes = HCA_DATAGRAM_BYTES + bytes };
	unsigned char head[HCA_FRAME_BYTES + HCA_DATAGRAM_BYTES];

	hca_frame_write(head, &f);
	hca_datagram_write(head + HCA_FRAME_BYTES, d);
	wire_put_bytes(fd, head, sizeof(head));
	wire_put_bytes(fd, data, bytes);
}

static struct hca_datagram datagram_to(const struct wire_qp *q, const struct hca_hello *h)
{
	struct hca_datagram d = { .source_qpn = h->source_qpn, .target_qpn = q->qp->qp_num,
				  .qkey = QKEY };

	memcpy(d.source, h->source.raw, sizeof(d.source));
	memcpy(d.target, h->target.raw, sizeof(d.target));
	return d;
}

static unsigned peers(void)
{
	return atomic_load(&wire_state()->peers.count);
}

static void await_peers(unsigned count)
{
	while (peers() != count)
		wire_pass();
}

/* What does not fit, has another key or no receive is lost, and the next one arrives. */
static void test_datagrams(void **state)
{
	struct wire_qp q = wire_qp_open((struct wire_config){ .type = IBV_QPT_UD });
	const struct hca_hello h = wire_hello(HCA_MEET_DATAGRAMS, false, 77, q.qp->qp_num);
	const int fd = wire_peer_call(HCA_MEET_DATAGRAMS, 77, q.qp->qp_num);
	struct hca_datagram d = datagram_to(&q, &h);
	static unsigned char data[HCA_DATAGRAM_MAX];
	struct ibv_wc wc;

	memset(data, 3, sizeof(data));
	put_datagram(fd, &d, data, 100);		/* no receive */
	await_peers(1);
	wire_settle();
	wire_post_recv(&q, 1, 0, GRH + 100);
	put_datagram(fd, &d, data, 101);
	put_datagram(fd, &d, data, sizeof(data));
	d.qkey++;
	put_datagram(fd, &d, data, 10);
	d.qkey--;
	d.target_qpn = 0xfffff0;
	put_datagram(fd, &d, data, 10);
	d.target_qpn = q.qp->qp_num;
	put_datagram(fd, &d, data, 100);
	wc = wire_completion(&q, 1, IBV_WC_SUCCESS);
	assert_int_equal(wc.byte_len, GRH + 100);
	assert_int_equal(wc.src_qp, 77);
	assert_memory_equal(wire.memory + GRH, data, 100);
	wire_expect_no_event();
	close(fd);
	await_peers(0);
	wire_qp_close(&q);
}

/* Each ends the stream, with a line unless the host had one a moment ago; the queue pair goes on. */
static void test_breaches_of_datagrams(void **state)
{
	struct wire_qp q = wire_qp_open((struct wire_config){ .type = IBV_QPT_UD });
	const struct hca_hello h = wire_hello(HCA_MEET_DATAGRAMS, true, 77, q.qp->qp_num);
	struct hca_datagram d = datagram_to(&q, &h);
	const struct hca_frame other = { .kind = HCA_FRAME_ACK };
	unsigned char bytes[HCA_FRAME_BYTES + 7] = { 0xff };
	const char *lines;
	int fd, i;

	for (i = 0; i < 4; i++) {
		fd = wire_inject(&h);
		assert_int_equal(peers(), 1);
		capture_begin(2);
		if (i == 0) {
			hca_frame_write(bytes, &other);
		} else if (i == 1) {
			bytes[0] = 0xff;
		} else if (i == 2) {
			d.source[15] ^= 1;
			put_datagram(fd, &d, bytes, 1);
			d.source[15] ^= 1;
		} else {
			d.sl = 16;
			put_datagram(fd, &d, bytes, 1);
			d.sl = 0;
		}
		wire_put_bytes(fd, bytes, i < 2 ? sizeof(bytes) : 0);
		await_peers(0);
		lines = capture_end();
		if (i == 1)
			assert_string_equal(lines, "");
		else
			assert_string_equal(lines, "softhca: rail 1, lo: host 126.0.0.1 has sent "
					    "datagrams that no peer sends\n");
		meet_time_pass(i * 100 * SECOND_NS);
		assert_true(wire_has_ended(fd));
		close(fd);
	}
	fd = wire_inject(&h);
	wire_post_recv(&q, 1, 0, GRH + 5);
	put_datagram(fd, &d, "12345", 5);
	wire_completion(&q, 1, IBV_WC_SUCCESS);
	wire_expect_no_event();
	close(fd);
	await_peers(0);
	wire_qp_close(&q);
}

/* A peer that sends without end has its turn, and the pass ends. */
static void test_flood(void **state)
{
	struct wire_qp q = wire_qp_open((struct wire_config){ .type = IBV_QPT_UD });
	const struct hca_hello h = wire_hello(HCA_MEET_DATAGRAMS, true, 77, q.qp->qp_num);
	const struct hca_datagram d = datagram_to(&q, &h);
	const int fd = wire_inject(&h);
	struct hca_fabric *f = hca_context_of(wire.ctx)->fabric;
	const struct hca_wire_peer *p = wire_state()->peers.newest;
	static unsigned char data[HCA_DATAGRAM_MAX];
	int room = 4 << 20;
	unsigned i;

	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof(room)) &&
			 setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room)), 0);
	for (i = 0; i < 16; i++)
		wire_post_recv(&q, i, 0, GRH + sizeof(data));
	hca_lock(&f->life);		/* no pass */
	for (i = 0; i < 400; i++) {
		unsigned char head[HCA_FRAME_BYTES + HCA_DATAGRAM_BYTES];
		const struct hca_frame frame = { .kind = HCA_FRAME_DATAGRAM, .total = sizeof(data),
			.flags = HCA_FRAME_LAST, .bytes = HCA_DATAGRAM_BYTES + sizeof(data) };
		struct iovec v[2] = { { head, sizeof(head) }, { data, sizeof(data) } };
		const struct msghdr m = { .msg_iov = v, .msg_iovlen = 2 };

		hca_frame_write(head, &frame);
		hca_datagram_write(head + HCA_FRAME_BYTES, &d);
		if (sendmsg(fd, &m, MSG_DONTWAIT) != sizeof(head) + sizeof(data))
			break;
	}
	assert_true(i > 100);
	f->wire->progress(f);
	hca_unlock(&f->life);
	assert_true(p->stream.in_total <= (1 << 18) + HCA_STREAM_BYTES);
	/* No new byte has come, and the rest is read. */
	while (p->stream.in_total < (uint64_t)i * (HCA_FRAME_BYTES + HCA_DATAGRAM_BYTES + sizeof(data)))
		wire_pass();
	close(fd);
	await_peers(0);
	wire_qp_close(&q);
}

static void begin_datagram(struct wire_qp *q, struct ibv_ah *ah, uint32_t qpn, uint64_t id)
{
	struct ibv_sge sge = { (uintptr_t)wire.memory, 5, wire.mr->lkey };
	struct ibv_send_wr wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1,
		.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED,
		.wr.ud = { ah, qpn, QKEY } }, *bad;

	assert_int_equal(ibv_post_send(q->qp, &wr, &bad), 0);
}

static void post_datagram(struct wire_qp *q, struct ibv_ah *ah, uint32_t qpn, uint64_t id)
{
	begin_datagram(q, ah, qpn, id);
	wire_completion(q, id, IBV_WC_SUCCESS);
}

/* Peers come without end: those that are idle go, the oldest first; one that is used stays. */
static void test_peers_come_and_go(void **state)
{
	enum { COME = HCA_WIRE_PEERS_MAX + 300 };
	struct wire_qp q = wire_qp_open((struct wire_config){ .type = IBV_QPT_UD });
	struct hca_hello h = wire_hello(HCA_MEET_DATAGRAMS, true, 0, q.qp->qp_num);
	struct ibv_ah *ah = wire_ah();
	struct hca_datagram d;
	static int fd[COME];
	unsigned char data[64];
	struct hca_frame f;
	unsigned i;

	need_descriptors(2 * COME + 2200);
	d = datagram_to(&q, &h);
	for (i = 0; i < COME; i++) {
		h.source_qpn = i;
		fd[i] = wire_inject(&h);
		if (i % 1000 == 999) {
			put_datagram(fd[0], &d, data, 1);
			wire_settle();
		}
	}
	assert_int_equal(peers(), HCA_WIRE_PEERS_MAX);
	assert_false(wire_has_ended(fd[0]));
	assert_int_equal(count_ended(fd + 1, 300), 300);
	assert_int_equal(count_ended(fd, COME), 300);
	/* There is room for this process's own datagrams, too: the first is lost perhaps. */
	post_datagram(&q, ah, 0x4711, 1);
	wire_settle();
	post_datagram(&q, ah, 0x4711, 2);
	assert_true(peers() < HCA_WIRE_PEERS_MAX);
	q.fd = wire_peer_accept(0x4711);
	assert_true(wire_get(&q, &f, data, sizeof(data)));
	assert_int_equal(f.kind, HCA_FRAME_DATAGRAM);
	close_ends(fd, COME);
	await_peers(1);
	close(q.fd);
	q.fd = -1;
	await_peers(0);
	assert_int_equal(ibv_destroy_ah(ah), 0);
	wire_qp_close(&q);
}

/* Nobody there knows the number: such peers are forgotten at once. */
static void test_peers_that_are_not_there(void **state)
{
	struct wire_qp q = wire_qp_open((struct wire_config){ .type = IBV_QPT_UD });
	struct ibv_ah *ah = wire_ah();
	unsigned i;

	wire.peer.answer = HCA_MEET_UNKNOWN;
	for (i = 0; i < 50; i++)
		post_datagram(&q, ah, 0x5000 + i, i);
	assert_int_equal(peers(), 50);
	await_peers(0);
	wire.peer.answer = HCA_MEET_MINE;
	assert_int_equal(ibv_destroy_ah(ah), 0);
	wire_qp_close(&q);
}

/* The host refuses connections: a line, once that has lasted longer than a process's start or end. */
static void test_refused_datagrams(void **state)
{
	struct wire_qp q = wire_qp_open((struct wire_config){ .type = IBV_QPT_UD });
	const unsigned host = wire.peer_host;
	struct ibv_ah *ah;
	const char *lines;
	unsigned i;

	wire.peer_host = 3;		/* no process is there */
	ah = wire_ah();
	wire.peer_host = host;
	capture_begin(STDERR_FILENO);
	post_datagram(&q, ah, 0x5000, 1);
	for (i = 0; i < 18; i++) {
		meet_time_pass(SECOND_NS / 10);
		wire_settle();
	}
	assert_string_equal(capture_end(), "");
	capture_begin(STDERR_FILENO);
	for (i = 0; i < 18; i++) {
		meet_time_pass(SECOND_NS / 10);
		wire_settle();
	}
	lines = capture_end();
	assert_non_null(strstr(lines, "softhca: rail 1, lo: 127."));
	assert_non_null(strstr(lines, " ports 18600 to 18631: no process listens: it has ended, or a firewall rejects "
			       "these TCP ports (SOFTHCA_PORTS)\n"));
	assert_ptr_equal(strchr(lines, '\n'), lines + strlen(lines) - 1);
	meet_time_pass(10 * SECOND_NS);
	await_peers(0);
	assert_int_equal(ibv_destroy_ah(ah), 0);
	wire_qp_close(&q);
}

/* A look at the peers that has begun before one came. */
static void test_peer_younger_than_look(void **state)
{
	struct wire_qp q = wire_qp_open((struct wire_config){ .type = IBV_QPT_UD });
	struct ibv_ah *ah = wire_ah();
	struct hca_fabric *f = hca_context_of(wire.ctx)->fabric;
	unsigned char data[64];
	struct hca_frame frame;

	hca_lock(&f->life);
	begin_datagram(&q, ah, 0x6000, 1);
	hca_wire_peers_look(wire_state(), rg_now_ns() - 1);
	hca_unlock(&f->life);
	assert_int_equal(peers(), 1);
	wire_completion(&q, 1, IBV_WC_SUCCESS);
	q.fd = wire_peer_accept(0x6000);
	assert_true(wire_get(&q, &frame, data, sizeof(data)));
	close(q.fd);
	q.fd = -1;
	await_peers(0);
	assert_int_equal(ibv_destroy_ah(ah), 0);
	wire_qp_close(&q);
}

/* ---- Fork ------------------------------ */

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

/* The child's exit code: bits of what is wrong. */
static int look_at_child(const int *fd)
{
	unsigned i;
	int wrong = 0;

	for (i = 0; i < 3; i++)
		wrong |= is_open(fd[i]) << i;
	return wrong;
}

static void use(struct wire_qp *q, uint64_t id)
{
	struct hca_frame f = wire_request(q, HCA_FRAME_SEND, 5);

	wire_post_recv(q, id, 0, 5);
	wire_put(q, &f, "12345");
	wire_completion(q, id, IBV_WC_SUCCESS);
	wire_expect_ack(q, q->sequence);
}

static bool is_readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 60000) == 1;
}

/* Passes read the stream, until a thread sleeps. */
static void test_epoll(void **state)
{
	struct wire_qp q = wire_qp_open((struct wire_config){ 0 });
	struct hca_fabric *f = hca_context_of(wire.ctx)->fabric;
	struct hca_frame frame;
	uint64_t id = 0;

	(void)state;
	while (!wire_of(&q)->unwatched)
		use(&q, id++);
	use(&q, id++);
	f->wire->sleep_begins(f);
	assert_false(wire_of(&q)->unwatched);
	frame = wire_request(&q, HCA_FRAME_SEND, 5);
	wire_post_recv(&q, id, 0, 5);
	wire_put(&q, &frame, "12345");
	assert_true(is_readable(f->wire->wait_fd(f)));
	wire_completion(&q, id++, IBV_WC_SUCCESS);
	f->wire->sleep_ends(f);
	while (!wire_of(&q)->unwatched)
		use(&q, id++);
	wire_qp_close(&q);
	assert_null(wire_state()->unwatched);
}

static int result_of(pid_t child)
{
	int status;

	assert_int_equal(waitpid(child, &status, 0), child);
	return status;
}

/* In a child: a member by itself, whose connections work. */
static void join_anew(void)
{
	struct wire_qp q;

	wire = (struct wire_host){ .peer_host = 3 };
	wire_host_open(NULL);
	q = wire_qp_open((struct wire_config){ 0 });
	use(&q, 1);
	wire_qp_close(&q);
	wire_host_close(NULL);
}

/* The connections are the parent's alone, whether a child ends, goes on, or becomes another program. */
static void test_fork(void **state)
{
	struct wire_qp q = wire_qp_open((struct wire_config){ 0 });
	const int fd[] = { wire_of(&q)->stream.fd, wire_state()->epoll,
			   hca_meet_fd(wire_state()->meet) };
	int hold[2], i;
	pid_t child;

	for (i = 0; i < 3; i++)
		assert_true(fcntl(fd[i], F_GETFD) & FD_CLOEXEC);
	use(&q, 1);
	child = fork();
	if (!child)
		_exit(look_at_child(fd));
	assert_int_equal(result_of(child), 0);
	use(&q, 2);
	child = fork();
	if (!child) {
		execl("/bin/sh", "sh", "-c", "exit 5", (char *)NULL);
		_exit(1);
	}
	assert_int_equal(WEXITSTATUS(result_of(child)), 5);
	use(&q, 3);
	child = fork();
	if (!child) {
		join_anew();
		_exit(0);
	}
	assert_int_equal(result_of(child), 0);
	use(&q, 4);
	/* A child that goes on does not keep the stream open. */
	assert_int_equal(pipe(hold), 0);
	child = fork();
	if (!child) {
		close(hold[1]);
		_exit(read(hold[0], &i, 1) != 0);
	}
	assert_int_equal(ibv_destroy_qp(q.qp), 0);
	wire_expect_end(&q);
	close(hold[1]);
	assert_int_equal(result_of(child), 0);
	close(hold[0]);
	close(q.fd);
	assert_int_equal(ibv_destroy_cq(q.cq), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parked),
		cmocka_unit_test(test_not_parked),
		cmocka_unit_test(test_datagrams),
		cmocka_unit_test(test_breaches_of_datagrams),
		cmocka_unit_test(test_flood),
		cmocka_unit_test(test_peers_come_and_go),
		cmocka_unit_test(test_peers_that_are_not_there),
		cmocka_unit_test(test_refused_datagrams),
		cmocka_unit_test(test_peer_younger_than_look),
		cmocka_unit_test(test_epoll),
		cmocka_unit_test(test_fork),
	};

	return cmocka_run_group_tests(tests, wire_host_open, wire_host_close);
}
