/* handover.c - see handover.h. */
#include "softhca/link/wire/handover.h"

#include <errno.h>
#include <sodium.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "softhca/base/fd.h"
#include "softhca/link/wire/bytes.h"
#include "softhca/link/wire/socket.h"

enum { BACKLOG = 256, FIRST_NUMBERS = 8, VERSION = 0, TIMES = 1, LENGTH = 2, BEGIN = 4, MAGIC_BYTES = 8, JOB = 8 };
/* Strangers cause a search for all numbers so often at most; others are for the first ones. */
#define SEARCH_NS 20000000u

static const unsigned char greeting_magic[MAGIC_BYTES] = { 's', 'o', 'f', 't', 'h', 'c', 'a', '?' };

/* ---- Pure ------------------------------ */

void hca_greeting_begin(unsigned char *out, uint64_t job)
{
	memcpy(out, greeting_magic, sizeof(greeting_magic));
	hca_put64(out + JOB, job);
}

/* A name shows nothing of the job, which is a secret of its processes. */
void hca_handover_of_job(uint64_t job, unsigned char group[HCA_HASH_BYTES])
{
	unsigned char begin[MAGIC_BYTES + 8];

	hca_greeting_begin(begin, job);
	crypto_hash_sha256(group, begin, sizeof(begin));
}

bool hca_greeting_is_likely(const unsigned char *begin, size_t bytes)
{
	return memcmp(begin, greeting_magic, bytes < MAGIC_BYTES ? bytes : MAGIC_BYTES) == 0;
}

int hca_handover_group(const unsigned char *begin, size_t bytes, unsigned char group[HCA_HASH_BYTES])
{
	struct hca_endpoint called;
	struct hca_hello h;
	int rc;

	if (hca_greeting_is_likely(begin, bytes)) {
		if (bytes < HCA_GREETING_BYTES)
			return -EAGAIN;
		hca_handover_of_job(hca_get64(begin + JOB), group);
		return 0;
	}
	rc = hca_hello_read(begin, bytes, &h, &called);
	if (rc)
		return rc == -EAGAIN ? rc : -EPROTO;
	memcpy(group, hca_hello_fabric(begin), HCA_HASH_BYTES);
	return 0;
}

size_t hca_handover_write(unsigned char out[HCA_HANDOVER_BYTES], const struct hca_handover *h)
{
	out[VERSION] = HCA_WIRE_VERSION;
	out[TIMES] = (unsigned char)h->times;
	hca_put16(out + LENGTH, (uint16_t)h->bytes);
	memcpy(out + BEGIN, h->begin, h->bytes);
	return BEGIN + h->bytes;
}

int hca_handover_read(const unsigned char *in, size_t bytes, struct hca_handover *h)
{
	size_t length;

	if (bytes < BEGIN || in[VERSION] != HCA_WIRE_VERSION)
		return -EPROTO;
	length = hca_get16(in + LENGTH);
	if (in[TIMES] < 1 || in[TIMES] > HCA_HANDOVER_TIMES_MAX || length < 1 ||
	    length > HCA_HANDOVER_BEGIN_MAX || bytes != BEGIN + length)
		return -EPROTO;
	h->times = in[TIMES];
	h->bytes = length;
	memcpy(h->begin, in + BEGIN, length);
	return 0;
}

/* ---- Sockets ------------------------------ */

/* Abstract: without a file, gone with its socket.  Returns the bytes of the address. */
static socklen_t name_of(struct sockaddr_un *at, const unsigned char group[HCA_HASH_BYTES], unsigned number)
{
	char hex[2 * HCA_HASH_BYTES + 1];
	int bytes;

	sodium_bin2hex(hex, sizeof(hex), group, HCA_HASH_BYTES);
	memset(at, 0, sizeof(*at));
	at->sun_family = AF_UNIX;
	bytes = snprintf(at->sun_path + 1, sizeof(at->sun_path) - 1, "softhca/%u/%s/%u", (unsigned)geteuid(),
			 hex, number);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)bytes);
}

static int socket_make(void)
{
	int fd;

	hca_fd_begin();
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	hca_fd_end();
	return fd < 0 ? -errno : hca_socket_raise(fd);
}

static bool is_of_this_user(int fd)
{
	struct ucred other;
	socklen_t bytes = sizeof(other);

	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &other, &bytes) && other.uid == geteuid();
}

int hca_handover_open(const unsigned char group[HCA_HASH_BYTES], unsigned *number)
{
	struct sockaddr_un at;
	int fd = socket_make(), rc = -1;
	unsigned n;

	if (fd < 0)
		return fd;
	errno = EADDRINUSE;
	for (n = 0; rc && errno == EADDRINUSE && n < HCA_HANDOVER_NUMBERS; n++) {
		const socklen_t bytes = name_of(&at, group, n);

		rc = bind(fd, (const struct sockaddr *)(const void *)&at, bytes);
	}
	if (!rc)
		rc = listen(fd, BACKLOG);
	if (rc) {
		rc = -errno;
		hca_socket_close(fd);
		return rc;
	}
	*number = n - 1;
	return fd;
}

static int accept_giver(int listener)
{
	int fd = hca_socket_take(listener);

	if (fd < 0 || is_of_this_user(fd))
		return fd;
	hca_socket_close(fd);
	return -EPERM;
}

/* Room for one descriptor: beyond CMSG_LEN the kernel would deliver a second one. */
union control {
	struct cmsghdr align;
	unsigned char bytes[CMSG_SPACE(sizeof(int))];
};

static int descriptor_of(struct msghdr *m)
{
	const struct cmsghdr *c = CMSG_FIRSTHDR(m);
	int fd;

	if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS ||
	    c->cmsg_len != CMSG_LEN(sizeof(fd)))
		return -EPROTO;
	memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	return hca_socket_raise(fd);
}

static int receive(int from, struct hca_handover *h)
{
	unsigned char in[HCA_HANDOVER_BYTES];
	union control control;
	struct iovec part = { in, sizeof(in) };
	struct msghdr m = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes,
			    .msg_controllen = CMSG_LEN(sizeof(h->fd)) };
	ssize_t bytes;
	int rc;

	hca_fd_begin();
	bytes = recvmsg(from, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	hca_fd_end();
	if (bytes < 0)
		return errno == EINTR ? -EAGAIN : -errno;
	h->fd = descriptor_of(&m);
	if (h->fd < 0)
		return h->fd;
	rc = m.msg_flags & (MSG_TRUNC | MSG_CTRUNC) ? -EPROTO : hca_handover_read(in, (size_t)bytes, h);
	if (rc)
		hca_socket_close(h->fd);
	return rc;
}

int hca_handover_next(struct hca_handover_poll *p, struct hca_handover *h, uint64_t now_ns)
{
	int rc;

	if (p->giver < 0) {
		rc = p->listener < 0 ? -EAGAIN : accept_giver(p->listener);
		if (rc < 0)
			return rc;
		p->giver = rc;
		p->due_ns = now_ns + HCA_GIVER_NS;
	}
	rc = receive(p->giver, h);
	if (rc == -EAGAIN && now_ns < p->due_ns)
		return rc;
	hca_socket_close(p->giver);
	p->giver = -1;
	return rc ? -EAGAIN : 0;
}

void hca_handover_poll_end(struct hca_handover_poll *p)
{
	if (p->giver >= 0)
		hca_socket_close(p->giver);
	if (p->listener >= 0)
		hca_socket_close(p->listener);
}

static int send_all(int to, const struct hca_handover *h)
{
	unsigned char out[HCA_HANDOVER_BYTES];
	union control control = { .bytes = { 0 } };
	struct iovec part = { out, hca_handover_write(out, h) };
	struct msghdr m = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes,
			    .msg_controllen = sizeof(control.bytes) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(h->fd));
	memcpy(CMSG_DATA(c), &h->fd, sizeof(h->fd));
	return sendmsg(to, &m, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

/* -ECONNREFUSED: `to` may be tried with another number. */
static int send_to(int to, const unsigned char group[HCA_HASH_BYTES], unsigned number,
		   const struct hca_handover *h)
{
	struct sockaddr_un at;
	const socklen_t bytes = name_of(&at, group, number);

	if (connect(to, (const struct sockaddr *)(const void *)&at, bytes))
		return -errno;
	return is_of_this_user(to) ? send_all(to, h) : -EPERM;
}

int hca_handover_to(const unsigned char group[HCA_HASH_BYTES], unsigned number, const struct hca_handover *h)
{
	int to = socket_make(), rc;

	if (to < 0)
		return to;
	rc = send_to(to, group, number, h);
	hca_socket_close(to);
	return rc;
}

/* Any that takes it, from this number on.  A number that exists needs another socket for the next one. */
static int send_to_first(const unsigned char group[HCA_HASH_BYTES], unsigned *number, unsigned end,
			 const struct hca_handover *h)
{
	int to = socket_make(), rc = -ECONNREFUSED;
	unsigned n;

	if (to < 0) {
		*number = end;
		return to;
	}
	for (n = *number; rc == -ECONNREFUSED && n < end; n++)
		rc = send_to(to, group, n, h);
	hca_socket_close(to);
	*number = n;
	return rc;
}

int hca_handover_to_any(struct hca_handover_search *s, const unsigned char group[HCA_HASH_BYTES],
			const struct hca_handover *h, uint64_t now_ns)
{
	const unsigned end = now_ns < s->again_ns ? FIRST_NUMBERS : HCA_HANDOVER_NUMBERS;
	unsigned n = 0;
	int rc;

	if (memcmp(group, s->group, HCA_HASH_BYTES) == 0 && hca_handover_to(group, s->number, h) == 0)
		return 0;
	do
		rc = send_to_first(group, &n, end, h);
	while (rc && n < end);
	if (rc) {
		if (end > FIRST_NUMBERS)
			s->again_ns = now_ns + SEARCH_NS;
		return rc;
	}
	memcpy(s->group, group, HCA_HASH_BYTES);
	s->number = n - 1;
	return 0;
}
