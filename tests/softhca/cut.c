/*
 * cut.c - a process is killed at any system call of the copied path.
 *
 * Three processes send each other messages that the kernel copies, to receives of
 * single queue pairs and to those of a shared queue.  The victim is killed on
 * entering or leaving its k-th system call, for each k: while it sends, while it
 * receives.  In half of the cuts the third process is stopped meanwhile with an entry
 * in the survivor's completion queue claimed and not filled, so that the victim's
 * completions wait for it.  Then
 *	- every send that completed at the victim has arrived, in order and without a
 *	  gap, before anything is flushed, and nothing arrives after that,
 *	- the shared queue has all its receives,
 *	- every message between survivor and other arrives, in order,
 *	- both see an error on their queue pairs to the dead.
 *
 * Usage: cut [SECONDS [SEED]]	0 s: at every system call
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "softhca/object/cq.h"
#include "cut.h"

enum { QUICK_MS = 6000 };

/* ---- The survivor --------------------------------------------------------------- */

static struct place here;
static struct seat {
	pid_t pid;
	int sock;
} seat[ROLES];
static uint32_t from_other[KINDS];	/* messages that it has been told to send us */
static bool quiet;			/* we do not poll */

static void start(int who)
{
	int pair[2];

	require_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	fflush(NULL);
	seat[who].pid = fork();
	require(seat[who].pid >= 0);
	if (seat[who].pid == 0)
		member(who, pair[1]);
	close(pair[1]);
	seat[who].sock = pair[0];
}

static void say(int who, struct word w)
{
	require_equal(send(seat[who].sock, &w, sizeof(w), MSG_NOSIGNAL), sizeof(w));
}

/* The process may wait for one that waits for us, unless nothing is to be polled now. */
static struct word hear(int who)
{
	struct word w;
	ssize_t n;

	do
		n = recv(seat[who].sock, &w, sizeof(w), quiet ? 0 : MSG_DONTWAIT);
	while (n < 0 && errno == EAGAIN && (take(&here) || !sched_yield()));
	if (n != (ssize_t)sizeof(w)) {
		int status = 0;

		waitpid(seat[who].pid, &status, 0);
		if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
			exit(77);
		fail("process %d ended with status 0x%x", who, (unsigned)status);
	}
	return w;
}

static struct word ask(int who, struct word w)
{
	if (who == SURVIVOR)
		obey(&here, &w);
	else
		say(who, w);
	return who == SURVIVOR ? w : hear(who);
}

static void introduce(int a, int b)
{
	struct word of_a = ask(a, (struct word){ .type = MAKE, .peer = b });
	struct word of_b = ask(b, (struct word){ .type = MAKE, .peer = a });

	of_a.type = of_b.type = CONNECT;
	of_a.peer = a;
	of_b.peer = b;
	ask(a, of_b);
	ask(b, of_a);
}

static void other_sends(int kind, uint32_t count)
{
	ask(OTHER, (struct word){ .type = SEND, .peer = SURVIVOR, .kind = kind, .count = count });
	from_other[kind] += count;
}

static void wait_stop(int who)
{
	int status;

	require_equal(waitpid(seat[who].pid, &status, 0), seat[who].pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
		fprintf(stderr, "skipped: ptrace is not allowed here\n");
		exit(77);
	}
	if (!WIFSTOPPED(status) || WSTOPSIG(status) != SIGSTOP)
		fail("process %d: status 0x%x", who, (unsigned)status);
}

/* Run one step, or up to a system call; false: the command is done. */
static bool step(int who, int how)
{
	int status;

	if (ptrace(how, seat[who].pid, NULL, NULL))
		fail("ptrace: %s", strerror(errno));
	require_equal(waitpid(seat[who].pid, &status, __WALL), seat[who].pid);
	if (!WIFSTOPPED(status))
		fail("process %d: status 0x%x", who, (unsigned)status);
	return WSTOPSIG(status) != SIGSTOP;
}

static bool some_entry_is_claimed(void)
{
	const struct hca_mailbox *m = &hca_cq_of(here.cq)->mailbox;
	uint32_t i;

	for (i = 0; i <= m->mask; i++)
		if (hca_shm_kind(atomic_load(&m->shm->slot[i].state)) == HCA_CLAIMED)
			return true;
	return false;
}

/* The bytes of the other one's next message. */
static bool bytes_are_here(void)
{
	uint32_t seq = from_other[OWN];
	struct header h;

	memcpy(&h, here.in.at + ((size_t)OTHER * OWN_DEPTH + seq % OWN_DEPTH) * BYTES, sizeof(h));
	return h.from == OTHER && h.seq == seq;
}

/* The other one has claimed an entry of our completion queue, and stops there. */
static void hold_other(void)
{
	require(!some_entry_is_claimed());
	say(OTHER, (struct word){ .type = STEP });
	wait_stop(OTHER);
	while (!some_entry_is_claimed())
		if (!step(OTHER, bytes_are_here() ? PTRACE_SINGLESTEP : PTRACE_SYSCALL))
			fail("the other one did not send at once");
	from_other[OWN]++;
}

static void let_other_go(void)
{
	require_equal(ptrace(PTRACE_CONT, seat[OTHER].pid, NULL, NULL), 0);
	wait_stop(OTHER);
	require_equal(ptrace(PTRACE_CONT, seat[OTHER].pid, NULL, NULL), 0);
	hear(OTHER);
}

/* The victim's work in progress is over. */
static void settle(void)
{
	struct link *l = &here.link[VICTIM];
	uint64_t until = now_ns() + PATIENCE_S * 1000000000ull;

	while (l->flushed[OWN] < OWN_DEPTH)
		if (!take(&here) && now_ns() > until)
			fail("%u receives of the dead's queue pair are flushed, not %d",
			     l->flushed[OWN], OWN_DEPTH);
	if (l->received[OWN] < atomic_load(&told->sent[OWN]))
		fail("%u messages from the dead, who was told that %u had arrived",
		     l->received[OWN], atomic_load(&told->sent[OWN]));
	wait_received(&here, VICTIM, SHARED, atomic_load(&told->sent[SHARED]));
}

/* The shared queue has all its receives: none is posted again before as many have come. */
static void use_shared_up(void)
{
	uint32_t i;

	here.keeps = true;
	other_sends(SHARED, SHARED_DEPTH);
	wait_received(&here, OTHER, SHARED, from_other[SHARED]);
	here.keeps = false;
	memset(here.busy, 0, sizeof(here.busy));
	for (i = 0; i < here.kept_count; i++)
		require(post_shared(&here, here.kept[i]));
	here.kept_count = 0;
}

/* Receives whose completions have gone with their queue pair. */
static void fill_shared(void)
{
	uint32_t i;

	for (i = 0; i < SHARED_SLOTS; i++)
		if (!here.busy[i] && !post_shared(&here, i))
			return;
}

static uint64_t walk(uint64_t stops)
{
	uint64_t k;

	for (k = 0; k < stops && step(VICTIM, PTRACE_SYSCALL); k++)
		;
	return k;
}

static void kill_victim(void)
{
	int status;

	kill(seat[VICTIM].pid, SIGKILL);
	require_equal(waitpid(seat[VICTIM].pid, &status, 0), seat[VICTIM].pid);
	close(seat[VICTIM].sock);
}

static void begin(enum word_type what)
{
	int k;

	for (k = 0; k < KINDS; k++)
		atomic_store(&told->sent[k], 0);
	start(VICTIM);
	introduce(SURVIVOR, VICTIM);
	introduce(OTHER, VICTIM);
	if (what == ACT_RECEIVE)
		for (k = 0; k < KINDS; k++) {
			ask(OTHER, (struct word){ .type = SEND, .peer = VICTIM, .kind = k,
						  .count = MESSAGES });
			ask(SURVIVOR, (struct word){ .type = SEND, .peer = VICTIM, .kind = k,
						     .count = MESSAGES });
		}
}

static void finish(void)
{
	int k;

	ask(OTHER, (struct word){ .type = LEARN, .peer = VICTIM });
	learn(&here, VICTIM);
	drop_link(&here, VICTIM);
	for (k = 0; k < KINDS; k++)
		wait_received(&here, OTHER, k, from_other[k]);
	use_shared_up();
}

/* Returns the number of stops. */
static uint64_t cut_before(uint64_t stops, bool hold)
{
	uint64_t done;

	begin(ACT_SEND);
	say(VICTIM, (struct word){ .type = ACT_SEND });
	wait_stop(VICTIM);
	quiet = true;
	other_sends(OWN, 1);
	other_sends(SHARED, 1);
	if (hold)
		hold_other();
	done = walk(stops);
	if (!hold)
		other_sends(SHARED, 1);
	quiet = false;
	kill_victim();
	return done;
}

static uint64_t cut_sender(uint64_t stops, bool hold)
{
	uint64_t done = cut_before(stops, hold);

	settle();
	if (hold)
		let_other_go();
	other_sends(OWN, 1);
	finish();
	return done;
}

/* The queue pair goes before anything is polled, and leaves all receives to the shared queue. */
static uint64_t cut_dropped(uint64_t stops, bool hold)
{
	uint64_t done = cut_before(stops, hold);
	int k;

	drop_link(&here, VICTIM);
	if (hold)
		let_other_go();
	ask(OTHER, (struct word){ .type = LEARN, .peer = VICTIM });
	for (k = 0; k < KINDS; k++)
		wait_received(&here, OTHER, k, from_other[k]);
	fill_shared();
	use_shared_up();
	return done;
}

static uint64_t cut_receiver(uint64_t stops, bool hold)
{
	uint64_t done;
	int k;

	begin(ACT_RECEIVE);
	say(VICTIM, (struct word){ .type = ACT_RECEIVE });
	wait_stop(VICTIM);
	if (hold)
		hold_other();
	done = walk(stops);
	/* The other is stopped there, and has receives; or has not posted them again. */
	for (k = 0; k < KINDS; k++) {
		if (!hold)
			ask(OTHER, (struct word){ .type = POST, .peer = VICTIM, .kind = k,
						  .count = 2 });
		ask(SURVIVOR, (struct word){ .type = POST, .peer = VICTIM, .kind = k,
					     .count = 2 });
	}
	kill_victim();
	if (hold)
		let_other_go();
	other_sends(OWN, 1);
	finish();
	return done;
}

static const struct part {
	const char *name;
	uint64_t (*cut)(uint64_t stops, bool hold);
	bool hold;
} parts[] = {
	{ "a sender", cut_sender, false },
	{ "a sender behind one who is stopped", cut_sender, true },
	{ "a sender, to nobody", cut_dropped, false },
	{ "a sender, to nobody, behind one who is stopped", cut_dropped, true },
	{ "a receiver", cut_receiver, false },
	{ "a receiver while one is stopped", cut_receiver, true },
};

/* Cut first at the end, where all that it sent waits; then at random, or everywhere. */
static void cut_all(const struct part *part, uint64_t limit_ns)
{
	uint64_t began = now_ns(), total = part->cut(UINT64_MAX, part->hold), cuts = 0;

	while (limit_ns ? now_ns() - began < limit_ns && cuts < total : cuts < total) {
		part->cut(limit_ns ? (uint64_t)random() % total : cuts, part->hold);
		cuts++;
	}
	printf("%-48s %llu stops at system calls, %llu cuts, %.1f s\n", part->name,
	       (unsigned long long)total, (unsigned long long)cuts + 1,
	       (double)(now_ns() - began) / 1e9);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : QUICK_MS / 1e3;
	unsigned seed = drawn_seed(argc > 2 ? argv[2] : NULL);
	const unsigned count = sizeof(parts) / sizeof(*parts);
	unsigned i;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	/* Their own system calls would be most of those cut at. */
	fprintf(stderr, "skipped: with a sanitizer\n");
	return 77;
#endif
	printf("seed %u\n", seed);
	srandom(seed);
	fabric_new("cut");
	setenv("SOFTHCA_REMAP", "never", 1);
	setenv("SOFTHCA_COPY", "kernel", 1);
	unsetenv("SOFTHCA_SPEC");
	told = mmap(NULL, sizeof(*told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	require(told != MAP_FAILED);
	start(OTHER);
	open_place(&here, SURVIVOR, -1);
	introduce(SURVIVOR, OTHER);
	other_sends(OWN, 1);
	use_shared_up();
	for (i = 0; i < count; i++)
		cut_all(&parts[i], (uint64_t)(seconds * 1e9) / count);
	kill(seat[OTHER].pid, SIGKILL);
	waitpid(seat[OTHER].pid, NULL, 0);
	require_equal(ibv_close_device(here.s.ctx), 0);
	require(!fabric_is_left());
	return 0;
}
