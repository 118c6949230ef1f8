/*
 * scale.c - 64 processes with 64 queue pairs each, all connected with each other,
 * with 1024 file descriptors per process; the memory that a queue pair and a
 * completion queue occupy.
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kit.h"
#include "softhca/softhca.h"

enum { PROCESSES = 64, QPS = 64, BYTES = 100, FILES = 1024, PROMISED_QP_BYTES = 64 << 10 };

static struct shared {
	pthread_barrier_t barrier;
	struct peer_address address[PROCESSES][QPS];
	long qp_bytes[PROCESSES], cq_bytes[PROCESSES], files[PROCESSES];
} *shared;

/* Resident bytes; each process counts its share of shared pages. */
static long resident_bytes(void)
{
	FILE *f = fopen("/proc/self/smaps_rollup", "r");
	char line[256];
	long kib = 0;

	require(f != NULL);
	while (fgets(line, sizeof(line), f) && sscanf(line, "Pss: %ld kB", &kib) != 1)
		;
	fclose(f);
	return kib * 1024;
}

static long open_files(void)
{
	long count = 0;
	int fd;

	for (fd = 0; fd < FILES; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

static void transfer(struct side *s, struct end *e, struct buffer *b, struct ibv_cq *cq)
{
	int j, left, sent = 0;

	for (j = 0; j < QPS; j++) {
		struct ibv_sge to = sge_of(b, (size_t)(QPS + j) * BYTES, BYTES);

		post_receive(&e[j], (uint64_t)j, &to, 1);
	}
	pthread_barrier_wait(&shared->barrier);
	for (j = 0; j < QPS; j++) {
		int peer = (s->me + 1 + j) % PROCESSES;
		struct ibv_sge from = sge_of(b, (size_t)j * BYTES, BYTES);

		fill(b->at + j * BYTES, (uint64_t)(s->me * PROCESSES + peer), BYTES);
		post(&e[j], (struct ibv_send_wr){ .wr_id = 1000, .sg_list = &from, .num_sge = 1,
						  .opcode = IBV_WR_SEND,
						  .send_flags = IBV_SEND_SIGNALED });
	}
	for (left = 2 * QPS; left; left--) {
		struct ibv_wc wc = wait_ok(cq);
		int peer = (int)((unsigned)(s->me + 1) + wc.wr_id) % PROCESSES;

		sent += wc.wr_id == 1000;
		if (wc.wr_id != 1000)
			check(b->at + (QPS + wc.wr_id) * BYTES,
			      (uint64_t)(peer * PROCESSES + s->me), BYTES, "from a peer");
	}
	require_equal(sent, QPS);
}

static void run_process(int me)
{
	struct side s = side_open(me, me, -1);
	struct end_config c = end_defaults;
	struct end e[QPS];
	struct ibv_cq *cq;
	struct buffer b;
	long before;
	int j;

	alarm(300);
	b = buffer_new(&s, 2 * QPS * BYTES, ACCESS_ALL);
	pthread_barrier_wait(&shared->barrier);
	before = resident_bytes();
	cq = ibv_create_cq(s.ctx, 4 * QPS, NULL, NULL, 0);
	require(cq != NULL);
	shared->cq_bytes[me] = resident_bytes() - before;
	c.cq = cq;
	c.timeout = 20;
	pthread_barrier_wait(&shared->barrier);
	before = resident_bytes();
	pthread_barrier_wait(&shared->barrier);
	for (j = 0; j < QPS; j++) {
		e[j] = end_new(&s, &c);
		shared->address[me][j] = end_address(&s, &e[j]);
	}
	pthread_barrier_wait(&shared->barrier);
	for (j = 0; j < QPS; j++) {
		int peer = (me + 1 + j) % PROCESSES;
		int theirs = (me - peer - 1 + 2 * PROCESSES) % PROCESSES;

		require_equal(end_to_init(&s, &e[j]), 0);
		require_equal(end_to_rtr(&s, &e[j], &shared->address[peer][theirs]), 0);
		require_equal(end_to_rts(&e[j]), 0);
	}
	transfer(&s, e, &b, cq);
	pthread_barrier_wait(&shared->barrier);
	shared->qp_bytes[me] = (resident_bytes() - before) / QPS;
	shared->files[me] = open_files();
	pthread_barrier_wait(&shared->barrier);
	for (j = 0; j < QPS; j++)
		end_free(&e[j]);
	require_equal(ibv_destroy_cq(cq), 0);
	buffer_free(&s, &b);
	side_close(&s);
	exit(0);
}

static long most(const long *v)
{
	long high = 0;
	int i;

	for (i = 0; i < PROCESSES; i++)
		high = v[i] > high ? v[i] : high;
	return high;
}

int main(void)
{
	const struct rlimit files = { FILES, FILES };
	pthread_barrierattr_t across;
	pid_t pid[PROCESSES];
	int me, status, failed = 0;

	fabric_new("scale");
	unsetenv("SOFTHCA_SPEC");
	require_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		      -1, 0);
	require(shared != MAP_FAILED);
	pthread_barrierattr_init(&across);
	pthread_barrierattr_setpshared(&across, PTHREAD_PROCESS_SHARED);
	pthread_barrier_init(&shared->barrier, &across, PROCESSES);
	fflush(NULL);
	for (me = 0; me < PROCESSES; me++) {
		pid[me] = fork();
		require(pid[me] >= 0);
		if (pid[me] == 0)
			run_process(me);
	}
	for (me = 0; me < PROCESSES; me++)
		if (waitpid(pid[me], &status, 0) != pid[me] || status) {
			/* The others would wait for ever. */
			for (int other = me + 1; !failed && other < PROCESSES; other++)
				kill(pid[other], SIGTERM);
			failed = 1;
		}
	failed |= fabric_is_left();
	printf("%d processes, %d queue pairs each: %ld KiB per queue pair of 64 + 64 requests "
	       "that is connected with a process of its own; %ld KiB per completion queue of %d "
	       "that is empty; %ld descriptors per process\n", PROCESSES, QPS, most(shared->qp_bytes) / 1024,
	       most(shared->cq_bytes) / 1024, 4 * QPS, most(shared->files));
	if (most(shared->qp_bytes) > PROMISED_QP_BYTES) {
		printf("more than the %d KiB that are promised\n", PROMISED_QP_BYTES / 1024);
		failed = 1;
	}
	return failed;
}
