/* join.h - joining a fabric of processes on this host, and leaving it. */
#ifndef HCA_JOIN_H
#define HCA_JOIN_H

#include "link/memory/bounce.h"
#include "object/fabric.h"
#include "object/link.h"

extern const struct hca_link_operations hca_memory_link;

/*
 * Become a member, as `node`, of the fabric that f names, or its first: from then on f's shared
 * segments, link and link_state are there.  0, or -errno with the line set.
 */
int hca_join(struct hca_fabric *f, enum hca_copy_method copy, uint32_t node);
/* Objects are gone. */
void hca_leave(struct hca_fabric *f);
/*
 * In good order: peers see a departure, not a death.  Objects may still be in use by other
 * threads.
 */
void hca_say_goodbye(struct hca_fabric *f);
/* The name goes when the last member does; with `everyone`, at once. */
void hca_sign_off(struct hca_fabric *f, bool everyone);
/* In a child of fork: the parent is the member. */
void hca_forget_in_child(struct hca_fabric *f);

#endif
