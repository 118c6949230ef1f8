/* packets.c - see packets.h. */
#include "softhca/link/wire/packets.h"

#include <errno.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

enum { PACKETS = 2 };

static void info_of(int fd, struct tcp_info *info)
{
	socklen_t bytes = sizeof(*info);

	memset(info, 0, sizeof(*info));
	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, info, &bytes))
		memset(info, 0, sizeof(*info));
}

void hca_packets_begin(struct hca_packets *p, int fd, uint32_t mtu, uint32_t peer_mtu, uint32_t more)
{
	struct tcp_info info;

	info_of(fd, &info);
	p->segment = info.tcpi_snd_mss ? info.tcpi_snd_mss : mtu;
	p->path_mtu = info.tcpi_pmtu;
	p->to_send = PACKETS * mtu;
	p->to_read = PACKETS * peer_mtu + more;
}

bool hca_packets_shrank(const struct hca_packets *p, int fd)
{
	struct tcp_info info;

	info_of(fd, &info);
	return info.tcpi_snd_mss && info.tcpi_snd_mss < p->segment && info.tcpi_pmtu == p->path_mtu;
}

/*
 * Each packet leaves when the one before has arrived, so that none is cut by hardware on its way: it
 * must pass as it is.  0: as far as possible now; else -errno.
 */
static int packets_send(struct hca_packets *p, int fd)
{
	static const unsigned char zeros[HCA_PACKETS_MTU_MAX];
	int queued = 0;

	while (p->to_send && ioctl(fd, SIOCOUTQ, &queued) == 0 && !queued) {
		uint32_t some = p->to_send < p->segment ? p->to_send : p->segment;
		ssize_t n = send(fd, zeros, some, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0)
			return errno == EAGAIN || errno == EINTR ? 0 : -errno;
		p->to_send -= (uint32_t)n;
	}
	return 0;
}

/* The kernel acknowledges what has been read now, not in 40 ms: the other end waits for it. */
static void acknowledge(int fd)
{
	const int on = 1;

	if (setsockopt(fd, IPPROTO_TCP, TCP_QUICKACK, &on, sizeof(on)))
		return;
}

int hca_packets_read(struct hca_packets *p, int fd)
{
	unsigned char nowhere[16384];

	while (p->to_read) {
		size_t most = p->to_read < sizeof(nowhere) ? p->to_read : sizeof(nowhere);
		ssize_t n = recv(fd, nowhere, most, MSG_DONTWAIT);

		if (n == 0)
			return -ECONNRESET;
		if (n < 0)
			return errno == EAGAIN || errno == EINTR ? 0 : -errno;
		p->to_read -= (uint32_t)n;
		p->last = nowhere[n - 1];
		acknowledge(fd);
	}
	return 0;
}

int hca_packets_step(struct hca_packets *p, int fd)
{
	int rc = packets_send(p, fd);

	if (!rc)
		rc = hca_packets_read(p, fd);
	return rc ? rc : !p->to_send && !p->to_read;
}
