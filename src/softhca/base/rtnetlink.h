/* rtnetlink.h - tables of the kernel's network, by netlink. */
#ifndef HCA_RTNETLINK_H
#define HCA_RTNETLINK_H

#include <linux/rtnetlink.h>
#include <stdint.h>

/*
 * Visit the rows of a table, in the kernel's order, until a result is not 0.  request: RTM_GETADDR,
 * RTM_GETLINK.  That result, else 0 or -errno (silent).
 */
int hca_rtnetlink_dump(uint16_t request, int (*visit)(void *arg, struct nlmsghdr *h), void *arg);

#endif
