/*
 * fuzz_handover.c - messages with which processes of a host hand connections over: what the pure part
 * makes of them, and a process that takes them from its Unix socket with descriptors of all kinds.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../softhca/giver.h"
#include "fuzz.h"
#include "softhca/link/wire/bytes.h"
#include "softhca/link/wire/handover.h"
#include "softhca/link/wire/socket.h"

enum { PORT = 18600, SEEDS = 5 };

const unsigned fuzz_rounds = 20000;

static struct hca_meet *meet;
static struct hca_credentials known;
static struct sockaddr_in own;
static int listener, nothing;

static void check(bool holds)
{
	if (!holds)
		abort();
}

static enum hca_meet_answer find(void *arg, const struct hca_hello *h, uint16_t *at)
{
	(void)arg;
	*at = (uint16_t)(h->target_qpn & 1 ? PORT : hca_meet_shared(meet));
	return (enum hca_meet_answer)(h->target_qpn >> 1 & 7);
}

/* A caller here sends no proof. */
static void arrived(void *arg, int fd, const struct hca_hello *h)
{
	(void)arg;
	(void)fd;
	(void)h;
	abort();
}

static void refused(void *arg, void *token, int error, const char *why)
{
	(void)arg;
	(void)token;
	(void)error;
	(void)why;
	abort();
}

static void reached(void *arg, void *token, int fd, const struct hca_hello *h)
{
	(void)token;
	arrived(arg, fd, h);
}

static void prepare(void)
{
	struct sockaddr_storage at = { 0 };
	struct hca_meet_config c = {
		.fabric = "fuzz", .secret = "known to both ends, nobody else", .port_first = PORT,
		.port_last = PORT, .local = &at, .rails = 1, .find = find, .arrived = arrived, .reached = reached,
		.refused = refused,
	};

	if (meet)
		return;
	own.sin_family = AF_INET;
	own.sin_addr.s_addr = htonl(0x7f000001u + (((unsigned)getpid() & 0x3fffff) << 2));
	memcpy(&at, &own, sizeof(own));
	check(!hca_meet_open(&meet, &c));
	hca_credentials_make(&known, c.fabric, c.secret);
	listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	check(!bind(listener, (const struct sockaddr *)(const void *)&own, sizeof(own)) && !listen(listener, 1));
	nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
}

/* Connections of this fabric, of another one, of a probe; one that has only begun. */
size_t fuzz_seed(unsigned index, unsigned char *to, size_t most)
{
	static const unsigned char drawn[HCA_RANDOM_BYTES] = "drawn by the caller";
	struct hca_handover h = { .times = 1, .bytes = HCA_HELLO_BYTES };
	struct hca_endpoint called = { .port = 0 };
	struct hca_credentials of;
	struct hca_hello hello = {
		.kind = HCA_MEET_QP, .source_qpn = 1, .target_qpn = index << 1, .mtu = 4096, .rails = 1
	};

	prepare();
	if (index >= SEEDS || most < 1 + HCA_HANDOVER_BYTES)
		return 0;
	hca_credentials_make(&of, index == 3 ? "another" : "fuzz", known.secret);
	hca_hello_write(h.begin, &hello, &called, &of, drawn);
	if (index == 4) {
		hca_greeting_begin(h.begin, 7);
		h.bytes = HCA_GREETING_BYTES;
	}
	to[0] = (unsigned char)index;
	return 1 + hca_handover_write(to + 1, &h);
}

static void pure(const unsigned char *in, size_t bytes)
{
	unsigned char out[HCA_HANDOVER_BYTES], group[HCA_HASH_BYTES], again[HCA_HASH_BYTES];
	struct hca_handover h;
	int rc;

	if (hca_handover_read(in, bytes, &h))
		return;
	check(h.bytes <= HCA_HANDOVER_BEGIN_MAX && h.times >= 1 && h.times <= HCA_HANDOVER_TIMES_MAX);
	check(hca_handover_write(out, &h) == bytes && memcmp(out, in, bytes) == 0);
	rc = hca_handover_group(h.begin, h.bytes, group);
	check(rc == 0 || rc == -EAGAIN || rc == -EPROTO);
	if (rc == 0)
		check(hca_handover_group(h.begin, h.bytes, again) == 0 && memcmp(group, again, sizeof(group)) == 0);
	if (rc == -EAGAIN)
		check(h.bytes < HCA_HELLO_BYTES);
}

/* A connection whose end is the process's address; reset when it closes, so that no port waits. */
static int connection(int *far)
{
	const struct linger reset = { .l_onoff = 1 };
	struct sockaddr_in to;
	socklen_t bytes = sizeof(to);
	int fd;

	*far = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	check(!getsockname(listener, (struct sockaddr *)(void *)&to, &bytes));
	check(!setsockopt(*far, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset)));
	check(!connect(*far, (const struct sockaddr *)(const void *)&to, sizeof(to)));
	fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	check(fd >= 0 && !setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset)));
	return fd;
}

static int giver(void)
{
	struct sockaddr_un at;
	const socklen_t bytes = giver_name(&at, known.fabric, (unsigned)hca_meet_shared(meet));
	const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	check(!connect(fd, (const struct sockaddr *)(const void *)&at, bytes));
	return fd;
}

static void give(int to, const unsigned char *in, size_t bytes, const int *fd, size_t fds)
{
	check(giver_send(to, in, bytes, fd, fds) == (ssize_t)bytes);
}

/* The address that a hello names is that of this run. */
static void called_set(unsigned char *in, size_t bytes)
{
	enum { CALLED = 4 + 88, CALLED_PORT = 4 + 104 };
	struct sockaddr_storage at;
	socklen_t length = sizeof(at);
	struct hca_endpoint e;

	if (bytes < CALLED_PORT + 2)
		return;
	check(!getsockname(listener, (struct sockaddr *)(void *)&at, &length));
	hca_address_endpoint(&at, &e);
	memcpy(in + CALLED, e.address, sizeof(e.address));
	hca_put16(in + CALLED_PORT, e.port);
}

/* By the first byte: which descriptors come with it.  A descriptor that stays open would end the run. */
static void real(unsigned kind, const unsigned char *in, size_t bytes)
{
	const int to = giver();
	int fd[3] = { nothing, nothing, listener }, far = -1;

	if (kind % 8 < 4)
		fd[0] = connection(&far);
	else if (kind % 8 == 4)
		fd[0] = listener;
	give(to, in, bytes, fd, kind % 8 == 5 ? 0 : kind % 8 == 6 ? 3 : 1);
	close(to);
	for (unsigned turn = 0; turn < 3; turn++)
		hca_meet_progress(meet);
	if (far >= 0) {
		close(fd[0]);
		close(far);
	}
	hca_meet_progress(meet);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	unsigned char *in;

	prepare();
	if (size < 2 || size > 4096)
		return 0;
	in = malloc(size - 1);		/* a sanitizer sees its end */
	if (!in)
		abort();
	memcpy(in, data + 1, size - 1);
	pure(in, size - 1);
	if (data[0] < 128)
		called_set(in, size - 1);
	real(data[0], in, size - 1);
	free(in);
	return 0;
}
