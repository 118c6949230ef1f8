/*
 * vrb.h - what every user of verbs must do, once: find ports, open adapters,
 * bring reliable queue pairs up and take them down, register memory.
 *
 * On the libibverbs API only: no MPI, no policy, no messages.  Real HCAs, the
 * kernel's software ones and libsofthca's devices look the same from here on.
 *
 * Returns 0 or -errno; who detects an error says so in one line (util/err.h);
 * outputs are set only on success.  One thread per adapter at a time.
 */
#ifndef VRB_H
#define VRB_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- Ports -------------------------------------------------------------- */

enum vrb_kind {
	VRB_HARDWARE,
	VRB_KERNEL_SOFTWARE,		/* Soft-RoCE (rxe), Soft-iWARP (siw) */
	VRB_SOFTHCA,
};

enum { VRB_GID_BYTES = 16 };

struct vrb_port {
	struct ibv_device *device;	/* owned by the table */
	char name[IBV_SYSFS_NAME_MAX + 8];	/* "mlx5_0:1" */
	uint8_t number;			/* of the port, from 1 */
	enum vrb_kind kind;
	bool usable;			/* a transport that carries RC with immediates */
	uint8_t link_layer;		/* IBV_LINK_LAYER_... */
	enum ibv_port_state state;
	uint64_t rate_bytes_per_s;	/* one direction, data; 0 = unlimited */
	enum ibv_mtu mtu;		/* active */
	uint16_t lid;
	int gid_index;			/* -1: this port has no GID that can be used */
	uint8_t gid_type;		/* enum ibv_gid_type; both ends must use the same */
	bool gid_link_local;		/* Ethernet: nothing better than a link-local one */
	union ibv_gid gid;
	/*
	 * Ports with equal keys reach each other.  InfiniBand: the subnet prefix.
	 * RoCE: the network of the netdev's IPv4 address, or the prefix of the GID.
	 */
	unsigned char subnet[VRB_GID_BYTES];
	char pci[32];			/* address on the bus for sorting; "" for virtual devices */
};

struct vrb_ports {
	int count;
	struct vrb_port *port;		/* sorted by PCI address, device name, port number */
	struct ibv_device **list;
};

/*
 * All ports of the devices in list (from ibv_get_device_list or
 * softhca_get_device_list), which the table owns from then on, on failure too.
 * Opens each device briefly; one that cannot be opened is left out with a line.
 */
int vrb_ports_scan(struct ibv_device **list, struct vrb_ports *out);
void vrb_ports_free(struct vrb_ports *ports);

const char *vrb_port_state_text(enum ibv_port_state state);
uint32_t vrb_mtu_bytes(enum ibv_mtu mtu);

/* ---- Adapters ----------------------------------------------------------- */

struct vrb_adapter {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;		/* of all queue pairs of this adapter */
	struct ibv_device_attr attr;
	enum vrb_kind kind;
	/*
	 * Data of one RDMA write appear in the order of their addresses, so that
	 * a reader may poll memory instead of the CQ.
	 */
	bool in_order;
	/* ... and writes on one queue pair appear one after the other. */
	bool in_order_writes;
	uint32_t inline_bytes;		/* what a queue pair is granted that asks for 256 */
};

/*
 * Open a device and make its one PD and one CQ of at least cq_entries.  Asks a
 * queue pair, made for the purpose, what the device promises about order.
 */
int vrb_adapter_open(struct vrb_adapter *adapter, const struct vrb_port *port, int cq_entries);
void vrb_adapter_close(struct vrb_adapter *adapter);

enum vrb_mr_use {
	VRB_MR_POLLED,		/* strictly ordered: somebody polls this memory */
	VRB_MR_BULK,		/* found complete through the CQ: may be written in any order */
};

/* Local and remote write.  Silent on failure: the caller may make room and retry. */
int vrb_mr_register(struct vrb_adapter *adapter, void *addr, size_t bytes, enum vrb_mr_use use,
		    struct ibv_mr **out);
void vrb_mr_deregister(struct ibv_mr *mr);

/* ---- Queue pairs -------------------------------------------------------- */

/* Wanted at creation; granted afterwards, each at least what was wanted except inline_bytes. */
struct vrb_qp_limits {
	uint32_t send_wr, recv_wr;
	uint32_t send_sge, recv_sge;
	uint32_t inline_bytes;		/* best effort: granted may be less, down to 0 */
};

struct vrb_qp {
	struct ibv_qp *qp;
	uint32_t psn;			/* first packet number that this side sends */
	bool stopped;
	struct vrb_qp_limits granted;
};

/* Where a queue pair is, as the other side must know it; byte order is the wire's business. */
struct vrb_address {
	uint32_t qpn, psn;
	uint16_t lid;
	uint8_t mtu;			/* enum ibv_mtu */
	uint8_t link_layer;
	unsigned char gid[VRB_GID_BYTES];
};

/* An RC queue pair on that port, in state INIT: receives may be posted. */
int vrb_qp_create(struct vrb_adapter *adapter, const struct vrb_port *port,
		  const struct vrb_qp_limits *want, struct vrb_qp *out);
void vrb_qp_address(const struct vrb_qp *qp, const struct vrb_port *port, struct vrb_address *out);

/*
 * To RTS, towards theirs, with the smaller MTU of both.  A peer that is gone is
 * noticed after about 8 s, on the software HCA 2 s.  A receiver that is not ready
 * is an error at once on the software HCA and after six tries elsewhere: a correct
 * user of credits never sees it, and retrying for ever would hide a wrong one.
 */
int vrb_qp_connect(struct vrb_adapter *adapter, struct vrb_qp *qp, const struct vrb_port *port,
		   const struct vrb_address *theirs);

/* Stop: outstanding work completes with IBV_WC_WR_FLUSH_ERR.  Harmless when repeated. */
void vrb_qp_stop(struct vrb_qp *qp);

/*
 * Stop, with a marker at the end of each queue that is still running.  When all
 * markers have come out of the CQ (wr_id; flushed like the rest), nothing is in
 * flight and the queue pair may be destroyed.  Returns the number of markers:
 * 2, or 1 when it had been stopped before (nobody looks at what is posted to a
 * stopped receive queue on some devices), or fewer when a queue is full.
 */
int vrb_qp_stop_marked(struct vrb_qp *qp, uint64_t wr_id);
void vrb_qp_destroy(struct vrb_qp *qp);

#endif
