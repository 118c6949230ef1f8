/* rtnetlink.c - see rtnetlink.h. */
#include "softhca/base/rtnetlink.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "softhca/base/base.h"
#include "softhca/base/gid.h"

enum {
	ANSWER_MAX = 32768,		/* the kernel's own limit for a dump's datagram */
	TRIES_MAX = 64,			/* of a table that changes meanwhile */
};

static int ask(int fd, const struct nlmsghdr *question)
{
	return send(fd, question, question->nlmsg_len, 0) == (ssize_t)question->nlmsg_len ? 0 : -errno;
}

/* Rows of a table, as the kernel sent them. */
struct rows {
	char *bytes;
	size_t count;			/* bytes in use */
	bool interrupted;
};

static int rows_add(struct rows *r, const struct nlmsghdr *h)
{
	const size_t length = NLMSG_ALIGN(h->nlmsg_len);
	char *bytes = realloc(r->bytes, r->count + length);

	if (!bytes)
		return -ENOMEM;
	memcpy(bytes + r->count, h, h->nlmsg_len);
	r->bytes = bytes;
	r->count += length;
	return 0;
}

/* Add the rows of a datagram.  1: it ends the table; 0: more come; or -errno. */
static int rows_take(struct rows *r, const void *datagram, size_t left)
{
	const struct nlmsghdr *h = datagram;
	int rc;

	for (; NLMSG_OK(h, left); h = NLMSG_NEXT(h, left)) {
		r->interrupted |= (h->nlmsg_flags & NLM_F_DUMP_INTR) != 0;
		if (h->nlmsg_type == NLMSG_DONE)
			return 1;
		if (h->nlmsg_type == NLMSG_ERROR)
			return -EPROTO;
		rc = rows_add(r, h);
		if (rc)
			return rc;
	}
	return 0;
}

static int rows_read(int fd, struct rows *r)
{
	alignas(struct nlmsghdr) char buf[ANSWER_MAX];
	int rc = 0;

	r->count = 0;
	r->interrupted = false;
	while (!rc) {
		ssize_t n = recv(fd, buf, sizeof(buf), 0);

		if (n > 0)
			rc = rows_take(r, buf, (size_t)n);
		else if (!n || errno != EINTR)
			rc = n ? -errno : -EPIPE;
	}
	return rc < 0 ? rc : 0;
}

static int rows_visit(const struct rows *r, int (*visit)(void *arg, struct nlmsghdr *h), void *arg)
{
	struct nlmsghdr *h = (struct nlmsghdr *)(void *)r->bytes;
	size_t left = r->count;
	int rc = 0;

	for (; !rc && NLMSG_OK(h, left); h = NLMSG_NEXT(h, left))
		rc = visit(arg, h);
	return rc;
}

/* A change during a dump makes the kernel leave rows out, or send them twice: it says so. */
static int dump(int fd, const struct nlmsghdr *question, int (*visit)(void *arg, struct nlmsghdr *h), void *arg)
{
	struct rows rows = { .interrupted = true };
	int tries = 0, rc = 0;

	while (!rc && rows.interrupted && tries++ < TRIES_MAX) {
		rc = ask(fd, question);
		if (!rc)
			rc = rows_read(fd, &rows);
	}
	if (!rc)
		rc = rows.interrupted ? -EAGAIN : rows_visit(&rows, visit, arg);
	free(rows.bytes);
	return rc;
}

int hca_rtnetlink_dump_from(int fd, uint16_t request, int (*visit)(void *arg, struct nlmsghdr *h),
			    void *arg)
{
	const struct {
		struct nlmsghdr h;
		struct ifinfomsg m;	/* also as long as struct ifaddrmsg needs */
	} q = { .h = { .nlmsg_len = sizeof(q), .nlmsg_type = request,
		       .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP } };

	return dump(fd, &q.h, visit, arg);
}

int hca_rtnetlink_dump(uint16_t request, int (*visit)(void *arg, struct nlmsghdr *h), void *arg)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	int rc;

	if (fd < 0)
		return -errno;
	rc = hca_rtnetlink_dump_from(fd, request, visit, arg);
	close(fd);
	return rc;
}

/* ---- Routes -------------------------------------------------------------- */

struct route_question {
	struct nlmsghdr h;
	struct rtmsg m;
	char attributes[3 * RTA_SPACE(sizeof(union ibv_gid))];
};

static void question_add(struct route_question *q, uint16_t type, const void *value, size_t bytes)
{
	struct rtattr *a = (struct rtattr *)(void *)((char *)q + q->h.nlmsg_len);

	a->rta_type = type;
	a->rta_len = (uint16_t)RTA_LENGTH(bytes);
	memcpy(RTA_DATA(a), value, bytes);
	q->h.nlmsg_len += (uint32_t)RTA_SPACE(bytes);
}

/* False: the addresses are not of one family. */
static bool question_make(struct route_question *q, const union ibv_gid *from, const union ibv_gid *to)
{
	const bool four = hca_gid_is_ipv4(to);
	const unsigned at = four ? HCA_GID_IPV4_AT : 0;
	const size_t bytes = sizeof(*to) - at;

	*q = (struct route_question){
		.h = { .nlmsg_len = NLMSG_LENGTH(sizeof(q->m)), .nlmsg_type = RTM_GETROUTE,
		       .nlmsg_flags = NLM_F_REQUEST },
		.m = { .rtm_family = four ? AF_INET : AF_INET6, .rtm_dst_len = (uint8_t)(8 * bytes),
		       .rtm_src_len = (uint8_t)(8 * bytes) },
	};
	if (hca_gid_is_ipv4(from) != four)
		return false;
	question_add(q, RTA_DST, to->raw + at, bytes);
	question_add(q, RTA_SRC, from->raw + at, bytes);
	return true;
}

/* The bytes of the answer; 0: there is none. */
static size_t question_ask(const struct route_question *q, void *answer, size_t most)
{
	const int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	ssize_t n = 0;

	if (fd < 0)
		return 0;
	if (send(fd, q, q->h.nlmsg_len, 0) == (ssize_t)q->h.nlmsg_len)
		n = recv(fd, answer, most, 0);
	close(fd);
	return n > 0 ? (size_t)n : 0;
}

static int route_error(const struct nlmsghdr *h, size_t bytes)
{
	const struct nlmsgerr *e = NLMSG_DATA(h);

	if (!NLMSG_OK(h, bytes) || h->nlmsg_type != NLMSG_ERROR)
		return 0;
	switch (-e->error) {
	case ENETUNREACH:
	case EHOSTUNREACH:
	case EACCES:
		return e->error;
	default:
		return 0;
	}
}

int hca_rtnetlink_route(const union ibv_gid *from, const union ibv_gid *to, unsigned index)
{
	alignas(struct nlmsghdr) char answer[4096];
	struct route_question q;

	if (!hca_gid_is_ipv4(to) || !question_make(&q, from, to))
		return 0;
	q.m.rtm_flags = RTM_F_FIB_MATCH;
	question_add(&q, RTA_OIF, &index, sizeof(index));
	return route_error((const struct nlmsghdr *)(const void *)answer,
			   question_ask(&q, answer, sizeof(answer)));
}

/* An attribute of a route; NULL: it has none. */
static const struct rtattr *route_attribute(struct nlmsghdr *h, unsigned short type)
{
	const struct rtattr *a = RTM_RTA((struct rtmsg *)NLMSG_DATA(h));
	size_t left = RTM_PAYLOAD(h);

	for (; RTA_OK(a, left); a = RTA_NEXT(a, left))
		if (a->rta_type == type)
			return a;
	return NULL;
}

static unsigned route_interface(struct nlmsghdr *h)
{
	const struct rtattr *a = route_attribute(h, RTA_OIF);
	uint32_t index = 0;

	if (a && RTA_PAYLOAD(a) == sizeof(index))
		memcpy(&index, RTA_DATA(a), sizeof(index));
	return index;
}

unsigned hca_rtnetlink_way(const union ibv_gid *from, const union ibv_gid *to)
{
	alignas(struct nlmsghdr) char answer[4096];
	struct nlmsghdr *h = (struct nlmsghdr *)(void *)answer;
	struct route_question q;
	size_t bytes;

	if (!question_make(&q, from, to))
		return 0;
	bytes = question_ask(&q, answer, sizeof(answer));
	return NLMSG_OK(h, bytes) && h->nlmsg_type == RTM_NEWROUTE ? route_interface(h) : 0;
}

struct congestion {
	unsigned index;
	char *text;
	size_t size;
};

static void read_metrics(const struct rtattr *metrics, const struct congestion *c)
{
	const struct rtattr *r = RTA_DATA(metrics);
	unsigned left = (unsigned)RTA_PAYLOAD(metrics);

	for (; RTA_OK(r, left); r = RTA_NEXT(r, left))
		if (r->rta_type == RTAX_CC_ALGO)
			snprintf(c->text, c->size, "%.*s", (int)RTA_PAYLOAD(r), (const char *)RTA_DATA(r));
}

/* Kernels before 4.20 send the routes of all interfaces. */
static int read_route(void *arg, struct nlmsghdr *h)
{
	const struct congestion *c = arg;
	const struct rtattr *metrics;

	if (h->nlmsg_type != RTM_NEWROUTE)
		return 0;
	metrics = route_attribute(h, RTA_METRICS);
	if (metrics && route_interface(h) == c->index)
		read_metrics(metrics, c);
	return *c->text != '\0';
}

void hca_rtnetlink_congestion(unsigned index, char *text, size_t size)
{
	struct route_question q = { .h = { .nlmsg_len = NLMSG_LENGTH(sizeof(q.m)), .nlmsg_type = RTM_GETROUTE,
					   .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP } };
	static const unsigned char families[] = { AF_INET, AF_INET6 };
	struct congestion c = { index, text, size };
	const int on = 1;

	*text = '\0';
	question_add(&q, RTA_OIF, &index, sizeof(index));
	for (unsigned i = 0; i < sizeof(families) && !*text; i++) {
		int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

		if (fd < 0)
			return;
		setsockopt(fd, SOL_NETLINK, NETLINK_GET_STRICT_CHK, &on, sizeof(on));
		q.m.rtm_family = families[i];
		dump(fd, &q.h, read_route, &c);
		close(fd);
	}
}
