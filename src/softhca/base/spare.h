/*
 * spare.h - descriptors that a process keeps for the ways to its peers and for looks at its own
 * memory: with no other one left it does both all the same.  A process with too few learns so when
 * it joins a fabric, where the reason has a line.
 */
#ifndef HCA_SPARE_H
#define HCA_SPARE_H

/* For a fabric more: 0, or -errno with the line set. */
int hca_spare_hold(void);
void hca_spare_release(void);
/* Free them for the caller until hca_spare_return, which takes back all that it can. */
void hca_spare_lend(void);
void hca_spare_return(void);
/* In a child of fork, which holds none. */
void hca_spare_in_child(void);

#endif
