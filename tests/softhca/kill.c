/*
 * kill.c - processes are killed at random under load.
 *
 * Processes in numbered seats are all connected with each other, by every kind of
 * queue pair that the device has, and exchange messages as fast as they can,
 * checking every byte.  Some are killed with SIGKILL at a random moment: under
 * load, while they join, while they leave, two at once, after they were stopped.
 * Then
 *	- each survivor gets an error on its queue pair to the dead within seconds,
 *	- traffic among the survivors continues without a single error,
 *	- a new process takes the seat and exchanges messages with all,
 *	- when all have left, the member registry is gone.
 * A shared receive queue must keep its receives, a completion channel its
 * wake-ups, atomics their counts: otherwise traffic stops.
 *
 * Usage: kill [KILLS [SEED [MODE]]]
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kill.h"

enum {
	CAMPAIGN_KILLS = 20,	/* on one fabric, before all leave it in good order */
	PATIENCE_NS = 900000000,	/* less than the second after which a lock is taken */
	ANSWER_MS = 120000,	/* this machine may be slow; measurements have their own limits */
};

const struct mode modes[] = {
	{ "mapped", NULL, "always", false, NULL },
	{ "arena", NULL, NULL, true, NULL },
	{ "copied", NULL, "never", false, "kernel" },
	{ "bounced", NULL, "never", false, "bounce" },
	{ "timed", "rate=1GB/s,latency=5us", NULL, true, NULL },
	{ NULL, NULL, NULL, false, NULL },
};

struct seat {
	pid_t pid;		/* 0: the seat is empty */
	int sock;
};

static struct seat seat[SEATS];
static unsigned long kills;
static uint32_t incarnations;
static unsigned features;	/* the device's, as the processes report */

/* ---- Talking to the seats ------------------------------------------------ */

static void tell(int who, const struct word *w)
{
	/* The process may have ended on purpose; otherwise its answer will be missed. */
	if (send(seat[who].sock, w, sizeof(*w), MSG_NOSIGNAL) < 0 && errno != EPIPE &&
	    errno != ECONNRESET)
		fail("send: %s", strerror(errno));
}

/* After a failure of one process, collect the diagnostics of the others. */
static void ask_others(int who)
{
	const struct word w = { .type = WORD_TELL };
	struct word answer;
	int i;

	for (i = 0; i < SEATS; i++) {
		struct pollfd p = { .fd = seat[i].sock, .events = POLLIN };

		if (i == who || !seat[i].pid)
			continue;
		tell(i, &w);
		answer.type = 0;
		while (answer.type != WORD_TELL && poll(&p, 1, 1000) == 1 &&
		       recv(seat[i].sock, &answer, sizeof(answer), 0) > 0)
			;
	}
}

static void ended_badly(int who)
{
	int status = 0;

	waitpid(seat[who].pid, &status, 0);
	ask_others(who);
	fail("the process in seat %d ended with status 0x%x", who, (unsigned)status);
}

/* The next word from a seat, which must be of this type. */
static struct word hear(int who, enum word_type type)
{
	struct pollfd p = { .fd = seat[who].sock, .events = POLLIN };
	struct word w = { 0 };
	ssize_t n;

	if (poll(&p, 1, ANSWER_MS) != 1)
		fail("seat %d: no '%c' for %d s", who, type, ANSWER_MS / 1000);
	n = recv(seat[who].sock, &w, sizeof(w), 0);
	if (n <= 0)
		ended_badly(who);
	if (w.type != type)
		fail("seat %d: '%c' instead of '%c'", who, w.type, type);
	return w;
}

static unsigned seats_taken(void)
{
	unsigned mask = 0;
	int i;

	for (i = 0; i < SEATS; i++)
		mask |= seat[i].pid ? 1u << i : 0;
	return mask;
}

static void tell_all(unsigned mask, const struct word *w)
{
	int i;

	for (i = 0; i < SEATS; i++)
		if (mask >> i & 1)
			tell(i, w);
}

static void hear_all(unsigned mask, enum word_type type)
{
	int i;

	for (i = 0; i < SEATS; i++)
		if (mask >> i & 1)
			hear(i, type);
}

/* ---- Coming -------------------------------------------------------------- */

static void start(int who, const struct mode *mode)
{
	uint32_t incarnation = ++incarnations;
	int pair[2], i;

	require_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	fflush(NULL);
	seat[who].pid = fork();
	require(seat[who].pid >= 0);
	if (seat[who].pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (i = 0; i < SEATS; i++)
			if (i != who && seat[i].pid)
				close(seat[i].sock);
		close(pair[0]);
		member_run(who, pair[1], incarnation, mode);
	}
	close(pair[1]);
	seat[who].sock = pair[0];
}

/* Connect two seats, each of which has an end for the other. */
static void introduce(int a, int b)
{
	struct word make = { .type = WORD_MAKE }, of_a, of_b, go = { .type = WORD_GO };

	make.seat = b;
	tell(a, &make);
	make.seat = a;
	tell(b, &make);
	of_a = hear(a, WORD_ADDRESS);
	of_b = hear(b, WORD_ADDRESS);
	of_a.type = of_b.type = WORD_CONNECT;
	of_a.seat = a;
	of_b.seat = b;
	tell(a, &of_b);
	tell(b, &of_a);
	hear(a, WORD_READY);
	hear(b, WORD_READY);
	go.seat = b;
	tell(a, &go);
	go.seat = a;
	tell(b, &go);
}

/* Fill the seats in `mask`; `before` has the seats that were occupied. */
static void fill_seats(unsigned mask, const struct mode *mode)
{
	unsigned before = seats_taken();
	int i, k;

	for (i = 0; i < SEATS; i++)
		if (mask >> i & 1)
			start(i, mode);
	for (i = 0; i < SEATS; i++)
		if (mask >> i & 1)
			features = hear(i, WORD_READY).mask;
	for (i = 0; i < SEATS; i++)
		for (k = 0; k < SEATS; k++)
			if ((mask >> i & 1) && k != i && ((before >> k & 1) || k < i) &&
			    seat[k].pid)
				introduce(i, k);
}

/* All in `mask` exchange messages of each kind with each other. */
static void flow(unsigned mask)
{
	const struct word w = { .type = WORD_FLOW, .mask = mask };

	tell_all(mask, &w);
	hear_all(mask, WORD_FLOW);
}

/* ---- Going --------------------------------------------------------------- */

static void bury(int who)
{
	int status;

	require_equal(waitpid(seat[who].pid, &status, 0), seat[who].pid);
	if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL) {
		if (!WIFEXITED(status) || WEXITSTATUS(status))
			fail("seat %d ended with status 0x%x, and not because it was killed", who,
			     (unsigned)status);
	}
	close(seat[who].sock);
	seat[who] = (struct seat){ 0, -1 };
}

/* Kill those in `mask` now; the others must see it and go on. */
static void strike(unsigned mask)
{
	struct word w = { .type = WORD_KILLED };
	unsigned others;
	int i;

	for (i = 0; i < SEATS; i++)
		if (mask >> i & 1)
			kill(seat[i].pid, SIGKILL);
	for (i = 0; i < SEATS; i++)
		if (mask >> i & 1) {
			bury(i);
			kills++;
		}
	others = seats_taken();
	for (i = 0; i < SEATS; i++) {
		if (!(mask >> i & 1))
			continue;
		w.seat = i;
		tell_all(others, &w);
		hear_all(others, WORD_DEAD);
	}
	flow(others);
}

static unsigned any_seat(void)
{
	return 1u << draw(SEATS);
}

static void kill_under_load(const struct mode *mode)
{
	unsigned mask = any_seat();

	if (draw(4) == 0)
		mask |= any_seat();
	usleep(draw(8000));
	strike(mask);
	fill_seats(mask, mode);
}

/* Kill a process early: no other knows it yet. */
static void kill_while_joining(const struct mode *mode)
{
	unsigned others, mask = any_seat();
	int who = __builtin_ctz(mask);

	usleep(draw(4000));
	strike(mask);
	others = seats_taken();
	start(who, mode);
	usleep(draw(draw(2) ? 2000 : 15000));
	kill(seat[who].pid, SIGKILL);
	bury(who);
	kills++;
	flow(others);
	fill_seats(mask, mode);
}

/* Kill a process that destroys its objects in good order, before it is done. */
static void kill_while_leaving(const struct mode *mode)
{
	const struct word quit = { .type = WORD_QUIT };
	struct word gone = { .type = WORD_GONE };
	unsigned mask = any_seat();
	int who = __builtin_ctz(mask);

	gone.seat = who;
	tell_all(seats_taken() & ~mask, &gone);
	hear_all(seats_taken() & ~mask, WORD_DEAD);
	tell(who, &quit);
	usleep(draw(draw(2) ? 500 : 5000));
	kill(seat[who].pid, SIGKILL);
	bury(who);
	kills++;
	flow(seats_taken());
	fill_seats(mask, mode);
}

/* Atomics change memory that is not mapped under a lock (atomic.h). */
static bool is_locked(const struct mode *mode)
{
	return mode->copy != NULL;
}

/*
 * Stop a process: no other waits for it, nothing fails.  Then it continues, or is killed if
 * others may have taken a lock from it: it could still make one late write (atomic.h).
 */
static void stop(const struct mode *mode)
{
	unsigned mask = any_seat();
	int who = __builtin_ctz(mask), times = 1 + (int)draw(3);
	uint64_t began;

	usleep(draw(4000));
	began = now_ns();
	kill(seat[who].pid, SIGSTOP);
	while (times--) {
		usleep(20000);
		flow(seats_taken() & ~mask);
	}
	if (draw(2) && !(is_locked(mode) && now_ns() - began > PATIENCE_NS)) {
		kill(seat[who].pid, SIGCONT);
		flow(seats_taken());
	} else {
		strike(mask);
		fill_seats(mask, mode);
	}
}

/* ---- A fabric's life ------------------------------------------------------ */

static void set_mode(const struct mode *mode)
{
	setenv("SOFTHCA_REMAP", mode->remap ? mode->remap : "", 1);
	setenv("SOFTHCA_COPY", mode->copy ? mode->copy : "", 1);
	if (mode->spec)
		setenv("SOFTHCA_SPEC", mode->spec, 1);
	else
		unsetenv("SOFTHCA_SPEC");
}

static void all_leave(void)
{
	const struct word quit = { .type = WORD_QUIT };
	struct word gone = { .type = WORD_GONE };
	int i, k;

	/* First no process expects messages of another. */
	for (i = 0; i < SEATS; i++)
		for (k = 0; k < SEATS; k++)
			if (i != k) {
				gone.seat = k;
				tell(i, &gone);
				hear(i, WORD_DEAD);
			}
	tell_all(seats_taken(), &quit);
	for (i = 0; i < SEATS; i++) {
		int status;

		hear(i, WORD_QUIT);
		require_equal(waitpid(seat[i].pid, &status, 0), seat[i].pid);
		if (status)
			fail("seat %d: left with status 0x%x", i, (unsigned)status);
		close(seat[i].sock);
		seat[i] = (struct seat){ 0, -1 };
	}
	require(!fabric_is_left());
}

static void campaign(const struct mode *mode, unsigned long until, unsigned seed)
{
	draw_from(seed * 2654435761u + 1);
	fabric_new("kill");
	set_mode(mode);
	fill_seats((1u << SEATS) - 1, mode);
	flow(seats_taken());
	while (kills < until) {
		switch (draw(16)) {
		case 0:
		case 1:
			kill_while_joining(mode);
			break;
		case 2:
		case 3:
			kill_while_leaving(mode);
			break;
		case 4:
			stop(mode);
			break;
		default:
			kill_under_load(mode);
		}
		flow(seats_taken());
	}
	all_leave();
}

int main(int argc, char **argv)
{
	unsigned long wanted = argc > 1 ? strtoul(argv[1], NULL, 10) : 60, until;
	unsigned seed = drawn_seed(argc > 2 ? argv[2] : NULL);
	const char *only = argc > 3 ? argv[3] : NULL;
	uint64_t began = now_ns();
	unsigned i;

	for (i = 0; kills < wanted; i++) {
		const struct mode *mode = &modes[i % (sizeof(modes) / sizeof(*modes) - 1)];

		if (only && strcmp(mode->name, only) != 0)
			continue;
		until = kills + CAMPAIGN_KILLS;
		/* In a long run one fabric sees more processes than it has slots. */
		if (wanted >= 4000 && i == 1)
			until = kills + 1200;
		printf("after %lu of %lu kills and %.1f s: %s, seed %u\n", kills, wanted,
		       (double)(now_ns() - began) / 1e9, mode->name, seed + i);
		fflush(stdout);
		campaign(mode, until < wanted ? until : wanted, seed + i);
	}
	printf("%lu kills in %.1f s; RC, UC%s%s%s%s\n", kills, (double)(now_ns() - began) / 1e9,
	       features & HAS_UD ? ", UD" : "", features & HAS_SHARED ? ", SRQ" : "",
	       features & HAS_CHANNEL ? ", channels" : "",
	       features & HAS_ATOMICS ? ", atomics" : "");
	return 0;
}
