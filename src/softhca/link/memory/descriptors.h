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

void hca_identity_get(struct hca_identity *me);

enum hca_address_kind { HCA_NO_ADDRESS, HCA_BY_NUMBER, HCA_BY_NAME };

struct hca_address {
	struct sockaddr_un name;
	socklen_t bytes;
};

void hca_address_by_number(uint64_t id, uint32_t slot, struct hca_address *a);
void hca_address_by_name(uint64_t place, const char *fabric, struct hca_address *a);
uint64_t hca_address_place(void);
/* A member's address; false: it has none, or none in this network namespace. */
bool hca_address_of_slot(const struct hca_identity *me, const struct hca_shm_fabric *shm,
			 uint32_t slot, struct hca_address *a);
/* Does a process listen there? */
bool hca_address_lives(const struct hca_address *a);

/* ---- Asking ---------------------------------------------------------------- */

enum hca_question {
	HCA_ASK_FABRIC,		/* the fabric segment */
	HCA_ASK_SEGMENTS,	/* process, table, memory and, if it has any, a pidfd */
	HCA_ASK_WAKEUP,		/* number `index` */
	HCA_ASK_COPIES,		/* no descriptor: the member starts its copy service (bounce.h) */
};
enum { HCA_ANSWER_MAX = 4 };

/*
 * Ask, and wait for the answer, a second at most.  The number of descriptors, not checked yet; or
 * -errno (silent): -ECONNREFUSED: no process listens there; -EACCES: the process belongs to another
 * user; -ETIMEDOUT; -EPERM: the process refuses.
 */
int hca_ask(const struct hca_identity *me, const struct hca_address *a, uint64_t nonce,
	    enum hca_question question, uint32_t index, int fd[HCA_ANSWER_MAX]);

/*
 * The same of a member in a slot, by a member.  -ENOENT: no address; -EAGAIN: it has not answered within
 * the last second, as a process that is stopped does not, and is not waited for again.
 */
int hca_ask_slot(struct hca_link_state *state, uint32_t slot, const struct hca_address *a,
		 enum hca_question question, uint32_t index, int fd[HCA_ANSWER_MAX]);

/*
 * The reason why no descriptor of a living member can be had, and the remedy.  `near` and `far`:
 * results of /proc and of asking, -EXDEV for a method of no use in these namespaces.
 */
void hca_unreachable(char *buf, size_t size, const char *fabric, pid_t pid, int near, int far);

/* ---- Members as others see them --------------------------------------------- */

/* Does /proc show the member to this process, under the member's own pid? */
static inline bool hca_is_near(const struct hca_identity *me, uint32_t pid_ns)
{
	return pid_ns && pid_ns == me->pid_ns;
}

/* Is the process in that slot alive?  True if unknown. */
bool hca_slot_alive(const struct hca_identity *me, const struct hca_shm_fabric *shm,
		    uint32_t slot);

/* ---- Answering -------------------------------------------------------------- */

struct hca_service {
	int fd;			/* listens; -1: none */
	enum hca_address_kind kind;
	uint64_t inode;
	pthread_t thread;
	bool started;
	_Atomic bool stop, closed;	/* closed: to processes that want to join */
};

/* Listen there.  0, -EADDRINUSE or another -errno (silent). */
int hca_service_listen(struct hca_service *s, enum hca_address_kind kind,
		       const struct hca_address *a);
/* Start the thread that answers; without a thread, stop listening. */
void hca_service_start(struct hca_fabric *f);
void hca_service_stop(struct hca_service *s);

/* Tests set it: members that are tasks of one process need no thread for this. */
extern bool hca_service_unwanted;

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
