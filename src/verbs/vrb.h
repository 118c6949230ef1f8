/*
 * vrb.h - common operations on verbs: find ports, open adapters, connect and destroy
 * queue pairs, register memory.
 *
 * Uses the libibverbs API only: no MPI, no policy, no messages.  Real HCAs, the kernel's
 * software devices and libsofthca's devices have the same interface from here on.
 *
 * Functions return 0 or -errno.  The function that detects an error prints one line
 * (util/err.h).  Outputs are set only on success.  One thread per adapter at a time.
 */
#ifndef VRB_H
#define VRB_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* librailmpi exports these functions to the suite's own programs (railmpi_port). */
#pragma GCC visibility push(default)

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
	uint8_t number;			/* number of the port, from 1 */
	enum vrb_kind kind;
	bool net;			/* of the software HCA: a network interface */
	bool usable;			/* the transport has RC with immediates */
	uint8_t link_layer;		/* IBV_LINK_LAYER_... */
	enum ibv_port_state state;
	uint64_t rate_bytes_per_s;	/* data, in each direction; 0 = unlimited, with net unknown */
	enum ibv_mtu active_mtu;	/* for datagrams */
	enum ibv_mtu mtu;		/* for connections: the active one, or less on request */
	uint32_t message_max;		/* bytes of one request */
	uint16_t lid;
	bool grh;			/* InfiniBand: every path to or from it has a GRH */
	int gid_index;			/* -1: the port has no usable GID */
	uint8_t gid_type;		/* enum ibv_gid_type; both ends must use the same */
	bool gid_link_local;		/* Ethernet: every GID is a link-local one */
	bool one_network;		/* Ethernet: another port is in the IP network of its GID */
	union ibv_gid gid;
	/*
	 * Ports with equal keys reach each other.  InfiniBand: the subnet prefix.
	 * RoCE: the network of the netdev's IPv4 address, or the prefix of the GID.  net: zero,
	 * since routes decide, and the order of ports is the spec's.
	 */
	unsigned char subnet[VRB_GID_BYTES];
	char netdev[16];		/* net: the interface's name; "": not known */
	char pci[32];			/* address on the bus for sorting; "" for virtual devices */
	char firmware[64];		/* version in the device's words; may be empty */
	uint16_t pkey_index;		/* the first key of a full member, if there is one */
	bool lag;			/* a bond: each queue pair is on one of its cables */
	int host_tclass;		/* the host's traffic class; -1: none is set */
	uint64_t card;			/* sys_image_guid: equal for the functions of a card; 0: unknown */
	uint32_t queue_pairs;		/* of the device, all processes together; 0: not known */
	uint32_t objects;		/* of the device, by the control group (rdma.max); 0: no limit */
	uint32_t requests, cq_entries;	/* of a queue pair, of a completion queue; 0: not known */
	/* Set by vrb_port_configure; 0 after a scan. */
	uint8_t sl, tclass;
};

/* Linux answers for an address of one interface on the other, and may drop packets that come in there. */
#define VRB_ONE_NETWORK_ADVICE "arp_ignore and rp_filter (two ports of a host are in one IP network)"

struct vrb_ports {
	int count;
	struct vrb_port *port;		/* sorted by PCI address, device name, port number */
	struct ibv_device **list;
	int unopened;			/* devices that could not be opened or queried */
	int unopened_error;		/* the first one's errno, and its name */
	char unopened_name[IBV_SYSFS_NAME_MAX];
};

/*
 * Scan all ports of the devices in list (from ibv_get_device_list or
 * softhca_get_device_list).  The list belongs to the table from then on, also on failure.
 * Opens each device briefly; those that cannot be opened are omitted and counted, unless this process has no
 * descriptor left.  NULL, with errno: of no device, or an error as well.
 */
int vrb_ports_scan(struct ibv_device **list, struct vrb_ports *out);
/* The same without software HCAs, which the list has under the softhca command. */
int vrb_ports_scan_real(struct ibv_device **list, struct vrb_ports *out);
void vrb_ports_free(struct vrb_ports *ports);
/* Tell of all devices that could not be opened, in one line, if there are any. */
void vrb_ports_tell_unopened(const struct vrb_ports *ports);

/*
 * Why has this host no usable ACTIVE port, where the kernel shows devices?  Of each device that has
 * none, by equal reasons: "mlx5_0 and 1 more: libibverbs has no provider ...".  "" if the kernel
 * shows no device.  root: before the paths /sys, /dev and /proc, "" but for tests.  Returns buf.
 */
const char *vrb_ports_why_none(const struct vrb_ports *ports, const char *root, char *buf,
			       size_t size);
/*
 * The limit that a control group of this process sets to the device: "mlx5_0 hca_handle=0
 * hca_object=max of /job"; "" if there is none.  Returns buf.
 */
const char *vrb_cgroup_limit(const char *device, const char *root, char *buf, size_t size);
/* The objects of the device that all processes of its groups may have together: the least of hca_object; 0: no limit. */
uint32_t vrb_cgroup_objects(const char *device, const char *root);

/*
 * The default choice of rails: ports that are usable and ACTIVE, at most max, first ports of
 * adapters before second ones.  index gets their indices, in the order of the table; returns
 * their number.  active: gets the number of all such ports; may be NULL.
 */
int vrb_ports_choose(const struct vrb_ports *ports, int max, int *index, int *active);
/*
 * The order of rails, as a strcmp result.  Rail i of one host is connected to rail i of
 * another, so hosts on the same subnets must get the same order for any device names.  Both
 * ports are of one table.
 */
int vrb_port_order(const struct vrb_port *a, const struct vrb_port *b);

/*
 * List ports without using them: the ports of all devices that programs see, or with soft (a spec)
 * the ports of a software HCA, on a fabric of its own that is removed at once.
 */
int vrb_ports_look(const char *soft, struct vrb_ports *out);

enum { VRB_TABLE_GIDS = 16, VRB_TABLE_PKEYS = 16 };

enum vrb_gid_scope { VRB_GID_EMPTY, VRB_GID_IPV4, VRB_GID_IPV6, VRB_GID_LINK_LOCAL };

/* The record has no pointers or padding: it may be sent to other hosts of the same byte order. */
struct vrb_gid {
	unsigned char raw[VRB_GID_BYTES];
	uint8_t index;			/* in the port's table */
	uint8_t type;			/* enum ibv_gid_type */
	uint8_t bits;			/* of its network; 0: unknown */
	uint8_t dead;			/* errno of an address handle to itself; 0: it can be made */
};

struct vrb_pkey {
	uint16_t key;			/* top bit: a full member */
	uint16_t index;			/* in the port's table */
};

struct vrb_tables {
	uint32_t gids, pkeys;
	/*
	 * Ethernet: RoCE v2 before v1, IPv4 before IPv6, link-local ones last.  InfiniBand: the
	 * port's own GID.
	 */
	struct vrb_gid gid[VRB_TABLE_GIDS];
	struct vrb_pkey pkey[VRB_TABLE_PKEYS];
};

enum vrb_gid_scope vrb_gid_scope(const unsigned char gid[VRB_GID_BYTES]);
/* Read the tables of a port; opens the device briefly.  0, or -errno after a line. */
int vrb_port_tables(const struct vrb_port *port, struct vrb_tables *out);
/* The GID of a port from now on; not `subnet`. */
void vrb_port_use_gid(struct vrb_port *port, const struct vrb_gid *gid);
/* Make an address handle from an own GID to another, and destroy it: 0 or -errno, silent. */
int vrb_port_try(const struct vrb_port *port, const struct vrb_gid *own,
		 const unsigned char to[VRB_GID_BYTES]);

/* Settings that a user may request for all ports; 0 or negative: the port's own. */
struct vrb_port_wish {
	int gid_index;			/* -1: chosen by type */
	uint32_t mtu_bytes;		/* 0: the active one; else at most this */
	uint8_t sl;
	int tclass;			/* -1: the host's, else 0 */
	uint16_t pkey;			/* 0: as scanned; else the key, full or limited */
};

/*
 * Apply a wish; opens the device briefly to check it.  -EINVAL, after a line that names the
 * option and the accepted values.
 */
int vrb_port_configure(struct vrb_port *port, const struct vrb_port_wish *wish);

const char *vrb_port_state_text(enum ibv_port_state state);
uint32_t vrb_mtu_bytes(enum ibv_mtu mtu);

/* The current state of a port; 0 (IBV_PORT_NOP) if it cannot be read. */
enum ibv_port_state vrb_port_state_now(struct ibv_context *context, const struct vrb_port *port);

/* ---- Counters ------------------------------------------------------------ */

/* value NULL: the counter is at its maximum and has stopped. */
typedef void vrb_counter_fn(void *user, const char *name, const uint64_t *value);

/*
 * Read every counter of a port: the files of `counters` and `hw_counters` in its
 * directory ("/sys/class/infiniband/mlx5_0/ports/1").  A counter that is missing,
 * unreadable or not a number is omitted.  Returns the number of counters.  The kernel may
 * report values that are some 10 ms old.
 */
int vrb_counters_read(const char *port, vrb_counter_fn *each, void *user);

/* The same of a network interface: the files of its `statistics`, such as tx_bytes. */
int vrb_netdev_counters_read(const char *netdev, vrb_counter_fn *each, void *user);

/* The counters of a port, or of its interface; none of a software HCA in memory. */
int vrb_port_counters_read(const struct vrb_port *port, vrb_counter_fn *each, void *user);

/* Does this counter count retransmissions of a requester? */
bool vrb_counter_is_retry(const char *name);

/* Retries by queue pairs of this context on a software HCA's port; 0 or -errno. */
int vrb_port_retries(struct ibv_context *context, const struct vrb_port *port, uint64_t *retries);

/* ---- Adapters ----------------------------------------------------------- */

struct vrb_adapter {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_device_attr attr;
	enum vrb_kind kind;
	/*
	 * Data of one RDMA write appear in the order of their addresses, so that
	 * a reader may poll memory instead of the CQ.
	 */
	bool in_order;
	/* The last byte of a write lands last, with a model, too: a program may poll for it alone. */
	bool ends_last;
	/* Writes on one queue pair appear one after the other, too. */
	bool in_order_writes;
	/* A timed software HCA: ends of writes that are due land in this process's next verb. */
	bool withholds;
	/* The processors at both ends move the data: an untimed software HCA in memory. */
	bool copies;
	bool net;			/* software HCA over TCP */
	uint32_t inline_bytes;		/* granted to a queue pair that asks for 256 */
	bool undo_fork;			/* registrations needlessly keep pages out of children */
};

/* fork.c.  Once, before the first registration on a real device: protects its pages from fork. */
void vrb_fork_init(void);
/* Does libibverbs keep pages out of children without need?  The caller then undoes it. */
bool vrb_fork_must_undo(struct ibv_pd *pd);
void vrb_fork_prepare(void *addr, size_t bytes);
void vrb_fork_undo(void *addr, size_t bytes);

/*
 * Open a device and make its only PD.  Queries a temporary queue pair, connected to itself over
 * the port with its SL, for the device's promises about order.
 */
int vrb_adapter_open(struct vrb_adapter *adapter, const struct vrb_port *port);
/* Ask a further port, too: in_order holds for all ports.  0 or -errno after a line. */
int vrb_adapter_ask_order(struct vrb_adapter *adapter, const struct vrb_port *port);
void vrb_adapter_close(struct vrb_adapter *adapter);

enum vrb_mr_use {
	VRB_MR_POLLED,		/* strictly ordered: this memory is polled */
	VRB_MR_BULK,		/* complete through the CQ: may be written in any order */
	VRB_MR_ATOMIC,		/* polled, and peers may use atomic operations on it */
};

/*
 * Register for local write, remote write and remote read.  Silent on failure: the caller may
 * free registrations and retry.  At -EFAULT it may copy: the memory is read-only, or the
 * device cannot use it.
 */
int vrb_mr_register(struct vrb_adapter *adapter, void *addr, size_t bytes, enum vrb_mr_use use,
		    struct ibv_mr **out);
void vrb_mr_deregister(struct ibv_mr *mr);

/* ---- Asynchronous events -------------------------------------------------- */

struct vrb_event {
	enum ibv_event_type type;
	uint8_t port;			/* of the event; 0: it is the device's or a queue's */
};

/*
 * The next event of the adapter, which is acknowledged; vrb_events_open comes before the first.  0;
 * -EAGAIN: none; another -errno.  Silent, never waits.
 */
int vrb_events_open(const struct vrb_adapter *adapter);
int vrb_event_next(const struct vrb_adapter *adapter, struct vrb_event *out);
/* "PORT_ERR" */
const char *vrb_event_name(enum ibv_event_type type);

/* How a port is reached, at this moment: connections rely on it. */
struct vrb_port_place {
	uint16_t lid, pkey;		/* pkey: 0 if the table has no such entry any more */
	unsigned char gid[VRB_GID_BYTES];
};

/* 0 or -errno, silent. */
int vrb_port_place(const struct vrb_adapter *adapter, const struct vrb_port *port,
		   struct vrb_port_place *out);
/* Do connections end between both?  why, for people: "its LID has changed from 3 to 7". */
bool vrb_port_moved(const struct vrb_port *port, const struct vrb_port_place *before,
		    const struct vrb_port_place *now, char *why, size_t size);

/* ---- Queue pairs -------------------------------------------------------- */

/* Requested at creation; granted afterwards, each at least as requested but inline_bytes. */
struct vrb_qp_limits {
	uint32_t send_wr, recv_wr;
	uint32_t send_sge, recv_sge;
	uint32_t inline_bytes;		/* best effort: granted may be less, down to 0 */
};

/* The service of a queue pair; vrb_qp_create makes a queue pair as librail needs it. */
struct vrb_service {
	enum ibv_qp_type type;		/* IBV_QPT_RC, IBV_QPT_UC or IBV_QPT_UD */
	struct ibv_cq *send_cq, *recv_cq;
	struct ibv_srq *srq;		/* RC; or NULL */
	bool atomics;			/* RC: the peer may use atomic operations */
	bool patient;			/* RC: wait for a receiver that is not ready as long as it takes */
	bool brief;			/* RC: detect a peer that has gone after about 1 s */
};

struct vrb_qp {
	struct ibv_qp *qp;
	uint32_t psn;			/* first packet number that this side sends */
	bool stopped;
	bool patient, brief, atomics;	/* from the service */
	struct vrb_qp_limits granted;
	/* UD, once connected: the addressee of a send request. */
	struct ibv_ah *ah;
	uint32_t peer_qpn;
};

enum { VRB_QKEY = 0x1f2a11 };		/* for all datagrams; unprivileged (no top bit) */

/* The address of a queue pair, for its peer; in host byte order. */
struct vrb_address {
	uint32_t qpn, psn;
	uint16_t lid;
	uint8_t mtu;			/* enum ibv_mtu */
	uint8_t link_layer;
	uint8_t reads_in, reads_out;	/* RDMA reads at once: as responder, as requester */
	uint8_t grh;			/* the port needs a GRH */
	uint8_t pad;
	unsigned char gid[VRB_GID_BYTES];
};

/*
 * Ethernet has no other address than a GID; InfiniBand needs a GRH between subnets, and where the
 * port of either end requires it (virtual functions that share a LID) or has no LID: grh is the peer's.
 */
struct ibv_ah_attr vrb_path(const struct vrb_port *port, uint16_t lid,
			    const unsigned char gid[VRB_GID_BYTES], bool grh);

/*
 * Create an RC queue pair on a port, in state INIT: receives may be posted.  If srq is not
 * NULL they are posted to it, and want->recv_wr is 0.
 */
int vrb_qp_create(struct vrb_adapter *adapter, const struct vrb_port *port, struct ibv_cq *cq,
		  struct ibv_srq *srq, const struct vrb_qp_limits *want, struct vrb_qp *out);
void vrb_qp_address(const struct vrb_adapter *adapter, const struct vrb_qp *qp,
		    const struct vrb_port *port, struct vrb_address *out);

/* The same for any service. */
int vrb_qp_create_of(struct vrb_adapter *adapter, const struct vrb_port *port,
		     const struct vrb_service *service, const struct vrb_qp_limits *want,
		     struct vrb_qp *out);
/*
 * Back to INIT: posted requests are gone, without a completion, and data that arrive are lost
 * until both ends are connected again, by the same addresses.  Empty the CQs first.
 */
int vrb_qp_reset(struct vrb_qp *qp, const struct vrb_port *port);

/*
 * Connect to theirs, up to RTS, with the smaller MTU and the fewer RDMA reads of both sides.
 * RC: a peer that has gone is detected after about 8 s, on a software HCA in memory after 2 s, with
 * `brief` after 1 s.
 * A receiver that is not ready is an error at once on a software HCA in memory and after six tries
 * elsewhere: correct credits prevent it, and endless retries would hide wrong ones.
 */
int vrb_qp_connect(struct vrb_adapter *adapter, struct vrb_qp *qp, const struct vrb_port *port,
		   const struct vrb_address *theirs);

/* Connect a queue pair to itself.  0 or -errno, silent: the port may be down. */
int vrb_qp_connect_self(struct vrb_adapter *adapter, struct vrb_qp *qp, const struct vrb_port *port);

/* Stop: outstanding work completes with IBV_WC_WR_FLUSH_ERR.  May be repeated. */
void vrb_qp_stop(struct vrb_qp *qp);

/*
 * Stop, with a marker at the end of each queue that is still running.  When all
 * markers have come out of the CQ (wr_id; flushed like the rest), nothing is in
 * flight and the queue pair may be destroyed.  Returns the number of markers:
 * 2; 1 if the queue pair was stopped before (some devices ignore requests in a stopped
 * receive queue) or receives from an SRQ; fewer if a queue is full.
 */
int vrb_qp_stop_marked(struct vrb_qp *qp, uint64_t wr_id);
void vrb_qp_destroy(struct vrb_qp *qp);

/*
 * Why the device refuses a queue pair with these limits, or a completion queue: the number that is
 * beyond its own, or the words of the error, with what memory it takes.  Returns buf.
 */
const char *vrb_qp_refused(const struct vrb_adapter *adapter, enum ibv_qp_type type,
			   const struct vrb_qp_limits *want, int rc, char *buf, size_t size);
const char *vrb_cq_refused(const struct vrb_adapter *adapter, uint32_t entries, int rc, char *buf,
			   size_t size);

/* ---- Completion queues with events ------------------------------------------ */

struct vrb_cq {
	struct ibv_cq *cq;
	struct ibv_comp_channel *channel;	/* NULL: it is only polled */
	unsigned events;			/* not acknowledged yet */
};

/* -EINVAL and the like after one error line. */
int vrb_cq_create(struct vrb_adapter *adapter, int depth, bool events, struct vrb_cq *out);
void vrb_cq_destroy(struct vrb_cq *cq);
/*
 * Bytes of locked memory that all completion queues of this process may have, tried on the device and given
 * back; 0: `most`, or no limit of memory is met.
 */
uint64_t vrb_cq_lockable(struct ibv_device *device, uint64_t most);
/* For programs, which link no libibverbs. */
const char *vrb_wc_text(enum ibv_wc_status status);
/*
 * Sleep until the event that ibv_req_notify_cq has asked for, at most most_ns.  0; -ETIMEDOUT; or
 * another -errno.  Silent.
 */
int vrb_cq_wait(struct vrb_cq *cq, uint64_t most_ns);

/* ---- Datagrams ---------------------------------------------------------- */

enum { VRB_GRH_BYTES = 40 };	/* before the data of every datagram received */

struct vrb_ud {
	struct ibv_qp *qp;
	struct ibv_cq *cq;		/* used by this queue pair only */
};

/* The address of such a queue pair; in host byte order. */
struct vrb_ud_address {
	uint32_t qpn;
	uint16_t lid;
	uint8_t grh;			/* the port needs a GRH */
	uint8_t pad;
	unsigned char gid[VRB_GID_BYTES];
};

/* Create one that is ready to send and to receive; each request is completed in ud->cq. */
int vrb_ud_create(struct vrb_adapter *adapter, const struct vrb_port *port, uint32_t send_wr,
		  uint32_t recv_wr, struct vrb_ud *out);
void vrb_ud_destroy(struct vrb_ud *ud);
void vrb_ud_address(const struct vrb_ud *ud, const struct vrb_port *port,
		    struct vrb_ud_address *out);
/* An address handle to a peer: ibv_destroy_ah ends it.  Silent. */
int vrb_ud_way(struct vrb_adapter *adapter, const struct vrb_port *port,
	       const struct vrb_ud_address *theirs, struct ibv_ah **out);
/*
 * Are datagrams to that address lost, as far as this host knows?  0: no sign of it.
 * -ENETUNREACH: now, for a reason that may pass.  -ESHUTDOWN, -ECONNRESET: for ever, since its
 * process has destroyed the queue pair or has ended.  *why, for people, is set then.  The host
 * knows the state of the port; on Ethernet, whether the address can be resolved (the question may
 * take a second); on the software HCA, the whole path and the process at the address.
 */
int vrb_ud_lost(struct vrb_adapter *adapter, const struct vrb_port *port,
		const struct vrb_ud_address *theirs, const char **why);
/* The same of the peer of a connected queue pair.  0: no sign of it, or no software HCA. */
int vrb_qp_lost(struct vrb_adapter *adapter, const struct vrb_port *port, const struct vrb_qp *qp,
		const char **why);
/* Does the software HCA over TCP know by itself that the peer's host answers?  False: a request would tell. */
bool vrb_qp_hears_peer(const struct vrb_port *port, const struct vrb_qp *qp);
/* 0 or -errno, silent: a datagram may be lost anyway.  Buffers are registered, and stay. */
int vrb_ud_send(struct vrb_ud *ud, struct ibv_ah *ah, uint32_t qpn, uint64_t wr_id,
		const void *at, uint32_t bytes, uint32_t lkey);
int vrb_ud_receive(struct vrb_ud *ud, uint64_t wr_id, void *at, uint32_t bytes, uint32_t lkey);

/*
 * rg_errors_hold and rg_errors_take (util/err.h) of these functions, for programs linked with a library that has them:
 * the program's own functions of that name hold the program's errors alone.
 */
void vrb_errors_hold(void);
bool vrb_errors_take(char *text, size_t size);

#pragma GCC visibility pop
#endif
