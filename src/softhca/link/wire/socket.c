/* socket.c - see socket.h. */
#include "softhca/link/wire/socket.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/tcp.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "softhca/base/base.h"
#include "softhca/base/fd.h"
#include "softhca/base/rtnetlink.h"

enum { BACKLOG = 4096 };
/* hca_socket_bound: a refill takes time, too; beyond the kernel's own bound none is needed. */
enum { UNSENT_LEAST = 1 << 16, UNSENT_MOST = 1 << 24 };
/* 2.5 Gbit/s: on faster paths a window takes so little time that its queue has no need of a bound. */
enum { RATE_SLOW = 312500000, RATE_LEAST = 25000000, INTERVAL_US = 4000 };

/* ---- Addresses ------------------------------ */

static struct sockaddr_in *as_ipv4(const struct sockaddr_storage *a)
{
	return a->ss_family == AF_INET ? (struct sockaddr_in *)(void *)(uintptr_t)a : NULL;
}

static struct sockaddr_in6 *as_ipv6(const struct sockaddr_storage *a)
{
	return a->ss_family == AF_INET6 ? (struct sockaddr_in6 *)(void *)(uintptr_t)a : NULL;
}

static socklen_t address_bytes(const struct sockaddr_storage *a)
{
	return as_ipv4(a) ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
}

static const struct sockaddr *sockaddr_of(const struct sockaddr_storage *a)
{
	return (const struct sockaddr *)(const void *)a;
}

void hca_address_port_set(struct sockaddr_storage *a, uint16_t port)
{
	if (as_ipv4(a))
		as_ipv4(a)->sin_port = htons(port);
	else if (as_ipv6(a))
		as_ipv6(a)->sin6_port = htons(port);
}

void hca_address_scope_set(struct sockaddr_storage *a, const struct sockaddr_storage *local)
{
	struct sockaddr_in6 *to = as_ipv6(a);
	const struct sockaddr_in6 *from = as_ipv6(local);

	if (to && from && !to->sin6_scope_id && IN6_IS_ADDR_LINKLOCAL(&to->sin6_addr))
		to->sin6_scope_id = from->sin6_scope_id;
}

const char *hca_address_text(const struct sockaddr_storage *a, char text[INET6_ADDRSTRLEN])
{
	const void *number = NULL;

	if (as_ipv4(a))
		number = &as_ipv4(a)->sin_addr;
	else if (as_ipv6(a))
		number = &as_ipv6(a)->sin6_addr;
	if (!number || !inet_ntop(a->ss_family, number, text, INET6_ADDRSTRLEN))
		strcpy(text, "?");
	return text;
}

void hca_address_endpoint(const struct sockaddr_storage *a, struct hca_endpoint *e)
{
	memset(e, 0, sizeof(*e));
	if (as_ipv4(a)) {
		memset(e->address + 10, 0xff, 2);
		memcpy(e->address + 12, &as_ipv4(a)->sin_addr, 4);
		e->port = ntohs(as_ipv4(a)->sin_port);
	} else if (as_ipv6(a)) {
		memcpy(e->address, &as_ipv6(a)->sin6_addr, 16);
		e->port = ntohs(as_ipv6(a)->sin6_port);
	}
}

bool hca_address_is_same(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
	const struct sockaddr_in6 *of_a = as_ipv6(a), *of_b = as_ipv6(b);
	struct hca_endpoint x, y;

	hca_address_endpoint(a, &x);
	hca_address_endpoint(b, &y);
	return memcmp(x.address, y.address, sizeof(x.address)) == 0 &&
	       (!of_a || !of_b || of_a->sin6_scope_id == of_b->sin6_scope_id);
}

/*
 * The kernel sends to an address of its own from this very address; to those of 127.0.0.0/8 from
 * 127.0.0.1.
 */
bool hca_address_is_local(const struct sockaddr_storage *a)
{
	struct sockaddr_storage to = *a, from;
	struct hca_endpoint there, here;
	socklen_t bytes = sizeof(from);
	bool known;
	int fd;

	hca_fd_begin();
	fd = socket(a->ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	hca_fd_end();
	if (fd < 0)
		return false;
	hca_address_port_set(&to, 9);		/* any: nothing is sent */
	known = connect(fd, sockaddr_of(&to), address_bytes(&to)) == 0 &&
		getsockname(fd, (struct sockaddr *)(void *)&from, &bytes) == 0;
	close(fd);
	if (!known)
		return false;
	hca_address_endpoint(&to, &there);
	hca_address_endpoint(&from, &here);
	return memcmp(there.address, here.address, sizeof(there.address)) == 0;
}

/* ---- Sockets ------------------------------ */

/* Descriptors of this process alone; beyond, a child of fork keeps its copy until exec. */
enum { DESCRIPTORS = 1 << 20, WORD = 64 };
static _Atomic uint64_t own[DESCRIPTORS / WORD];

static int socket_own(int fd)
{
	if (fd < DESCRIPTORS)
		atomic_fetch_or(&own[fd / WORD], UINT64_C(1) << fd % WORD);
	return fd;
}

void hca_socket_forget(int fd)
{
	if (fd < DESCRIPTORS)
		atomic_fetch_and(&own[fd / WORD], ~(UINT64_C(1) << fd % WORD));
}

void hca_socket_close(int fd)
{
	hca_socket_forget(fd);
	close(fd);
}

void hca_sockets_close_in_child(void)
{
	uint64_t left;
	int i;

	for (i = 0; i < DESCRIPTORS / WORD; i++) {
		left = atomic_load_explicit(&own[i], memory_order_relaxed);
		if (left)
			atomic_store_explicit(&own[i], 0, memory_order_relaxed);
		for (; left; left &= left - 1)
			close(i * WORD + __builtin_ctzll(left));
	}
}

int hca_socket_raise(int fd)
{
	fd = hca_fd_raise(fd);
	return fd < 0 ? fd : socket_own(fd);
}

static void option_set(int fd, int level, int name, int value)
{
	/* A kernel without the option does without. */
	if (setsockopt(fd, level, name, &value, sizeof(value)))
		return;
}

void hca_socket_push(int fd)
{
	option_set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
}

/*
 * SO_RCVBUF would end the tuning of the kernel.  SO_RCVLOWAT makes room for its mark
 * (Linux 4.18), and the room stays when the mark goes.
 */
void hca_socket_room(int fd, int bytes)
{
	option_set(fd, SOL_SOCKET, SO_RCVLOWAT, bytes);
	option_set(fd, SOL_SOCKET, SO_RCVLOWAT, 1);
}

static int socket_make(int family)
{
	int fd;

	hca_fd_begin();
	fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP);
	hca_fd_end();
	if (fd < 0)
		return -errno;
	fd = hca_socket_raise(fd);
	if (family == AF_INET6)
		option_set(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
	option_set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	return fd;
}

static int close_with(int fd, int error)
{
	hca_socket_close(fd);
	return -error;
}

/*
 * The port of connections that ended lately is free, that of a listener is not.  With SO_REUSEPORT it is
 * for sockets of the same user that have it, too: the kernel gives each connection to one of them.
 * FIRST sets it after bind, which so refuses a port that is taken; of two that are bound at once, both listen.
 */
int hca_socket_listen(const struct sockaddr_storage *local, uint16_t port, enum hca_listen how)
{
	struct sockaddr_storage at = *local;
	int fd = socket_make(local->ss_family);

	if (fd < 0)
		return fd;
	hca_address_port_set(&at, port);
	option_set(fd, SOL_SOCKET, SO_REUSEADDR, 1);
	if (how == HCA_LISTEN_SHARED)
		option_set(fd, SOL_SOCKET, SO_REUSEPORT, 1);
	if (bind(fd, sockaddr_of(&at), address_bytes(&at)))
		return close_with(fd, errno);
	if (how == HCA_LISTEN_FIRST)
		option_set(fd, SOL_SOCKET, SO_REUSEPORT, 1);
	if (listen(fd, BACKLOG))
		return close_with(fd, errno);
	return fd;
}

int hca_socket_take(int listener)
{
	int fd;

	hca_fd_begin();
	fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	hca_fd_end();
	return fd < 0 ? -errno : hca_socket_raise(fd);
}

int hca_socket_accept(int listener)
{
	int fd = hca_socket_take(listener);

	if (fd >= 0)
		option_set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	return fd;
}

bool hca_socket_lacks(int error)
{
	return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

/* Kernels before Linux 5.1 take a name, which is the one that the interface has now. */
static int bind_by_name(int fd, unsigned interface)
{
	char name[IFNAMSIZ];

	if (!if_indextoname(interface, name))
		return -1;
	return setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, name, (socklen_t)strlen(name));
}

/* 0; -EPERM: this kernel does so for privileged users alone; -errno. */
static int bind_to(int fd, unsigned interface)
{
	int bound = 0, rc;
	socklen_t bytes = sizeof(bound);

	if (!getsockopt(fd, SOL_SOCKET, SO_BINDTOIFINDEX, &bound, &bytes) && (unsigned)bound == interface)
		return 0;
	bound = (int)interface;
	rc = setsockopt(fd, SOL_SOCKET, SO_BINDTOIFINDEX, &bound, sizeof(bound));
	if (rc && errno == ENOPROTOOPT)
		rc = bind_by_name(fd, interface);
	if (!rc)
		return 0;
	return errno == ENOPROTOOPT ? -EPERM : -errno;
}

static bool is_on_its_link(const struct hca_endpoint *e)
{
	return e->address[0] == 0xfe && (e->address[1] & 0xc0) == 0x80;
}

/* An address alone keeps a socket on the interface to which the table of routes leads from there. */
static int way_is_over(const struct sockaddr_storage *from, const struct sockaddr_storage *to,
		       unsigned interface)
{
	struct hca_endpoint here, there;
	union ibv_gid source, target;
	unsigned way;

	hca_address_endpoint(from, &here);
	hca_address_endpoint(to, &there);
	if (is_on_its_link(&there))
		return 0;
	memcpy(source.raw, here.address, sizeof(source.raw));
	memcpy(target.raw, there.address, sizeof(target.raw));
	way = hca_rtnetlink_way(&source, &target);
	return !way || way == interface ? 0 : -EXDEV;
}

int hca_socket_stay(int fd, unsigned interface)
{
	struct sockaddr_storage from, to;
	socklen_t from_bytes = sizeof(from), to_bytes = sizeof(to);
	int rc = bind_to(fd, interface);

	if (rc != -EPERM)
		return rc;
	if (getsockname(fd, (struct sockaddr *)(void *)&from, &from_bytes) ||
	    getpeername(fd, (struct sockaddr *)(void *)&to, &to_bytes))
		return -errno;
	return way_is_over(&from, &to, interface);
}

int hca_socket_interface(int fd, unsigned interface)
{
	static atomic_bool said;
	struct sockaddr_storage peer = { 0 };
	socklen_t bytes = sizeof(peer);
	char name[IFNAMSIZ] = "an interface", host[INET6_ADDRSTRLEN];
	const int rc = hca_socket_stay(fd, interface);

	if (rc != -EXDEV || atomic_exchange_explicit(&said, true, memory_order_relaxed))
		return rc;
	if_indextoname(interface, name);
	if (getpeername(fd, (struct sockaddr *)(void *)&peer, &bytes))
		return rc;
	hca_say("%s: " HCA_SOCKET_ASTRAY, name, hca_address_text(&peer, host));
	return rc;
}

/* With the option on, an IPv6 socket would copy headers of each packet. */
unsigned hca_socket_arrived_on(int fd, bool ipv4)
{
	const int level = ipv4 ? IPPROTO_IP : IPPROTO_IPV6, option = ipv4 ? IP_PKTINFO : IPV6_2292PKTINFO;
	unsigned char control[256];
	struct msghdr m = { .msg_control = control };
	socklen_t bytes = sizeof(control);
	struct cmsghdr *c;
	struct in_pktinfo four = { 0 };
	struct in6_pktinfo six = { .ipi6_ifindex = 0 };
	int rc;

	option_set(fd, level, option, 1);
	rc = getsockopt(fd, level, ipv4 ? IP_PKTOPTIONS : IPV6_2292PKTOPTIONS, control, &bytes);
	option_set(fd, level, option, 0);
	m.msg_controllen = rc ? 0 : bytes;
	for (c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
		if (ipv4 && c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO)
			memcpy(&four, CMSG_DATA(c), sizeof(four));
		if (!ipv4 && c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_2292PKTINFO)
			memcpy(&six, CMSG_DATA(c), sizeof(six));
	}
	return ipv4 ? (unsigned)four.ipi_ifindex : six.ipi6_ifindex;
}

int hca_socket_connect(const struct sockaddr_storage *to, const struct sockaddr_storage *local,
		       unsigned interface, int *fd)
{
	struct sockaddr_storage from = *local;
	int rc, s = socket_make(to->ss_family);

	if (s < 0)
		return s;
	hca_address_port_set(&from, 0);
#ifdef IP_BIND_ADDRESS_NO_PORT
	option_set(s, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1);
#endif
	rc = interface ? bind_to(s, interface) : 0;
	if (rc == -EPERM)
		rc = way_is_over(local, to, interface);
	if (rc)
		return close_with(s, -rc);
	if (bind(s, sockaddr_of(&from), address_bytes(&from)))
		return close_with(s, errno);
	rc = connect(s, sockaddr_of(to), address_bytes(to)) ? -errno : 0;
	if (rc && rc != -EINPROGRESS)
		return close_with(s, -rc);
	*fd = s;
	return rc;
}

static void bound_unsent(int fd, uint64_t rate, uint64_t ns)
{
	uint64_t bytes = (uint64_t)((double)rate * (double)ns / 1e9);

	if (bytes < UNSENT_LEAST)
		bytes = UNSENT_LEAST;
	option_set(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, bytes < UNSENT_MOST ? (int)bytes : UNSENT_MOST);
}

/*
 * Twice the most of the last intervals: a path that becomes faster shows it in the next, and one that was not
 * kept busy does not count.
 */
uint64_t hca_rate_bound(struct hca_socket_bounds *b, uint64_t carried)
{
	uint64_t most = 0;
	unsigned i;

	b->carried[b->intervals++ % HCA_BOUND_INTERVALS] = carried;
	if (b->intervals < HCA_BOUND_INTERVALS)
		return 0;
	for (i = 0; i < HCA_BOUND_INTERVALS; i++)
		if (b->carried[i] > most)
			most = b->carried[i];
	if (most > RATE_SLOW)
		return 0;
	return 2 * (most < RATE_LEAST ? RATE_LEAST : most);
}

/*
 * Bytes a second of the interval since the last look, while some were under way and the receiver had room:
 * what a token bucket has saved up is a small part of it.  0: too short.
 */
static uint64_t carried_since(const struct tcp_info *info, struct hca_socket_bounds *b)
{
	const uint64_t busy_us = info->tcpi_busy_time - info->tcpi_rwnd_limited;
	const uint64_t bytes = info->tcpi_bytes_acked - b->acked, us = busy_us - b->busy_us;

	if (us < INTERVAL_US)
		return 0;
	b->acked = info->tcpi_bytes_acked;
	b->busy_us = busy_us;
	return bytes * 1000000 / us;
}

static void bound_rate(int fd, const struct tcp_info *info, struct hca_socket_bounds *b)
{
	const uint64_t carried = carried_since(info, b);
	uint64_t rate;

	if (!carried)
		return;
	rate = hca_rate_bound(b, carried);
	if (rate != b->rate)
		option_set(fd, SOL_SOCKET, SO_MAX_PACING_RATE, rate ? (int)rate : -1);
	b->rate = rate;
}

bool hca_socket_bound(int fd, uint64_t ns, struct hca_socket_bounds *b)
{
	struct tcp_info info = { .tcpi_state = 0 };
	socklen_t length = sizeof(info);

	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) || !info.tcpi_notsent_bytes)
		return false;
	if (info.tcpi_delivery_rate)
		bound_unsent(fd, info.tcpi_delivery_rate, ns);
	bound_rate(fd, &info, b);
	return true;
}

bool hca_socket_is_readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) != 0;
}

ssize_t hca_socket_fill(int fd, unsigned char *to, size_t most, size_t *have)
{
	ssize_t bytes = recv(fd, to + *have, most - *have, MSG_DONTWAIT);

	if (bytes == 0)
		return -ECONNRESET;
	if (bytes < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	*have += (size_t)bytes;
	return bytes;
}

int hca_socket_send(int fd, const unsigned char *from, size_t bytes)
{
	ssize_t sent = send(fd, from, bytes, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (sent < 0)
		return -errno;
	return (size_t)sent == bytes ? 0 : -ENOBUFS;
}

/* ---- Waiting ------------------------------ */

int hca_watch_add(int epoll, struct hca_watch *w, uint32_t events)
{
	struct epoll_event e = { .events = events, .data.ptr = w };

	return epoll_ctl(epoll, EPOLL_CTL_ADD, w->fd, &e) ? -errno : 0;
}

void hca_watch_change(int epoll, struct hca_watch *w, uint32_t events)
{
	struct epoll_event e = { .events = events, .data.ptr = w };

	epoll_ctl(epoll, EPOLL_CTL_MOD, w->fd, &e);
}

int hca_watch_release(int epoll, struct hca_watch *w)
{
	const int fd = w->fd;

	epoll_ctl(epoll, EPOLL_CTL_DEL, fd, NULL);
	w->fd = -1;
	return fd;
}

void hca_watch_close(int epoll, struct hca_watch *w)
{
	hca_socket_close(hca_watch_release(epoll, w));
}
