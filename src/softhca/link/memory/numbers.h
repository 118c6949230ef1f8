/* numbers.h - numbers of queue pairs, in the fabric segment. */
#ifndef HCA_NUMBERS_H
#define HCA_NUMBERS_H

#include "softhca/object/fabric.h"

/* Claim a number, unique on the fabric, for queue pair `index` of this process; 0: none is free. */
uint32_t hca_number_claim(struct hca_fabric *f, uint32_t index);
void hca_number_release(struct hca_fabric *f, uint32_t qpn);

/* The owner of a number: 0, or -ENOENT. */
int hca_number_find(const struct hca_fabric *f, uint32_t qpn, uint32_t *slot, uint32_t *index);

/* Release the remaining numbers of a member that is gone. */
void hca_numbers_free_of(struct hca_fabric *f, uint32_t slot);

#endif
