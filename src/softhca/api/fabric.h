/*
 * fabric.h - the fabrics that this process is on.
 *
 * A fabric is held while there is a reference: each device list that was handed out and each open
 * context.  The last one to go leaves the fabric.
 */
#ifndef HCA_API_FABRIC_H
#define HCA_API_FABRIC_H

#include "object/fabric.h"

/*
 * A process is one member of a fabric, number 0, unless a test says which of several it is just
 * now: each has its own slot, table and engine, as if it were a process of its own.
 */
extern unsigned hca_fabric_member;

/*
 * Find or join the fabric that cfg (NULL: the environment) names; one more
 * reference.  0, or -errno with the line set.
 */
int hca_fabric_get(const struct softhca_config *cfg, struct hca_fabric **out);
void hca_fabric_ref(struct hca_fabric *f);
void hca_fabric_put(struct hca_fabric *f);

/* Node number of cfg or of the environment: 0, or -errno with the line set. */
int hca_fabric_node(const struct softhca_config *cfg, const struct hca_spec *spec,
		    uint32_t *node);

#endif
