/* ports.h - SOFTHCA_PORTS, the range of TCP ports of all listeners. */
#ifndef HCA_PORTS_H
#define HCA_PORTS_H

#include <stdbool.h>
#include <stdint.h>

#include "softhca/link/wire/socket.h"

/* Below the range that the kernel takes for outgoing connections. */
#define HCA_PORTS_DEFAULT "18600-18855"

/*
 * "FIRST-LAST" or "PORT"; NULL or "": HCA_PORTS_DEFAULT.  0, or -EINVAL with the line set
 * (hca_fail).
 */
int hca_ports_parse(const char *text, uint16_t *first, uint16_t *last);
/*
 * May processes of one user share this port of the range (handover.h)?  In the upper half, and in a range of
 * 4 ports at most: hosts with fewer processes are spared the socket that it takes.
 */
bool hca_port_is_shared(uint16_t port, uint16_t first, uint16_t last);
/*
 * The attempts to listen on a range, from turn 0 on: all ports, of which the first free one is taken, then
 * those that are shared.  False: none is left.
 */
bool hca_ports_attempt(uint32_t turn, uint16_t first, uint16_t last, uint16_t *port, enum hca_listen *how);

#endif
