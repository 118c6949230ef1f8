/*
 * recipient.c - connections that other processes of this user and host hand over, since they share its port.
 *
 * One giver at a time: its message comes at once, as a rule.  The next ones wait in the socket's queue.
 */
#include <string.h>
#include <sys/epoll.h>

#include "softhca/link/wire/meet_state.h"

int hca_recipient_begin(struct hca_meet *m)
{
	const int fd = hca_handover_open(m->credentials.fabric, &m->number);
	int rc = fd < 0 ? fd : 0;

	if (!rc) {
		m->handovers = (struct hca_watch){ HCA_WATCH_HANDOVERS, fd };
		rc = hca_watch_add(m->epoll, &m->handovers, EPOLLIN);
	}
	if (!rc)
		return 0;
	if (fd >= 0)
		hca_socket_close(fd);
	m->handovers.fd = -1;
	return hca_fail(-rc, "TCP port %u: no Unix socket to share it with other processes: %s", (unsigned)m->port,
			strerror(-rc));
}

void hca_recipient_end(struct hca_meet *m)
{
	if (m->giver.fd >= 0)
		hca_watch_close(m->epoll, &m->giver);
	if (m->handovers.fd >= 0)
		hca_watch_close(m->epoll, &m->handovers);
}

static void giver_close(struct hca_meet *m)
{
	hca_watch_close(m->epoll, &m->giver);
	hca_handovers_listen(m);
}

/* The message of a giver, which has no more to say.  False: not yet. */
static bool giver_speaks(struct hca_meet *m, int fd)
{
	struct hca_handover h;
	const int rc = hca_handover_receive(fd, &h);

	if (rc == -EAGAIN)
		return false;
	if (!rc)
		hca_incoming_take(m, &h);
	return true;
}

void hca_recipient_accept(struct hca_meet *m)
{
	int fd;

	if (m->giver.fd >= 0 || !hca_incoming_has_room(m))
		return;
	fd = hca_handover_accept(m->handovers.fd);
	if (fd < 0) {
		if (hca_socket_lacks(-fd))
			hca_incoming_lacks(m, "a shared port", -fd);
		return;
	}
	if (giver_speaks(m, fd)) {
		hca_socket_close(fd);
		return;
	}
	m->giver = (struct hca_watch){ HCA_WATCH_GIVER, fd };
	if (hca_watch_add(m->epoll, &m->giver, EPOLLIN)) {
		giver_close(m);
		return;
	}
	m->giver_due_ns = rg_now_ns() + HCA_GIVER_NS;
	hca_handovers_listen(m);
}

void hca_recipient_serve(struct hca_meet *m)
{
	if (giver_speaks(m, m->giver.fd))
		giver_close(m);
}

void hca_recipient_progress(struct hca_meet *m, uint64_t now_ns)
{
	if (m->giver.fd >= 0 && rg_reached(m->giver_due_ns, now_ns))
		giver_close(m);
}

uint64_t hca_recipient_next_ns(const struct hca_meet *m)
{
	return m->giver.fd >= 0 ? m->giver_due_ns : UINT64_MAX;
}
