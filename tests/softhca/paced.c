/*
 * paced.c - the timing model against the clock: what is measured through the
 * verbs is what the spec says.
 *
 * A machine can only make things slower.  So whatever is better than the model
 * allows, even once, is an error; what is not as good is tried a few times and
 * then told, but is an error only with --strict, which is for an idle machine:
 *
 *	MEASURE_ONLY=paced make bench
 *
 * The exact arithmetic is test_model.c's business.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../conformance/conformance.h"

enum { ATTEMPTS = 10, US = 1000, MS = 1000000 };

static struct options options = { .port = 1, .gid_index = -2, .arena = true };

/* What a case measures, on side 0; how it is judged, by the parent. */
struct paced {
	const char *name, *spec;
	double (*measure)(struct side *s);
	double low, high;		/* the best attempt lies here */
	bool high_is_best;
	double alone;			/* reached when the other side is off its core; or 0 */
};

/* ---- Tools --------------------------------------------------------------- */

static void on_port(struct side *s, int port)
{
	s->port_num = port;
	require_equal(ibv_query_port(s->ctx, (uint8_t)port, &s->port), 0);
}

static struct end connected(struct side *s, int port)
{
	struct end_config c = end_defaults;
	struct end e;

	c.send_wr = 256;
	on_port(s, port);
	e = end_new(s, &c);
	end_connect(s, &e);
	return e;
}

static struct ibv_send_wr request(struct buffer *b, struct ibv_sge *sge, enum ibv_wr_opcode op)
{
	return (struct ibv_send_wr){ .wr_id = 1, .sg_list = sge, .num_sge = 1, .opcode = op,
				     .send_flags = IBV_SEND_SIGNALED,
				     .wr.rdma = { b->addr, b->rkey } };
}

/* Messages over several queue pairs at once: MB/s of all from first post to last completion. */
static double stream(struct side *s, struct end *e, int ends, struct buffer *b, size_t bytes,
		     int each, enum ibv_wr_opcode op)
{
	struct ibv_sge sge = sge_of(b, 0, bytes);
	uint64_t start;
	int i, k;

	barrier(s);
	start = now_ns();
	for (i = 0; i < each; i++)
		for (k = 0; k < ends; k++)
			post(&e[k], request(b, &sge, op));
	for (i = 0; i < each; i++)
		for (k = 0; k < ends; k++)
			wait_ok(e[k].cq);
	return (double)bytes * each * ends * 1000 / (double)(now_ns() - start);
}

static double bandwidth(struct side *s, int ports, int per_port, size_t bytes, int each,
			enum ibv_wr_opcode op, bool both)
{
	struct buffer b = buffer_new(s, bytes, ACCESS_ALL);
	struct end e[8];
	double rate = 0;
	int i, ends = ports * per_port;

	for (i = 0; i < ends; i++)
		e[i] = connected(s, 1 + i % ports);
	buffer_swap(s, &b);
	if (s->me == 0 || both)
		rate = stream(s, e, ends, &b, bytes, each, op);
	else
		barrier(s);
	barrier(s);
	for (i = 0; i < ends; i++)
		end_free(&e[i]);
	buffer_free(s, &b);
	return rate;
}

/* Until the other side has woken up and polls. */
static void settle(void)
{
	uint64_t end = now_ns() + MS;

	while (now_ns() < end)
		;
}

/* ---- Cases --------------------------------------------------------------- */

static double one_port(struct side *s)
{
	return bandwidth(s, 1, 1, 1 << 20, 10, IBV_WR_RDMA_WRITE, false);
}

static double two_ports(struct side *s)
{
	return bandwidth(s, 2, 1, 1 << 20, 10, IBV_WR_RDMA_WRITE, false);
}

static double two_on_one_port(struct side *s)
{
	return bandwidth(s, 1, 2, 1 << 20, 10, IBV_WR_RDMA_WRITE, false);
}

static double reading(struct side *s)
{
	return bandwidth(s, 1, 1, 1 << 20, 10, IBV_WR_RDMA_READ, false);
}

/* Side 0 reports its own direction; both run at once. */
static double both_ways(struct side *s)
{
	return bandwidth(s, 1, 1, 1 << 20, 10, IBV_WR_RDMA_WRITE, true);
}

static double many_small(struct side *s)
{
	return bandwidth(s, 1, 1, 4096, 100, IBV_WR_RDMA_WRITE, false);
}

static double few_large(struct side *s)
{
	return bandwidth(s, 1, 1, 65536, 40, IBV_WR_RDMA_WRITE, false);
}

static double small_reads(struct side *s)
{
	return bandwidth(s, 1, 1, 4096, 100, IBV_WR_RDMA_READ, false);
}

/* Half the shortest round trip of SENDs, in us. */
static double ping_pong(struct side *s)
{
	struct buffer b = buffer_new(s, 64, ACCESS_ALL);
	struct end e = connected(s, 1);
	struct ibv_sge sge = sge_of(&b, 0, 8);
	uint64_t start, best = UINT64_MAX;
	int i;

	for (i = 0; i < 50; i++) {
		struct ibv_send_wr wr = request(&b, &sge, IBV_WR_SEND);

		wr.send_flags = i % 32 == 31 ? IBV_SEND_SIGNALED : 0;
		post_receive(&e, 1, &sge, 1);
		barrier(s);
		if (s->me == 0)
			settle();
		start = now_ns();
		if (s->me == 0)
			post(&e, wr);
		while (wait_ok(e.cq).opcode != IBV_WC_RECV)
			;
		if (now_ns() - start < best)
			best = now_ns() - start;
		if (s->me == 1)
			post(&e, wr);
		/* All of it is over before the next round begins. */
		barrier(s);
	}
	end_free(&e);
	buffer_free(s, &b);
	return (double)best / 2 / US;
}

static double read_latency(struct side *s)
{
	struct buffer b = buffer_new(s, 64, ACCESS_ALL);
	struct end e = connected(s, 1);
	struct ibv_sge sge = sge_of(&b, 0, 8);
	uint64_t start, best = UINT64_MAX;
	int i;

	buffer_swap(s, &b);
	for (i = 0; s->me == 0 && i < 50; i++) {
		start = now_ns();
		post(&e, request(&b, &sge, IBV_WR_RDMA_READ));
		wait_ok(e.cq);
		if (now_ns() - start < best)
			best = now_ns() - start;
	}
	barrier(s);
	end_free(&e);
	buffer_free(s, &b);
	return (double)best / US;
}

/* When does who polls memory see the end of a write?  us after the post; the earliest counts. */
static double polled_memory(struct side *s, size_t bytes)
{
	struct buffer b = buffer_new(s, bytes, ACCESS_ALL);
	struct buffer clock = buffer_new(s, 8, ACCESS_ALL);
	struct end e = connected(s, 1);
	volatile unsigned char *last = b.at + bytes - 1;
	double earliest = 1e9;
	int i;

	buffer_swap(s, &b);
	buffer_swap(s, &clock);
	for (i = 1; i <= 20; i++) {
		uint64_t posted = 0, seen = 0, theirs;
		struct ibv_sge sge = sge_of(&b, 0, bytes);

		barrier(s);
		if (s->me == 1) {
			memset(b.at, i, bytes);
			settle();
			posted = now_ns();
			post(&e, request(&b, &sge, IBV_WR_RDMA_WRITE));
			wait_ok(e.cq);
		} else {
			while (*last != i)
				;
			seen = now_ns();
		}
		swap(s, &posted, &theirs, sizeof(posted));
		if (s->me == 0 && (double)(seen - theirs) < earliest)
			earliest = (double)(seen - theirs);
	}
	end_free(&e);
	buffer_free(s, &clock);
	buffer_free(s, &b);
	return earliest / US;
}

static double polled_8(struct side *s)
{
	return polled_memory(s, 8);
}

static double polled_10000(struct side *s)
{
	return polled_memory(s, 10000);
}

/* A small message of another queue pair, behind 64 queued megabytes: us. */
static double overtaking(struct side *s)
{
	struct buffer b = buffer_new(s, 1 << 20, ACCESS_ALL);
	struct end bulk = connected(s, 1), small = connected(s, 1);
	struct ibv_sge sge = sge_of(&b, 0, 1 << 20), eight = sge_of(&b, 0, 8);
	uint64_t start, took = 0;
	int i;

	buffer_swap(s, &b);
	barrier(s);
	if (s->me == 0) {
		for (i = 0; i < 64; i++)
			post(&bulk, request(&b, &sge, IBV_WR_RDMA_WRITE));
		start = now_ns();
		post(&small, request(&b, &eight, IBV_WR_RDMA_WRITE));
		wait_ok(small.cq);
		took = now_ns() - start;
		/* no need to wait for the rest */
		require_equal(end_to(&bulk, IBV_QPS_ERR), 0);
	}
	barrier(s);
	end_free(&bulk);
	end_free(&small);
	buffer_free(s, &b);
	return (double)took / US;
}

/* The sender is off its core for 60 of the 100 ms that its messages take: ms in all. */
static double catching_up(struct side *s)
{
	const struct timespec away = { 0, 60 * MS };
	struct buffer b = buffer_new(s, 1 << 20, ACCESS_ALL);
	struct end e = connected(s, 1);
	struct ibv_sge sge = sge_of(&b, 0, 1000000);
	uint64_t start, took = 0;
	int i;

	buffer_swap(s, &b);
	barrier(s);
	if (s->me == 0) {
		start = now_ns();
		for (i = 0; i < 10; i++)
			post(&e, request(&b, &sge, IBV_WR_RDMA_WRITE));
		nanosleep(&away, NULL);
		for (i = 0; i < 10; i++)
			wait_ok(e.cq);
		took = now_ns() - start;
	}
	barrier(s);
	end_free(&e);
	buffer_free(s, &b);
	return (double)took / MS;
}

/* low and high: MB/s, or us, or ms, as the case returns it. */
static const struct paced cases[] = {
	{ "one port", "rate=400MB/s,latency=10us", one_port, 350, 401, true },
	{ "two ports", "rate=400MB/s,latency=10us", two_ports, 700, 802, true },
	{ "two queue pairs on one port", "rate=400MB/s,latency=10us", two_on_one_port, 350, 401,
	  true },
	{ "RDMA read", "rate=400MB/s,latency=10us", reading, 350, 401, true },
	{ "adapter's cap", "rate=400MB/s,cap=600MB/s,latency=10us", two_ports, 575, 602, true },
	{ "host bus reads", "rate=400MB/s,bus=200MB/s/300MB/s:full", one_port, 175, 201, true },
	{ "host bus writes", "rate=400MB/s,bus=300MB/s/200MB/s:full", one_port, 175, 201, true },
	{ "full duplex", "rate=200MB/s", both_ways, 170, 201, true },
	/*
	 * 1 / (1/150 + 1/300) = 100 each way while both are at it; who is off its
	 * core leaves the bus to the other, but not in every attempt
	 */
	{ "half-duplex bus", "rate=200MB/s,bus=150MB/s/300MB/s:half", both_ways, 75, 125, true,
	  151 },
	/* 8 packets of 4096 bytes per round trip of 2 ms and a packet's time */
	{ "window", "rate=100MB/s,latency=1ms,window=8", many_small, 14.5, 17.5, true },
	/* 2 messages of 65536 bytes per round trip of 2 ms and a message's time */
	{ "outstanding messages", "rate=100MB/s,latency=1ms,outstanding=2", few_large, 44, 52,
	  true },
	/* 4 reads of 4096 bytes per round trip of 2 ms and one's time */
	{ "reads", "rate=100MB/s,latency=1ms,reads=4", small_reads, 7.2, 8.8, true },
	{ "message cost", "rate=400MB/s,msg=100us", many_small, 35, 39, true },
	{ "latency", "rate=1GB/s,latency=50us", ping_pong, 50, 75, false },
	{ "latency of a read", "rate=1GB/s,latency=50us", read_latency, 100, 130, false },
	{ "polled memory, 8 bytes", "rate=100MB/s,latency=50us", polled_8, 50, 80, false },
	/* waits that long are not waited for: the next verb writes it */
	{ "polled memory, 10000 bytes", "rate=100MB/s,latency=50us", polled_10000, 150, 190,
	  false },
	{ "polled memory, short wait", "rate=1GB/s,latency=4us", polled_8, 4, 12, false },
	/* behind two quanta of 41 us, not behind 0.6 s */
	{ "overtaking", "rate=100MB/s,latency=10us", overtaking, 10, 1000, false },
	{ "catching up", "rate=100MB/s,latency=10us", catching_up, 99, 125, false },
};

/* ---- Running ------------------------------------------------------------- */

static void run_side(const struct paced *p, int me, int sock, int result)
{
	struct side s = { .me = me, .sock = sock, .options = &options, .gid_index = -1 };
	struct ibv_device **list;
	char node[8];
	double value;

	alarm(60);
	snprintf(node, sizeof(node), "%d", me);
	setenv("SOFTHCA_NODE", node, 1);
	setenv("SOFTHCA_SPEC", p->spec, 1);
	list = ibv_get_device_list(NULL);
	require(list != NULL && list[0] != NULL);
	s.ctx = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	s.pd = ibv_alloc_pd(s.ctx);
	require(s.pd != NULL);
	value = p->measure(&s);
	if (me == 0)
		require_equal(write(result, &value, sizeof(value)), sizeof(value));
	barrier(&s);
	require_equal(ibv_dealloc_pd(s.pd), 0);
	require_equal(ibv_close_device(s.ctx), 0);
	exit(0);
}

static double attempt(const struct paced *p)
{
	int pair[2], result[2], me, status;
	pid_t pid[2];
	double value;

	require_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	require_equal(pipe(result), 0);
	for (me = 0; me < 2; me++) {
		fflush(NULL);
		pid[me] = fork();
		require(pid[me] >= 0);
		if (pid[me] == 0) {
			close(pair[!me]);
			run_side(p, me, pair[me], result[1]);
		}
	}
	close(pair[0]);
	close(pair[1]);
	close(result[1]);
	for (me = 0; me < 2; me++) {
		require_equal(waitpid(pid[me], &status, 0), pid[me]);
		if (!WIFEXITED(status) || WEXITSTATUS(status))
			fail("%s: side %d ended with status 0x%x", p->name, me, (unsigned)status);
	}
	require_equal(read(result[0], &value, sizeof(value)), sizeof(value));
	close(result[0]);
	return value;
}

enum verdict { GOOD, SLOW, EXCUSED, TOO_GOOD };

static enum verdict compare(const struct paced *p, double value)
{
	if (!p->high_is_best)
		return value < p->low ? TOO_GOOD : value > p->high ? SLOW : GOOD;
	if (value > p->high)
		return value <= p->alone ? EXCUSED : TOO_GOOD;
	return value < p->low ? SLOW : GOOD;
}

static enum verdict judge(const struct paced *p)
{
	static const char *const words[] = { "ok", "slow", "", "FAIL" };
	enum verdict verdict = SLOW;
	bool ever_slow = false;
	double value = 0;
	int i;

	for (i = 0; i < ATTEMPTS && verdict != GOOD && verdict != TOO_GOOD; i++) {
		value = attempt(p);
		verdict = compare(p, value);
		ever_slow |= verdict == SLOW;
	}
	/* An excuse does not hold for every attempt. */
	if (verdict == SLOW || verdict == EXCUSED)
		verdict = ever_slow ? SLOW : TOO_GOOD;
	printf("%-4s %-28s %10.2f (%g to %g)  %s\n", words[verdict], p->name, value, p->low,
	       p->high, p->spec);
	fflush(stdout);
	return verdict;
}

int main(int argc, char **argv)
{
	bool strict = argc > 1 && strcmp(argv[1], "--strict") == 0;
	char name[32], path[64];
	int count[TOO_GOOD + 1] = { 0 };
	unsigned i;

	if (argc > 1 && !strict) {
		fprintf(stderr, "%s: %s: accepted: --strict\n", argv[0], argv[1]);
		return 3;
	}
	signal(SIGPIPE, SIG_IGN);
	snprintf(name, sizeof(name), "paced.%d", (int)getpid());
	snprintf(path, sizeof(path), "/dev/shm/softhca.%u.%s", (unsigned)geteuid(), name);
	setenv("SOFTHCA_EXPOSE", "1", 1);
	setenv("SOFTHCA_FABRIC", name, 1);
	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		count[judge(&cases[i])]++;
	if (access(path, F_OK) == 0)
		fail("%s is still there", path);
	if (count[SLOW])
		printf("%d cases slower than the model on this machine, now\n", count[SLOW]);
	return count[TOO_GOOD] > 0 || (strict && count[SLOW] > 0);
}
