/* numbers.h - numbers of queue pairs, in the fabric segment. */
#ifndef HCA_NUMBERS_H
#define HCA_NUMBERS_H

#include "softhca/object/fabric.h"

/* Claim a number for queue pair `index` of this process, unique on the fabric; 0: it is full. */
uint32_t hca_number_claim(struct hca_fabric *f, uint32_t index);
void hca_number_release(struct hca_fabric *f, uint32_t qpn);

/* The owner of a number: 0, or -ENOENT. */
int hca_number_find(const struct hca_fabric *f, uint32_t qpn, uint32_t *slot, uint32_t *index);

/* Release the numbers that a member which is gone has left behind. */
void hca_numbers_free_of(struct hca_fabric *f, uint32_t slot);

#endif
