/*
 * conformance.h - the requirements on a verbs device, as a list of cases.
 *
 * Plain libibverbs: the same list runs on a software HCA, on Soft-RoCE and on
 * hardware.  Each case runs as two processes, *sides* 0 and 1, that share a
 * socket for addresses and barriers.  Cases that the device reports not to
 * support are skipped, visibly.
 */
#ifndef CONFORMANCE_H
#define CONFORMANCE_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

struct options {
	const char *device;	/* NULL: the first */
	int port;		/* 1... */
	int peer_port;		/* of side 1 */
	int gid_index;		/* -1: the best; -2: none, address by LID */
	bool arena;		/* buffers from the software HCA's arena */
	bool apart;		/* each side in a user namespace of its own */
	const char *peer_host;	/* network namespace of side 1; NULL: the same host */
	bool wire;		/* a wire joins the sides: nothing is known before a message */
};

struct side {
	int me;			/* 0 or 1 */
	int sock;
	const struct options *options;
	struct ibv_context *ctx;
	struct ibv_device_attr dev;
	struct ibv_port_attr port;
	int port_num, gid_index;
	union ibv_gid gid;
	struct ibv_pd *pd;
};

/* End the case for this process: print the reason, and exit. */
void fail_at(const char *file, int line, const char *fmt, ...)
	__attribute__((noreturn, format(printf, 3, 4)));
void skip(const char *fmt, ...) __attribute__((noreturn, format(printf, 1, 2)));

#define fail(...) fail_at(__FILE__, __LINE__, __VA_ARGS__)
#define require(condition)						\
	do {								\
		if (!(condition))					\
			fail("%s", #condition);				\
	} while (0)
#define require_equal(a, b)						\
	do {								\
		long long a_ = (long long)(a), b_ = (long long)(b);	\
		if (a_ != b_)						\
			fail("%s is %lld, not %lld (%s)", #a, a_, b_, #b); \
	} while (0)

/* The seed of a test's random numbers: the argument, or RG_SEED, so that a run can be repeated. */
unsigned drawn_seed(const char *argument);

/* ---- Between the sides --------------------------------------------------- */

/* The exit code of a side that the other one has left: the other one reports the reason. */
enum { EXIT_ALONE = 78 };

/*
 * Two processes, each with an end of a socket, call `run`, which may end by
 * side_over.  Both must end with 0: false if one did not.
 */
bool two_sides(void (*run)(int me, int sock, const void *arg), const void *arg);

void side_over(void) __attribute__((noreturn));

void swap(struct side *s, const void *mine, void *theirs, size_t bytes);
void barrier(struct side *s);

/*
 * Side `who` ends here as if it had been killed; on the other side this returns
 * after that.  The other side ends its case with side_is_alone() after it has freed
 * its objects.
 */
void side_dies(struct side *s, int who);
void side_is_alone(struct side *s) __attribute__((noreturn));

/* ---- Memory -------------------------------------------------------------- */

struct buffer {
	unsigned char *at;
	size_t bytes;
	struct ibv_mr *mr;
	/* the other side's, after buffer_swap */
	uint64_t addr;
	uint32_t rkey;
};

struct buffer buffer_new(struct side *s, size_t bytes, int access);
void buffer_free(struct side *s, struct buffer *b);
void buffer_swap(struct side *s, struct buffer *b);

enum { ACCESS_ALL = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ };

/* The byte at offset i of message `seed`, computed anew to check what has arrived. */
static inline unsigned char pattern(uint64_t seed, size_t i)
{
	uint64_t x = (seed + 1) * 0x9e3779b97f4a7c15ull + i * 0xbf58476d1ce4e5b9ull;

	x ^= x >> 29;
	return (unsigned char)(x * 0x94d049bb133111ebull >> 56);
}

void fill(unsigned char *at, uint64_t seed, size_t bytes);
/* Fails the case at the first wrong byte. */
void check(const unsigned char *at, uint64_t seed, size_t bytes, const char *what);
/* Fails the case unless all bytes still are `value`. */
void check_untouched(const unsigned char *at, unsigned char value, size_t bytes, const char *what);

/* ---- Queue pairs --------------------------------------------------------- */

struct end_config {
	uint32_t send_wr, recv_wr, send_sge, recv_sge, inline_bytes;	/* 0: 64, 64, 1, 1, 0 */
	int cqe;			/* 0: 256 */
	bool signal_all;
	int rnr_retry, retry_cnt, timeout, min_rnr_timer;
	unsigned access;		/* of the queue pair */
	int answers, asks;		/* max_dest_rd_atomic, max_rd_atomic; 0: 1, -1: none */
	struct ibv_cq *cq;		/* shared; NULL: its own */
	enum ibv_qp_type type;		/* 0: RC */
	struct ibv_srq *srq;		/* receives come from it */
};

extern const struct end_config end_defaults;

struct end {
	struct ibv_cq *cq;
	bool own_cq;
	struct ibv_qp *qp;
	struct ibv_qp_cap cap;
	struct end_config config;
	uint32_t remote_qpn;
};

/* Skips the case if the device has fewer. */
void want_limit(const char *what, uint32_t want, int have);
void want_inline(struct side *s, uint32_t bytes);

/* Create an end, not connected; NULL config: end_defaults. */
struct end end_new(struct side *s, const struct end_config *config);
/* Bring it to RTS, connected with the other side's end of the same call. */
void end_connect(struct side *s, struct end *e);
void end_free(struct end *e);

struct peer_address {
	uint32_t qpn;
	uint16_t lid;
	union ibv_gid gid;
	uint8_t port;
};
struct peer_address end_address(const struct side *s, const struct end *e);
int end_to_init(struct side *s, struct end *e);
int end_to_rtr(struct side *s, struct end *e, const struct peer_address *to);
int end_to_rts(struct end *e);
int end_to(struct end *e, enum ibv_qp_state state);
enum ibv_qp_state end_state(struct end *e);
/* The capacity of its queues: creation may round up without reporting it. */
struct ibv_qp_cap end_granted(struct end *e);

/* ---- Work ---------------------------------------------------------------- */

struct ibv_sge sge_of(const struct buffer *b, size_t offset, size_t bytes);

/* ibv_post_send of one request; the case fails if it is refused. */
void post(struct end *e, struct ibv_send_wr wr);
struct ibv_send_wr send_wr(struct ibv_sge *sge, uint64_t wr_id);	/* signaled, one piece */
struct ibv_send_wr write_wr(const struct buffer *b, struct ibv_sge *sge, uint64_t wr_id);
void post_receive(struct end *e, uint64_t wr_id, struct ibv_sge *sge, int count);

/*
 * The time limit for everything that should come (--patience): long enough that a busy
 * machine is no reason to fail.
 */
extern unsigned patience_s;
static inline int patience_ms(void)
{
	return (int)patience_s * 1000;
}
/* When it ends, by now_ns(). */
uint64_t patience_end(void);

/* Wait for one completion. */
struct ibv_wc wait_wc(struct ibv_cq *cq);
/* Wait for an asynchronous event. */
void wait_async(struct side *s, enum ibv_event_type expected);
/* Wait for one completion, of this request and with this status. */
void expect(struct ibv_cq *cq, uint64_t wr_id, enum ibv_wc_status status);
/* Wait until the queue pair is in a state, polling as a program would. */
void wait_state(struct end *e, enum ibv_qp_state state);
/* Wait for one completion that is a success. */
struct ibv_wc wait_ok(struct ibv_cq *cq);
/* Expect no completion for so many milliseconds. */
void expect_nothing(struct ibv_cq *cq, int ms);
/*
 * Time, and the calls of a waiting loop that has found nothing (turn), or something
 * (virtual_found): in tests/virtual both sides are in one process, on a clock that advances
 * only in these calls.
 */
uint64_t now_ns(void);
void pause_ns(uint64_t ns);
extern bool time_is_exact;			/* in tests/virtual: no delays by the machine */
void turn(unsigned *turns, uint64_t end_ns);	/* UINT64_MAX: no end */
bool goes_on(uint64_t end_ns);			/* a turn; false: the time is over */
void virtual_found(void);

/* ---- Cases (main.c) ------------------------------------------------------ */

struct test;

/* For two_sides: opens the device, runs the case, closes the device. */
void case_side(int me, int sock, const void *test);
/* fork; the child's stderr is the log, and an alarm ends it if it hangs. */
pid_t case_fork(int log);
/* Start a case in processes of case_fork; returns their number. */
int case_start(const struct test *t, int log, pid_t pid[2]);

struct test {
	const char *name;
	void (*run)(struct side *s);
};

/* For descriptors of channels and events. */
void set_nonblocking(int fd);
bool readable(int fd, int timeout_ms);

/* Each ends with a NULL name. */
extern const struct test data_tests[], queue_tests[], retry_tests[], error_tests[], state_tests[];
extern const struct test uc_tests[], srq_tests[], ud_tests[], group_tests[];
extern const struct test atomic_tests[], wr_tests[];
extern const struct test attribute_tests[], flush_tests[], limit_tests[], cause_tests[];
extern const struct test event_tests[], channel_tests[], cq_tests[];
extern const struct test memory_tests[];

#endif
