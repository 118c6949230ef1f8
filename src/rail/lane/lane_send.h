/* lane_send.h - eager lanes by SEND into shared receive buffers. */
#ifndef RAIL_LANE_SEND_H
#define RAIL_LANE_SEND_H

#include <stdint.h>

struct rail_rx;
struct rail_tx;

/* The request, prepared once the fields above `wr` are set. */
void rail_send_tx_init(struct rail_tx *tx);
/* A message is at `at`.  rail_send_taken: the buffer is free again. */
void rail_send_arrived(struct rail_rx *rx, const unsigned char *at, uint32_t bytes);
void rail_send_taken(struct rail_rx *rx);

#endif
