/*
 * inherit.h - what a child of fork inherits.
 *
 * The parent is the member of the fabric, not the child.  The segments are not
 * mapped in the child (segment.c, MADV_DONTFORK), so that it cannot harm the
 * parent or its peers; here the verbs of inherited objects are made to touch
 * nothing: they fail with EIO, and what destroys an object reports success.
 * A device that was inherited can be opened: the child joins the fabric itself.
 */
#ifndef HCA_INHERIT_H
#define HCA_INHERIT_H

#include "object/fabric.h"

/* In the child, which has one thread; locks may be held for ever. */
void hca_inherit(struct hca_fabric *f);

/* Result of an exported verb of that name on an inherited object. */
int hca_inherited_result(const char *verb);

#endif
