/* cmocka_all.h - cmocka with what it wants to see first. */
#ifndef RG_TESTS_CMOCKA_ALL_H
#define RG_TESTS_CMOCKA_ALL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#endif
