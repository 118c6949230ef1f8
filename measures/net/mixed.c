/*
 * mixed.c - 8 bytes next to large writes: two queue pairs of one process at each end.
 *
 *	mixed PORT			the server; for one client
 *	mixed PORT ADDRESS SECONDS	ping-pongs of 8 bytes by SEND while the other queue pair carries
 *					RDMA WRITEs of 1 MiB, four under way: us of half a round trip, MB/s
 *
 * Each end has one completion queue, which it polls.  stream.c's `mixed` is the same with plain sockets.
 */
#include <infiniband/verbs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { PING, BULK, QPS, SHORT = 8, LONG = 1 << 20, UNDER_WAY = 4 };

/* One end sends it to the other. */
struct end {
	union ibv_gid gid;
	uint32_t qpn[QPS], rkey;
	uint64_t addr;
};

static struct ibv_context *device;
static struct ibv_cq *cq;
static struct ibv_qp *qp[QPS];
static struct ibv_mr *mr;
static char *memory;
static struct end here, there;
static uint64_t written;

static void check(int good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "mixed: %s fails\n", what);
	exit(1);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + 1e-9 * t.tv_nsec;
}

static void open_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_pd *pd;

	check(list && list[0], "a device");
	device = ibv_open_device(list[0]);
	check(device && !ibv_query_gid(device, 1, 0, &here.gid), "ibv_open_device");
	pd = ibv_alloc_pd(device);
	cq = ibv_create_cq(device, 64, NULL, NULL, 0);
	memory = aligned_alloc(4096, 2 * LONG);
	check(pd && cq && memory, "ibv_create_cq");
	memset(memory, 1, 2 * LONG);
	mr = ibv_reg_mr(pd, memory, 2 * LONG, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	check(mr != NULL, "ibv_reg_mr");
	for (int k = 0; k < QPS; k++) {
		struct ibv_qp_init_attr attr = { .send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC,
			.cap = { .max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1,
				 .max_inline_data = SHORT } };

		qp[k] = ibv_create_qp(pd, &attr);
		check(qp[k] != NULL, "ibv_create_qp");
		here.qpn[k] = qp[k]->qp_num;
	}
	here.rkey = mr->rkey;
	here.addr = (uintptr_t)memory + LONG;
}

static void post_receive(void)
{
	struct ibv_sge to = { (uintptr_t)memory, SHORT, mr->lkey };
	struct ibv_recv_wr wr = { .sg_list = &to, .num_sge = 1 }, *bad;

	check(!ibv_post_recv(qp[PING], &wr, &bad), "ibv_post_recv");
}

static void send_short(void)
{
	struct ibv_sge from = { (uintptr_t)memory + SHORT, SHORT, mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &from, .num_sge = 1, .opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED }, *bad;

	check(!ibv_post_send(qp[PING], &wr, &bad), "ibv_post_send");
}

static void write_long(void)
{
	struct ibv_sge from = { (uintptr_t)memory + LONG, LONG, mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &from, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED, .wr.rdma = { there.addr, there.rkey } }, *bad;

	check(!ibv_post_send(qp[BULK], &wr, &bad), "ibv_post_send");
}

/* Has a short message arrived?  A long write that has ended is followed by another. */
static int poll_once(void)
{
	struct ibv_wc wc;
	int n = ibv_poll_cq(cq, 1, &wc);

	check(n >= 0 && (n == 0 || wc.status == IBV_WC_SUCCESS), "a completion");
	if (n > 0 && wc.opcode == IBV_WC_RDMA_WRITE) {
		written += LONG;
		write_long();
	}
	return n > 0 && wc.opcode == IBV_WC_RECV;
}

static void connect_qp(int k)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE };

	check(!ibv_modify_qp(qp[k], &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
	      "INIT");
	a = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = there.qpn[k],
		.max_dest_rd_atomic = 1, .min_rnr_timer = 12,
		.ah_attr = { .is_global = 1, .port_num = 1, .grh = { .dgid = there.gid, .hop_limit = 64 } } };
	check(!ibv_modify_qp(qp[k], &a, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
			     IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER), "RTR");
	a = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7,
		.max_rd_atomic = 1 };
	check(!ibv_modify_qp(qp[k], &a, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			     IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC), "RTS");
}

/* The socket stays open: its end is the client's. */
static int meet(const char *port, const char *address)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICHOST }, *to;
	int fd, on = 1;

	check(!getaddrinfo(address, port, &hints, &to), "getaddrinfo");
	fd = socket(to->ai_family, SOCK_STREAM, 0);
	if (address) {
		check(!connect(fd, to->ai_addr, to->ai_addrlen), "connect");
	} else {
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
		check(!bind(fd, to->ai_addr, to->ai_addrlen) && !listen(fd, 1), "bind");
		fd = accept(fd, NULL, NULL);
	}
	check(send(fd, &here, sizeof(here), 0) == sizeof(here) &&
	      recv(fd, &there, sizeof(there), MSG_WAITALL) == sizeof(there), "the exchange");
	for (int k = 0; k < QPS; k++)
		connect_qp(k);
	post_receive();
	/* Both are connected, with a receive posted. */
	check(send(fd, "", 1, 0) == 1 && recv(fd, &on, 1, MSG_WAITALL) == 1, "the exchange");
	return fd;
}

static void serve(int fd)
{
	char byte;

	for (;;) {
		for (int k = 0; k < 1000; k++) {
			if (poll_once()) {
				post_receive();
				send_short();
			}
		}
		if (recv(fd, &byte, 1, MSG_DONTWAIT) == 0)
			return;
	}
}

/* The client ends when the server has seen that it is over: no request of the server fails. */
static void part(int fd)
{
	char byte;

	shutdown(fd, SHUT_WR);
	check(recv(fd, &byte, 1, 0) == 0, "the end");
}

static void ping_pong(double seconds, double *us, double *rate)
{
	double began = now(), took;
	uint64_t count = 0;

	written = 0;
	do {
		post_receive();
		send_short();
		while (!poll_once())
			;
		count++;
		took = now() - began;
	} while (took < seconds);
	*us = took / count / 2 * 1e6;
	*rate = written / took / 1e6;
}

int main(int argc, char **argv)
{
	double us, rate;
	int fd;

	if (argc != 2 && argc != 4) {
		fprintf(stderr, "mixed PORT [ADDRESS SECONDS]\n");
		return 3;
	}
	open_device();
	fd = meet(argv[1], argv[2]);
	if (argc == 2) {
		serve(fd);
		return 0;
	}
	for (int k = 0; k < UNDER_WAY; k++)
		write_long();
	ping_pong(strtod(argv[3], NULL) / 10, &us, &rate);
	ping_pong(strtod(argv[3], NULL), &us, &rate);
	printf("%.3f %.3f\n", us, rate);
	part(fd);
	return 0;
}
