/* states.c - objects: states, attributes, limits. */
#include "conformance.h"

const struct test state_tests[] = {
	{ NULL, NULL },
};
