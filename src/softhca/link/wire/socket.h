/* socket.h - TCP sockets of a wire, their addresses, and waiting for them. */
#ifndef HCA_SOCKET_H
#define HCA_SOCKET_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "softhca/link/wire/handshake.h"

void hca_address_port_set(struct sockaddr_storage *a, uint16_t port);
/* A link-local address without a scope is on the link of `local`. */
void hca_address_scope_set(struct sockaddr_storage *a, const struct sockaddr_storage *local);
/* The address without its port; returns `text`. */
const char *hca_address_text(const struct sockaddr_storage *a, char text[INET6_ADDRSTRLEN]);
void hca_address_endpoint(const struct sockaddr_storage *a, struct hca_endpoint *e);
/* Are the addresses alike, without their ports? */
bool hca_address_is_same(const struct sockaddr_storage *a, const struct sockaddr_storage *b);
/* Is it an address of this very host (network namespace)? */
bool hca_address_is_local(const struct sockaddr_storage *a);

/*
 * Sockets are non-blocking, close-on-exec, TCP_NODELAY, and have numbers from 1024 on where the
 * limit allows it: programs that call select keep the low ones.  A descriptor, or -errno (silent).
 */
enum hca_listen {
	HCA_LISTEN_ALONE,		/* no other socket listens there, nor will */
	HCA_LISTEN_FIRST,		/* none does; those of this user may follow */
	HCA_LISTEN_SHARED,		/* those of this user may be there */
};
int hca_socket_listen(const struct sockaddr_storage *local, uint16_t port, enum hca_listen how);
/* A connection to a listener of any family; or -errno. */
int hca_socket_take(int listener);
/* The same over TCP. */
int hca_socket_accept(int listener);
/* Does this error mean that descriptors or memory are lacking? */
bool hca_socket_lacks(int error);
/*
 * Begin to connect, from the address `local` (its port is ignored) and over this interface
 * (hca_socket_interface); 0: as routed.  *fd; 0: connected, -EINPROGRESS: it becomes writable; else -errno
 * and no *fd.
 */
int hca_socket_connect(const struct sockaddr_storage *to, const struct sockaddr_storage *local,
		       unsigned interface, int *fd);
/* Take over a descriptor: the same at a number from 1024 on, if the limit allows it. */
int hca_socket_raise(int fd);
/*
 * Room for so many bytes that the program has not read, more than the kernel begins with; its own
 * tuning goes on from there (net.ipv4.tcp_rmem has the bounds).
 */
void hca_socket_room(int fd, int bytes);
/* The rates that a connection has had lately, and the rate that it is bound to. */
enum { HCA_BOUND_INTERVALS = 4 };
struct hca_socket_bounds {
	uint64_t rate;			/* bytes a second; 0: no bound */
	uint64_t carried[HCA_BOUND_INTERVALS];	/* bytes a second */
	unsigned intervals;
	uint64_t acked, busy_us;	/* when the last one ended: bytes, and the time with some under way */
};
/*
 * Bound what the kernel takes before it can be sent to what the connection carries in so many
 * nanoseconds: later bytes of the program wait for these.  On a slow path, bound the rate as well: the queue
 * of an interface is given what leaves in a millisecond at that rate, and not a whole window, for which bytes
 * of other connections would wait.  False: nothing waits, so that the path does not show its rate.
 */
bool hca_socket_bound(int fd, uint64_t ns, struct hca_socket_bounds *b);
/* Takes one more interval; returns the bound that follows from the last ones, 0: none. */
uint64_t hca_rate_bound(struct hca_socket_bounds *b, uint64_t carried);
/* Send what the kernel holds back since a send with MSG_MORE: TCP_NODELAY does, though it is set already. */
void hca_socket_push(int fd);
/*
 * Descriptors of hca_socket_* are this process's alone: a child of fork closes all of them, whatever
 * other threads of its parent were doing.
 */
void hca_socket_close(int fd);
/* The program has closed it: its number is another file's, perhaps. */
void hca_socket_forget(int fd);
void hca_sockets_close_in_child(void);
/*
 * Send and receive over the interface of this number alone, whose name may change: 0 or -errno.  Before
 * Linux 5.7 users without privileges may not: a connection stays by its address then, where the routes lead
 * over this interface; elsewhere -EXDEV, and one line a process.  hca_socket_stay is silent.
 */
int hca_socket_interface(int fd, unsigned interface);
int hca_socket_stay(int fd, unsigned interface);
#define HCA_SOCKET_ASTRAY "packets to host %s leave over another interface, and this kernel lets only root bind " \
	"them to this one (accepted: Linux 5.7 or newer, CAP_NET_RAW, or routes from this address over this interface)"
/* The number of the interface on which an accepted connection arrived; 0: unknown. */
unsigned hca_socket_arrived_on(int fd, bool ipv4);

/* Is there anything to read, or the end?  The socket is not locked: its packets arrive meanwhile. */
bool hca_socket_is_readable(int fd);
/* Read up to *have == most bytes: the count, 0: none now; -errno, at the end -ECONNRESET. */
ssize_t hca_socket_fill(int fd, unsigned char *to, size_t most, size_t *have);
/* All of it now, as a new connection takes: 0 or -errno. */
int hca_socket_send(int fd, const unsigned char *from, size_t bytes);

/*
 * A descriptor in an epoll set.  It leaves the set before it is closed or handed over: a child of
 * fork has the same open file, which would stay in the set.
 */
enum hca_watch_role {
	HCA_WATCH_LISTENER, HCA_WATCH_INCOMING, HCA_WATCH_ATTEMPT, HCA_WATCH_HANDOVERS
};
struct hca_watch {
	enum hca_watch_role role;
	int fd;
};
int hca_watch_add(int epoll, struct hca_watch *w, uint32_t events);
void hca_watch_change(int epoll, struct hca_watch *w, uint32_t events);
int hca_watch_release(int epoll, struct hca_watch *w);		/* returns its descriptor */
void hca_watch_close(int epoll, struct hca_watch *w);

#endif
