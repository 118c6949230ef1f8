/* call_state.h - the state of a call of a struct hca_meet, for call.c and call_reply.c. */
#ifndef HCA_CALL_STATE_H
#define HCA_CALL_STATE_H

#include "softhca/link/wire/meet_state.h"

enum {
	HCA_ATTEMPTS_MAX = 8,		/* of a call, at a time */
	HCA_CALL_WHY_BYTES = 320,
};

/* The end of an attempt; of those of a call the highest is reported. */
enum hca_call_outcome {
	HCA_CALL_NOTHING,
	HCA_CALL_CLOSED,		/* no listener */
	HCA_CALL_STRANGERS,			/* another fabric, another protocol */
	HCA_CALL_ENDED,
	HCA_CALL_SILENT,
	HCA_CALL_OTHER_VERSION,
	HCA_CALL_OTHER_SECRET,
};

struct hca_attempt {
	struct hca_watch watch;
	struct hca_call *call;
	uint64_t due_ns;
	uint16_t port;
	bool connected;
	size_t have;			/* of the reply */
	unsigned char hello[HCA_HELLO_BYTES], reply[HCA_REPLY_BYTES];
};

struct hca_call {
	struct hca_list_node on_meet;
	void *token;
	struct sockaddr_storage to;
	struct hca_hello h;
	bool to_this_host;
	bool answered;			/* the host has: a firewall is not its state */
	struct hca_attempt *attempt[HCA_ATTEMPTS_MAX];
	unsigned attempts;

	/* Ports still to call: first, unless 0; then from next on. */
	uint16_t first, hint;
	uint32_t next, last;
	unsigned hops;
	uint64_t more_ns;		/* time of the next attempt */
	uint16_t silent;		/* a shared port that is connected, to call again at ...; 0: none */
	uint64_t again_ns;
	unsigned repeats;
	uint64_t turn;			/* of the meet, in which its times were checked */

	enum hca_call_outcome outcome;
	uint16_t outcome_port;
	int error;			/* ends the call: a positive errno value, and its line */
	char why[HCA_CALL_WHY_BYTES];
};

/* ---- call.c -------------------------------------------------------------- */

void hca_attempt_free(struct hca_meet *m, struct hca_attempt *a);
/* The attempt has this end; with an error of a socket, as a positive errno value. */
void hca_attempt_end(struct hca_meet *m, struct hca_attempt *a, enum hca_call_outcome outcome);
void hca_attempt_fail(struct hca_meet *m, struct hca_attempt *a, int error);
/* The attempt is connected and says hello: 0 or -errno. */
int hca_attempt_connected(struct hca_meet *m, struct hca_attempt *a);
/* The port at which a process of the fabric answered last at an address. */
struct hca_hint *hca_call_hint(struct hca_meet *m, const struct hca_endpoint *e);
/* The call ends with this error, of this port. */
void hca_call_fail(struct hca_call *call, uint16_t port, int error, const char *text);
/* Begin attempts that are due, or tell that the call has failed. */
void hca_call_go_on(struct hca_meet *m, struct hca_call *call);
void hca_call_free(struct hca_meet *m, struct hca_call *call);

#endif
