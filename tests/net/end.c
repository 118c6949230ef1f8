/*
 * end.c - one end of a connected queue pair between hosts, which does what it is told.
 *
 *	end ME PEER [NAME=VALUE...] ACTION...
 *
 * The ends meet by files ME.end and PEER.end in $RG_MEET.  Values: timeout, retry (of the queue pair),
 * unreliable (1: UC); datagram (bytes of those of reach).
 * Each action says one line when it is over, and nothing lasts longer than a minute.
 */
#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "softhca/softhca.h"
#include "util/clock.h"

enum { BYTES = 1 << 20, DEPTH = 64, WAIT_MS = 60000 };

struct address {
	union ibv_gid gid;
	uint32_t qpn, psn, rkey;
	uint64_t at;
};

static struct {
	const char *me, *peer;
	unsigned timeout, retry, unreliable, datagram;	/* bytes of act_reach's */
	struct ibv_context *c;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	struct address other;
	unsigned posted, ended;
	int status;			/* the first that is not success */
} end = { .timeout = 14, .retry = 7 };
static unsigned char memory[2][BYTES] __attribute__((aligned(4096)));	/* to send; written by the peer */

__attribute__((noreturn, format(printf, 1, 2))) static void fail(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vprintf(fmt, args);
	va_end(args);
	printf("\n");
	exit(1);
}

static void must(bool holds, const char *what)
{
	if (!holds)
		fail("%s: failed: %s", what, strerror(errno));
}

/* ---- Files --------------------------------------------------------------- */

static const char *path_of(const char *name, const char *suffix)
{
	static char path[4][512];
	static unsigned turn;

	turn = (turn + 1) % 4;
	snprintf(path[turn], sizeof(path[turn]), "%s/%s%s", getenv("RG_MEET"), name, suffix);
	return path[turn];
}

static void put_file(const char *name, const char *suffix, const void *data, size_t bytes)
{
	const char *draft = path_of(name, ".draft");
	FILE *f = fopen(draft, "w");

	must(f && fwrite(data, 1, bytes, f) == bytes && !fclose(f), draft);
	must(!rename(draft, path_of(name, suffix)), name);
}

/* Without a verb. */
static void await_file(const char *name, const char *suffix)
{
	unsigned ms;

	for (ms = 0; access(path_of(name, suffix), F_OK); ms += 10) {
		if (ms > WAIT_MS)
			fail("rest %s: nothing within a minute", name);
		usleep(10000);
	}
}

static void get_file(const char *name, const char *suffix, void *data, size_t bytes)
{
	FILE *f;

	await_file(name, suffix);
	f = fopen(path_of(name, suffix), "r");
	must(f && fread(data, 1, bytes, f) == bytes, name);
	fclose(f);
}

/* ---- The queue pair ------------------------------------------------------ */

static void open_end(void)
{
	struct ibv_device **list = softhca_get_device_list(NULL, NULL);
	struct ibv_qp_init_attr init = { .qp_type = end.unreliable ? IBV_QPT_UC : IBV_QPT_RC,
					 .sq_sig_all = 1,
					 .cap = { DEPTH, DEPTH, 1, 1, 0 } };
	struct ibv_pd *pd;

	if (!list || !list[0])
		fail("open: %s", softhca_last_error());
	end.c = ibv_open_device(list[0]);
	must(end.c, "open");
	pd = ibv_alloc_pd(end.c);
	end.mr = ibv_reg_mr(pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE |
			    IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
	end.cq = ibv_create_cq(end.c, 4 * DEPTH, NULL, NULL, 0);
	init.send_cq = init.recv_cq = end.cq;
	must(pd && end.mr && end.cq, "open");
	end.qp = ibv_create_qp(pd, &init);
	must(end.qp, "open");
}

static void introduce(void)
{
	struct address mine = { .qpn = end.qp->qp_num, .psn = end.qp->qp_num & 0xffff,
				.rkey = end.mr->rkey, .at = (uintptr_t)memory[1] };

	must(!ibv_query_gid(end.c, 1, 0, &mine.gid), "gid");
	put_file(end.me, ".end", &mine, sizeof(mine));
	get_file(end.peer, ".end", &end.other, sizeof(end.other));
}

static void modify(enum ibv_qp_state state, int mask)
{
	struct ibv_qp_attr a = {
		.qp_state = state, .port_num = 1, .path_mtu = IBV_MTU_1024, .max_dest_rd_atomic = 4,
		.max_rd_atomic = 4, .timeout = (uint8_t)end.timeout, .rnr_retry = 7,
		.retry_cnt = (uint8_t)end.retry, .min_rnr_timer = 1, .dest_qp_num = end.other.qpn,
		.rq_psn = end.other.psn, .sq_psn = end.qp->qp_num & 0xffff,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE |
				   (end.unreliable ? 0 : IBV_ACCESS_REMOTE_READ),
		.ah_attr = { .is_global = 1, .port_num = 1,
			     .grh = { .dgid = end.other.gid, .hop_limit = 64 } },
	};

	must(!ibv_modify_qp(end.qp, &a, mask | IBV_QP_STATE), "modify");
}

static void act_connect(const char *value)
{
	(void)value;
	introduce();
	modify(IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	modify(IBV_QPS_RTR, IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
	       (end.unreliable ? 0 : IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER));
	modify(IBV_QPS_RTS, IBV_QP_SQ_PSN |
	       (end.unreliable ? 0 : IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				     IBV_QP_MAX_QP_RD_ATOMIC));
	printf("connect: done\n");
}

/* ---- Requests ------------------------------------------------------------ */

static unsigned char pattern(uint32_t at, unsigned turn)
{
	return (unsigned char)(at * 131 + (at >> 8) + turn);
}

static void fill(uint32_t bytes, unsigned turn)
{
	uint32_t i;

	for (i = 0; i < bytes; i++)
		memory[0][i] = pattern(i, turn);
}

static void post(enum ibv_wr_opcode op, uint32_t bytes)
{
	struct ibv_sge s = { (uintptr_t)memory[0], bytes, end.mr->lkey };
	struct ibv_send_wr wr = { .opcode = op, .sg_list = &s, .num_sge = 1,
				  .wr.rdma = { end.other.at, end.other.rkey } }, *bad;

	must(!ibv_post_send(end.qp, &wr, &bad), "post");
	end.posted++;
}

/* Until so many requests at most have not ended. */
static void drain(unsigned left, const char *what)
{
	struct ibv_wc wc;
	unsigned ms = 0;

	while (end.posted - end.ended > left) {
		if (ibv_poll_cq(end.cq, 1, &wc) == 1) {
			end.ended++;
			if (!end.status)
				end.status = (int)wc.status;
			continue;
		}
		if (++ms > WAIT_MS)
			fail("%s: %u requests have not ended within a minute", what,
			     end.posted - end.ended);
		usleep(1000);
	}
}

static void ended(const char *what)
{
	drain(0, what);
	printf("%s: %s\n", what, ibv_wc_status_str((enum ibv_wc_status)end.status));
	end.status = 0;
}

static void act_write(const char *value)
{
	uint32_t bytes = (uint32_t)strtoul(value, NULL, 0);

	fill(bytes, 0);
	post(IBV_WR_RDMA_WRITE, bytes);
	ended("write");
}

static void act_post(const char *value)
{
	uint32_t bytes = (uint32_t)strtoul(value, NULL, 0);

	fill(bytes, 0);
	post(IBV_WR_RDMA_WRITE, bytes);
	printf("post: done\n");
}

static void act_read(const char *value)
{
	post(IBV_WR_RDMA_READ, (uint32_t)strtoul(value, NULL, 0));
	ended("read");
}

/* So many megabytes: one buffer again and again, the last time with another pattern. */
static void act_flood(const char *value)
{
	unsigned turns = (unsigned)strtoul(value, NULL, 0), i;

	for (i = 0; i < turns; i++) {
		drain(DEPTH - 1, "flood");
		post(IBV_WR_RDMA_WRITE, BYTES);
	}
	drain(0, "flood");
	fill(BYTES, 7);
	post(IBV_WR_RDMA_WRITE, BYTES);
	ended("flood");
}

static void check(uint32_t bytes, unsigned turn)
{
	uint32_t i;

	for (i = 0; i < bytes; i++)
		if (memory[1][i] != pattern(i, turn))
			fail("check: byte %u of %u is %02x", i, bytes, memory[1][i]);
	printf("check: right\n");
}

/* Write again and again until a file is there; until such a write has arrived. */
static void act_repeat(const char *value)
{
	unsigned turns;

	fill(8, 9);
	for (turns = 0; access(path_of(value, ""), F_OK); turns++) {
		if (turns > WAIT_MS / 50)
			fail("repeat: no %s within a minute", value);
		post(IBV_WR_RDMA_WRITE, 8);
		drain(0, "repeat");
		usleep(50000);
	}
	ended("repeat");
}

static void act_arrive(const char *value)
{
	unsigned ms;

	(void)value;
	for (ms = 0; __atomic_load_n(&memory[1][7], __ATOMIC_ACQUIRE) != pattern(7, 9); ms += 10) {
		if (ms > WAIT_MS)
			fail("arrive: nothing within a minute");
		usleep(10000);
	}
	check(8, 9);
}

static void act_clear(const char *value)
{
	(void)value;
	memset(memory[1], 0, BYTES);
	printf("clear: done\n");
}

static void act_done(const char *value)
{
	(void)value;
	ended("done");
}

static void act_poll(const char *value)
{
	struct ibv_wc wc;

	(void)value;
	printf("poll: %d\n", ibv_poll_cq(end.cq, 1, &wc));
}

static void act_check(const char *value)
{
	check((uint32_t)strtoul(value, NULL, 0), 0);
}

static void act_flooded(const char *value)
{
	(void)value;
	check(BYTES, 7);
}

/* ---- Waiting ------------------------------------------------------------- */

static void act_rest(const char *value)
{
	await_file(value, "");
	printf("rest: done\n");
}

static void act_tell(const char *value)
{
	put_file(value, "", "", 0);
	printf("tell: done\n");
}

static void act_event(const char *value)
{
	struct ibv_async_event e;

	do {
		must(!ibv_get_async_event(end.c, &e), "event");
		ibv_ack_async_event(&e);
		printf("event: %s\n", ibv_event_type_str(e.event_type));
		fflush(stdout);
	} while (!strstr(ibv_event_type_str(e.event_type), value));
}

/* ---- The process --------------------------------------------------------- */

static unsigned long switches_of(const char *task)
{
	char path[320], line[128];
	unsigned long n = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%s/status", task);
	f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f))
		sscanf(line, "voluntary_ctxt_switches: %lu", &n);
	if (f)
		fclose(f);
	return n;
}

static unsigned long switches(void)
{
	DIR *d = opendir("/proc/self/task");
	unsigned long sum = 0;
	struct dirent *e;

	must(d, "/proc/self/task");
	while ((e = readdir(d)))
		if (*e->d_name != '.')
			sum += switches_of(e->d_name);
	closedir(d);
	return sum;
}

static void act_idle(const char *value)
{
	unsigned seconds = (unsigned)strtoul(value, NULL, 0);
	unsigned long before = switches();

	sleep(seconds);
	printf("idle: %lu wake-ups a second\n", (switches() - before) / seconds);
}

static struct ibv_qp *make_datagrams(void)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_UD, .sq_sig_all = 1,
					 .cap = { DEPTH, DEPTH, 1, 1, 0 },
					 .send_cq = end.cq, .recv_cq = end.cq };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct ibv_qp *qp = ibv_create_qp(end.mr->pd, &init);

	must(qp && !ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY),
	     "reach");
	attr.qp_state = IBV_QPS_RTR;
	must(!ibv_modify_qp(qp, &attr, IBV_QP_STATE), "reach");
	attr.qp_state = IBV_QPS_RTS;
	must(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN), "reach");
	return qp;
}

static const char *reach_of(const struct ibv_ah *ah)
{
	switch (softhca_query_reach(ah, end.other.qpn)) {
	case SOFTHCA_REACHED:
		return "reached";
	case SOFTHCA_CUT:
		return "cut";
	case SOFTHCA_LEFT:
		return "left";
	case SOFTHCA_RESET:
		return "reset";
	default:
		return "dead";
	}
}

/* Datagrams to the peer's number, until softhca_query_reach says so: with +, twenty times in a row. */
static void act_reach(const char *value)
{
	struct ibv_ah_attr path = { .is_global = 1, .port_num = 1, .grh = { .dgid = end.other.gid, .hop_limit = 64 } };
	struct ibv_qp *qp = make_datagrams();
	struct ibv_ah *ah = ibv_create_ah(end.mr->pd, &path);
	struct ibv_sge s = { (uintptr_t)memory[0], end.datagram, end.mr->lkey };
	struct ibv_send_wr *bad, wr = { .opcode = IBV_WR_SEND, .sg_list = &s, .num_sge = 1,
					.wr.ud = { .ah = ah, .remote_qpn = end.other.qpn } };
	const unsigned wanted = *value == '+' ? 20 : 1;
	unsigned turn, same = 0;
	struct ibv_wc wc;

	value += *value == '+';
	must(ah, "reach");
	for (turn = 0; turn < WAIT_MS / 50 && same < wanted; turn++) {
		must(!ibv_post_send(qp, &wr, &bad), "reach");
		usleep(50000);
		while (ibv_poll_cq(end.cq, 1, &wc) > 0)
			;
		same = strcmp(reach_of(ah), value) == 0 ? same + 1 : 0;
	}
	printf("reach: %s\n", reach_of(ah));
	ibv_destroy_qp(qp);
	ibv_destroy_ah(ah);
}

/* Sockets, epoll sets and eventfds below 1024; the limit here and of children. */
static void act_descriptors(const char *value)
{
	char path[64], target[128];
	struct rlimit limit;
	unsigned low = 0, high = 0;
	ssize_t n;
	int fd;

	(void)value;
	for (fd = 3; fd < 4096; fd++) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		n = readlink(path, target, sizeof(target) - 1);
		target[n > 0 ? n : 0] = '\0';
		if (strncmp(target, "socket:", 7) == 0 || strstr(target, "eventpoll") ||
		    strstr(target, "eventfd"))
			*(fd < 1024 ? &low : &high) += 1;
	}
	must(!getrlimit(RLIMIT_NOFILE, &limit), "limit");
	printf("descriptors: %u below 1024, %s above, limit %lu\n", low, high ? "some" : "none",
	       (unsigned long)limit.rlim_cur);
	fflush(stdout);
	must(!system("echo descriptors of a child: limit $(ulimit -n)"), "system");
}

static void act_fate(const char *value)
{
	struct ibv_ah_attr path = { .is_global = 1, .port_num = 1,
				    .grh = { .dgid = end.other.gid, .hop_limit = 64 } };
	struct ibv_ah *ah = ibv_create_ah(end.mr->pd, &path);

	(void)value;
	must(ah, "fate");
	printf("fate: %s\n", reach_of(ah));
	ibv_destroy_ah(ah);
}

/* All descriptors that the program has not opened, as programs do that become daemons. */
static void act_shut(const char *value)
{
	int fd;

	(void)value;
	for (fd = STDERR_FILENO + 1; fd < 4096; fd++)
		close(fd);
	printf("shut: done\n");
}

/* ---- Actions ------------------------------------------------------------- */

static const struct action {
	const char *name;
	bool has_value;
	void (*run)(const char *value);
} actions[] = {
	{ "connect", false, act_connect }, { "write", true, act_write }, { "post", true, act_post },
	{ "read", true, act_read }, { "flood", true, act_flood }, { "flooded", false, act_flooded },
	{ "done", false, act_done }, { "poll", false, act_poll }, { "check", true, act_check },
	{ "rest", true, act_rest }, { "tell", true, act_tell }, { "event", true, act_event },
	{ "repeat", true, act_repeat }, { "arrive", false, act_arrive },
	{ "clear", false, act_clear }, { "idle", true, act_idle }, { "descriptors", false, act_descriptors },
	{ "reach", true, act_reach }, { "fate", false, act_fate }, { "shut", false, act_shut },
};

static const struct action *action_of(const char *name)
{
	unsigned i;

	for (i = 0; i < sizeof(actions) / sizeof(actions[0]); i++)
		if (strcmp(actions[i].name, name) == 0)
			return &actions[i];
	fail("%s: no such action", name);
}

int main(int argc, char **argv)
{
	int i = 3;

	setvbuf(stdout, NULL, _IOLBF, 0);
	alarm(2 * WAIT_MS / 1000);
	if (argc < 4 || !getenv("RG_MEET"))
		fail("RG_MEET=DIRECTORY end ME PEER [NAME=VALUE...] ACTION...");
	end.me = argv[1];
	end.peer = argv[2];
	while (i < argc && (sscanf(argv[i], "timeout=%u", &end.timeout) == 1 ||
			    sscanf(argv[i], "retry=%u", &end.retry) == 1 ||
			    sscanf(argv[i], "datagram=%u", &end.datagram) == 1 ||
			    sscanf(argv[i], "unreliable=%u", &end.unreliable) == 1))
		i++;
	open_end();
	while (i < argc) {
		const struct action *a = action_of(argv[i++]);

		if (a->has_value && i == argc)
			fail("%s: which?", a->name);
		a->run(a->has_value ? argv[i++] : NULL);
	}
	fflush(stdout);
	_exit(0);		/* without a farewell: the connection ends with the process */
}
