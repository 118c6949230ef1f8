/* rtnetlink.h - tables of the kernel's network, by netlink. */
#ifndef HCA_RTNETLINK_H
#define HCA_RTNETLINK_H

#include <infiniband/verbs.h>
#include <linux/rtnetlink.h>
#include <stdint.h>

/*
 * Visit the rows of a table, in the kernel's order, until a result is not 0.  request: RTM_GETADDR,
 * RTM_GETLINK.  That result, else 0 or -errno (silent).  The rows are of one moment: a table that changed
 * meanwhile is asked for again, and -EAGAIN ends a table that changes each time.
 */
int hca_rtnetlink_dump(uint16_t request, int (*visit)(void *arg, struct nlmsghdr *h), void *arg);

/* The same through a socket that is open. */
int hca_rtnetlink_dump_from(int fd, uint16_t request, int (*visit)(void *arg, struct nlmsghdr *h),
			    void *arg);

/*
 * Has the table of routes a way over this interface?  A socket that is bound to an interface takes any
 * IPv4 address without one to be on its link, and learns seconds later that it is not.  0, also if the
 * kernel does not tell; -ENETUNREACH, -EHOSTUNREACH, -EACCES.
 */
int hca_rtnetlink_route(const union ibv_gid *from, const union ibv_gid *to, unsigned index);
/* The interface over which the kernel sends from this address to that one by itself; 0: it does not tell. */
unsigned hca_rtnetlink_way(const union ibv_gid *from, const union ibv_gid *to);

/*
 * The congestion control that a route over this interface has of its own ("ip route ... congctl"); "":
 * none has.  The first one of IPv4 is told, else of IPv6.
 */
void hca_rtnetlink_congestion(unsigned index, char *text, size_t size);

#endif
