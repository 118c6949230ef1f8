/* messages.h - groups: posted, complete, arrived. */
#ifndef VBENCH_MESSAGES_H
#define VBENCH_MESSAGES_H

#include "vbench/lanes.h"

/* Ask for the next event. */
void vb_arm(struct vrb_cq *cq);
/* Make the requests that vbench_post posts on this lane. */
void vb_requests_set(const struct vb_rail *r, struct vb_lane *lane);
/* The run of the current batch. */
void vb_run_set(void);
/* Post the lane's next receives, as many as it has room for. */
void vb_receives_post(const struct bench *b, struct vb_rail *r, struct vb_lane *lane);
/* Wait until at most `left` replies are incomplete. */
void vb_replies_complete(uint64_t left);
/* Take all that has arrived; returns the number of messages and replies. */
int vb_take(const struct bench *b);

#endif
