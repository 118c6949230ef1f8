/*
 * sleepers.c - no wake-up is lost.
 *
 * A few clients and a server exchange messages; each sleeps on its completion
 * channel until the answer is there, none polls.  Meanwhile processes are
 * stopped and continued at random moments, and one client is killed.  A process
 * that wakes by a time limit although it has something to read missed a wake-up.
 * Usage: sleepers [ROUNDS [SEED]]
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kit.h"

enum {
	CLIENTS = 3,
	RECEIVES = 32,
	SLEEP_MS = 2000,	/* longer than any stop */
	GRACE_MS = 60000,
};

/* Shared by all processes of a round. */
static struct shared {
	_Atomic int done;		/* clients: this exchange is the last */
	_Atomic int killed;		/* client + 1 */
	_Atomic uint64_t exchanges[CLIENTS];
} *shared;

struct sleeper {
	struct side side;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct buffer b;
	struct end e[CLIENTS];		/* a client has one, the server one for each */
	int ends;
	bool block;
	int stop;			/* the server ends when this is readable; or -1 */
};

/* ---- Setting up ---------------------------------------------------------- */

static void open_sleeper(struct sleeper *p, bool block)
{
	struct side *s = &p->side;

	*s = side_open(0, 0, -1);
	p->channel = ibv_create_comp_channel(s->ctx);
	require(p->channel != NULL);
	p->cq = ibv_create_cq(s->ctx, 1024, NULL, p->channel, 0);
	require(p->cq != NULL);
	p->b = buffer_new(s, 4096, ACCESS_ALL);
	p->block = block;
	if (!block)
		require(fcntl(p->channel->fd, F_SETFL, O_NONBLOCK) == 0);
}

static void post_one(struct sleeper *p, int end)
{
	struct ibv_sge sge = sge_of(&p->b, 0, 64);

	post_receive(&p->e[end], (uint64_t)end, &sge, 1);
}

static void meet(struct sleeper *p, int sock)
{
	struct end_config c = end_defaults;
	int i;

	c.cq = p->cq;
	c.timeout = 0;			/* a stopped peer is waited for */
	p->side.sock = sock;
	p->e[p->ends] = end_new(&p->side, &c);
	for (i = 0; i < RECEIVES; i++) {
		/* Before the other side may send. */
		if (i == 0)
			require_equal(end_to_init(&p->side, &p->e[p->ends]), 0);
		post_one(p, p->ends);
	}
	end_connect(&p->side, &p->e[p->ends]);
	p->ends++;
}

static void say_to(struct sleeper *p, int end, uint32_t what)
{
	struct ibv_sge sge = sge_of(&p->b, 2048, 8);

	post(&p->e[end], (struct ibv_send_wr){ .sg_list = &sge, .num_sge = 1,
		.opcode = IBV_WR_SEND_WITH_IMM, .imm_data = what,
		.send_flags = IBV_SEND_SOLICITED | (what % 8 ? 0 : IBV_SEND_SIGNALED) });
}

/* ---- Sleeping ------------------------------------------------------------ */

/* 1: something may be there; 0: time to end. */
static int sleep_once(struct sleeper *p)
{
	struct pollfd fds[2] = { { .fd = p->channel->fd, .events = POLLIN },
				 { .fd = p->stop, .events = POLLIN } };
	struct ibv_cq *cq;
	void *context;
	int n;

	if (p->block) {
		require_equal(ibv_get_cq_event(p->channel, &cq, &context), 0);
		ibv_ack_cq_events(cq, 1);
		return 1;
	}
	n = poll(fds, 2, SLEEP_MS);
	require(n >= 0);
	if (fds[0].revents) {
		if (ibv_get_cq_event(p->channel, &cq, &context) == 0)
			ibv_ack_cq_events(cq, 1);
		else
			require_equal(errno, EAGAIN);
		return 1;
	}
	return fds[1].revents ? 0 : 1;
}

/* After a wake-up by the time limit with an entry: its event must be on its way. */
static void check_event(struct sleeper *p, const struct ibv_wc *wc)
{
	struct pollfd fd = { .fd = p->channel->fd, .events = POLLIN };

	if (poll(&fd, 1, GRACE_MS) == 1)
		return;
	/* A client killed before its wake-up is like one whose message was lost. */
	if (p->ends == CLIENTS && atomic_load(&shared->killed) == (int)wc->wr_id + 1)
		return;
	fail("asleep for %d ms with a completion to read", SLEEP_MS);
}

/* The next receive; false: time to end. */
static bool sleep_for_message(struct sleeper *p, struct ibv_wc *wc, unsigned way)
{
	bool late = false;

	for (;;) {
		uint64_t begin;
		int n = ibv_poll_cq(p->cq, 1, wc);

		if (!n) {
			require_equal(ibv_req_notify_cq(p->cq, way % 4 == 3), 0);
			n = ibv_poll_cq(p->cq, 1, wc);
			late = false;
		}
		if (!n) {
			begin = now_ns();
			if (!sleep_once(p))
				return false;
			late = !p->block && now_ns() - begin > SLEEP_MS * 900000ull;
			/* Still armed: poll, then check whether the event comes. */
			n = late ? ibv_poll_cq(p->cq, 1, wc) : 0;
			if (n && (way % 4 != 3 || (wc->opcode & IBV_WC_RECV)))
				check_event(p, wc);
		}
		if (!n)
			continue;
		if (wc->status == IBV_WC_SUCCESS && (wc->opcode & IBV_WC_RECV))
			return true;
		if (wc->status && !(p->ends == CLIENTS && atomic_load(&shared->killed)))
			fail("%s", ibv_wc_status_str(wc->status));
	}
}

/* ---- Who they are -------------------------------------------------------- */

static void run_server(int sock[CLIENTS], int stop, unsigned seed)
{
	struct sleeper p = { .stop = stop };
	struct ibv_wc wc;
	unsigned way = seed;
	int i;

	open_sleeper(&p, false);
	for (i = 0; i < CLIENTS; i++)
		meet(&p, sock[i]);
	while (sleep_for_message(&p, &wc, way++)) {
		post_one(&p, (int)wc.wr_id);
		if (atomic_load(&shared->killed) != (int)wc.wr_id + 1)
			say_to(&p, (int)wc.wr_id, wc.imm_data);
	}
	exit(0);
}

static void run_client(int me, int sock, unsigned seed)
{
	struct sleeper p = { .stop = -1 };
	struct ibv_wc wc;
	uint32_t n;

	open_sleeper(&p, seed % 3 == 0);
	meet(&p, sock);
	for (n = 1; !atomic_load(&shared->done); n++) {
		say_to(&p, 0, n);
		require(sleep_for_message(&p, &wc, n + seed));
		require_equal(wc.imm_data, n);
		post_one(&p, 0);
		atomic_fetch_add(&shared->exchanges[me], 1);
	}
	exit(0);
}

/* ---- What happens to them ------------------------------------------------ */

static void disturb(pid_t pid[CLIENTS + 1], int times)
{
	while (times--) {
		pid_t who = pid[draw(CLIENTS + 1)];

		usleep(draw(3000));
		kill(who, SIGSTOP);
		usleep(draw(4) ? draw(2000) : draw(30000));
		kill(who, SIGCONT);
	}
}

static int reap(pid_t pid, const char *who, bool killed)
{
	int status;

	if (waitpid(pid, &status, 0) != pid)
		return 1;
	if (killed || (WIFEXITED(status) && WEXITSTATUS(status) == 0))
		return 0;
	fprintf(stderr, "%s: status 0x%x\n", who, status);
	return 1;
}

static int run_round(unsigned seed)
{
	int pair[CLIENTS][2], mine[CLIENTS], stop[2], i, victim, failed = 0;
	siginfo_t ended = { .si_pid = 0 };
	pid_t pid[CLIENTS + 1];

	memset(shared, 0, sizeof(*shared));
	require(pipe(stop) == 0);
	for (i = 0; i < CLIENTS; i++) {
		require(socketpair(AF_UNIX, SOCK_STREAM, 0, pair[i]) == 0);
		mine[i] = pair[i][0];
	}
	for (i = 0; i <= CLIENTS; i++) {
		pid[i] = fork();
		if (pid[i] == 0) {
			alarm(300);
			if (i == CLIENTS)
				run_server(mine, stop[0], seed);
			run_client(i, pair[i][1], seed + (unsigned)i);
		}
	}
	while (!atomic_load(&shared->exchanges[0]) || !atomic_load(&shared->exchanges[1]) ||
	       !atomic_load(&shared->exchanges[2]))
		if (waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) || ended.si_pid)
			break;
		else
			usleep(1000);
	disturb(pid, 20);
	victim = (int)draw(CLIENTS);
	atomic_store(&shared->killed, victim + 1);
	kill(pid[victim], SIGKILL);
	disturb((pid_t [CLIENTS + 1]){ pid[(victim + 1) % CLIENTS], pid[(victim + 2) % CLIENTS],
				       pid[CLIENTS], pid[CLIENTS] }, 10);
	atomic_store(&shared->done, 1);
	for (i = 0; i < CLIENTS; i++)
		failed |= reap(pid[i], "client", i == victim);
	require(write(stop[1], "", 1) == 1);
	failed |= reap(pid[CLIENTS], "server", false);
	for (i = 0; i < CLIENTS; i++) {
		close(pair[i][0]);
		close(pair[i][1]);
	}
	close(stop[0]);
	close(stop[1]);
	return failed;
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 20, round, i;
	unsigned seed = argc > 2 ? (unsigned)atoi(argv[2]) : 1;
	uint64_t exchanges = 0;

	fabric_new("sleepers");
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		      -1, 0);
	require(shared != MAP_FAILED);
	for (round = 0; round < rounds; round++) {
		draw_from(seed + (unsigned)round);
		if (run_round(seed + (unsigned)round)) {
			fprintf(stderr, "round %d failed (seed %u)\n", round,
				seed + (unsigned)round);
			return 1;
		}
		for (i = 0; i < CLIENTS; i++)
			exchanges += atomic_load(&shared->exchanges[i]);
	}
	printf("%d rounds, %llu exchanges, nobody was forgotten\n", rounds,
	       (unsigned long long)exchanges);
	return 0;
}
