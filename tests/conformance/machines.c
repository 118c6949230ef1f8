/*
 * machines.c - the sides in two machines: two processes that run the same list, in step.
 *
 * One connection lasts for the whole run: names and results of the cases.  Each case has another one,
 * which ends with the processes of the case.
 */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "conformance.h"
#include "machines.h"

enum { WAIT_MS = 60000, STEP_MS = 50 };

static int me = -1, listener = -1, control = -1;
static struct addrinfo *peer;

static void end(const char *what)
{
	fprintf(stderr, "conformance: the other machine: %s: %s\n", what, strerror(errno));
	exit(3);
}

static struct addrinfo *resolve(const char *host, const char *port)
{
	const struct addrinfo hints = { .ai_family = AF_INET, .ai_socktype = SOCK_STREAM,
					.ai_flags = AI_PASSIVE };
	struct addrinfo *list;
	int rc = getaddrinfo(*host ? host : NULL, port, &hints, &list);

	if (rc) {
		fprintf(stderr, "conformance: --join %s:%s: %s\n", host, port, gai_strerror(rc));
		exit(3);
	}
	return list;
}

static int new_socket(void)
{
	const int on = 1;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) ||
	    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)))
		end("socket");
	return fd;
}

/* Side 0 is called, maybe before it listens. */
static int call(void)
{
	int waited, fd;

	for (waited = 0; waited < WAIT_MS; waited += STEP_MS) {
		fd = new_socket();
		if (!connect(fd, peer->ai_addr, peer->ai_addrlen))
			return fd;
		close(fd);
		usleep(STEP_MS * 1000);
	}
	end("no connection");
	return -1;
}

static int meet(void)
{
	const struct timeval limit = { .tv_sec = WAIT_MS / 1000 };
	int fd;

	if (me)
		return call();
	setsockopt(listener, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	if (fd < 0)
		end("no call");
	return fd;
}

static void exchange(const void *mine, void *theirs, size_t bytes)
{
	if (send(control, mine, bytes, MSG_NOSIGNAL) != (ssize_t)bytes ||
	    recv(control, theirs, bytes, MSG_WAITALL) != (ssize_t)bytes)
		end("it has ended");
}

void machines_join(const char *address)
{
	char *host = strdup(address), *port = strrchr(host, ':');

	if (!port) {
		fprintf(stderr, "conformance: --join %s: HOST:PORT or :PORT accepted\n", address);
		exit(3);
	}
	*port++ = '\0';
	me = *host != '\0';
	peer = resolve(host, port);
	free(host);
	if (!me) {
		listener = new_socket();
		if (bind(listener, peer->ai_addr, peer->ai_addrlen) || listen(listener, 2))
			end("no port");
	}
	control = meet();
}

bool machines_joined(void)
{
	return control >= 0;
}

int machines_side(void)
{
	return me;
}

int machines_case(const char *name)
{
	char mine[64] = "", theirs[64];

	snprintf(mine, sizeof(mine), "%s", name);
	exchange(mine, theirs, sizeof(mine));
	if (strcmp(mine, theirs) != 0) {
		fprintf(stderr, "conformance: %s here, %.63s on the other machine\n", mine, theirs);
		exit(3);
	}
	return meet();
}

void machines_add(struct ends *e)
{
	struct ends theirs;

	exchange(e, &theirs, sizeof(theirs));
	e->failed += theirs.failed;
	e->skipped += theirs.skipped;
	e->alone += theirs.alone;
}
