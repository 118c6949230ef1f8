/* join.h - joining a fabric of processes on this host, and leaving it. */
#ifndef HCA_JOIN_H
#define HCA_JOIN_H

#include "softhca/link/memory/bounce.h"
#include "softhca/object/fabric.h"
#include "softhca/object/link.h"

extern const struct hca_link_operations hca_memory_link;

/*
 * Become a member, as `node`, of the fabric that f names, or its first.  Sets f's shared
 * segments, link and link_state.  0, or -errno with the line set.
 */
int hca_join(struct hca_fabric *f, enum hca_copy_method copy, uint32_t node);
/* Leave, and free all that hca_join has made.  All objects are gone. */
void hca_leave(struct hca_fabric *f);
/*
 * Announce an orderly departure, so that peers do not take it for a death.  Other threads may
 * still use objects.
 */
void hca_say_goodbye(struct hca_fabric *f);
/* Leave the member registry.  The last member removes the file; `at_once` removes it at once. */
void hca_sign_off(struct hca_fabric *f, bool at_once);
/* In a child of fork, which is not a member: close the parent's descriptors. */
void hca_forget_in_child(struct hca_fabric *f);

#endif
