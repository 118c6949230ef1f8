/*
 * rail_example.c - two processes send each other a small and a large message by librail.
 *
 *	cc rail_example.c $(pkg-config --cflags --libs librail) -o rail_example && ./rail_example
 *
 * The rails are the two ports of a software HCA, so no adapter is needed.  A socket carries the
 * addresses of the processes, as MPI or a launcher would.
 */
#include <rail.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MESSAGES = 2 };
static const size_t bytes_of[MESSAGES] = { 8, 4 << 20 };
static unsigned char *out[MESSAGES], *in[MESSAGES];
static struct rail_op sending[MESSAGES], receiving[MESSAGES];
static int unfinished;

static void check(int good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "rail_example: %s\n", what);
	exit(1);
}

static void ended(struct rail_op *op, int status)
{
	(void)op;
	check(status == 0, "an operation has failed");
	unfinished--;
}

/* The header names the message.  A program that has several receives finds the right one by it. */
static void arrived(void *user, const struct rail_message *msg)
{
	const uint64_t i = msg->header->word[0];
	struct rail_buf buf = { .addr = in[i], .bytes = bytes_of[i] };

	(void)user;
	check(msg->bytes == bytes_of[i], "a message has another length");
	if (msg->payload) {			/* eager: the bytes go with the return */
		memcpy(buf.addr, msg->payload, msg->bytes);
		unfinished--;
	} else {
		receiving[i].done = ended;
		check(!rail_accept(msg->peer, msg->rendezvous, &buf, &receiving[i]), "rail_accept");
	}
}

/* Each gives the other its bytes; also a barrier. */
static void exchange(int fd, const void *mine, void *theirs, size_t bytes)
{
	check(send(fd, mine, bytes, 0) == (ssize_t)bytes &&
	      recv(fd, theirs, bytes, MSG_WAITALL) == (ssize_t)bytes, "the other process is gone");
}

static struct rail_peer *connect_to(struct rail_ctx *ctx, int fd, unsigned me)
{
	unsigned char address[2][RAIL_ADDRESS_BYTES];
	struct rail_peer *peer[2];
	char ready = 0;

	check(!rail_address(ctx, address[me]), "rail_address");
	exchange(fd, address[me], address[!me], RAIL_ADDRESS_BYTES);
	for (unsigned i = 0; i < 2; i++)	/* a process is its own peer, too */
		check(!rail_peer_add(ctx, i, address[i], &peer[i]), "rail_peer_add");
	exchange(fd, &ready, &ready, 1);
	rail_all_attached(ctx);
	return peer[!me];
}

static void run(int fd, unsigned me, const char *fabric)
{
	struct rail_settings settings;
	struct rail_config config = { .settings = &settings, .use_softhca = true, .fabric = fabric,
		.node = me, .index = me, .peer_count = 2, .on_message = arrived };
	struct rail_way way = { .policy = RAIL_STRIPE, .rendezvous = RAIL_BY_AUTO };
	struct rail_ctx *ctx;
	struct rail_peer *peer;
	struct rail_info info;
	struct rail_ledger ledger;
	char end = 0;

	rail_settings_init(&settings);
	settings.soft = "ideal,ports=2";
	way.threshold = settings.threshold;
	way.eager = settings.eager;
	check(!rail_open(&config, &ctx), "rail_open");
	peer = connect_to(ctx, fd, me);
	unfinished = 2 * MESSAGES;
	for (uint64_t i = 0; i < MESSAGES; i++) {
		struct rail_header header = { { i, 0 } };
		struct rail_buf buf = { .addr = out[i], .bytes = bytes_of[i] };
		int rc;

		sending[i].done = ended;
		rc = rail_send(peer, &way, &header, &buf, 0, &sending[i]);
		check(rc >= 0, "rail_send");
		unfinished -= rc;		/* 1: sent, 0: `done` will tell */
	}
	while (unfinished || rail_busy(ctx))
		rail_progress(ctx);
	exchange(fd, &end, &end, 1);
	for (int i = 0; i < MESSAGES; i++)
		for (size_t k = 0; k < bytes_of[i]; k++)
			check(in[i][k] == (unsigned char)(k * 7 + k / 251 + !me), "a wrong byte");
	for (int rail = 0; rail < rail_count(ctx); rail++) {
		rail_info(ctx, rail, &info);
		rail_ledger(ctx, rail, &ledger);
		printf("process %u has sent %llu bytes over %s\n", me,
		       (unsigned long long)ledger.tx_bytes, info.name);
	}
	rail_close(ctx);
}

int main(void)
{
	char fabric[32];
	int fd[2], status, me;
	pid_t child;

	alarm(60);
	snprintf(fabric, sizeof(fabric), "rail_example.%d", (int)getpid());
	check(!socketpair(AF_UNIX, SOCK_STREAM, 0, fd), "socketpair");
	child = fork();
	check(child >= 0, "fork");
	me = child == 0;
	close(fd[!me]);
	for (int i = 0; i < MESSAGES; i++) {
		out[i] = malloc(bytes_of[i]);
		in[i] = calloc(1, bytes_of[i]);
		check(out[i] && in[i], "no memory");
		for (size_t k = 0; k < bytes_of[i]; k++)
			out[i][k] = (unsigned char)(k * 7 + k / 251 + (size_t)me);
	}
	run(fd[me], (unsigned)me, fabric);
	if (child == 0)
		return 0;
	check(waitpid(child, &status, 0) == child && status == 0, "the other process has failed");
	return 0;
}
