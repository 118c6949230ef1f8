/*
 * real.h - the libibverbs of the system, for real devices.
 *
 * Opened with dlopen on first use, never linked; without it there are no real
 * devices.
 */
#ifndef HCA_REAL_H
#define HCA_REAL_H

#include <infiniband/verbs.h>

/* A function of the real library, or NULL. */
void *hca_real(const char *name);

/* NULL: there is no library (errno 0), or it has no list (its errno). */
struct ibv_device **hca_real_get_device_list(void);
void hca_real_free_device_list(struct ibv_device **list);

#endif
