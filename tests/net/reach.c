/*
 * reach.c - reach ADDRESS PORT: a TCP connection, within 10 s; reach --listen PORT: accept them for ever.
 */
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static int socket_of(const char *address, const char *port, struct addrinfo **to)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_family = address ? AF_UNSPEC : AF_INET6,
				  .ai_flags = AI_NUMERICHOST | (address ? 0 : AI_PASSIVE) };
	int rc = getaddrinfo(address, port, &hints, to);

	if (rc) {
		fprintf(stderr, "reach: %s: %s\n", address, gai_strerror(rc));
		return -1;
	}
	return socket((*to)->ai_family, SOCK_STREAM, 0);
}

static int serve(const char *port)
{
	struct addrinfo *here;
	int fd = socket_of(NULL, port, &here), on = 1;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, here->ai_addr, here->ai_addrlen) || listen(fd, 16)) {
		perror("reach: listen");
		return 1;
	}
	for (;;)
		close(accept(fd, NULL, NULL));
}

/* The listener may come up later. */
static int reach(const char *address, const char *port)
{
	const struct timespec nap = { 0, 20000000 };
	struct addrinfo *to;

	for (int turn = 0; turn < 500; turn++) {
		int fd = socket_of(address, port, &to);

		if (fd < 0)
			return 1;
		if (connect(fd, to->ai_addr, to->ai_addrlen) == 0)
			return 0;
		close(fd);
		freeaddrinfo(to);
		nanosleep(&nap, NULL);
	}
	perror("reach: connect");
	return 1;
}

int main(int argc, char **argv)
{
	if (argc != 3) {
		fprintf(stderr, "reach ADDRESS PORT, reach --listen PORT\n");
		return 3;
	}
	return strcmp(argv[1], "--listen") == 0 ? serve(argv[2]) : reach(argv[1], argv[2]);
}
