/*
 * fabric.h - the fabrics of this process.
 *
 * Each device list that was handed out and each open context holds a reference to its fabric.
 * Dropping the last reference leaves the fabric.
 */
#ifndef HCA_API_FABRIC_H
#define HCA_API_FABRIC_H

#include "softhca/object/fabric.h"

/*
 * A process is one member of a fabric, number 0.  A test may set this, for a thread, to act as one
 * of several: each has its own slot, table and engine, like a separate process.
 */
extern _Thread_local unsigned hca_fabric_member;

/*
 * Find or join the fabric that cfg (NULL: the environment) names, and take a
 * reference.  0, or -errno with the line set.
 */
int hca_fabric_get(const struct softhca_config *cfg, struct hca_fabric **out);
void hca_fabric_ref(struct hca_fabric *f);
void hca_fabric_put(struct hca_fabric *f);

/* Node number of cfg or of the environment: 0, or -errno with the line set. */
int hca_fabric_node(const struct softhca_config *cfg, const struct hca_spec *spec,
		    uint32_t *node);

#endif
