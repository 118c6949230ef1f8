/*
 * handshake.h - the three messages by which both ends of a connection prove that they know the
 * fabric and the secret, and that they mean the same numbers.
 *
 *	caller: hello	magic, version, struct hca_hello, the address it calls, hash of the fabric's
 *			name, 32 random bytes
 *	callee: reply	magic, version, verdict, port, 32 random bytes, HMAC(secret, "callee" | hello |
 *			reply before)
 *	caller: proof	HMAC(secret, "caller" | hello | reply before its HMAC)
 *
 * HMAC is HMAC-SHA256; the secret itself is in no message.  A verdict about the fabric or the
 * address has no HMAC, since the callee does not speak to that fabric.  The callee compares the
 * called address with its own end of the connection: a process that passes messages on, from a port
 * of its own, is none of the two ends.  The labels and both ends' random bytes make a proof useless
 * in the other direction and in another connection.
 *
 * These functions are pure, but for random bytes that are arguments.  Unproven bytes are read here
 * only.
 */
#ifndef HCA_HANDSHAKE_H
#define HCA_HANDSHAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "softhca/link/wire/meet.h"
#include "softhca/link/wire/secret.h"

enum {
	HCA_WIRE_VERSION = 1,		/* of all messages and frames */
	HCA_HASH_BYTES = 32,
	HCA_RANDOM_BYTES = 32,
	HCA_HELLO_BYTES = 176,
	HCA_REPLY_BYTES = 80,
	HCA_PROOF_BYTES = 32,
};

/* The parts of a connection that both ends know without a message. */
struct hca_credentials {
	unsigned char fabric[HCA_HASH_BYTES];
	unsigned char secret[HCA_SECRET_BYTES];
};

/* An end of a connection; IPv4 as an IPv4-mapped address. */
struct hca_endpoint {
	unsigned char address[16];
	uint16_t port;
};

enum hca_verdict {
	HCA_VERDICT_NONE,		/* in no message: another process has the connection now */
	HCA_VERDICT_MINE,
	HCA_VERDICT_AT_PORT,
	HCA_VERDICT_UNKNOWN,
	HCA_VERDICT_OTHER_MTU,
	HCA_VERDICT_OTHER_RAILS,
	HCA_VERDICT_CROSSED,		/* the call arrived on another interface */
	HCA_VERDICT_OTHER_FABRIC,	/* from here on without HMAC */
	HCA_VERDICT_OTHER_ADDRESS,
};

/* The caller clears *c with sodium_memzero. */
void hca_credentials_make(struct hca_credentials *c, const char *fabric,
			  const unsigned char secret[HCA_SECRET_BYTES]);

void hca_hello_write(unsigned char out[HCA_HELLO_BYTES], const struct hca_hello *h,
		     const struct hca_endpoint *called, const struct hca_credentials *c,
		     const unsigned char drawn[HCA_RANDOM_BYTES]);
/*
 * A hello, or the first bytes of one.  0; -EAGAIN: incomplete; -EPROTONOSUPPORT: another version,
 * known as soon as its bytes are there; -EPROTO: no hello of this program.
 */
int hca_hello_read(const unsigned char *in, size_t bytes, struct hca_hello *h,
		   struct hca_endpoint *called);
bool hca_hello_is_of_fabric(const unsigned char hello[HCA_HELLO_BYTES],
			    const struct hca_credentials *c);
/* The hash of the fabric that a valid hello is for. */
const unsigned char *hca_hello_fabric(const unsigned char hello[HCA_HELLO_BYTES]);

/* port: of HCA_VERDICT_AT_PORT, else 0.  hello NULL: the caller has another version. */
void hca_reply_write(unsigned char out[HCA_REPLY_BYTES], enum hca_verdict verdict, uint16_t port,
		     const unsigned char *hello, const struct hca_credentials *c,
		     const unsigned char drawn[HCA_RANDOM_BYTES]);
/*
 * 0: the verdict, proven where it has an HMAC; -EAGAIN, -EPROTONOSUPPORT, -EPROTO as above;
 * -EACCES: the callee has another secret.
 */
int hca_reply_read(const unsigned char *in, size_t bytes,
		   const unsigned char hello[HCA_HELLO_BYTES], const struct hca_credentials *c,
		   enum hca_verdict *verdict, uint16_t *port);

void hca_proof_write(unsigned char out[HCA_PROOF_BYTES],
		     const unsigned char hello[HCA_HELLO_BYTES],
		     const unsigned char reply[HCA_REPLY_BYTES], const struct hca_credentials *c);
bool hca_proof_is_valid(const unsigned char in[HCA_PROOF_BYTES],
			const unsigned char hello[HCA_HELLO_BYTES],
			const unsigned char reply[HCA_REPLY_BYTES], const struct hca_credentials *c);

#endif
