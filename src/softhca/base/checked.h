/*
 * checked.h - is the process under valgrind?  Valgrind keeps books of every mapped byte, used or
 * not: with --track-origins each GiB takes a second when it is mapped and when it is unmapped.
 */
#ifndef HCA_CHECKED_H
#define HCA_CHECKED_H

#include "config.h"

#include <stdbool.h>

#ifdef HAVE_VALGRIND_MEMCHECK_H
#include <valgrind/valgrind.h>

static inline bool hca_is_checked(void)
{
	return RUNNING_ON_VALGRIND;
}
#else
static inline bool hca_is_checked(void)
{
	return false;
}
#endif

#endif
