/*
 * fuzz_handshake.c - arbitrary bytes to a callee, as a hello and a proof, and to a caller, as a
 * reply.  Accepted as proven are the bytes of the process with the secret alone.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "softhca/base/layout.h"
#include "softhca/link/wire/handshake.h"

enum { CALLEE, CALLER };		/* the first byte of an input, modulo 2 */
#define VERDICTS HCA_VERDICT_OTHER_ADDRESS

const unsigned fuzz_rounds = 100000;

static struct hca_credentials known;
static unsigned char hello[HCA_HELLO_BYTES], proof[HCA_PROOF_BYTES];
static unsigned char reply[1 + VERDICTS][HCA_REPLY_BYTES];	/* by verdict */
static const unsigned char drawn[HCA_RANDOM_BYTES] = "drawn by the callee";

static void prepare(void)
{
	static const unsigned char secret[HCA_SECRET_BYTES] = "known to both ends, nobody else";
	static const unsigned char of_caller[HCA_RANDOM_BYTES] = "drawn by the caller";
	static const struct hca_endpoint called = { .port = 18600 };
	static const struct hca_hello h = {
		.kind = HCA_MEET_QP, .source_qpn = 1, .target_qpn = 2, .psn = 3,
		.mtu = 4096, .rails = 2
	};

	if (hello[0])
		return;
	hca_credentials_make(&known, "fuzz", secret);
	hca_hello_write(hello, &h, &called, &known, of_caller);
	for (unsigned i = HCA_VERDICT_MINE; i <= VERDICTS; i++)
		hca_reply_write(reply[i], (enum hca_verdict)i, i == HCA_VERDICT_AT_PORT ? 18601 : 0, hello,
				&known, drawn);
	hca_proof_write(proof, hello, reply[HCA_VERDICT_MINE], &known);
}

size_t fuzz_seed(unsigned index, unsigned char *to, size_t most)
{
	prepare();
	if (index > VERDICTS || most < 1 + HCA_HELLO_BYTES + HCA_PROOF_BYTES)
		return 0;
	to[0] = index ? CALLER : CALLEE;
	if (index) {
		memcpy(to + 1, reply[index], HCA_REPLY_BYTES);
		return 1 + HCA_REPLY_BYTES;
	}
	memcpy(to + 1, hello, HCA_HELLO_BYTES);
	memcpy(to + 1 + HCA_HELLO_BYTES, proof, HCA_PROOF_BYTES);
	return 1 + HCA_HELLO_BYTES + HCA_PROOF_BYTES;
}

static void check(bool holds)
{
	if (!holds)
		abort();
}

static void hello_check(const struct hca_hello *h)
{
	check(h->kind >= HCA_MEET_QP && h->kind <= HCA_MEET_QUESTION);
	check(h->rails <= HCA_PORTS_MAX && h->rail < h->rails);
	check((h->source_qpn | h->target_qpn | h->psn) < 1 << 24);
}

static void to_callee(const unsigned char *in, size_t bytes)
{
	unsigned char answer[HCA_REPLY_BYTES];
	struct hca_endpoint called;
	struct hca_hello h;
	int rc = -EAGAIN;

	/* Byte by byte it says nothing else than at once. */
	for (size_t have = 0; have <= bytes && rc == -EAGAIN; have++)
		rc = hca_hello_read(in, have, &h, &called);
	check(rc == hca_hello_read(in, bytes, &h, &called));
	if (rc) {
		check(rc == -EPROTO || rc == -EPROTONOSUPPORT || bytes < HCA_HELLO_BYTES);
		return;
	}
	hello_check(&h);
	hca_reply_write(answer, HCA_VERDICT_MINE, 0, in, &known, drawn);
	if (bytes < HCA_HELLO_BYTES + HCA_PROOF_BYTES ||
	    !hca_proof_is_valid(in + HCA_HELLO_BYTES, in, answer, &known))
		return;
	check(memcmp(in, hello, sizeof(hello)) == 0);
	check(memcmp(in + HCA_HELLO_BYTES, proof, sizeof(proof)) == 0);
}

static void to_caller(const unsigned char *in, size_t bytes)
{
	enum hca_verdict verdict;
	uint16_t port;
	int rc = hca_reply_read(in, bytes, hello, &known, &verdict, &port);

	check(rc != -EAGAIN || bytes < HCA_REPLY_BYTES);
	if (rc == 0)
		check(verdict >= HCA_VERDICT_MINE && verdict <= VERDICTS);
	if (rc == 0 && verdict < HCA_VERDICT_OTHER_FABRIC)
		check(memcmp(in, reply[verdict], HCA_REPLY_BYTES) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	unsigned char *in;

	prepare();
	if (size < 1)
		return 0;
	in = malloc(size > 1 ? size - 1 : 1);	/* a sanitizer sees its end */
	if (!in)
		abort();
	memcpy(in, data + 1, size - 1);
	if (data[0] % 2 == CALLER)
		to_caller(in, size - 1);
	else
		to_callee(in, size - 1);
	free(in);
	return 0;
}
