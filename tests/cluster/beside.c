/*
 * beside.c - software and real devices side by side in one process.
 *
 * Two processes on two machines, under the softhca command.  A message makes rounds:
 * over the real device to the other machine, there from one buffer to the next over the
 * software device (two queue pairs of one process), and over the real device back; each
 * stop checks all bytes.  The same buffers are registered with both devices.
 *
 *	beside REAL-DEVICE SOFT-DEVICE GID-INDEX real|soft HOST|- PORT
 *
 * real|soft: which of the devices registers the buffers first.  HOST "-" listens.
 */
#include <infiniband/verbs.h>

#include <errno.h>
#include <netdb.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 200, LARGEST = 40000, ACCESS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE };

static void die(const char *fmt, ...) __attribute__((noreturn, format(printf, 1, 2)));

static void die(const char *fmt, ...)
{
	va_list args;

	fprintf(stderr, "beside: ");
	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fputc('\n', stderr);
	exit(1);
}

#define require(condition)						\
	do {								\
		if (!(condition))					\
			die("line %d: %s: %s", __LINE__, #condition, strerror(errno)); \
	} while (0)

/* ---- Devices --------------------------------------------------------------- */

struct device {
	const char *name;
	struct ibv_context *ctx;
	struct ibv_port_attr port;
	union ibv_gid gid;
	uint8_t gid_index;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
};

struct address {
	uint32_t qpn;
	union ibv_gid gid;
};

static struct ibv_device *find(struct ibv_device **list, const char *name)
{
	for (; *list; list++)
		if (strcmp(ibv_get_device_name(*list), name) == 0)
			return *list;
	die("no device %s in the list", name);
}

static void device_open(struct device *d, struct ibv_device **list)
{
	d->ctx = ibv_open_device(find(list, d->name));
	require(d->ctx);
	require(ibv_query_port(d->ctx, 1, &d->port) == 0);
	require(ibv_query_gid(d->ctx, 1, d->gid_index, &d->gid) == 0);
	d->pd = ibv_alloc_pd(d->ctx);
	d->cq = ibv_create_cq(d->ctx, 64, NULL, NULL, 0);
	require(d->pd && d->cq);
}

static void device_close(struct device *d)
{
	require(ibv_destroy_cq(d->cq) == 0);
	require(ibv_dealloc_pd(d->pd) == 0);
	require(ibv_close_device(d->ctx) == 0);
}

static struct ibv_qp *qp_new(struct device *d, struct address *address)
{
	struct ibv_qp_init_attr init = { .send_cq = d->cq, .recv_cq = d->cq,
		.qp_type = IBV_QPT_RC, .sq_sig_all = 1,
		.cap = { .max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1,
			 .max_recv_sge = 1 } };
	struct ibv_qp *qp = ibv_create_qp(d->pd, &init);

	require(qp);
	*address = (struct address){ .qpn = qp->qp_num, .gid = d->gid };
	return qp;
}

static void qp_connect(struct device *d, struct ibv_qp *qp, const struct address *to)
{
	struct ibv_qp_attr init = { .qp_state = IBV_QPS_INIT, .port_num = 1,
				    .qp_access_flags = ACCESS };
	struct ibv_qp_attr rtr = { .qp_state = IBV_QPS_RTR, .path_mtu = d->port.active_mtu,
		.dest_qp_num = to->qpn, .max_dest_rd_atomic = 1, .min_rnr_timer = 12,
		.ah_attr = { .is_global = 1, .port_num = 1,
			     .grh = { .dgid = to->gid, .sgid_index = d->gid_index,
				      .hop_limit = 64 } } };
	struct ibv_qp_attr rts = { .qp_state = IBV_QPS_RTS, .timeout = 20, .retry_cnt = 6,
				   .rnr_retry = 7, .max_rd_atomic = 1 };

	require(ibv_modify_qp(qp, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			      IBV_QP_ACCESS_FLAGS) == 0);
	require(ibv_modify_qp(qp, &rtr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
			      IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
			      IBV_QP_MIN_RNR_TIMER) == 0);
	require(ibv_modify_qp(qp, &rts, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
			      IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC) == 0);
}

/* ---- Memory: one buffer, registered with both --------------------------------- */

struct buffer {
	unsigned char *at;
	struct ibv_mr *real, *soft;
};

static unsigned char byte_of(int round, size_t i)
{
	return (unsigned char)((unsigned)round * 131u + (unsigned)(i * 7 + i / 251));
}

static void check(const struct buffer *b, int round, size_t bytes, const char *where)
{
	size_t i;

	for (i = 0; i < bytes; i++)
		if (b->at[i] != byte_of(round, i))
			die("%s, round %d: byte %zu of %zu is 0x%02x, not 0x%02x", where, round, i,
			    bytes, b->at[i], byte_of(round, i));
}

static struct buffer buffer_new(struct device *real, struct device *soft, bool real_first)
{
	struct buffer b = { .at = malloc(LARGEST) };

	require(b.at);
	memset(b.at, 0xee, LARGEST);
	if (real_first)
		b.real = ibv_reg_mr(real->pd, b.at, LARGEST, ACCESS);
	b.soft = ibv_reg_mr(soft->pd, b.at, LARGEST, ACCESS);
	if (!real_first)
		b.real = ibv_reg_mr(real->pd, b.at, LARGEST, ACCESS);
	require(b.real && b.soft);
	return b;
}

static void buffer_free(struct buffer *b)
{
	require(ibv_dereg_mr(b->real) == 0);
	require(ibv_dereg_mr(b->soft) == 0);
	free(b->at);
}

/* ---- Work ------------------------------------------------------------------------ */

static void receive_into(struct ibv_qp *qp, const struct buffer *b, const struct ibv_mr *mr)
{
	struct ibv_sge sge = { (uintptr_t)b->at, LARGEST, mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = 1, .sg_list = &sge, .num_sge = 1 }, *bad;

	memset(b->at, 0xee, LARGEST);
	require(ibv_post_recv(qp, &wr, &bad) == 0);
}

static void send_from(struct ibv_qp *qp, const struct buffer *b, const struct ibv_mr *mr,
		      size_t bytes)
{
	struct ibv_sge sge = { (uintptr_t)b->at, (uint32_t)bytes, mr->lkey };
	struct ibv_send_wr wr = { .wr_id = 2, .sg_list = &sge, .num_sge = 1,
				  .opcode = IBV_WR_SEND }, *bad;

	require(ibv_post_send(qp, &wr, &bad) == 0);
}

/* Completions until `sends` and `receives` of them are there; the bytes received. */
static size_t await(struct device *d, int sends, int receives)
{
	time_t end = time(NULL) + 60;
	struct ibv_wc wc;
	size_t bytes = 0;

	while (sends > 0 || receives > 0) {
		int n = ibv_poll_cq(d->cq, 1, &wc);

		require(n >= 0);
		if (n == 0 && time(NULL) > end)
			die("%s: no completion for 60 s", d->name);
		if (n == 0)
			continue;
		if (wc.status != IBV_WC_SUCCESS)
			die("%s: %s", d->name, ibv_wc_status_str(wc.status));
		if (wc.opcode == IBV_WC_RECV) {
			receives--;
			bytes = wc.byte_len;
		} else {
			sends--;
		}
	}
	return bytes;
}

/* ---- Between the machines ---------------------------------------------------------- */

static int meet(const char *host, const char *port)
{
	struct addrinfo hints = { .ai_family = AF_INET, .ai_socktype = SOCK_STREAM,
				  .ai_flags = strcmp(host, "-") ? 0 : AI_PASSIVE }, *to;
	const bool listens = strcmp(host, "-") == 0;
	time_t end = time(NULL) + 60;
	int one = 1, fd, peer;

	if (getaddrinfo(listens ? NULL : host, port, &hints, &to))
		die("%s port %s: no such address", host, port);
	for (;;) {
		fd = socket(to->ai_family, to->ai_socktype, 0);
		require(fd >= 0);
		if (listens)
			break;
		if (connect(fd, to->ai_addr, to->ai_addrlen) == 0)
			goto out;
		close(fd);
		if (time(NULL) > end)
			die("%s port %s: nobody listens", host, port);
		usleep(100000);
	}
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	require(bind(fd, to->ai_addr, to->ai_addrlen) == 0 && listen(fd, 1) == 0);
	peer = accept(fd, NULL, NULL);
	require(peer >= 0);
	close(fd);
	fd = peer;
out:
	freeaddrinfo(to);
	return fd;
}

static void swap(int fd, const void *mine, void *theirs, size_t bytes)
{
	require(send(fd, mine, bytes, MSG_NOSIGNAL) == (ssize_t)bytes);
	require(recv(fd, theirs, bytes, MSG_WAITALL) == (ssize_t)bytes);
}

/* ---- The rounds ---------------------------------------------------------------------- */

struct job {
	struct device real, soft;
	struct ibv_qp *across, *from, *to;	/* to the other machine; the software pair */
	struct buffer in, out;
	int fd;
};

/* Data received over the real device go over the software HCA into the other buffer. */
static void relay(struct job *j, int round, size_t bytes)
{
	check(&j->in, round, bytes, "over the real device");
	receive_into(j->to, &j->out, j->out.soft);
	send_from(j->from, &j->in, j->in.soft, bytes);
	require(await(&j->soft, 1, 1) == bytes);
	check(&j->out, round, bytes, "over the software device");
}

static void run_round(struct job *j, int round, bool begins)
{
	size_t bytes = 1 + (size_t)round * 7919 % LARGEST, i;
	char mark = 'r';

	receive_into(j->across, &j->in, j->in.real);
	swap(j->fd, &mark, &mark, 1);
	if (begins) {
		for (i = 0; i < bytes; i++)
			j->out.at[i] = byte_of(round, i);
		send_from(j->across, &j->out, j->out.real, bytes);
		require(await(&j->real, 1, 1) == bytes);
		relay(j, round, bytes);
	} else {
		require(await(&j->real, 0, 1) == bytes);
		relay(j, round, bytes);
		send_from(j->across, &j->out, j->out.real, bytes);
		await(&j->real, 1, 0);
	}
}

static void set_up(struct job *j, bool real_first)
{
	struct address mine, theirs, from, to;
	struct ibv_device **list;
	int count;

	list = ibv_get_device_list(&count);
	require(list && count >= 2);
	device_open(&j->real, list);
	device_open(&j->soft, list);
	ibv_free_device_list(list);
	j->in = buffer_new(&j->real, &j->soft, real_first);
	j->out = buffer_new(&j->real, &j->soft, real_first);
	j->across = qp_new(&j->real, &mine);
	swap(j->fd, &mine, &theirs, sizeof(mine));
	qp_connect(&j->real, j->across, &theirs);
	j->from = qp_new(&j->soft, &from);
	j->to = qp_new(&j->soft, &to);
	qp_connect(&j->soft, j->from, &to);
	qp_connect(&j->soft, j->to, &from);
}

static void tear_down(struct job *j)
{
	require(ibv_destroy_qp(j->across) == 0);
	require(ibv_destroy_qp(j->from) == 0);
	require(ibv_destroy_qp(j->to) == 0);
	buffer_free(&j->in);
	buffer_free(&j->out);
	device_close(&j->real);
	device_close(&j->soft);
	close(j->fd);
}

int main(int argc, char **argv)
{
	struct job j = { .fd = -1 };
	int round;

	if (argc != 7)
		die("REAL-DEVICE SOFT-DEVICE GID-INDEX real|soft HOST|- PORT");
	j.real.name = argv[1];
	j.soft.name = argv[2];
	j.real.gid_index = (uint8_t)atoi(argv[3]);
	j.fd = meet(argv[5], argv[6]);
	set_up(&j, strcmp(argv[4], "real") == 0);
	for (round = 0; round < ROUNDS; round++)
		run_round(&j, round, strcmp(argv[5], "-") == 0);
	tear_down(&j);
	printf("beside: %d rounds over %s and %s, %s registered first\n", ROUNDS, argv[1], argv[2],
	       argv[4]);
	return 0;
}
