/*
 * stream.c - the least that a TCP connection between two processes costs: one socket, both ends spin, no
 * header, no protocol.
 *
 *	stream --listen PORT			serve one client after the other, for ever
 *	stream ADDRESS PORT latency BYTES S	S seconds of ping-pongs: half a round trip, in microseconds
 *	stream ADDRESS PORT bw BYTES S		S seconds of messages, one send each: MB/s (10^6 bytes)
 *	stream ADDRESS PORT mixed BYTES S	ping-pongs as above while a second connection carries what it
 *						can, both served by one loop at each end: us, and its MB/s
 *
 * A bandwidth is that of rounds of at least 32 MiB or 100,000 messages; the receiver answers the last byte of
 * a round.
 */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
	BYTES_MAX = 1 << 26,
	ROUND_BYTES = 1 << 25,
	ROUND_MESSAGES = 100000,
	READ_BYTES = 1 << 17,		/* in one system call; they stay in a core's cache */
};

enum kind { LATENCY, BW, MIXED, KINDS };

static const char *const kind_names[KINDS] = { "latency", "bw", "mixed" };

/* What the client wants, as it is sent. */
struct request {
	uint64_t kind, bytes, round;
};

static char *buffer;

static void die(const char *what)
{
	fprintf(stderr, "stream: %s: %s\n", what, strerror(errno));
	exit(1);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + 1e-9 * t.tv_nsec;
}

/* 0: the peer has closed. */
static int receive(int fd, void *to, size_t bytes)
{
	for (size_t done = 0; done < bytes;) {
		ssize_t n = recv(fd, (char *)to + done, bytes - done, MSG_DONTWAIT);

		if (n == 0 || (n < 0 && errno == ECONNRESET))
			return 0;
		if (n < 0 && errno != EAGAIN)
			die("recv");
		done += n > 0 ? n : 0;
	}
	return 1;
}

static void transmit(int fd, const void *from, size_t bytes)
{
	for (size_t done = 0; done < bytes;) {
		ssize_t n = send(fd, (const char *)from + done, bytes - done, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0 && errno != EAGAIN)
			die("send");
		done += n > 0 ? n : 0;
	}
}

/* A round of messages, each read into the same place. */
static int receive_round(int fd, uint64_t bytes)
{
	while (bytes > 0) {
		ssize_t n = recv(fd, buffer, bytes < READ_BYTES ? bytes : READ_BYTES, MSG_DONTWAIT);

		if (n == 0)
			return 0;
		if (n < 0 && errno != EAGAIN)
			die("recv");
		bytes -= n > 0 ? n : 0;
	}
	return 1;
}

static void no_delay(int fd)
{
	int on = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

/* Read up to `bytes` without waiting: the number read; 0: none has arrived, -1: the peer has closed. */
static ssize_t receive_some(int fd, size_t bytes)
{
	ssize_t n = recv(fd, buffer, bytes, MSG_DONTWAIT);

	if (n == 0 || (n < 0 && errno == ECONNRESET))
		return -1;
	if (n < 0 && errno != EAGAIN)
		die("recv");
	return n > 0 ? n : 0;
}

/* Answers `bytes` of the first connection, reads what the second brings. */
static void serve_mixed(int fd, int bulk, size_t bytes)
{
	size_t have = 0;

	for (;;) {
		ssize_t n = receive_some(fd, bytes - have);

		if (n < 0)
			return;
		have += n;
		if (have == bytes) {
			transmit(fd, buffer, bytes);
			have = 0;
		}
		if (receive_some(bulk, READ_BYTES) < 0)
			return;
	}
}

static int accept_client(int listener)
{
	int client = accept(listener, NULL, NULL);

	if (client < 0)
		die("accept");
	no_delay(client);
	return client;
}

static void serve(int fd, int listener)
{
	struct request request;

	if (!receive(fd, &request, sizeof(request)))
		return;
	if (request.kind == LATENCY) {
		while (receive(fd, buffer, request.bytes))
			transmit(fd, buffer, request.bytes);
	} else if (request.kind == BW) {
		while (receive_round(fd, request.bytes * request.round))
			transmit(fd, buffer, 1);
	} else {
		int bulk = accept_client(listener);

		serve_mixed(fd, bulk, request.bytes);
		close(bulk);
	}
}

static double latency(int fd, uint64_t bytes, double seconds)
{
	double began = now(), took;
	uint64_t count = 0;

	do {
		for (int k = 0; k < 100; k++) {
			transmit(fd, buffer, bytes);
			receive(fd, buffer, bytes);
		}
		count += 100;
		took = now() - began;
	} while (took < seconds);
	return took / count / 2 * 1e6;
}

static double bandwidth(int fd, uint64_t bytes, uint64_t round, double seconds)
{
	double began = now(), took;
	uint64_t rounds = 0;
	char answer;

	do {
		for (uint64_t k = 0; k < round; k++)
			transmit(fd, buffer, bytes);
		receive(fd, &answer, 1);
		rounds++;
		took = now() - began;
	} while (took < seconds);
	return rounds * round * bytes / took / 1e6;
}

static struct addrinfo *look_up(const char *address, const char *port)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICHOST };
	struct addrinfo *found;
	int rc = getaddrinfo(address, port, &hints, &found);

	if (rc) {
		fprintf(stderr, "stream: %s: %s\n", address ? address : port, gai_strerror(rc));
		exit(1);
	}
	return found;
}

static void listen_for_ever(const char *port)
{
	struct addrinfo *here = look_up(NULL, port);
	int fd = socket(here->ai_family, SOCK_STREAM, 0), on = 1;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, here->ai_addr, here->ai_addrlen) || listen(fd, 8))
		die(port);
	for (;;) {
		int client = accept_client(fd);

		serve(client, fd);
		close(client);
	}
}

/* Bytes that the connection takes at once. */
static size_t transmit_some(int fd)
{
	ssize_t n = send(fd, buffer, READ_BYTES, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (n < 0 && errno != EAGAIN)
		die("send");
	return n > 0 ? n : 0;
}

static void ping_pong_mixed(int fd, int bulk, size_t bytes, double seconds, double *us, double *rate)
{
	double began = now(), took;
	uint64_t count = 0, sent = 0;

	do {
		size_t have = 0;

		transmit(fd, buffer, bytes);
		while (have < bytes) {
			ssize_t n = receive_some(fd, bytes - have);

			if (n < 0)
				die("the server has gone");
			have += n;
			if (have < bytes)
				sent += transmit_some(bulk);
		}
		count++;
		took = now() - began;
	} while (took < seconds);
	*us = took / count / 2 * 1e6;
	*rate = sent / took / 1e6;
}

static int connect_to(char **argv)
{
	struct addrinfo *to = look_up(argv[1], argv[2]);
	int fd = socket(to->ai_family, SOCK_STREAM, 0);

	if (connect(fd, to->ai_addr, to->ai_addrlen))
		die(argv[1]);
	no_delay(fd);
	freeaddrinfo(to);
	return fd;
}

static void usage(void)
{
	fprintf(stderr, "stream --listen PORT, stream ADDRESS PORT latency|bw|mixed BYTES SECONDS, "
			"of 1 to %d bytes\n", BYTES_MAX);
	exit(3);
}

static struct request request_of(char **argv)
{
	struct request r = { .bytes = strtoull(argv[4], NULL, 10) };

	while (r.kind < KINDS && strcmp(argv[3], kind_names[r.kind]))
		r.kind++;
	if (r.kind == KINDS || r.bytes == 0 || r.bytes > BYTES_MAX)
		usage();
	r.round = (ROUND_BYTES + r.bytes - 1) / r.bytes;
	if (r.round > ROUND_MESSAGES)
		r.round = ROUND_MESSAGES;
	return r;
}

static void ask(char **argv)
{
	struct request request = request_of(argv);
	double seconds = strtod(argv[5], NULL), us, rate;
	int fd = connect_to(argv);

	transmit(fd, &request, sizeof(request));
	if (request.kind == LATENCY) {
		latency(fd, request.bytes, seconds / 10);
		printf("%.3f\n", latency(fd, request.bytes, seconds));
	} else if (request.kind == BW) {
		bandwidth(fd, request.bytes, request.round, seconds / 10);
		printf("%.3f\n", bandwidth(fd, request.bytes, request.round, seconds));
	} else {
		int bulk = connect_to(argv);

		ping_pong_mixed(fd, bulk, request.bytes, seconds / 10, &us, &rate);
		ping_pong_mixed(fd, bulk, request.bytes, seconds, &us, &rate);
		printf("%.3f %.3f\n", us, rate);
	}
}

int main(int argc, char **argv)
{
	buffer = malloc(BYTES_MAX);
	if (!buffer)
		die("malloc");
	memset(buffer, 1, BYTES_MAX);
	if (argc == 3 && strcmp(argv[1], "--listen") == 0)
		listen_for_ever(argv[2]);
	if (argc != 6)
		usage();
	ask(argv);
	return 0;
}
