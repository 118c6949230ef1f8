/* giver.h - what any process of a host can send to the Unix socket of a shared port (link/wire/handover.h). */
#ifndef GIVER_H
#define GIVER_H

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "softhca/link/wire/handshake.h"

enum { GIVER_FDS = 8 };

/* The address of number `number` of a group; returns its bytes. */
static inline socklen_t giver_name(struct sockaddr_un *at, const unsigned char group[HCA_HASH_BYTES], unsigned number)
{
	char *to = at->sun_path + 1;

	memset(at, 0, sizeof(*at));
	at->sun_family = AF_UNIX;
	to += sprintf(to, "softhca/%u/", (unsigned)geteuid());
	for (unsigned i = 0; i < HCA_HASH_BYTES; i++)
		to += sprintf(to, "%02x", group[i]);
	to += sprintf(to, "/%u", number);
	return (socklen_t)(to - (char *)at);
}

/* A message with up to GIVER_FDS descriptors: as sendmsg. */
static inline ssize_t giver_send(int to, const void *message, size_t bytes, const int *fd, size_t fds)
{
	union {
		struct cmsghdr align;
		unsigned char bytes[CMSG_SPACE(GIVER_FDS * sizeof(int))];
	} control = { .bytes = { 0 } };
	struct iovec part = { (void *)(uintptr_t)message, bytes };
	struct msghdr m = { .msg_iov = &part, .msg_iovlen = 1 };

	if (fds) {
		m.msg_control = control.bytes;
		m.msg_controllen = CMSG_SPACE(fds * sizeof(int));
		CMSG_FIRSTHDR(&m)->cmsg_level = SOL_SOCKET;
		CMSG_FIRSTHDR(&m)->cmsg_type = SCM_RIGHTS;
		CMSG_FIRSTHDR(&m)->cmsg_len = CMSG_LEN(fds * sizeof(int));
		memcpy(CMSG_DATA(CMSG_FIRSTHDR(&m)), fd, fds * sizeof(int));
	}
	return sendmsg(to, &m, MSG_NOSIGNAL);
}

#endif
