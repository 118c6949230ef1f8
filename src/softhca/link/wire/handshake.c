/* handshake.c - see handshake.h. */
#include "softhca/link/wire/handshake.h"

#include <errno.h>
#include <sodium.h>
#include <string.h>

#include "softhca/base/layout.h"
#include "softhca/link/wire/bytes.h"

/* Both messages begin with these, in every version. */
enum { MAGIC = 0, MAGIC_BYTES = 8, VERSION = 8, PREFIX_BYTES = 12 };
/* hello */
enum {
	KIND = 12, RAIL = 13, SOURCE_QPN = 16, TARGET_QPN = 20, PSN = 24, UNUSED = 28,
	MTU = 32, RAILS = 36, SOURCE = 40, TARGET = 56, HOST = 72, CALLED = 88, CALLED_PORT = 104,
	FABRIC = 112, HELLO_RANDOM = 144
};
/* reply */
enum { VERDICT = 12, PORT = 14, REPLY_RANDOM = 16, REPLY_HMAC = 48 };

enum { NUMBER_MAX = (1 << 24) - 1, LABEL_BYTES = 8 };

static const unsigned char magic[MAGIC_BYTES] = "softhca";
static const unsigned char label_callee[LABEL_BYTES] = "callee";
static const unsigned char label_caller[LABEL_BYTES] = "caller";

void hca_credentials_make(struct hca_credentials *c, const char *fabric,
			  const unsigned char secret[HCA_SECRET_BYTES])
{
	crypto_hash_sha256(c->fabric, (const unsigned char *)fabric, strlen(fabric));
	memcpy(c->secret, secret, sizeof(c->secret));
}

static void prefix_write(unsigned char *out)
{
	memcpy(out + MAGIC, magic, sizeof(magic));
	hca_put32(out + VERSION, HCA_WIRE_VERSION);
}

static int prefix_read(const unsigned char *in, size_t bytes)
{
	const size_t of_magic = bytes < sizeof(magic) ? bytes : sizeof(magic);

	if (memcmp(in + MAGIC, magic, of_magic) != 0)
		return -EPROTO;
	if (bytes < PREFIX_BYTES)
		return -EAGAIN;
	return hca_get32(in + VERSION) == HCA_WIRE_VERSION ? 0 : -EPROTONOSUPPORT;
}

/* ---- hello ------------------------------ */

void hca_hello_write(unsigned char out[HCA_HELLO_BYTES], const struct hca_hello *h,
		     const struct hca_endpoint *called, const struct hca_credentials *c,
		     const unsigned char drawn[HCA_RANDOM_BYTES])
{
	memset(out, 0, HCA_HELLO_BYTES);
	prefix_write(out);
	out[KIND] = h->kind;
	out[RAIL] = h->rail;
	hca_put32(out + SOURCE_QPN, h->source_qpn);
	hca_put32(out + TARGET_QPN, h->target_qpn);
	hca_put32(out + PSN, h->psn);
	hca_put32(out + MTU, h->mtu);
	hca_put32(out + RAILS, h->rails);
	memcpy(out + SOURCE, h->source.raw, sizeof(h->source.raw));
	memcpy(out + TARGET, h->target.raw, sizeof(h->target.raw));
	memcpy(out + HOST, h->host, sizeof(h->host));
	memcpy(out + CALLED, called->address, sizeof(called->address));
	hca_put16(out + CALLED_PORT, called->port);
	memcpy(out + FABRIC, c->fabric, sizeof(c->fabric));
	memcpy(out + HELLO_RANDOM, drawn, HCA_RANDOM_BYTES);
}

static bool hello_is_valid(const unsigned char *in, const struct hca_hello *h)
{
	static const unsigned char zero[FABRIC - CALLED_PORT - 2];

	return h->kind >= HCA_MEET_QP && h->kind <= HCA_MEET_QUESTION &&
	       h->rails <= HCA_PORTS_MAX && h->rail < h->rails && h->source_qpn <= NUMBER_MAX &&
	       h->target_qpn <= NUMBER_MAX && h->psn <= NUMBER_MAX &&
	       !hca_get32(in + UNUSED) && !hca_get16(in + RAIL + 1) &&
	       memcmp(in + CALLED_PORT + 2, zero, sizeof(zero)) == 0;
}

int hca_hello_read(const unsigned char *in, size_t bytes, struct hca_hello *h,
		   struct hca_endpoint *called)
{
	struct hca_hello seen = { 0 };
	int rc = prefix_read(in, bytes);

	if (rc)
		return rc;
	if (bytes < HCA_HELLO_BYTES)
		return -EAGAIN;
	seen.kind = in[KIND];
	seen.rail = in[RAIL];
	seen.source_qpn = hca_get32(in + SOURCE_QPN);
	seen.target_qpn = hca_get32(in + TARGET_QPN);
	seen.psn = hca_get32(in + PSN);
	seen.mtu = hca_get32(in + MTU);
	seen.rails = hca_get32(in + RAILS);
	memcpy(seen.source.raw, in + SOURCE, sizeof(seen.source.raw));
	memcpy(seen.target.raw, in + TARGET, sizeof(seen.target.raw));
	memcpy(seen.host, in + HOST, sizeof(seen.host));
	if (!hello_is_valid(in, &seen))
		return -EPROTO;
	*h = seen;
	memcpy(called->address, in + CALLED, sizeof(called->address));
	called->port = hca_get16(in + CALLED_PORT);
	return 0;
}

bool hca_hello_is_of_fabric(const unsigned char hello[HCA_HELLO_BYTES],
			    const struct hca_credentials *c)
{
	return memcmp(hello + FABRIC, c->fabric, sizeof(c->fabric)) == 0;
}

const unsigned char *hca_hello_fabric(const unsigned char hello[HCA_HELLO_BYTES])
{
	return hello + FABRIC;
}

/* ---- reply and proof ------------------------------ */

static void transcript_hmac(unsigned char out[HCA_HASH_BYTES], const unsigned char *label,
			    const unsigned char *hello, const unsigned char *reply,
			    const struct hca_credentials *c)
{
	crypto_auth_hmacsha256_state state;

	crypto_auth_hmacsha256_init(&state, c->secret, sizeof(c->secret));
	crypto_auth_hmacsha256_update(&state, label, LABEL_BYTES);
	crypto_auth_hmacsha256_update(&state, hello, HCA_HELLO_BYTES);
	crypto_auth_hmacsha256_update(&state, reply, REPLY_HMAC);
	crypto_auth_hmacsha256_final(&state, out);
	sodium_memzero(&state, sizeof(state));
}

static bool verdict_is_proven(unsigned verdict)
{
	return verdict < HCA_VERDICT_OTHER_FABRIC;
}

void hca_reply_write(unsigned char out[HCA_REPLY_BYTES], enum hca_verdict verdict, uint16_t port,
		     const unsigned char *hello, const struct hca_credentials *c,
		     const unsigned char drawn[HCA_RANDOM_BYTES])
{
	memset(out, 0, HCA_REPLY_BYTES);
	prefix_write(out);
	hca_put16(out + VERDICT, (uint16_t)verdict);
	hca_put16(out + PORT, port);
	memcpy(out + REPLY_RANDOM, drawn, HCA_RANDOM_BYTES);
	if (hello && verdict_is_proven(verdict))
		transcript_hmac(out + REPLY_HMAC, label_callee, hello, out, c);
}

static bool verdict_is_valid(unsigned verdict, uint16_t port)
{
	return verdict >= HCA_VERDICT_MINE && verdict <= HCA_VERDICT_OTHER_ADDRESS &&
	       (verdict == HCA_VERDICT_AT_PORT) == (port != 0);
}

int hca_reply_read(const unsigned char *in, size_t bytes,
		   const unsigned char hello[HCA_HELLO_BYTES], const struct hca_credentials *c,
		   enum hca_verdict *verdict, uint16_t *port)
{
	unsigned char expected[HCA_HASH_BYTES];
	int rc = prefix_read(in, bytes);
	unsigned seen;

	if (rc)
		return rc;
	if (bytes < HCA_REPLY_BYTES)
		return -EAGAIN;
	seen = hca_get16(in + VERDICT);
	if (!verdict_is_valid(seen, hca_get16(in + PORT)))
		return -EPROTO;
	if (verdict_is_proven(seen)) {
		transcript_hmac(expected, label_callee, hello, in, c);
		if (sodium_memcmp(expected, in + REPLY_HMAC, sizeof(expected)))
			return -EACCES;
	}
	*verdict = (enum hca_verdict)seen;
	*port = hca_get16(in + PORT);
	return 0;
}

void hca_proof_write(unsigned char out[HCA_PROOF_BYTES],
		     const unsigned char hello[HCA_HELLO_BYTES],
		     const unsigned char reply[HCA_REPLY_BYTES], const struct hca_credentials *c)
{
	transcript_hmac(out, label_caller, hello, reply, c);
}

bool hca_proof_is_valid(const unsigned char in[HCA_PROOF_BYTES],
			const unsigned char hello[HCA_HELLO_BYTES],
			const unsigned char reply[HCA_REPLY_BYTES], const struct hca_credentials *c)
{
	unsigned char expected[HCA_PROOF_BYTES];

	transcript_hmac(expected, label_caller, hello, reply, c);
	return sodium_memcmp(expected, in, sizeof(expected)) == 0;
}
