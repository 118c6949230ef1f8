/* open.h - lists of devices; opening, importing and closing them. */
#ifndef HCA_OPEN_H
#define HCA_OPEN_H

#include "softhca/object/device.h"

struct ibv_context *hca_device_open(struct ibv_device *d);
/* Closing destroys the objects that the user has not destroyed, like the kernel's close. */
int hca_device_close(struct ibv_context *c);

/* Lists for ibv_free_device_list: software devices first, then those of the real library. */
struct ibv_device **hca_list_make(struct hca_fabric *f, uint32_t node,
				  struct ibv_device **real, int *count);
void hca_list_free(struct ibv_device **list);

/*
 * ibv_import_device: another context of a device that this process has opened,
 * by (a duplicate of) its cmd_fd, which then belongs to the new context.  *ours:
 * is it the cmd_fd of a software device at all?
 */
struct ibv_context *hca_device_import(int cmd_fd, bool *ours);

#endif
