/* service.c - handing this process's descriptors over to members that ask (descriptors.h). */
#include "softhca/link/memory/descriptors.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "softhca/base/fd.h"
#include "softhca/base/proc.h"
#include "util/clock.h"
#include "softhca/link/memory/bounce.h"
#include "softhca/link/memory/state.h"
#include "softhca/object/fabric.h"
#include "softhca/object/wakeup.h"
#include "softhca/pages/memory.h"
#include "softhca/link/memory/service.h"

enum {
	BACKLOG = 512,
	REQUEST_NS = 100000000,		/* limit of the wait for the request after a connect */
	PAUSE_NS = 10000000,		/* when no descriptor is free */
};

bool hca_service_unwanted;

/* ---- One answer ---------------------------------------------------------- */

/* Descriptors to send, and the descriptors among them to close afterwards. */
struct parcel {
	int fd[HCA_ANSWER_MAX], close[HCA_ANSWER_MAX];
	unsigned count, to_close;
};

static void parcel_add(struct parcel *p, int fd)
{
	p->fd[p->count++] = fd;
}

static void add_and_close(struct parcel *p, int fd)
{
	if (fd < 0)
		return;
	parcel_add(p, fd);
	p->close[p->to_close++] = fd;
}

/*
 * An open file of the table for the receiver alone: the lock on the other open file shows the owner
 * of the table, and a receiver of that could release it.
 */
static void add_table(struct parcel *p, const struct hca_fabric *f)
{
	int fd = hca_proc_reopen(f->table_fd, O_RDONLY);

	if (fd >= 0)
		add_and_close(p, fd);
	else
		parcel_add(p, f->table_fd);
}

static int segments(struct hca_fabric *f, struct parcel *p)
{
	int memory = hca_memory_fd();

	if (memory < 0)
		return -ENOMEM;
	parcel_add(p, f->self_fd);
	add_table(p, f);
	parcel_add(p, memory);
#ifdef SYS_pidfd_open
	add_and_close(p, (int)syscall(SYS_pidfd_open, getpid(), 0));
#endif
	return 0;
}

static int pack(struct hca_fabric *f, const struct hca_request *r, struct parcel *p)
{
	struct hca_link_state *state = f->link_state;

	switch (r->question) {
	case HCA_ASK_FABRIC:
		if (atomic_load(&state->service.closed) || atomic_load(&state->left))
			return -ENOTCONN;
		parcel_add(p, state->shm_fd);
		return 0;
	case HCA_ASK_SEGMENTS:
		return segments(f, p);
	case HCA_ASK_WAKEUP:
		add_and_close(p, hca_wakeup_duplicate(f, r->index));
		return p->count ? 0 : -ENOENT;
	case HCA_ASK_COPIES:
		return hca_copy_service_start(f);
	default:
		return -EINVAL;
	}
}

static void send_parcel(int s, const struct parcel *p, int result)
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(HCA_ANSWER_MAX * sizeof(int))];
	} control = { .room = { 0 } };
	struct hca_answer answer = { .magic = HCA_ANSWER_MAGIC, .result = result };
	struct iovec io = { &answer, sizeof(answer) };
	struct msghdr m = { .msg_iov = &io, .msg_iovlen = 1 };

	if (!result && p->count) {
		m.msg_control = &control;
		m.msg_controllen = CMSG_SPACE(p->count * sizeof(int));
		control.align = (struct cmsghdr){ .cmsg_len = CMSG_LEN(p->count * sizeof(int)),
						  .cmsg_level = SOL_SOCKET,
						  .cmsg_type = SCM_RIGHTS };
		memcpy(CMSG_DATA(&control.align), p->fd, p->count * sizeof(int));
	}
	sendmsg(s, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* The nonce is read last, once the asking process has identified itself. */
static bool service_may_answer(const struct hca_fabric *f, int s, const struct hca_request *r)
{
	const struct hca_identity *me = &f->link_state->me;
	struct ucred other;
	socklen_t bytes = sizeof(other);

	if (r->magic != HCA_ANSWER_MAGIC || r->abi != HCA_ABI)
		return false;
	if (r->nonce && r->nonce == f->link_state->nonce)
		return true;
	return r->question == HCA_ASK_FABRIC && me->uid_is_unique &&
	       !getsockopt(s, SOL_SOCKET, SO_PEERCRED, &other, &bytes) && other.uid == me->uid;
}

static void answer(struct hca_fabric *f, int s)
{
	struct hca_request request;
	struct parcel p = { .count = 0 };
	int rc;

	rg_wait_readable(s, REQUEST_NS);
	if (recv(s, &request, sizeof(request), MSG_DONTWAIT) != (ssize_t)sizeof(request))
		return;
	rc = service_may_answer(f, s, &request) ? pack(f, &request, &p) : -EACCES;
	send_parcel(s, &p, rc);
	while (p.to_close)
		close(p.close[--p.to_close]);
}

/* ---- The thread ---------------------------------------------------------- */

/* A program that closes descriptors of others may have another socket by this number. */
static bool is_the_same(const struct hca_service *s)
{
	struct stat st;

	return fstat(s->fd, &st) == 0 && st.st_ino == s->inode;
}

static void *service_serve(void *arg)
{
	struct hca_fabric *f = arg;
	struct hca_service *service = &f->link_state->service;
	int s;

	for (;;) {
		rg_wait_readable(service->fd, UINT64_MAX);
		if (atomic_load(&service->stop) || !is_the_same(service))
			return NULL;
		s = accept4(service->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (s >= 0) {
			answer(f, s);
			close(s);
		} else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM ||
			   errno == ENOBUFS) {
			rg_sleep_ns(PAUSE_NS);
		} else if (errno == EINVAL || errno == EBADF || errno == ENOTSOCK) {
			return NULL;
		}
	}
}

int hca_service_listen(struct hca_service *service, enum hca_address_kind kind,
		       const struct hca_address *a)
{
	int s = hca_fd_raise(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
	struct stat st;
	int err;

	if (s < 0)
		return -errno;
	if (!bind(s, (const struct sockaddr *)&a->name, a->bytes) && !listen(s, BACKLOG) &&
	    !fstat(s, &st)) {
		service->fd = s;
		service->kind = kind;
		service->inode = st.st_ino;
		return 0;
	}
	err = errno;
	close(s);
	return -err;
}

void hca_service_start(struct hca_fabric *f)
{
	struct hca_service *s = &f->link_state->service;

	if (s->fd < 0)
		return;
	s->started = !hca_service_unwanted && !rg_thread_start(&s->thread, service_serve, f);
	if (!s->started)
		hca_service_stop(s);
}

void hca_service_stop(struct hca_service *s)
{
	if (s->fd < 0)
		return;
	if (s->started) {
		atomic_store(&s->stop, true);
		shutdown(s->fd, SHUT_RDWR);
		rg_thread_join(s->thread);
	}
	close(s->fd);
	s->fd = -1;
	s->kind = HCA_NO_ADDRESS;
	s->started = false;
}
