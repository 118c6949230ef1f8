/*
 * link.h - the link to other hosts: streams over TCP, one per connected queue pair and rail.
 *
 * DESIGN is in README.md of this room.  Errors: 0 or -errno, the line in hca_fail.
 */
#ifndef HCA_WIRE_LINK_H
#define HCA_WIRE_LINK_H

#include "softhca/object/link.h"

extern const struct hca_link_operations hca_wire_link;

/* Give a fabric whose ports are interfaces its wire; secret_hex: 64 digits, or NULL (secret.h). */
int hca_wire_start(struct hca_fabric *f, const char *secret_hex);
void hca_wire_stop(struct hca_fabric *f);
/* In a child of fork: close the descriptors of all fabrics, which are the parent's connections. */
void hca_wire_forget(void);

#endif
