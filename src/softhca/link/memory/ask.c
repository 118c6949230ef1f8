/* ask.c - asking members for their descriptors (descriptors.h). */
#include "softhca/link/memory/descriptors.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "softhca/base/fd.h"
#include "softhca/base/proc.h"
#include "util/clock.h"
#include "softhca/link/memory/state.h"
#include "softhca/link/memory/ask.h"

#ifndef SO_NETNS_COOKIE
#define SO_NETNS_COOKIE 71
#endif

enum { PATIENCE_NS = 1000000000, PAUSE_NS = 1000000 };

/* ---- Who this process is ------------------------------------------------- */

static uint64_t network(void)
{
	int s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	uint64_t cookie = 0;
	socklen_t bytes = sizeof(cookie);
	struct stat st;

	if (s < 0)
		return 0;
	if (getsockopt(s, SOL_SOCKET, SO_NETNS_COOKIE, &cookie, &bytes)) {	/* before Linux 5.14 */
		cookie = 1;
		if (!hca_proc_stat("/proc/self/ns/net", &st))
			cookie = st.st_ino;
	}
	close(s);
	return cookie;
}

/* In a user namespace all users without a number have one number, perhaps also this user. */
static bool is_unique(uid_t uid)
{
	static const char all_users[] = "         0          0 4294967295\n";
	char text[sizeof(all_users)] = "";
	bool all = false;
	int fd;

	if (uid != 65534)
		return true;
	fd = hca_proc_open("/proc/self/uid_map", O_RDONLY);
	if (fd >= 0) {
		all = read(fd, text, sizeof(text)) == (ssize_t)sizeof(text) - 1 &&
		      strcmp(text, all_users) == 0;
		close(fd);
	}
	return all;
}

void hca_identity_get(struct hca_identity *me)
{
	hca_proc_keep();
	me->uid = geteuid();
	me->uid_is_unique = is_unique(me->uid);
	me->pid_ns = hca_proc_namespace();
	me->net_ns = network();
}

/* ---- Addresses ----------------------------------------------------------- */

/* Abstract: the first byte is 0, and the length counts. */
static void address_make(struct hca_address *a, uint64_t number, const char *what)
{
	const size_t room = sizeof(a->name.sun_path) - 1;
	int n;

	memset(a, 0, sizeof(*a));
	a->name.sun_family = AF_UNIX;
	n = snprintf(a->name.sun_path + 1, room, "softhca.%016llx.%s", (unsigned long long)number,
		     what);
	a->bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

void hca_address_by_number(uint64_t id, uint32_t slot, struct hca_address *a)
{
	char text[12];

	snprintf(text, sizeof(text), "%u", slot);
	address_make(a, id, text);
}

void hca_address_by_name(uint64_t place, const char *fabric, struct hca_address *a)
{
	char name[HCA_NAME_MAX + 1] = "";

	strncat(name, fabric, HCA_NAME_MAX);
	address_make(a, place, name);
}

/* FNV-1a */
uint64_t hca_address_place(void)
{
	const char *dir = getenv("SOFTHCA_DIR");
	uint64_t hash = 0xcbf29ce484222325u;

	for (; dir && *dir; dir++)
		hash = (hash ^ (unsigned char)*dir) * 0x100000001b3u;
	return hash;
}

bool hca_address_of_slot(const struct hca_identity *me, const struct hca_shm_fabric *shm,
			 uint32_t slot, struct hca_address *a)
{
	const struct hca_shm_slot *s = &shm->slot[slot];

	a->bytes = 0;
	if (!me->net_ns || s->net_ns != me->net_ns)
		return false;
	if (s->address == HCA_BY_NUMBER)
		hca_address_by_number(shm->id, slot, a);
	else if (s->address == HCA_BY_NAME)
		hca_address_by_name(shm->place, shm->name, a);
	else
		return false;
	return true;
}

static int connect_to(const struct hca_address *a)
{
	int s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), err;

	if (s < 0)
		return -errno;
	if (!connect(s, (const struct sockaddr *)&a->name, a->bytes))
		return s;
	err = errno;
	close(s);
	return -err;
}

bool hca_address_lives(const struct hca_address *a)
{
	int s = connect_to(a);

	if (s >= 0)
		close(s);
	return s != -ECONNREFUSED;
}

/* ---- Asking -------------------------------------------------------------- */

/* The member listens, and many ask at once. */
static int connect_in_time(const struct hca_address *a, uint64_t deadline)
{
	int s;

	while ((s = connect_to(a)) == -EAGAIN && !rg_reached(deadline, rg_now_ns()))
		rg_sleep_ns(PAUSE_NS);
	return s == -EAGAIN ? -ETIMEDOUT : s;
}

static bool socket_is_ours(const struct hca_identity *me, int s)
{
	struct ucred other;
	socklen_t bytes = sizeof(other);

	return !getsockopt(s, SOL_SOCKET, SO_PEERCRED, &other, &bytes) && other.uid == me->uid;
}

static int take_descriptors(struct msghdr *m, int fd[HCA_ANSWER_MAX])
{
	struct cmsghdr *c;
	int count = 0, got;
	size_t i;

	for (c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (i = 0; i < (c->cmsg_len - CMSG_LEN(0)) / sizeof(got); i++) {
			memcpy(&got, CMSG_DATA(c) + i * sizeof(got), sizeof(got));
			if (count < HCA_ANSWER_MAX)
				fd[count++] = got;
			else
				close(got);
		}
	}
	return count;
}

/* -EAGAIN: no answer yet. */
static int receive(int s, int fd[HCA_ANSWER_MAX])
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(HCA_ANSWER_MAX * sizeof(int))];
	} control;
	struct hca_answer answer = { 0 };
	struct iovec io = { &answer, sizeof(answer) };
	struct msghdr m = { .msg_iov = &io, .msg_iovlen = 1, .msg_control = &control,
			    .msg_controllen = sizeof(control) };
	ssize_t n = recvmsg(s, &m, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	int count;

	if (n < 0)
		return -errno;
	count = take_descriptors(&m, fd);
	if (n == (ssize_t)sizeof(answer) && answer.magic == HCA_ANSWER_MAGIC && !answer.result &&
	    !(m.msg_flags & MSG_CTRUNC))
		return count;
	while (count)
		close(fd[--count]);
	return -EPERM;
}

static int wait_for_answer(int s, int fd[HCA_ANSWER_MAX], uint64_t deadline)
{
	int rc;

	while ((rc = receive(s, fd)) == -EAGAIN) {
		uint64_t now = rg_now_ns();

		if (rg_reached(deadline, now))
			return -ETIMEDOUT;
		rg_wait_readable(s, deadline - now);
	}
	return rc;
}

int hca_ask(const struct hca_identity *me, const struct hca_address *a, uint64_t nonce,
	    enum hca_question question, uint32_t index, int fd[HCA_ANSWER_MAX])
{
	const struct hca_request request = { .magic = HCA_ANSWER_MAGIC, .nonce = nonce,
					     .abi = HCA_ABI, .question = question, .index = index };
	const uint64_t deadline = rg_now_ns() + PATIENCE_NS;
	int err = errno, s = connect_in_time(a, deadline), rc;

	if (s < 0)
		rc = s;
	else if (!socket_is_ours(me, s))
		rc = -EACCES;
	else if (send(s, &request, sizeof(request), MSG_NOSIGNAL) != (ssize_t)sizeof(request))
		rc = -EPERM;
	else
		rc = wait_for_answer(s, fd, deadline);
	if (s >= 0)
		close(s);
	errno = err;
	return rc;
}

int hca_ask_slot(struct hca_link_state *state, uint32_t slot, const struct hca_address *a,
		 enum hca_question question, uint32_t index, int fd[HCA_ANSWER_MAX])
{
	_Atomic uint64_t *silent = &state->silent_until_ns[slot];
	int rc;

	if (!a->bytes)
		return -ENOENT;
	if (!rg_reached(atomic_load(silent), rg_now_ns()))
		return -EAGAIN;
	rc = hca_ask(&state->me, a, state->nonce, question, index, fd);
	if (rc == -ETIMEDOUT)
		atomic_store(silent, rg_now_ns() + PATIENCE_NS);
	return rc;
}

void hca_unreachable(char *buf, size_t size, const char *fabric, pid_t pid, int near, int far)
{
	const char *common = near == -EXDEV ? "a pid namespace" : "a user namespace";
	char seen[160];

	if (near == -EMFILE || near == -ENFILE) {
		snprintf(buf, size, "fabric %s: the descriptors of its member %d cannot be had: %s", fabric, (int)pid,
			 hca_fd_error(-near, seen, sizeof(seen)));
		return;
	}
	if (near == -EXDEV)
		snprintf(seen, sizeof(seen), "it is in another pid namespace");
	else
		snprintf(seen, sizeof(seen), "/proc/%d/fd: %s (another user namespace, hidepid, setuid or "
			 "not dumpable)", (int)pid, strerror(-near));
	if (far == -EXDEV)
		snprintf(buf, size, "fabric %s: the descriptors of its member %d cannot be had: %s, and it "
			 "is in another network namespace; allow the processes %s or a network namespace "
			 "in common", fabric, (int)pid, seen, common);
	else if (far == -ETIMEDOUT || far == -EAGAIN)
		snprintf(buf, size, "fabric %s: its member %d does not hand over its descriptors in time "
			 "(stopped?), and they cannot be had otherwise: %s", fabric, (int)pid, seen);
	else
		snprintf(buf, size, "fabric %s: the descriptors of its member %d cannot be had: %s, and it "
			 "hands over none (%s); allow the processes %s in common, or sockets (AF_UNIX)",
			 fabric, (int)pid, seen, strerror(-far), common);
}

/* ---- Members -------------------------------------------------------------- */

bool hca_slot_alive(const struct hca_identity *me, const struct hca_shm_fabric *shm,
		    uint32_t slot)
{
	const struct hca_shm_slot *s = &shm->slot[slot];
	struct hca_address a;

	if (hca_is_near(me, s->pid_ns))
		return hca_process_alive(s->pid, s->start_time, -1);
	return !hca_address_of_slot(me, shm, slot, &a) || hca_address_lives(&a);
}
