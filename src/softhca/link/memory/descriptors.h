/*
 * descriptors.h - descriptors of a member, which the member itself hands over.
 *
 * Peers open a member's segments and wake-ups through /proc/<pid>/fd.  Where /proc denies that or
 * shows other processes (another pid or user namespace, setuid after the start, hidepid, no /proc),
 * they ask the member: it has a socket with an abstract name, and a thread that answers with
 * descriptors (SCM_RIGHTS) and usually sleeps.  Asking needs only a common network namespace.
 *
 *	address		abstract name
 *	by number	softhca.<id of the fabric>.<slot>
 *	by name		softhca.<place>.<name of the fabric>
 *
 * The process that began the fabric has the address by name.  Processes without a common directory,
 * and so without a member registry, find the fabric by it; <place> is a hash of SOFTHCA_DIR.
 *
 * The kernel reports the user at the other end (SO_PEERCRED; for a member, its user at the time of
 * listen).  A member answers to its own user, and to a process that knows the nonce of the fabric,
 * such as another member after setuid.  A process asks only members of its own user.
 */
#ifndef HCA_DESCRIPTORS_H
#define HCA_DESCRIPTORS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

#include "softhca/base/layout.h"

struct hca_fabric;
struct hca_link_state;

/* A process as others see it: its state when it joined. */
struct hca_identity {
	uid_t uid;
	bool uid_is_unique;	/* no other user looks like this one from here */
	uint32_t pid_ns;	/* 0: unknown */
	uint64_t net_ns;	/* 0: it has no sockets */
};

enum hca_address_kind { HCA_NO_ADDRESS, HCA_BY_NUMBER, HCA_BY_NAME };

struct hca_address {
	struct sockaddr_un name;
	socklen_t bytes;
};

/* ---- Asking ---------------------------------------------------------------- */

enum hca_question {
	HCA_ASK_FABRIC,		/* the fabric segment */
	HCA_ASK_SEGMENTS,	/* process, table, memory and, if it has any, a pidfd */
	HCA_ASK_WAKEUP,		/* number `index` */
	HCA_ASK_COPIES,		/* no descriptor: the member starts its copy service (bounce.h) */
};
enum { HCA_ANSWER_MAX = 4 };

/* ---- Members as others see them --------------------------------------------- */

/* Does /proc show the member to this process, under the member's own pid? */
static inline bool hca_is_near(const struct hca_identity *me, uint32_t pid_ns)
{
	return pid_ns && pid_ns == me->pid_ns;
}

/* The messages: a request and its answer. */
struct hca_request {
	uint64_t magic, nonce;
	uint32_t abi, question, index, pad;
};

struct hca_answer {
	uint64_t magic;
	int32_t result;		/* 0 or -errno */
	uint32_t pad;
};

#define HCA_ANSWER_MAGIC	0x7363656463683130ull

#endif
