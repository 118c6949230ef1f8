/* counted.h - an operation of librail that counts how often it has succeeded. */
#ifndef TESTS_VIRTUAL_COUNTED_H
#define TESTS_VIRTUAL_COUNTED_H

#include "../rail/job.h"

struct counted {
	struct rail_op op;
	int count;
};

/* The function `done` of such an operation. */
static inline void counted_done(struct rail_op *op, int status)
{
	CHECK_EQUAL(status, 0);
	((struct counted *)op)->count++;
}

#endif
