/* test_handshake.c - what each end accepts as proven, message by message and byte by byte. */
#include <errno.h>
#include <string.h>

#include "cmocka_all.h"
#include "softhca/link/wire/handshake.h"

static struct hca_credentials ours, other_secret, other_fabric;
static const struct hca_endpoint there = { .address = { [10] = 0xff, 0xff, 10, 0, 1, 2 }, .port = 18600 };
static const struct hca_hello numbers = {
	.kind = HCA_MEET_QP, .rail = 1, .source_qpn = 0x123456, .target_qpn = 0xabcdef,
	.psn = 0xffffff, .mtu = 4096, .rails = 2,
	.source.raw = "gid of source..", .target.raw = "gid of target..", .host = "the host's id.."
};

/* One connection, as both ends see it. */
struct meeting {
	unsigned char hello[HCA_HELLO_BYTES], reply[HCA_REPLY_BYTES], proof[HCA_PROOF_BYTES];
};

static int make_credentials(void **state)
{
	unsigned char secret[HCA_SECRET_BYTES] = "thirty-two bytes that are known";

	hca_credentials_make(&ours, "fabric", secret);
	hca_credentials_make(&other_fabric, "fabrik", secret);
	secret[31] ^= 1;
	hca_credentials_make(&other_secret, "fabric", secret);
	return 0;
}

/* Random bytes that differ with `which`. */
static const unsigned char *drawn(unsigned which)
{
	static unsigned char bytes[HCA_RANDOM_BYTES];

	for (unsigned i = 0; i < sizeof(bytes); i++)
		bytes[i] = (unsigned char)(which * 31 + i);
	return bytes;
}

static void meet(struct meeting *m, unsigned seed, enum hca_verdict verdict, uint16_t port)
{
	hca_hello_write(m->hello, &numbers, &there, &ours, drawn(2 * seed));
	hca_reply_write(m->reply, verdict, port, m->hello, &ours, drawn(2 * seed + 1));
	hca_proof_write(m->proof, m->hello, m->reply, &ours);
}

static int reply_read(const struct meeting *m, const struct hca_credentials *c)
{
	enum hca_verdict verdict;
	uint16_t port;

	return hca_reply_read(m->reply, sizeof(m->reply), m->hello, c, &verdict, &port);
}

static void test_agreed(void **state)
{
	struct meeting m;
	struct hca_hello h;
	struct hca_endpoint called;
	enum hca_verdict verdict;
	uint16_t port;

	meet(&m, 1, HCA_VERDICT_MINE, 0);
	assert_int_equal(hca_hello_read(m.hello, sizeof(m.hello), &h, &called), 0);
	assert_memory_equal(&h.source, &numbers.source, 16);
	assert_memory_equal(&h.target, &numbers.target, 16);
	assert_memory_equal(h.host, numbers.host, 16);
	assert_int_equal(h.kind, numbers.kind);
	assert_int_equal(h.rail, numbers.rail);
	assert_int_equal(h.source_qpn, numbers.source_qpn);
	assert_int_equal(h.target_qpn, numbers.target_qpn);
	assert_int_equal(h.psn, numbers.psn);
	assert_int_equal(h.mtu, numbers.mtu);
	assert_int_equal(h.rails, numbers.rails);
	assert_memory_equal(called.address, there.address, 16);
	assert_int_equal(called.port, there.port);
	assert_true(hca_hello_is_of_fabric(m.hello, &ours));
	assert_int_equal(hca_reply_read(m.reply, sizeof(m.reply), m.hello, &ours, &verdict, &port), 0);
	assert_int_equal(verdict, HCA_VERDICT_MINE);
	assert_int_equal(port, 0);
	assert_true(hca_proof_is_valid(m.proof, m.hello, m.reply, &ours));
}

static void test_verdicts(void **state)
{
	for (unsigned v = 0; v < 20; v++)
		for (unsigned p = 0; p < 2; p++) {
			const bool valid = v >= HCA_VERDICT_MINE && v <= HCA_VERDICT_OTHER_ADDRESS &&
					   p == (v == HCA_VERDICT_AT_PORT);
			enum hca_verdict verdict;
			struct meeting m;
			uint16_t port;
			int rc;

			meet(&m, v, (enum hca_verdict)v, p ? 18855 : 0);
			rc = hca_reply_read(m.reply, sizeof(m.reply), m.hello, &ours, &verdict, &port);
			assert_int_equal(rc, valid ? 0 : -EPROTO);
			if (valid) {
				assert_int_equal(verdict, v);
				assert_int_equal(port, p ? 18855 : 0);
			}
		}
}

static void test_other_secret(void **state)
{
	struct meeting m;

	meet(&m, 2, HCA_VERDICT_MINE, 0);
	assert_int_equal(reply_read(&m, &other_secret), -EACCES);
	hca_proof_write(m.proof, m.hello, m.reply, &other_secret);
	assert_false(hca_proof_is_valid(m.proof, m.hello, m.reply, &ours));
	/* It speaks for no fabric: nothing to prove. */
	meet(&m, 2, HCA_VERDICT_OTHER_FABRIC, 0);
	assert_int_equal(reply_read(&m, &other_secret), 0);
}

static void test_other_fabric(void **state)
{
	struct meeting m;

	meet(&m, 3, HCA_VERDICT_MINE, 0);
	assert_false(hca_hello_is_of_fabric(m.hello, &other_fabric));
	assert_true(hca_hello_is_of_fabric(m.hello, &other_secret));
}

/* What one connection has proven is worth nothing in another. */
static void test_replayed(void **state)
{
	struct meeting old, new;

	meet(&old, 4, HCA_VERDICT_MINE, 0);
	meet(&new, 5, HCA_VERDICT_MINE, 0);
	/* To a caller: an old reply, to its new hello. */
	memcpy(new.reply, old.reply, sizeof(new.reply));
	assert_int_equal(reply_read(&new, &ours), -EACCES);
	/* To a callee: an old hello and its proof; the callee draws anew. */
	meet(&new, 5, HCA_VERDICT_MINE, 0);
	hca_reply_write(new.reply, HCA_VERDICT_MINE, 0, old.hello, &ours, drawn(99));
	assert_false(hca_proof_is_valid(old.proof, old.hello, new.reply, &ours));
	assert_true(hca_proof_is_valid(old.proof, old.hello, old.reply, &ours));
}

/* A process without the secret returns what it was told. */
static void test_reflected(void **state)
{
	struct meeting m;

	meet(&m, 6, HCA_VERDICT_MINE, 0);
	/* The callee's own HMAC as the caller's proof. */
	assert_false(hca_proof_is_valid(m.reply + HCA_REPLY_BYTES - HCA_PROOF_BYTES, m.hello, m.reply, &ours));
	/* The caller's own proof as a reply. */
	memcpy(m.reply + HCA_REPLY_BYTES - HCA_PROOF_BYTES, m.proof, HCA_PROOF_BYTES);
	assert_int_equal(reply_read(&m, &ours), -EACCES);
	/* The caller's own hello as a reply. */
	memcpy(m.reply, m.hello, sizeof(m.reply));
	assert_int_not_equal(reply_read(&m, &ours), 0);
}

static void test_other_version(void **state)
{
	struct hca_endpoint called;
	struct hca_hello h;
	struct meeting m;

	for (unsigned i = 8; i < 12; i++) {
		meet(&m, 7, HCA_VERDICT_MINE, 0);
		m.hello[i] ^= 2;
		m.reply[i] ^= 2;
		/* Whatever its messages are like, the version is known from 12 bytes on. */
		for (size_t bytes = 0; bytes <= sizeof(m.hello); bytes++)
			assert_int_equal(hca_hello_read(m.hello, bytes, &h, &called),
					 bytes < 12 ? -EAGAIN : -EPROTONOSUPPORT);
		assert_int_equal(reply_read(&m, &ours), -EPROTONOSUPPORT);
	}
	/* The reply to another version: no more than this version. */
	hca_reply_write(m.reply, HCA_VERDICT_UNKNOWN, 0, NULL, &ours, drawn(7));
	assert_int_equal(reply_read(&m, &ours), -EACCES);
}

static void test_truncated(void **state)
{
	struct hca_endpoint called;
	enum hca_verdict verdict;
	struct hca_hello h;
	struct meeting m;
	uint16_t port;

	meet(&m, 8, HCA_VERDICT_AT_PORT, 18601);
	for (size_t bytes = 0; bytes < sizeof(m.hello); bytes++) {
		unsigned char *piece = malloc(bytes ? bytes : 1);	/* a sanitizer sees its end */

		memcpy(piece, m.hello, bytes);
		assert_int_equal(hca_hello_read(piece, bytes, &h, &called), -EAGAIN);
		free(piece);
	}
	for (size_t bytes = 0; bytes < sizeof(m.reply); bytes++) {
		unsigned char *piece = malloc(bytes ? bytes : 1);

		memcpy(piece, m.reply, bytes);
		assert_int_equal(hca_reply_read(piece, bytes, m.hello, &ours, &verdict, &port), -EAGAIN);
		free(piece);
	}
}

/* No bit of what was said can be changed on the way. */
static void test_each_bit(void **state)
{
	struct hca_endpoint called;
	struct hca_hello h;
	struct meeting m, changed;

	meet(&m, 9, HCA_VERDICT_AT_PORT, 18601);
	for (size_t bit = 0; bit < 8 * sizeof(m.hello); bit++) {
		changed = m;
		changed.hello[bit / 8] ^= (unsigned char)(1 << bit % 8);
		hca_hello_read(changed.hello, sizeof(changed.hello), &h, &called);
		assert_int_equal(reply_read(&changed, &ours), -EACCES);
		assert_false(hca_proof_is_valid(m.proof, changed.hello, m.reply, &ours));
	}
	for (size_t bit = 0; bit < 8 * sizeof(m.reply); bit++) {
		changed = m;
		changed.reply[bit / 8] ^= (unsigned char)(1 << bit % 8);
		assert_int_not_equal(reply_read(&changed, &ours), 0);
	}
	for (size_t bit = 0; bit < 8 * sizeof(m.proof); bit++) {
		changed = m;
		changed.proof[bit / 8] ^= (unsigned char)(1 << bit % 8);
		assert_false(hca_proof_is_valid(changed.proof, m.hello, m.reply, &ours));
	}
}

static bool is_heard(const struct hca_hello *h)
{
	unsigned char hello[HCA_HELLO_BYTES];
	struct hca_endpoint called;
	struct hca_hello seen;
	int rc;

	hca_hello_write(hello, h, &there, &ours, drawn(10));
	rc = hca_hello_read(hello, sizeof(hello), &seen, &called);
	assert_true(rc == 0 || rc == -EPROTO);
	return rc == 0;
}

static void test_hello_refused(void **state)
{
	struct hca_hello h;

	assert_true(is_heard(&numbers));
	h = numbers, h.kind = HCA_MEET_QUESTION;
	assert_true(is_heard(&h));
	h = numbers, h.kind = 0;
	assert_false(is_heard(&h));
	h = numbers, h.kind = HCA_MEET_QUESTION + 1;
	assert_false(is_heard(&h));
	h = numbers, h.rail = 2;
	assert_false(is_heard(&h));
	h = numbers, h.rails = 9;
	assert_false(is_heard(&h));
	h = numbers, h.source_qpn = 1 << 24;
	assert_false(is_heard(&h));
	h = numbers, h.target_qpn = 1 << 24;
	assert_false(is_heard(&h));
	h = numbers, h.psn = 1 << 24;
	assert_false(is_heard(&h));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_agreed),
		cmocka_unit_test(test_verdicts),
		cmocka_unit_test(test_other_secret),
		cmocka_unit_test(test_other_fabric),
		cmocka_unit_test(test_replayed),
		cmocka_unit_test(test_reflected),
		cmocka_unit_test(test_other_version),
		cmocka_unit_test(test_truncated),
		cmocka_unit_test(test_each_bit),
		cmocka_unit_test(test_hello_refused),
	};

	return cmocka_run_group_tests(tests, make_credentials, NULL);
}
