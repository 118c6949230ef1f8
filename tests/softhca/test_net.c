/*
 * test_net.c - a fabric whose ports are network interfaces, in a network namespace of this test's own:
 * attributes, addresses, routes, events, what is refused.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <netinet/ip.h>
#include <poll.h>

#include "../capture.h"
#include "cmocka_all.h"
#include "namespace.h"
#include "softhca/softhca.h"

static const char spec[] = "net=a0+a1+a2";
static char fabric_name[32];

/* Two interfaces of IPv4, one of IPv6; the other ends have no address. */
static int make_interfaces(void)
{
	return ip("link set lo up") || make_pair("a0", "b0") || make_pair("a1", "b1") ||
	       make_pair("a2", "b2") || ip("link set a0 address 02:00:00:01:02:03") ||
	       ip("link set a1 mtu 9000") || ip("link set a2 mtu 1280") ||
	       ip("addr add 10.0.1.1/24 dev a0") || ip("addr add 10.0.2.1/24 dev a1") ||
	       ip("addr add fd00:3::1/64 dev a2 nodad");
}

static union ibv_gid gid_of(const char *text)
{
	union ibv_gid gid = { .raw = { [10] = 0xff, 0xff } };

	if (inet_pton(AF_INET, text, gid.raw + 12) != 1)
		assert_int_equal(inet_pton(AF_INET6, text, gid.raw), 1);
	return gid;
}

static struct ibv_context *device_open(void)
{
	struct softhca_config config = { .spec = spec, .fabric = fabric_name, .node = -1 };
	struct ibv_device **list = softhca_get_device_list(&config, NULL);
	struct ibv_context *c;

	if (!list)
		fail_msg("%s", softhca_last_error());
	c = ibv_open_device(list[0]);
	assert_non_null(c);
	assert_null(list[1]);
	ibv_free_device_list(list);
	return c;
}

/* ---- Attributes ---------------------------------------------------------- */

static void assert_port(struct ibv_context *c, uint8_t port, const char *address, enum ibv_mtu mtu)
{
	const union ibv_gid expected = gid_of(address), none = { .raw = { 0 } };
	struct ibv_gid_entry entry;
	struct ibv_port_attr attr;
	char name[] = "a0";
	union ibv_gid gid;

	name[1] = (char)('0' + port - 1);
	assert_int_equal(ibv_query_port(c, port, &attr), 0);
	assert_int_equal(attr.state, IBV_PORT_ACTIVE);
	assert_int_equal(attr.phys_state, 5);
	assert_int_equal(attr.lid, 0);
	assert_int_equal(attr.link_layer, IBV_LINK_LAYER_ETHERNET);
	assert_int_equal(attr.active_mtu, mtu);
	/* 10 Gbit/s of veth: one lane of QDR. */
	assert_int_equal(attr.active_width, 1);
	assert_int_equal(attr.active_speed, 4);
	assert_int_equal(ibv_query_gid(c, port, 0, &gid), 0);
	assert_memory_equal(gid.raw, expected.raw, sizeof(gid));
	assert_int_equal(ibv_query_gid(c, port, 1, &gid), 0);
	assert_memory_equal(gid.raw, none.raw, sizeof(gid));
	assert_int_equal(ibv_query_gid_ex(c, port, 0, &entry, 0), 0);
	assert_memory_equal(entry.gid.raw, expected.raw, sizeof(gid));
	assert_int_equal(entry.ndev_ifindex, if_nametoindex(name));
	assert_int_equal(entry.gid_type, IBV_GID_TYPE_ROCE_V2);
	assert_int_equal(ibv_query_gid_ex(c, port, 1, &entry, 0), ENODATA);
}

static void test_attributes(void **state)
{
	struct ibv_context *c = device_open();
	struct ibv_gid_entry table[8];
	struct ibv_device_attr attr;
	struct softhca_model model;

	assert_port(c, 1, "10.0.1.1", IBV_MTU_1024);
	assert_port(c, 2, "10.0.2.1", IBV_MTU_4096);
	assert_port(c, 3, "fd00:3::1", IBV_MTU_1024);
	assert_int_equal(ibv_query_gid_table(c, table, 8, 0), 3);
	assert_int_equal(table[2].port_num, 3);
	assert_int_equal(ibv_query_device(c, &attr), 0);
	assert_int_equal(attr.phys_port_cnt, 3);
	assert_int_equal(attr.max_mcast_grp, 0);
	assert_true(attr.node_guid != 0);
	/* Locally administered, of no group. */
	assert_int_equal(be64toh(attr.node_guid) >> 56 & 3, 2);
	assert_int_equal(softhca_query_model(c->device, &model), 0);
	assert_true(model.net);
	assert_false(model.timed);
	assert_int_equal(model.ports, 3);
	assert_int_equal(model.port_rate[0], 1250000000);
	assert_string_equal(model.text, "3 ports over TCP: a0 10.0.1.1, a1 10.0.2.1, a2 fd00:3::1");
	assert_string_equal(model.spec, "ports=3,net=a0+a1+a2,rate=none,reads=16");
	ibv_close_device(c);
}

/* A declared rate replaces the interface's; what nobody knows stays unknown. */
static void test_rates(void **state)
{
	struct softhca_config config = { .fabric = "net-rates", .spec = "net=lo", .node = -1 };
	struct ibv_device **list = softhca_get_device_list(&config, NULL);
	struct softhca_model model;
	struct ibv_port_attr attr;
	struct ibv_context *c;

	assert_non_null(list);
	c = ibv_open_device(list[0]);
	assert_int_equal(ibv_query_port(c, 1, &attr), 0);
	assert_int_equal(attr.active_mtu, IBV_MTU_4096);
	assert_int_equal(attr.active_width, 0);
	assert_int_equal(attr.active_speed, 0);
	assert_int_equal(softhca_query_model(c->device, &model), 0);
	assert_int_equal(model.port_rate[0], 0);
	ibv_close_device(c);
	ibv_free_device_list(list);
	config.spec = "net=a0,rate=1Gb/s";
	list = softhca_get_device_list(&config, NULL);
	c = ibv_open_device(list[0]);
	assert_int_equal(ibv_query_port(c, 1, &attr), 0);
	assert_int_equal(attr.active_width, 1);
	assert_int_equal(attr.active_speed, 1);
	assert_int_equal(softhca_query_model(c->device, &model), 0);
	assert_int_equal(model.port_rate[0], 125000000);
	assert_false(model.timed);
	ibv_close_device(c);
	ibv_free_device_list(list);
}

/* ---- Routes -------------------------------------------------------------- */

/* 0, or the errno value of ibv_create_ah on this port. */
static int reach(struct ibv_pd *pd, uint8_t port, const char *address)
{
	struct ibv_ah_attr attr = { .is_global = 1, .port_num = port };
	struct ibv_ah *ah;

	attr.grh.dgid = gid_of(address);
	ah = ibv_create_ah(pd, &attr);
	if (!ah)
		return errno;
	assert_int_equal(ibv_destroy_ah(ah), 0);
	return 0;
}

static void test_routes(void **state)
{
	struct ibv_context *c = device_open();
	struct ibv_pd *pd = ibv_alloc_pd(c);
	struct ibv_ah_attr attr = { .dlid = 1, .port_num = 1 };
	uint8_t mac[6];
	uint16_t vid;

	assert_int_equal(reach(pd, 1, "10.0.1.1"), 0);
	assert_int_equal(reach(pd, 1, "10.0.2.1"), 0);
	assert_int_equal(reach(pd, 1, "192.0.2.99"), 0);
	assert_int_equal(reach(pd, 3, "fd00:9::1"), 0);
	assert_int_equal(reach(pd, 3, "fe80::1"), 0);
	/* A stream has one family at both ends. */
	assert_int_equal(reach(pd, 1, "fd00:9::1"), EHOSTUNREACH);
	assert_int_equal(reach(pd, 3, "10.0.1.1"), EHOSTUNREACH);
	assert_int_equal(reach(pd, 1, "0.0.0.0"), EHOSTUNREACH);
	assert_int_equal(reach(pd, 1, "255.255.255.255"), EHOSTUNREACH);
	assert_int_equal(reach(pd, 3, "::"), EHOSTUNREACH);
	assert_int_equal(reach(pd, 3, "::1"), EHOSTUNREACH);
	assert_int_equal(reach(pd, 3, "ff12::1"), EOPNOTSUPP);
	assert_int_equal(reach(pd, 1, "224.0.0.5"), EOPNOTSUPP);
	/* There is no LID. */
	assert_null(ibv_create_ah(pd, &attr));
	assert_int_equal(errno, EHOSTUNREACH);
	attr = (struct ibv_ah_attr){ .is_global = 1, .port_num = 1, .grh.sgid_index = 1 };
	attr.grh.dgid = gid_of("10.0.1.1");
	assert_null(ibv_create_ah(pd, &attr));
	assert_int_equal(errno, EINVAL);
	attr.grh.sgid_index = 0;
	assert_int_equal(ibv_resolve_eth_l2_from_gid(c, &attr, mac, &vid), 0);
	assert_memory_equal(mac, ((uint8_t[]){ 2, 0, 0, 1, 2, 3 }), 6);
	attr.grh.dgid = gid_of("192.0.2.99");
	assert_int_equal(ibv_resolve_eth_l2_from_gid(c, &attr, mac, &vid), EOPNOTSUPP);
	ibv_dealloc_pd(pd);
	ibv_close_device(c);
}

/* ---- Queue pairs --------------------------------------------------------- */

struct node {
	struct ibv_context *c;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	unsigned char memory[256];
};

static void node_open(struct node *n, enum ibv_qp_type type)
{
	struct ibv_qp_init_attr init = { .qp_type = type,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 } };

	n->c = device_open();
	n->pd = ibv_alloc_pd(n->c);
	n->cq = ibv_create_cq(n->c, 16, NULL, NULL, 0);
	n->mr = ibv_reg_mr(n->pd, n->memory, sizeof(n->memory),
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	init.send_cq = init.recv_cq = n->cq;
	n->qp = ibv_create_qp(n->pd, &init);
	assert_non_null(n->mr);
	assert_non_null(n->qp);
}

static void node_close(struct node *n)
{
	assert_int_equal(ibv_destroy_qp(n->qp), 0);
	assert_int_equal(ibv_dereg_mr(n->mr), 0);
	assert_int_equal(ibv_destroy_cq(n->cq), 0);
	assert_int_equal(ibv_dealloc_pd(n->pd), 0);
	assert_int_equal(ibv_close_device(n->c), 0);
}

static struct ibv_wc node_await(struct node *n)
{
	time_t end = time(NULL) + 60;
	struct ibv_wc wc;
	int count;

	while ((count = ibv_poll_cq(n->cq, 1, &wc)) == 0)
		assert_true(time(NULL) < end);
	assert_int_equal(count, 1);
	return wc;
}

static void to_init(struct node *n, uint8_t port)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = port, .qkey = 7 };
	const int last = n->qp->qp_type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS;

	assert_int_equal(ibv_modify_qp(n->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX |
				       IBV_QP_PORT | last), 0);
}

static enum ibv_mtu path_mtu = IBV_MTU_1024;

static int to_rtr(struct node *n, uint8_t port, const char *address, uint32_t qpn)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTR, .path_mtu = path_mtu,
		.dest_qp_num = qpn, .ah_attr = { .port_num = port } };

	if (address) {
		attr.ah_attr.is_global = 1;
		attr.ah_attr.grh.dgid = gid_of(address);
		attr.ah_attr.grh.hop_limit = 64;
	} else {
		attr.ah_attr.dlid = 1;
	}
	return ibv_modify_qp(n->qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
			     IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
			     IBV_QP_MIN_RNR_TIMER);
}

static void to_rts(struct node *n)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7,
				    .rnr_retry = 7 };

	assert_int_equal(ibv_modify_qp(n->qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT |
				       IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				       IBV_QP_MAX_QP_RD_ATOMIC), 0);
}

static void post_receive(struct node *n)
{
	struct ibv_sge sge = { (uintptr_t)n->memory + 128, 128, n->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = 2, .sg_list = &sge, .num_sge = 1 }, *bad;

	assert_int_equal(ibv_post_recv(n->qp, &wr, &bad), 0);
}

static void post_send(struct node *n, struct ibv_ah *ah)
{
	struct ibv_sge sge = { (uintptr_t)n->memory, 6, n->mr->lkey };
	struct ibv_send_wr wr = { .wr_id = 1, .sg_list = &sge, .num_sge = 1,
				  .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED }, *bad;

	if (ah) {
		wr.wr.ud.ah = ah;
		wr.wr.ud.remote_qpn = n->qp->qp_num;
		wr.wr.ud.remote_qkey = 7;
	}
	strcpy((char *)n->memory, "hello");
	assert_int_equal(ibv_post_send(n->qp, &wr, &bad), 0);
}

/* Hosts of the network cannot guess what a queue pair and a key are called. */
static void test_numbers(void **state)
{
	enum { FABRICS = 4 };
	unsigned same_number = 0, same_key = 0, i;
	uint32_t number = 0, key = 0;
	char name[sizeof(fabric_name)];
	struct node n;

	strcpy(name, fabric_name);
	for (i = 0; i < FABRICS; i++) {
		snprintf(fabric_name, sizeof(fabric_name), "numbers.%d.%u", (int)getpid(), i);
		node_open(&n, IBV_QPT_RC);
		same_number += n.qp->qp_num == number;
		same_key += n.mr->rkey == key;
		number = n.qp->qp_num;
		key = n.mr->rkey;
		node_close(&n);
	}
	strcpy(fabric_name, name);
	assert_true(same_number < FABRICS - 1);
	assert_true(same_key < FABRICS - 1);
}

/* A queue pair and itself, from one interface of this host to another. */
static void test_connected(void **state)
{
	struct node n;
	int ends = 0;

	node_open(&n, IBV_QPT_RC);
	to_init(&n, 2);
	assert_int_equal(to_rtr(&n, 2, NULL, n.qp->qp_num), EHOSTUNREACH);
	assert_int_equal(to_rtr(&n, 2, "fd00::1", n.qp->qp_num), EHOSTUNREACH);
	assert_int_equal(to_rtr(&n, 2, "10.0.2.1", n.qp->qp_num), 0);
	post_receive(&n);
	to_rts(&n);
	post_send(&n, NULL);
	for (int i = 0; i < 2; i++) {
		struct ibv_wc wc = node_await(&n);

		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		ends += (int)wc.wr_id;
	}
	assert_int_equal(ends, 3);
	assert_string_equal((char *)n.memory + 128, "hello");
	node_close(&n);
}

/* Each port has a path MTU of its own; the least one limits the inline data of any datagram. */
static void test_path_mtu(void **state)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct node n;

	node_open(&n, IBV_QPT_RC);
	to_init(&n, 1);
	path_mtu = IBV_MTU_2048;
	assert_int_equal(to_rtr(&n, 1, "192.0.2.99", 7), EINVAL);
	to_init(&n, 2);
	assert_int_equal(to_rtr(&n, 2, "192.0.2.99", 7), 0);
	path_mtu = IBV_MTU_1024;
	node_close(&n);
	node_open(&n, IBV_QPT_UD);
	assert_int_equal(ibv_query_qp(n.qp, &attr, IBV_QP_CAP, &init), 0);
	assert_int_equal(attr.cap.max_inline_data, 1024);
	node_close(&n);
}

/* A received datagram has the headers of its interfaces' addresses, from which the answer is addressed. */
static void test_datagram(void **state)
{
	struct ibv_ah_attr attr = { .is_global = 1, .port_num = 1, .grh.hop_limit = 9 };
	const union ibv_gid group = gid_of("ff12::7");
	struct ibv_wc wc, received = { .wr_id = 0 };
	char expected[160];
	const char *line;
	int refused[2];
	struct ibv_ah *ah;
	struct iphdr ip;
	struct node n;

	node_open(&n, IBV_QPT_UD);
	to_init(&n, 1);
	assert_int_equal(ibv_modify_qp(n.qp, &(struct ibv_qp_attr){ .qp_state = IBV_QPS_RTR },
				       IBV_QP_STATE), 0);
	assert_int_equal(ibv_modify_qp(n.qp, &(struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS },
				       IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
	capture_begin(STDERR_FILENO);
	refused[0] = ibv_attach_mcast(n.qp, &group, 0);
	refused[1] = ibv_attach_mcast(n.qp, &group, 0);
	line = capture_end();
	assert_int_equal(refused[0], EOPNOTSUPP);
	assert_int_equal(refused[1], EOPNOTSUPP);
	snprintf(expected, sizeof(expected), "softhca: fabric %s: multicast is not supported on network "
		 "interfaces (net=): EOPNOTSUPP\n", fabric_name);
	assert_string_equal(line, expected);
	attr.grh.dgid = gid_of("10.0.1.1");
	ah = ibv_create_ah(n.pd, &attr);
	assert_non_null(ah);
	post_receive(&n);
	post_send(&n, ah);
	for (int i = 0; i < 2; i++) {
		wc = node_await(&n);
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		if (wc.wr_id == 2)
			received = wc;
	}
	assert_int_equal(received.byte_len, 46);
	assert_int_equal(received.slid, 0);
	assert_true(received.wc_flags & IBV_WC_GRH);
	assert_string_equal((char *)n.memory + 128 + 40, "hello");
	memcpy(&ip, n.memory + 128 + 20, sizeof(ip));
	assert_int_equal(ip.version, 4);
	assert_int_equal(ip.ttl, 9);
	assert_int_equal(ip.saddr, inet_addr("10.0.1.1"));
	assert_int_equal(ip.daddr, inet_addr("10.0.1.1"));
	assert_int_equal(ibv_init_ah_from_wc(n.c, 1, &received,
					     (struct ibv_grh *)(void *)(n.memory + 128), &attr), 0);
	assert_int_equal(attr.grh.sgid_index, 0);
	assert_memory_equal(attr.grh.dgid.raw, gid_of("10.0.1.1").raw, 16);
	assert_int_equal(ibv_destroy_ah(ah), 0);
	node_close(&n);
}

/* ---- Events -------------------------------------------------------------- */

static void await_event(struct ibv_context *c, enum ibv_event_type type, int port)
{
	struct pollfd p = { .fd = c->async_fd, .events = POLLIN };
	struct ibv_async_event event;

	assert_int_equal(poll(&p, 1, 60000), 1);
	assert_int_equal(ibv_get_async_event(c, &event), 0);
	ibv_ack_async_event(&event);
	assert_int_equal(event.event_type, type);
	assert_int_equal(event.element.port_num, port);
}

static enum ibv_port_state state_of(struct ibv_context *c, uint8_t port)
{
	struct ibv_port_attr attr;

	assert_int_equal(ibv_query_port(c, port, &attr), 0);
	return attr.state;
}

static void test_events(void **state)
{
	struct ibv_context *c = device_open();

	assert_int_equal(ip("link set a1 down"), 0);
	await_event(c, IBV_EVENT_PORT_ERR, 2);
	assert_int_equal(state_of(c, 2), IBV_PORT_DOWN);
	assert_int_equal(state_of(c, 1), IBV_PORT_ACTIVE);
	assert_int_equal(ip("link set a1 up"), 0);
	await_event(c, IBV_EVENT_PORT_ACTIVE, 2);
	/* Carrier is lost at the other end. */
	assert_int_equal(ip("link set b0 down"), 0);
	await_event(c, IBV_EVENT_PORT_ERR, 1);
	assert_int_equal(ip("link set b0 up"), 0);
	await_event(c, IBV_EVENT_PORT_ACTIVE, 1);
	/* The address goes, and comes back. */
	assert_int_equal(ip("addr del fd00:3::1/64 dev a2"), 0);
	await_event(c, IBV_EVENT_PORT_ERR, 3);
	assert_int_equal(ip("addr add fd00:3::1/64 dev a2 nodad"), 0);
	await_event(c, IBV_EVENT_PORT_ACTIVE, 3);
	/* A query sees the state at once, and causes no second event. */
	assert_int_equal(ip("link set a0 down"), 0);
	assert_int_equal(state_of(c, 1), IBV_PORT_DOWN);
	await_event(c, IBV_EVENT_PORT_ERR, 1);
	assert_int_equal(ip("link set a0 up"), 0);
	await_event(c, IBV_EVENT_PORT_ACTIVE, 1);
	ibv_close_device(c);
}

/* ---- Refused ------------------------------------------------------------- */

static void assert_refused(const char *text, int node, int error, const char *words)
{
	struct softhca_config config = { .spec = text, .fabric = fabric_name, .node = node };

	assert_null(softhca_get_device_list(&config, NULL));
	assert_int_equal(errno, error);
	if (!strstr(softhca_last_error(), words) || strchr(softhca_last_error(), '\n'))
		fail_msg("'%s': the line is: %s", text, softhca_last_error());
}

/* Which way processes of one host take. */
static void test_link(void **state)
{
	static const char *const accepted[] = { "tcp", "auto", "" }, *const other[] = { "udp", "TCP", "tcp " };

	for (unsigned i = 0; i < 3; i++) {
		char line[64];

		setenv("SOFTHCA_LINK", other[i], 1);
		snprintf(line, sizeof(line), "SOFTHCA_LINK: '%s' (accepted: auto, tcp)", other[i]);
		assert_refused(spec, -1, EINVAL, line);
		setenv("SOFTHCA_LINK", accepted[i], 1);
		ibv_close_device(device_open());
	}
	unsetenv("SOFTHCA_LINK");
}

static void test_refused(void **state)
{
	struct ibv_context *c;

	assert_refused("net=a7", -1, ENODEV, "net=a7: no such interface");
	assert_refused("net=b0", -1, EADDRNOTAVAIL, "net=b0: this interface has no address");
	assert_refused("net=10.0.0.0/8", -1, ENOTUNIQ, "are in this subnet");
	assert_refused("net=a0+10.0.1.0/24", -1, EINVAL, "net=a0+10.0.1.0/24: both are interface a0");
	assert_refused("net=a0,latency=1us", -1, EINVAL, "latency=1us: no meaning with net=");
	assert_refused("net=a0", 1, EINVAL, "node: 1 is not a node (accepted: 0 to 0)");
	/* Processes of one host name the same interfaces. */
	c = device_open();
	assert_refused("net=a0+a1", -1, EEXIST, "exists with spec ports=3,net=a0+a1+a2,");
	ibv_close_device(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_attributes), cmocka_unit_test(test_rates),
		cmocka_unit_test(test_datagram),	/* the first one to use multicast */
		cmocka_unit_test(test_routes), cmocka_unit_test(test_connected),
		cmocka_unit_test(test_path_mtu), cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_events), cmocka_unit_test(test_link),
		cmocka_unit_test(test_refused),
	};
	int error = enter_namespace();

	if (error || make_interfaces()) {
		printf("skipped: no network namespace with veth (%s)\n",
		       error ? strerror(-error) : "ip link");
		return 77;
	}
	snprintf(fabric_name, sizeof(fabric_name), "net-%d", (int)getpid());
	return cmocka_run_group_tests(tests, NULL, NULL);
}
