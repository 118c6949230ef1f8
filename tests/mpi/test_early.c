/*
 * test_early.c - registrations with membarrier() are made before main(): later, in a process of
 * several threads, each of them waits for a grace period of the kernel's RCU.
 */
#include "cmocka_all.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { GET_REGISTRATIONS = 1 << 9 };	/* since Linux 6.3; not in each linux/membarrier.h */

static long membarrier(int command)
{
	return syscall(SYS_membarrier, command, 0, 0);
}

static void test_for_the_progress_thread(void **state)
{
	assert_int_equal(membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED), 0);
}

static void test_for_withdrawals(void **state)
{
	long made = membarrier(GET_REGISTRATIONS);

	if (made < 0 && errno == EINVAL)
		skip();
	assert_true(made & MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_for_the_progress_thread),
		cmocka_unit_test(test_for_withdrawals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
