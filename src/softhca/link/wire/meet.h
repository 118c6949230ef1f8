/*
 * meet.h - connections between processes of a fabric, until both ends have proven the fabric, the
 * numbers and the secret (handshake.h).
 *
 * Each process listens at the address of each rail, all on one port of the range.  A caller knows
 * the address alone: it tries the ports of the range, and any process of the fabric there names the
 * port of the owner of a queue pair number, or hands the connection over to it.
 *
 * Nothing blocks and no thread is started: hca_meet_progress serves all connections, whenever
 * hca_meet_fd is readable or hca_meet_next_ns is reached.  The caller serialises all calls for one
 * hca_meet.  Callbacks come from hca_meet_progress alone, and may call hca_meet_call and
 * hca_meet_cancel.
 */
#ifndef HCA_MEET_H
#define HCA_MEET_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

struct hca_meet;

enum hca_meet_kind {
	HCA_MEET_QP = 1,	/* one connected queue pair at each end */
	HCA_MEET_DATAGRAMS,	/* all of two processes over a rail; numbers: any of theirs */
	HCA_MEET_QUESTION,	/* none: does the process answer that has the number? */
};

/* The claims of a caller; all of them are proven with the secret. */
struct hca_hello {
	uint8_t kind;			/* enum hca_meet_kind */
	uint8_t rail;			/* from 0 */
	uint32_t source_qpn, target_qpn;
	uint32_t psn;			/* that the caller expects first (rq_psn) */
	uint32_t mtu;			/* in bytes */
	uint32_t rails;			/* of the caller's fabric */
	union ibv_gid source, target;
	uint8_t host[16];		/* identity of the caller's host */
};

enum hca_meet_answer {
	HCA_MEET_MINE,			/* this process has it, and expects this connection */
	HCA_MEET_AT_PORT,		/* another process of this host has it, at port *at */
	HCA_MEET_SHARED,		/* ... that shares its port: hca_meet_shared() there is *at */
	HCA_MEET_UNKNOWN,		/* no process of this host has it, now */
	HCA_MEET_OTHER_MTU,		/* the ends have different MTUs */
};

enum {
	HCA_MEET_UNPROVEN_MAX = 256,	/* connections of others; beyond, the oldest goes */
};
#define HCA_MEET_PATIENCE_NS 5000000000u	/* for a connection to prove it, or to answer */

/* All pointers but `arg` are read in hca_meet_open only. */
struct hca_meet_config {
	const char *fabric;		/* name */
	unsigned char secret[32];
	uint16_t port_first, port_last;
	/* Per rail: address (its port is ignored) and name of the interface. */
	const struct sockaddr_storage *local;
	const char *const *interface;
	unsigned rails;			/* HCA_PORTS_MAX at most */

	void *arg;
	/*
	 * The owner of h->target_qpn at h->target.  The caller has proven nothing yet, so this only
	 * looks.
	 */
	enum hca_meet_answer (*find)(void *arg, const struct hca_hello *h, uint16_t *at);
	/*
	 * A caller has proven h, for which find returned HCA_MEET_MINE: fd is the callee's now, and
	 * its first bytes may have arrived.  The queue pair may have changed since find.
	 */
	void (*arrived)(void *arg, int fd, const struct hca_hello *h);
	/* hca_meet_call: the process with the number has proven the secret; fd is the caller's now. */
	void (*reached)(void *arg, void *token, int fd, const struct hca_hello *h);
	/*
	 * hca_meet_call has failed; `why` is one line, valid during the call.
	 *	ENOENT		no process there has the number (yet)
	 *	ECONNREFUSED	no process of the fabric listens there (yet)
	 *	ECONNRESET	it ended the connection
	 *	ETIMEDOUT	the host answers nothing within 4 s
	 *	EBUSY		it does, the process does not within HCA_MEET_PATIENCE_NS (stopped?)
	 *	EACCES		another secret
	 *	EPROTONOSUPPORT	another version
	 *	EINVAL		another number of rails, another MTU
	 *	others		of connect(2): EHOSTUNREACH, ENETUNREACH, EADDRNOTAVAIL...
	 */
	void (*refused)(void *arg, void *token, int error, const char *why);
};

/*
 * Listen at all addresses, on the first port of the range that is free at each of them; else on one that
 * processes of this user share (hca_port_is_shared).  0, or -errno with the line set (hca_fail).
 */
int hca_meet_open(struct hca_meet **m, const struct hca_meet_config *c);
/*
 * Close all connections that are not proven; without callbacks.  Also for a child of fork, which has
 * copies of the descriptors: its parent goes on.
 */
void hca_meet_close(struct hca_meet *m);

/* Why a call of the host with this address (as a GID) went no further, the last one on the rail; NULL: none did. */
const char *hca_meet_turned_away(const struct hca_meet *m, unsigned rail, const unsigned char address[16]);
uint16_t hca_meet_port(const struct hca_meet *m);
/* Others of this user may share the port: the number that hands a connection over to this one.  -1: none may. */
int hca_meet_shared(const struct hca_meet *m);
/* An epoll descriptor, for waiting only. */
int hca_meet_fd(const struct hca_meet *m);
/* Serve what is ready, a bounded number of events. */
void hca_meet_progress(struct hca_meet *m);
/* The time of the next need without a readable descriptor; UINT64_MAX: none. */
uint64_t hca_meet_next_ns(const struct hca_meet *m);

/*
 * Connect to the process that has h->target_qpn, at the address `to` (its port is ignored), over
 * rail h->rail.  Ends by `reached` or `refused`, unless canceled.  0, or -errno with the line set.
 *
 * Sockets that are handed over: non-blocking, close-on-exec, TCP_NODELAY, numbers from 1024 on
 * where the limit allows it, bound to the rail's interface where the kernel allows it and the peer
 * is on another host.
 */
int hca_meet_call(struct hca_meet *m, const struct sockaddr_storage *to, const struct hca_hello *h,
		  void *token);
/* Forget all calls with this token; no callback follows. */
void hca_meet_cancel(struct hca_meet *m, void *token);

#endif
