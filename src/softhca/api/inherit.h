/*
 * inherit.h - verbs objects that a child of fork inherits.
 *
 * The parent is the member of the fabric, not the child.  The segments are not
 * mapped in the child (segment.c, MADV_DONTFORK), so that it cannot harm the
 * parent or its peers.  The verbs of inherited objects access nothing: they fail
 * with EIO, in the way of each verb's manual page, and those that destroy an object
 * report success.  An inherited device can be opened: the child then joins the fabric
 * itself.
 */
#ifndef HCA_INHERIT_H
#define HCA_INHERIT_H

#include "softhca/object/fabric.h"

/* In the child, which has one thread; locks that another thread held stay locked. */
void hca_inherit(struct hca_fabric *f);

#endif
