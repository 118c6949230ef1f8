/*
 * recipient.c - connections that other processes of this user and host hand over, since they share its port.
 *
 * One giver at a time: its message comes at once, as a rule, and is looked for again if not.  The next ones
 * wait in the socket's queue.
 */
#include <string.h>
#include <sys/epoll.h>

#include "softhca/link/wire/meet_state.h"

#define LOOK_NS 1000000u

int hca_recipient_begin(struct hca_meet *m)
{
	const int fd = hca_handover_open(m->credentials.fabric, &m->number);
	int rc = fd < 0 ? fd : 0;

	if (!rc) {
		m->handovers = (struct hca_watch){ HCA_WATCH_HANDOVERS, fd };
		m->givers.listener = fd;
		rc = hca_watch_add(m->epoll, &m->handovers, EPOLLIN);
	}
	if (!rc)
		return 0;
	if (fd >= 0)
		hca_socket_close(fd);
	m->handovers.fd = m->givers.listener = -1;
	return hca_fail(-rc, "TCP port %u: no Unix socket to share it with other processes: %s", (unsigned)m->port,
			strerror(-rc));
}

void hca_recipient_end(struct hca_meet *m)
{
	if (m->handovers.fd >= 0)
		hca_watch_release(m->epoll, &m->handovers);
	hca_handover_poll_end(&m->givers);
}

void hca_recipient_serve(struct hca_meet *m)
{
	const uint64_t now_ns = rg_now_ns();
	struct hca_handover h;
	int rc;

	if (m->givers.giver < 0 && !hca_incoming_has_room(m))
		return;
	rc = hca_handover_next(&m->givers, &h, now_ns);
	m->giver_look_ns = now_ns + LOOK_NS;
	hca_handovers_listen(m);
	if (!rc)
		hca_incoming_take(m, &h);
	else if (hca_socket_lacks(-rc))
		hca_incoming_lacks(m, "a shared port", -rc);
}

void hca_recipient_progress(struct hca_meet *m, uint64_t now_ns)
{
	if (rg_reached(hca_recipient_next_ns(m), now_ns))
		hca_recipient_serve(m);
}

uint64_t hca_recipient_next_ns(const struct hca_meet *m)
{
	return m->givers.giver >= 0 ? m->giver_look_ns : UINT64_MAX;
}
