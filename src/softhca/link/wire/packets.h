/* packets.h - full packets each way over a connection: does the path pass them?  See probe.c. */
#ifndef HCA_PACKETS_H
#define HCA_PACKETS_H

#include <stdbool.h>
#include <stdint.h>

enum { HCA_PACKETS_MTU_MAX = 65536 };

struct hca_packets {
	uint32_t segment, path_mtu, to_send, to_read;
	unsigned char last;		/* the last byte that was read */
};

/* Begin two packets of each end's MTU, HCA_PACKETS_MTU_MAX at most; `more` bytes are read after them. */
void hca_packets_begin(struct hca_packets *p, int fd, uint32_t mtu, uint32_t peer_mtu, uint32_t more);
/* 1: both directions are done; 0: not yet; -errno. */
int hca_packets_step(struct hca_packets *p, int fd);
int hca_packets_read(struct hca_packets *p, int fd);
/* Does the kernel send less at a time because of loss alone, as some are set to? */
bool hca_packets_shrank(const struct hca_packets *p, int fd);

#endif
