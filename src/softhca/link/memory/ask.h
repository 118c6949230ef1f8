/* ask.h - addresses of members, and asking members for their descriptors (descriptors.h). */
#ifndef HCA_ASK_H
#define HCA_ASK_H

#include "softhca/link/memory/descriptors.h"

void hca_identity_get(struct hca_identity *me);

void hca_address_by_number(uint64_t id, uint32_t slot, struct hca_address *a);
void hca_address_by_name(uint64_t place, const char *fabric, struct hca_address *a);
uint64_t hca_address_place(void);
/* A member's address; false: it has none, or none in this network namespace. */
bool hca_address_of_slot(const struct hca_identity *me, const struct hca_shm_fabric *shm,
			 uint32_t slot, struct hca_address *a);
/* Does a process listen there? */
bool hca_address_lives(const struct hca_address *a);

/*
 * Ask, and wait for the answer, a second at most.  The number of descriptors, not checked yet; or
 * -errno (silent): -ECONNREFUSED: no process listens there; -EACCES: the process belongs to another
 * user; -ETIMEDOUT; -EPERM: the process refuses.
 */
int hca_ask(const struct hca_identity *me, const struct hca_address *a, uint64_t nonce,
	    enum hca_question question, uint32_t index, int fd[HCA_ANSWER_MAX]);

/*
 * hca_ask by a member, of the member in a slot.  -ENOENT: no address; -EAGAIN: the member, perhaps
 * stopped, has not answered within the last second and is not waited for again.
 */
int hca_ask_slot(struct hca_link_state *state, uint32_t slot, const struct hca_address *a,
		 enum hca_question question, uint32_t index, int fd[HCA_ANSWER_MAX]);

/*
 * The reason why no descriptor of a living member can be had, and the remedy.  `near` and `far`:
 * results of /proc and of asking, -EXDEV for a method of no use in these namespaces.
 */
void hca_unreachable(char *buf, size_t size, const char *fabric, pid_t pid, int near, int far);

/* Is the process in that slot alive?  True if unknown. */
bool hca_slot_alive(const struct hca_identity *me, const struct hca_shm_fabric *shm,
		    uint32_t slot);

#endif
