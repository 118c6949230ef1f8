/*
 * test_wire_turns.c - two queue pairs that are active: a long message of one is in frames of a turn, and
 * the other one's few bytes come after one turn of it at most.
 */
#include <sys/socket.h>
#include <unistd.h>

#include "wire_end.h"

enum {
	TURN = HCA_WIRE_TURN + HCA_FRAME_BYTES,
	SHORT = 8,
	LONG = WIRE_MEMORY,
	REST_NS = 100000,		/* longer than a rest between reads */
};

static unsigned char bytes[LONG];

static struct hca_fabric *fabric(void)
{
	return hca_context_of(wire.ctx)->fabric;
}

static void pass(void)
{
	fabric()->wire->progress(fabric());
}

/* The peer writes a few bytes. */
static void put_short(struct wire_qp *q)
{
	struct hca_frame f = wire_request(q, HCA_FRAME_WRITE, SHORT);

	f.addr = (uintptr_t)wire.memory;
	f.rkey = wire.mr->rkey;
	wire_put(q, &f, bytes);
}

/* fabric.life is held, so that no passes come but the test's. */
static void make_active(struct wire_qp *one, struct wire_qp *two)
{
	put_short(one);
	put_short(two);
	while (wire_of(one)->expected != one->sequence || wire_of(two)->expected != two->sequence)
		pass();
	assert_true(atomic_load(&wire_state()->shared));
}

static uint64_t left_of(const struct wire_qp *q)
{
	return wire_of(q)->stream.out_total;
}

/* Reads what has come of a message; returns the bytes of its frames.  No frame is longer than a turn. */
static uint32_t read_frames(struct wire_qp *q, struct hca_frame *f, uint32_t *left)
{
	unsigned char head[HCA_FRAME_BYTES];
	uint32_t payload = 0;
	ssize_t n = 1;

	while (n > 0) {
		if (*left) {
			n = recv(q->fd, bytes, *left, MSG_DONTWAIT);
			payload += n > 0 ? (uint32_t)n : 0;
			*left -= n > 0 ? (uint32_t)n : 0;
			continue;
		}
		n = recv(q->fd, head, sizeof(head), MSG_DONTWAIT | MSG_PEEK);
		if (n < (ssize_t)sizeof(head))
			break;
		assert_int_equal(recv(q->fd, head, sizeof(head), MSG_DONTWAIT), sizeof(head));
		assert_int_equal(hca_frame_read(head, f), 0);
		assert_true(f->bytes <= HCA_WIRE_TURN);
		*left = f->bytes;
	}
	return payload;
}

static void test_leaving(void **state)
{
	struct wire_qp one = wire_qp_open((struct wire_config){ 0 }),
		       two = wire_qp_open((struct wire_config){ 0 });
	uint64_t before, others;
	uint32_t have = 0, left = 0;
	struct hca_frame f;

	wire_settle();
	hca_lock(&fabric()->life);
	make_active(&one, &two);
	before = left_of(&one);
	others = left_of(&two);
	wire_post(&one, IBV_WR_RDMA_WRITE, 1, 0, LONG);
	wire_post(&two, IBV_WR_RDMA_WRITE, 2, 0, SHORT);
	while (left_of(&two) < others + HCA_FRAME_BYTES + SHORT)
		pass();
	assert_true(left_of(&one) - before <= 2 * TURN);
	while (have < LONG) {
		have += read_frames(&one, &f, &left);
		before = left_of(&one);
		put_short(&two);
		pass();
		assert_true(left_of(&one) - before <= 2 * TURN);
	}
	hca_unlock(&fabric()->life);
	wire_qp_close(&one);
	wire_qp_close(&two);
}

/* A long write of the peer, in frames of a turn; returns its bytes. */
static size_t write_frames(struct wire_qp *q, unsigned char *to)
{
	struct hca_frame f = wire_request(q, HCA_FRAME_WRITE, LONG);
	uint32_t done = 0;
	size_t at = 0;

	f.addr = (uintptr_t)wire.memory;
	f.rkey = wire.mr->rkey;
	while (done < LONG) {
		f.bytes = LONG - done < HCA_WIRE_TURN ? LONG - done : HCA_WIRE_TURN;
		done += f.bytes;
		f.flags = done == LONG ? HCA_FRAME_LAST : 0;
		hca_frame_write(to + at, &f);
		memset(to + at + HCA_FRAME_BYTES, 0, f.bytes);
		at += HCA_FRAME_BYTES + f.bytes;
		f = (struct hca_frame){ .kind = HCA_FRAME_CONT, .total = LONG, .sequence = f.sequence,
					.ack = f.ack };
	}
	return at;
}

/* The kernel takes several turns at once. */
static void make_room(struct wire_qp *q)
{
	const int fd = wire_of(q)->stream.fd, room = LONG;

	setsockopt(q->fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room)))
		assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room)), 0);
}

static void test_arriving(void **state)
{
	static unsigned char stream[LONG + (LONG / HCA_WIRE_TURN + 1) * HCA_FRAME_BYTES];
	struct wire_qp one = wire_qp_open((struct wire_config){ 0 }),
		       two = wire_qp_open((struct wire_config){ 0 });
	uint64_t before;
	unsigned i;

	wire_settle();
	hca_lock(&fabric()->life);
	make_room(&one);
	make_active(&one, &two);
	for (i = 0; i < 8; i++) {
		const size_t all = write_frames(&one, stream);
		size_t sent = 0;

		while (wire_of(&one)->expected != one.sequence) {
			ssize_t n = send(one.fd, stream + sent, all - sent, MSG_DONTWAIT | MSG_NOSIGNAL);

			sent += n > 0 ? (size_t)n : 0;
			put_short(&two);
			meet_time_pass(REST_NS);
			before = wire_of(&one)->stream.in_total;
			pass();
			assert_int_equal(wire_of(&two)->expected, two.sequence);
			assert_true(wire_of(&one)->stream.in_total - before <= 2 * TURN);
		}
	}
	hca_unlock(&fabric()->life);
	wire_qp_close(&one);
	wire_qp_close(&two);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_leaving),
		cmocka_unit_test(test_arriving),
	};

	return cmocka_run_group_tests(tests, wire_host_open, wire_host_close);
}
