/* call_reply.c - what the process says that a call has found: that the call is over, or where it goes on. */
#include <stdio.h>
#include <string.h>

#include "softhca/link/wire/call_state.h"

enum { HOPS_MAX = 4 };			/* from a process to the one that it names */

static void hint_keep(struct hca_meet *m, const struct hca_attempt *a)
{
	struct hca_endpoint e;
	struct hca_hint *hint;

	hca_address_endpoint(&a->call->to, &e);
	hint = hca_call_hint(m, &e);
	memcpy(hint->address, e.address, sizeof(hint->address));
	hint->port = a->port;
}

static void call_succeed(struct hca_meet *m, struct hca_attempt *a)
{
	struct hca_call *call = a->call;
	unsigned char proof[HCA_PROOF_BYTES];
	const struct hca_hello h = call->h;
	void *token = call->token;
	int fd, rc;

	hca_proof_write(proof, a->hello, a->reply, &m->credentials);
	rc = hca_socket_send(a->watch.fd, proof, sizeof(proof));
	if (rc) {
		hca_attempt_fail(m, a, -rc);
		hca_call_go_on(m, call);
		return;
	}
	fd = hca_watch_release(m->epoll, &a->watch);
	hca_call_free(m, call);
	m->config.reached(m->config.arg, token, fd, &h);
}

/* The process there has named the port of the owner: only the attempt on that port goes on. */
static void call_redirect(struct hca_meet *m, struct hca_call *call, uint16_t port)
{
	unsigned i = 0;

	call->first = port;
	call->next = call->last + 1;
	call->hint = call->silent = 0;
	call->more_ns = 0;
	call->outcome = HCA_CALL_NOTHING;
	while (i < call->attempts)
		if (call->attempt[i]->port == port && call->attempt[i]->have == 0) {
			call->first = 0;
			i++;
		} else {
			hca_attempt_free(m, call->attempt[i]);
		}
	if (++call->hops > HOPS_MAX)
		hca_call_fail(call, port, ENOENT, "the processes there name each other as the owner");
}

static void verdict_unknown(struct hca_call *call, uint16_t port)
{
	char text[64];

	snprintf(text, sizeof(text), "no process of this host has queue pair 0x%06x",
		 (unsigned)call->h.target_qpn);
	hca_call_fail(call, port, ENOENT, text);
}

/* The verdict does not end the call by call_succeed. */
static void verdict_apply(struct hca_meet *m, struct hca_attempt *a, enum hca_verdict verdict,
			  uint16_t port)
{
	struct hca_call *call = a->call;
	char text[96];

	switch (verdict) {
	case HCA_VERDICT_AT_PORT:
		a->have = HCA_REPLY_BYTES;
		call_redirect(m, call, port);
		break;
	case HCA_VERDICT_UNKNOWN:
		verdict_unknown(call, a->port);
		break;
	case HCA_VERDICT_OTHER_MTU:
		snprintf(text, sizeof(text), "the process there has another MTU than this "
			 "interface (%u)", (unsigned)call->h.mtu);
		hca_call_fail(call, a->port, EINVAL, text);
		break;
	case HCA_VERDICT_OTHER_RAILS:
		snprintf(text, sizeof(text), "the process there has another number of rails than "
			 "this one (%u)", (unsigned)call->h.rails);
		hca_call_fail(call, a->port, EINVAL, text);
		break;
	case HCA_VERDICT_CROSSED:
		hca_call_fail(call, a->port, EINVAL, "packets of this interface arrive there on another one " HCA_CROSSED);
		break;
	default:
		hca_attempt_end(m, a, HCA_CALL_STRANGERS);
	}
}

static void reply_arrives(struct hca_meet *m, struct hca_attempt *a)
{
	struct hca_call *call = a->call;
	enum hca_verdict verdict;
	uint16_t port;

	switch (hca_reply_read(a->reply, a->have, a->hello, &m->credentials, &verdict, &port)) {
	case 0:
		if (verdict < HCA_VERDICT_OTHER_FABRIC)
			hint_keep(m, a);
		if (verdict == HCA_VERDICT_MINE) {
			call_succeed(m, a);
			return;
		}
		verdict_apply(m, a, verdict, port);
		break;
	case -EAGAIN:
		return;
	case -EACCES:
		hca_attempt_end(m, a, HCA_CALL_OTHER_SECRET);
		break;
	case -EPROTONOSUPPORT:
		hca_attempt_end(m, a, HCA_CALL_OTHER_VERSION);
		break;
	default:
		hca_attempt_end(m, a, HCA_CALL_STRANGERS);
	}
	hca_call_go_on(m, call);
}

static int connection_error(int fd)
{
	int error = 0;
	socklen_t bytes = sizeof(error);

	return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &bytes) ? -errno : -error;
}

void hca_call_serve(struct hca_meet *m, struct hca_watch *w)
{
	struct hca_attempt *a = hca_container(w, struct hca_attempt, watch);
	struct hca_call *call = a->call;
	ssize_t rc;

	if (a->connected) {
		rc = hca_socket_fill(w->fd, a->reply, sizeof(a->reply), &a->have);
		if (rc > 0)
			reply_arrives(m, a);
	} else {
		rc = connection_error(w->fd);
		if (!rc)
			rc = hca_attempt_connected(m, a);
	}
	if (rc < 0) {
		hca_attempt_fail(m, a, (int)-rc);
		hca_call_go_on(m, call);
	}
}
