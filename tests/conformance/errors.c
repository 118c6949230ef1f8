/* errors.c - what goes wrong goes wrong as the specification says. */
#include "conformance.h"

const struct test error_tests[] = {
	{ NULL, NULL },
};
