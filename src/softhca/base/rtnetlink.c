/* rtnetlink.c - see rtnetlink.h. */
#include "softhca/base/rtnetlink.h"

#include <sys/socket.h>
#include <unistd.h>

#include "softhca/base/base.h"

enum { ANSWER_MAX = 32768 };		/* the kernel's own limit for a dump's datagram */

static int ask(int fd, uint16_t request)
{
	struct {
		struct nlmsghdr h;
		struct ifinfomsg m;	/* also as long as struct ifaddrmsg needs */
	} q = { .h = { .nlmsg_len = sizeof(q), .nlmsg_type = request,
		       .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP } };

	return send(fd, &q, sizeof(q), 0) == (ssize_t)sizeof(q) ? 0 : -errno;
}

static int read_answers(int fd, int (*visit)(void *arg, struct nlmsghdr *h), void *arg)
{
	alignas(struct nlmsghdr) char buf[ANSWER_MAX];
	int rc;

	for (;;) {
		ssize_t n = recv(fd, buf, sizeof(buf), 0);
		struct nlmsghdr *h = (struct nlmsghdr *)(void *)buf;
		size_t left = n > 0 ? (size_t)n : 0;

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EPIPE;
		for (; NLMSG_OK(h, left); h = NLMSG_NEXT(h, left)) {
			if (h->nlmsg_type == NLMSG_DONE)
				return 0;
			if (h->nlmsg_type == NLMSG_ERROR)
				return -EPROTO;
			rc = visit(arg, h);
			if (rc)
				return rc;
		}
	}
}

int hca_rtnetlink_dump(uint16_t request, int (*visit)(void *arg, struct nlmsghdr *h), void *arg)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	int rc;

	if (fd < 0)
		return -errno;
	rc = ask(fd, request);
	if (!rc)
		rc = read_answers(fd, visit, arg);
	close(fd);
	return rc;
}
