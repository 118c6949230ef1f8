/* probe_state.h - the state of a struct softhca_probe, for probe.c and probe_end.c. */
#ifndef HCA_PROBE_STATE_H
#define HCA_PROBE_STATE_H

#include <netinet/in.h>

#include "softhca/base/base.h"
#include "softhca/link/wire/handover.h"
#include "softhca/link/wire/packets.h"
#include "softhca/softhca.h"

enum hca_probe_stage {
	HCA_PROBE_CONNECT,		/* caller: until the greeting can be sent */
	HCA_PROBE_GREETED,		/* expects the other's greeting */
	HCA_PROBE_PACKETS,
	HCA_PROBE_ENDS,			/* callee: the caller closes first */
};

struct hca_probe_end {
	struct hca_probe_end *next;
	int fd;
	bool caller;
	enum hca_probe_stage stage;
	unsigned net;			/* in the list */
	uint64_t due_ns;
	unsigned char in[HCA_HELLO_BYTES];	/* HCA_GREETING_BYTES, unless it is no probe's */
	size_t have;
	unsigned times;			/* that it has changed hands */
	struct hca_packets packets;	/* the last byte that the caller reads: the callee's shrank */
	/* The caller's. */
	struct sockaddr_storage there;
	uint64_t again_ns;		/* it is called again; 0: it is not */
	int refusal;			/* the last one of a shared port; fd is -1 then, or the next call's */
	uint8_t host[16];
	struct softhca_probed *result;
};

struct softhca_probe {
	const struct softhca_net *list;
	unsigned count;
	uint64_t job;
	uint8_t host[16];
	uint16_t first, last;		/* ports */
	int listener[SOFTHCA_NETS_MAX];
	struct hca_handover_poll handovers;	/* if a port is shared (handover.h) */
	struct hca_handover_search search;
	unsigned char group[HCA_HASH_BYTES];
	struct hca_probe_end *end;	/* all of both directions */
	unsigned calls, incoming;
};

/* ---- probe_end.c --------------------------------------------------------- */

/* The code of a call that ends in this stage with rc, -errno of its socket. */
enum softhca_probe_code hca_probe_code_of(enum hca_probe_stage stage, int rc);
/* Connect from an interface of the list: 0, -EINPROGRESS or another -errno. */
int hca_probe_connect(const struct softhca_probe *p, unsigned from, const struct sockaddr_storage *there, int *fd);
/* Send and receive what can be.  True: the end is over, and a caller's result is set. */
bool hca_probe_end_is_done(struct softhca_probe *p, struct hca_probe_end *e, uint64_t now_ns);

#endif
