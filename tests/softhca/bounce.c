/*
 * bounce.c - where the kernel does not let processes copy from each other: the
 * copy service of the memory's owner copies, in every state of the owner.
 *
 * A seccomp filter denies process_vm_readv/writev as Yama would.  Cases run as
 * two processes; side 0 requests, side 1 owns the memory.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "kit.h"
#include "softhca/link/memory/peer.h"
#include "softhca/object/qp.h"

enum { BIG = 3 << 20, PAGE = 65536 };	/* a multiple of every kernel's */

static void deny_copying(void)
{
	struct sock_filter rules[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_writev, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(rules) / sizeof(*rules), rules };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		skip("no seccomp filters: %s", strerror(errno));
}

static struct ibv_wc outcome(struct end *e, struct buffer *b, enum ibv_wr_opcode op, size_t at,
			     size_t bytes)
{
	struct ibv_sge sge = sge_of(b, at, bytes);

	post(e, (struct ibv_send_wr){ .wr_id = 1, .sg_list = &sge, .num_sge = 1, .opcode = op,
				      .send_flags = IBV_SEND_SIGNALED,
				      .wr.rdma = { b->addr + at, b->rkey } });
	return wait_wc(e->cq);
}

/* ---- Data ---------------------------------------------------------------- */

static void test_data(struct side *s)
{
	static const size_t sizes[] = { 1, 7, 8, 9, 100, 65535, 65536, 65537, 1 << 20 };
	struct buffer b = buffer_new(s, BIG, ACCESS_ALL);
	struct end e = end_new(s, NULL);
	unsigned i;

	end_connect(s, &e);
	buffer_swap(s, &b);
	for (i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		const size_t at = 77 * i, n = sizes[i];
		struct ibv_sge sge = sge_of(&b, at, n);

		if (s->me == 0) {
			fill(b.at + at, i, n);
			require_equal(outcome(&e, &b, IBV_WR_RDMA_WRITE, at, n).status, 0);
			barrier(s);
			barrier(s);
			require_equal(outcome(&e, &b, IBV_WR_RDMA_READ, at, n).status, 0);
			check(b.at + at, i + 100, n, "read");
			barrier(s);
			fill(b.at + at, i + 200, n);
			require_equal(outcome(&e, &b, IBV_WR_SEND, at, n).status, 0);
			barrier(s);
		} else {
			barrier(s);
			check(b.at + at, i, n, "written");
			check_untouched(b.at + at + n, 0xee, 1, "behind it");
			fill(b.at + at, i + 100, n);
			barrier(s);
			post_receive(&e, 5, &sge, 1);
			barrier(s);
			require_equal(wait_ok(e.cq).byte_len, n);
			check(b.at + at, i + 200, n, "sent");
			memset(b.at, 0xee, BIG);
			barrier(s);
		}
	}
	require(s->me == 1 || hca_qp_of(e.qp)->conn.peer->bounces);
	barrier(s);
	end_free(&e);
	buffer_free(s, &b);
}

/* Memory that the owner has unmapped is an error of the message, not the end of the owner. */
static void test_unmapped(struct side *s)
{
	struct buffer b = { .bytes = 4 * PAGE };
	struct end e = end_new(s, NULL);
	struct ibv_wc wc;

	b.at = mmap(NULL, b.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	b.mr = ibv_reg_mr(s->pd, b.at, b.bytes, ACCESS_ALL);
	require(b.mr != NULL);
	end_connect(s, &e);
	buffer_swap(s, &b);
	if (s->me == 1)
		munmap(b.at + PAGE, PAGE);
	barrier(s);
	if (s->me == 0) {
		require_equal(outcome(&e, &b, IBV_WR_RDMA_WRITE, 0, 100).status, 0);
		wc = outcome(&e, &b, IBV_WR_RDMA_WRITE, PAGE, 100);
		require_equal(wc.status, IBV_WC_REM_OP_ERR);
	}
	barrier(s);
	end_free(&e);
	require_equal(ibv_dereg_mr(b.mr), 0);
}

/* ---- The owner is stopped, or dies --------------------------------------- */

/* Wait until every thread of it has stopped. */
static void stop(pid_t pid)
{
	uint64_t end = now_ns() + 60000000000u;
	char path[64], line[256] = "";

	kill(pid, SIGSTOP);
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	while (!strstr(line, ") T ") && now_ns() < end) {
		FILE *f = fopen(path, "r");

		require(f && fgets(line, sizeof(line), f));
		fclose(f);
		usleep(1000);
	}
	usleep(20000);
}

static void test_stopped(struct side *s)
{
	struct end_config c = end_defaults;
	struct buffer b = buffer_new(s, BIG, ACCESS_ALL);
	pid_t mine = getpid(), owner;
	struct ibv_sge sge = sge_of(&b, 5, 3000);
	uint64_t start;
	struct end e;
	struct ibv_wc wc;

	/* A stopped processor does not stop an adapter: that is no silence. */
	c.timeout = 10;			/* 4.2 ms */
	c.retry_cnt = 1;
	e = end_new(s, &c);
	end_connect(s, &e);
	buffer_swap(s, &b);
	swap(s, &mine, &owner, sizeof(mine));
	if (s->me == 1)
		post_receive(&e, 5, &sge, 1);
	barrier(s);
	if (s->me == 0) {
		pid_t waker;

		require_equal(outcome(&e, &b, IBV_WR_RDMA_WRITE, 10000, 100).status, 0);
		fill(b.at + 5, 9, 3000);
		stop(owner);
		waker = fork();
		if (waker == 0) {
			usleep(700000);
			kill(owner, SIGCONT);
			_exit(0);
		}
		start = now_ns();
		wc = outcome(&e, &b, IBV_WR_SEND, 5, 3000);
		require_equal(wc.status, IBV_WC_SUCCESS);
		require(now_ns() - start > 600000000);
		waitpid(waker, NULL, 0);
	} else {
		require_equal(wait_ok(e.cq).byte_len, 3000);
		check(b.at + 5, 9, 3000, "to who was stopped");
	}
	barrier(s);
	end_free(&e);
	buffer_free(s, &b);
}

static void test_killed(struct side *s)
{
	struct buffer b = buffer_new(s, BIG, ACCESS_ALL);
	struct end e = end_new(s, NULL);
	pid_t mine = getpid(), owner;

	end_connect(s, &e);
	buffer_swap(s, &b);
	swap(s, &mine, &owner, sizeof(mine));
	if (s->me == 1) {
		for (;;)
			pause();
	}
	require_equal(outcome(&e, &b, IBV_WR_RDMA_WRITE, 0, 100).status, 0);
	kill(owner, SIGKILL);
	require_equal(outcome(&e, &b, IBV_WR_RDMA_WRITE, 0, BIG).status, IBV_WC_RETRY_EXC_ERR);
	end_free(&e);
	buffer_free(s, &b);
}

/* ---- Running ------------------------------------------------------------- */

static void be_side(void (*run)(struct side *s), int me, int sock, bool deny)
{
	struct side s;

	alarm(300);
	if (deny)
		deny_copying();
	s = side_open(me, me, sock);
	run(&s);
	side_close(&s);
	exit(0);
}

/* 0, 1 or 77.  A side may skip, or be killed: unlike sides of run_case. */
static int run_here(const char *name, void (*run)(struct side *s), bool deny, bool dies)
{
	int pair[2], me, status, result = 0;
	pid_t pid[2];
	const char *path = fabric_new("bounce");

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
		return 1;
	fflush(NULL);
	for (me = 0; me < 2; me++) {
		pid[me] = fork();
		if (pid[me] == 0) {
			close(pair[!me]);
			be_side(run, me, pair[me], deny);
		}
	}
	close(pair[0]);
	close(pair[1]);
	for (me = 0; me < 2; me++) {
		waitpid(pid[me], &status, 0);
		if (dies && me == 1)
			continue;
		if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
			result = 77;
		else if (status)
			result = 1;
	}
	if (dies)
		unlink(path);
	else if (fabric_is_left())
		result = 1;
	printf("%s %s%s\n", result == 0 ? "ok  " : result == 77 ? "skip" : "FAIL", name,
	       deny ? ", denied by the kernel" : ", asked for");
	return result;
}

int main(void)
{
	static const struct {
		const char *name;
		void (*run)(struct side *s);
		bool dies;
	} cases[] = {
		{ "data", test_data, false }, { "unmapped", test_unmapped, false },
		{ "stopped", test_stopped, false }, { "killed", test_killed, true },
	};
	int failed = 0, deny;
	unsigned i;

	setenv("SOFTHCA_REMAP", "never", 1);
	unsetenv("SOFTHCA_SPEC");
	for (deny = 0; deny < 2; deny++) {
		setenv("SOFTHCA_COPY", deny ? "auto" : "bounce", 1);
		for (i = 0; i < sizeof(cases) / sizeof(*cases); i++)
			failed |= run_here(cases[i].name, cases[i].run, deny, cases[i].dies) == 1;
	}
	return failed;
}
