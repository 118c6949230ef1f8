/* spec_keys.c - the table of keys. */
#include "softhca/model/spec_key.h"

#define FIELD(f) offsetof(struct hca_spec, f)
#define TRAIT(f) offsetof(struct hca_personality, f)
#define OF_FABRIC HCA_OF_FABRIC, NULL
#define OF_NODE HCA_OF_NODE, NULL
#define OF_PORT HCA_OF_PORT, NULL
#define SECOND 1000000000ull

/* In canonical order. */
const struct hca_key hca_keys[] = {
	{ "hcas", HCA_KIND_COUNT, FIELD(hcas), 1, 1, HCA_HCAS_MAX, false, "1 to 8",
	  "adapters per node", OF_FABRIC },
	{ "ports", HCA_KIND_COUNT, FIELD(ports), 0, 1, HCA_PORTS_MAX, false, "1 to 8",
	  "ports per adapter", OF_FABRIC },
	{ "net", HCA_KIND_NETS, FIELD(nets), 0, 0, 0, true,
	  "1 to 8 interfaces or their subnets, such as eth0+eth1, 10.0.1.0/24+10.0.2.0/24, "
	  "fd00::/64, or none", "network interfaces that are the ports; TCP reaches other hosts",
	  OF_FABRIC },
	{ "rate", HCA_KIND_RATES, FIELD(rate), 0, 1000, 1000000000000ull, true,
	  "1kB/s to 1000GB/s, or several such as 750MB/s+250MB/s, or none",
	  "of each port, per direction; several: of port 1, port 2, ..., the last one also of "
	  "all further ports", OF_FABRIC },
	{ "latency", HCA_KIND_TIME, FIELD(latency_ns), 0, 0, 10 * SECOND, false, "0 to 10s with a unit",
	  "one way: the wire and both adapters", OF_FABRIC },
	{ "bus", HCA_KIND_BUS, FIELD(bus_read), 0, 1000, 1000000000000ull, true,
	  "READ/WRITE[:half|full] with rates such as 2GB/s/2GB/s:full, or none",
	  "host bus of an adapter; half: both directions share it", OF_FABRIC },
	{ "cap", HCA_KIND_RATE, FIELD(cap), 0, 1000, 1000000000000ull, true,
	  "1kB/s to 1000GB/s, or none", "of an adapter, per direction, all its ports together",
	  OF_FABRIC },
	{ "msg", HCA_KIND_TIME, FIELD(msg_ns), 0, 0, SECOND, false, "0 to 1s with a unit",
	  "a port's time per message", OF_FABRIC },
	{ "pkt", HCA_KIND_TIME, FIELD(pkt_ns), 0, 0, SECOND, false, "0 to 1s with a unit",
	  "a port's time per packet", OF_FABRIC },
	{ "cqe", HCA_KIND_TIME, FIELD(cqe_ns), 0, 0, SECOND, false, "0 to 1s with a unit",
	  "until a completion is written, after the data", OF_FABRIC },
	{ "mtu", HCA_KIND_SIZE, FIELD(mtu), 4096, 256, 4096, false, "256, 512, 1024, 2048 or 4096",
	  "largest packet", OF_FABRIC },
	{ "window", HCA_KIND_COUNT, FIELD(window), 0, 1, 1 << 20, true, "1 to 1048576 packets, or none",
	  "unacknowledged packets per queue pair", OF_FABRIC },
	{ "outstanding", HCA_KIND_COUNT, FIELD(outstanding), 0, 1, 1 << 20, true,
	  "1 to 1048576 messages, or none", "unacknowledged messages per queue pair", OF_FABRIC },
	{ "reads", HCA_KIND_COUNT, FIELD(reads), 16, 1, 128, false, "1 to 128",
	  "RDMA reads in flight per queue pair", OF_FABRIC },
	{ "loss", HCA_KIND_FRACTION, FIELD(loss_ppb), 0, 0, HCA_ALL_PPB, false,
	  "0 to 1, at most 9 decimals", "share of packets lost on every path", OF_FABRIC },
	{ "jitter", HCA_KIND_TIME, FIELD(jitter_ns), 0, 0, 10 * SECOND, false, "0 to 10s with a unit",
	  "the latency of a message is up to so much longer", OF_FABRIC },
	{ "seed", HCA_KIND_COUNT, FIELD(seed), 1, 0, UINT32_MAX, false, "0 to 4294967295",
	  "of the random numbers for loss and jitter", OF_FABRIC },
	{ "down", HCA_KIND_CHANGES, FIELD(schedule), HCA_CHANGE_DOWN, 0, 0, true,
	  "PORT@WHEN+PORT@WHEN... such as 1/soft0:2@10ms, or none",
	  "ports go down; time counts from when the first queue pair can send", OF_FABRIC },
	{ "up", HCA_KIND_CHANGES, FIELD(schedule), HCA_CHANGE_UP, 0, 0, true,
	  "PORT@WHEN+PORT@WHEN... such as 1/soft0:2@20ms, or none", "ports come back", OF_FABRIC },
	{ "fatal", HCA_KIND_CHANGES, FIELD(schedule), HCA_CHANGE_FATAL, 0, 0, true,
	  "PORT@WHEN+PORT@WHEN... such as 1/soft0:1@10ms, or none",
	  "the port's adapter fails: IBV_EVENT_DEVICE_FATAL, all its ports are down", OF_FABRIC },
	{ "event", HCA_KIND_CHANGES, FIELD(schedule), HCA_CHANGE_EVENT, 0, 0, true,
	  "EVENT:PORT@WHEN+... with lid, newlid, pkey, sm, gid, newgid or client, such as sm:0/soft0:1@10ms, or none",
	  "LID_CHANGE, PKEY_CHANGE, SM_CHANGE, GID_CHANGE, CLIENT_REREGISTER of a port; with newlid and newgid it has "
	  "another LID, other GIDs",
	  OF_FABRIC },
	{ "reach", HCA_KIND_PAIRS, FIELD(unreached), 0, 0, 0, true,
	  "PORT-PORT+PORT-PORT... such as 0/soft0:1-1/soft0:1, at most 16, or none",
	  "pairs of ports between which everything is lost", OF_FABRIC },
	{ "order", HCA_KIND_WORD, TRAIT(order), 0, 0, 0, false, "memory, never, rts or timed",
	  "ibv_query_qp_data_in_order: yes of untimed memory, never, in RTS and SQD only, or of a timed "
	  "model, too", HCA_OF_NODE, "memory|never|rts|timed" },
	{ "place", HCA_KIND_WORD, TRAIT(late), 0, 0, 0, false, "order or late",
	  "late: the end of a message that arrives lands before its begin, the completion after both",
	  HCA_OF_NODE, "order|late" },
	{ "srq", HCA_KIND_COUNT, TRAIT(srqs), HCA_SRQS_MAX, 0, HCA_SRQS_MAX, false, "0 to 65536",
	  "shared receive queues per process and adapter; 0: the adapter has none", OF_NODE },
	{ "srqwr", HCA_KIND_COUNT, TRAIT(srq_wr), HCA_WR_MAX, 1, HCA_WR_MAX, false, "1 to 32768",
	  "receives of a shared receive queue", OF_NODE },
	{ "ud", HCA_KIND_WORD, TRAIT(no_ud), 0, 0, 0, false, "yes or no", "datagram queue pairs",
	  HCA_OF_NODE, "yes|no" },
	{ "uc", HCA_KIND_WORD, TRAIT(no_uc), 0, 0, 0, false, "yes or no",
	  "unreliable connected queue pairs", HCA_OF_NODE, "yes|no" },
	{ "atomics", HCA_KIND_WORD, TRAIT(no_atomics), 0, 0, 0, false, "yes or no",
	  "atomic operations", HCA_OF_NODE, "yes|no" },
	{ "card", HCA_KIND_WORD, TRAIT(one_card), 0, 0, 0, false, "own or one",
	  "sys_image_guid: of each adapter, or one for those of a node, functions of one card",
	  HCA_OF_NODE, "own|one" },
	{ "inline", HCA_KIND_BYTES, TRAIT(inline_max), HCA_NONE, 0, HCA_INLINE_MAX, true,
	  "0 to 65536 bytes, or none", "inline data of a request; given, as much as is asked for",
	  OF_NODE },
	{ "maxwr", HCA_KIND_COUNT, TRAIT(wr_max), HCA_WR_MAX, 1, HCA_WR_MAX, false, "1 to 32768",
	  "requests of a queue", OF_NODE },
	{ "maxsge", HCA_KIND_COUNT, TRAIT(sge_max), HCA_SGE_MAX, 1, HCA_SGE_MAX, false, "1 to 32",
	  "pieces of a request", OF_NODE },
	{ "qps", HCA_KIND_COUNT, TRAIT(qps), HCA_QPS_MAX, 1, HCA_QPS_MAX, false, "1 to 65536",
	  "queue pairs per process and adapter", OF_NODE },
	{ "maxcqe", HCA_KIND_COUNT, TRAIT(cqe_max), HCA_CQE_MAX, 1, HCA_CQE_MAX, false,
	  "1 to 4194304", "entries of a completion queue", OF_NODE },
	{ "cqmem", HCA_KIND_BYTES, TRAIT(cq_memory), HCA_NONE, 4096, UINT64_C(1) << 40, true,
	  "4KiB to 1TiB, or none", "locked memory of a process for completion queues, 64 bytes an "
	  "entry; beyond it ENOMEM", OF_NODE },
	{ "rdatom", HCA_KIND_COUNT, TRAIT(rd_atom), HCA_NONE, 1, 128, true,
	  "1 to 128, or none: as reads=", "RDMA reads and atomics that a queue pair answers at once",
	  OF_NODE },
	{ "rdinit", HCA_KIND_COUNT, TRAIT(rd_init), HCA_NONE, 1, 128, true,
	  "1 to 128, or none: as reads=", "RDMA reads and atomics that a queue pair asks at once",
	  OF_NODE },
	{ "link", HCA_KIND_WORD, TRAIT(link), 0, 0, 0, false, "model, eth or ib, of each port",
	  "link layer; model: Ethernet that has LIDs, too", HCA_OF_PORT, "model|eth|ib" },
	{ "lid", HCA_KIND_COUNT, TRAIT(lid), 1, 0, 0x8000, false, "0 to 32768, of each port",
	  "LID of the first port of node 0, others follow; 0: no LIDs", OF_PORT },
	{ "prefix", HCA_KIND_PREFIX, TRAIT(prefix), UINT64_C(0xfe80000000000000), 0, 0, false,
	  "1 to 16 hex digits, of each port, such as fe80000000000000",
	  "InfiniBand subnet prefix; ports of another one are not reached", OF_PORT },
	{ "grh", HCA_KIND_WORD, TRAIT(grh), 0, 0, 0, false, "optional or required, of each port",
	  "required: IBV_QPF_GRH_REQUIRED, and no path without a GRH", HCA_OF_PORT,
	  "optional|required" },
	{ "pkeys", HCA_KIND_PKEYS, TRAIT(pkey), 0, 0, 0, false,
	  "1 to 8 P_Keys of 1 to 4 hex digits, of each port, such as ffff:8001",
	  "P_Key table; packets are taken with a key of the table's index alone", OF_PORT },
	{ "gids", HCA_KIND_GIDS, TRAIT(gid), 0, 0, 0, false,
	  "1 to 16 of gap, ll.v1, ip4.v1, alt4.v1, same4.v1, ip6.v1, or .v2, with ! at its end, of each port, "
	  "such as ll.v1:ll.v2:gap:ip4.v2!",
	  "GID table of an Ethernet port; same4: one network for all ports; !: no address handle",
	  OF_PORT },
	{ "like", HCA_KIND_LIKE, 0, 0, 0, 0, false, HCA_LIKE_NAMES,
	  "the keys of an adapter; keys that are given override them", OF_NODE },
};

const unsigned hca_key_count = sizeof(hca_keys) / sizeof(*hca_keys);
static_assert(sizeof(hca_keys) / sizeof(*hca_keys) <= 64, "a bit for each");

bool hca_key_is_on_net(const struct hca_key *k)
{
	return k->kind == HCA_KIND_NETS || k->kind == HCA_KIND_RATES ||
	       (k->scope == HCA_OF_FABRIC &&
		(k->offset == FIELD(ports) || k->offset == FIELD(reads)));
}
