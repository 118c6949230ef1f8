/* cmocka_all.h - cmocka, after its headers; RG_CASE=PATTERN runs the cases that match. */
#ifndef RG_TESTS_CMOCKA_ALL_H
#define RG_TESTS_CMOCKA_ALL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

static __attribute__((constructor)) void take_rg_case(void)
{
	if (getenv("RG_CASE"))
		cmocka_set_test_filter(getenv("RG_CASE"));
}

#endif
