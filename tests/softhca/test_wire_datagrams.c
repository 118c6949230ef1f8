/* test_wire_datagrams.c - datagrams to a peer that does not read are dropped, and held nowhere. */
#include <linux/sockios.h>
#include <malloc.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "softhca/link/wire/peers.h"
#include "wire_end.h"

enum { SLOW = 0x7000, BYTES = 2048, QKEY = 7 };

/* A datagram that bears its number everywhere. */
static void post_numbered(struct wire_qp *q, struct ibv_ah *ah, uint32_t number)
{
	struct ibv_sge sge = { (uintptr_t)wire.memory, BYTES, wire.mr->lkey };
	struct ibv_send_wr wr = { .wr_id = number, .sg_list = &sge, .num_sge = 1,
		.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED,
		.wr.ud = { ah, SLOW, QKEY } }, *bad;
	uint32_t i;

	for (i = 0; i < BYTES; i += sizeof(number))
		memcpy(wire.memory + i, &number, sizeof(number));
	assert_int_equal(ibv_post_send(q->qp, &wr, &bad), 0);
	wire_completion(q, number, IBV_WC_SUCCESS);
}

/* The next one that has arrived whole: its number. */
static uint32_t take_numbered(struct wire_qp *q)
{
	unsigned char payload[HCA_DATAGRAM_BYTES + BYTES];
	uint32_t number, i;
	struct hca_frame f;

	assert_true(wire_get(q, &f, payload, sizeof(payload)));
	assert_int_equal(f.kind, HCA_FRAME_DATAGRAM);
	assert_int_equal(f.total, BYTES);
	memcpy(&number, payload + HCA_DATAGRAM_BYTES, sizeof(number));
	for (i = 0; i < BYTES; i += sizeof(number))
		assert_memory_equal(payload + HCA_DATAGRAM_BYTES + i, &number, sizeof(number));
	return number;
}

/* Does something arrive that the peer has not read?  What it has read waits for its acknowledgement, perhaps. */
static bool more_comes(const struct hca_stream *s, int fd)
{
	enum { LOOKS = 60000 };

	for (unsigned i = 0; i < LOOKS; i++) {
		int unread = 0, under_way = 0;

		assert_int_equal(ioctl(s->fd, SIOCOUTQ, &under_way), 0);
		assert_int_equal(ioctl(fd, FIONREAD, &unread), 0);
		if (unread)
			return true;
		if (!under_way && !hca_stream_waits(s))
			return false;
		wire_settle();
		usleep(1000);
	}
	fail_msg("neither bytes nor their acknowledgement have come");
	return false;
}

static void test_peer_that_does_not_read(void **state)
{
	enum { COUNT = 10000 };
	struct wire_qp q = wire_qp_open((struct wire_config){ .type = IBV_QPT_UD });
	struct ibv_ah *ah = wire_ah();
	const struct hca_stream *s;
	uint32_t i, last = 0, taken = 1;
	size_t before;

	post_numbered(&q, ah, 0);
	q.fd = wire_peer_accept(SLOW);
	assert_int_equal(take_numbered(&q), 0);
	s = &wire_state()->peers.newest->stream;
	before = mallinfo2().uordblks;
	for (i = 1; i < COUNT; i++)
		post_numbered(&q, ah, i);
	assert_true(mallinfo2().uordblks <= before + HCA_STREAM_BYTES);
	assert_true(hca_stream_waits(s));
	for (; more_comes(s, q.fd); taken++) {
		i = take_numbered(&q);
		assert_true(i > last);
		last = i;
	}
	assert_true(taken < COUNT);
	for (i = COUNT; i < COUNT + 100; i++) {
		post_numbered(&q, ah, i);
		assert_int_equal(take_numbered(&q), i);
	}
	wire_expect_no_event();
	close(q.fd);
	q.fd = -1;
	assert_int_equal(ibv_destroy_ah(ah), 0);
	wire_qp_close(&q);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_peer_that_does_not_read),
	};

	return cmocka_run_group_tests(tests, wire_host_open, wire_host_close);
}
