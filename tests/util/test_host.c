/* test_host.c - this process, a child in a network namespace of its own, and others made up. */
#include "cmocka_all.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/host.h"

static void test_self(void **state)
{
	struct rg_host a, b;

	(void)state;
	memset(&a, 1, sizeof(a));
	rg_host_find(&a);
	rg_host_find(&b);
	assert_memory_equal(&a, &b, sizeof(a));
	assert_true(rg_host_same_machine(&a, &b));
	assert_true(rg_host_same(&a, &b));
	assert_true(rg_host_shares_memory(&a, &b));
	assert_true(strlen((const char *)a.boot) > 0);
}

static void test_others(void **state)
{
	struct rg_host a, b;

	(void)state;
	rg_host_find(&a);
	b = a;
	b.boot[0] ^= 1;
	assert_false(rg_host_same_machine(&a, &b));
	assert_false(rg_host_same(&a, &b));
	b = a;
	b.net_inode++;
	assert_true(rg_host_same_machine(&a, &b));
	assert_false(rg_host_same(&a, &b));
	assert_true(rg_host_shares_memory(&a, &b));
	b = a;
	b.ipc_inode++;
	assert_true(rg_host_same(&a, &b));
	assert_false(rg_host_shares_memory(&a, &b));
}

/* The child's exit code: bit 0, the same machine; bit 1, the same host; 4: no namespace. */
static int child_says(const struct rg_host *parent, int flags)
{
	struct rg_host mine;
	int status;
	pid_t child = fork();

	assert_true(child >= 0);
	if (!child) {
		if (flags && unshare(flags))
			_exit(4);
		rg_host_find(&mine);
		_exit(rg_host_same_machine(parent, &mine) | rg_host_same(parent, &mine) << 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void test_child(void **state)
{
	struct rg_host mine;
	int said;

	(void)state;
	rg_host_find(&mine);
	assert_int_equal(child_says(&mine, 0), 3);
	said = child_says(&mine, CLONE_NEWNET);
	if (said == 4)
		skip();
	assert_int_equal(said, 1);
}

/* The child's answer. */
static bool child_is_first(const char *words)
{
	pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (!child)
		_exit(rg_host_first(words, true));
	assert_int_equal(waitpid(child, &status, 0), child);
	return WEXITSTATUS(status);
}

static void test_first(void **state)
{
	char words[200];

	(void)state;
	snprintf(words, sizeof(words), "test %d", (int)getpid());
	assert_true(child_is_first(words));
	/* The child has ended, and its name went with it. */
	assert_true(rg_host_first(words, false));
	assert_false(rg_host_first(words, true));
	assert_false(child_is_first(words));
	words[0] = 'T';
	assert_true(child_is_first(words));
	/* All words count, of any length. */
	memset(words, 'x', sizeof(words));
	words[sizeof(words) - 1] = 0;
	snprintf(words, 30, "long %d", (int)getpid());
	words[strlen(words)] = 'x';
	assert_true(rg_host_first(words, false));
	assert_false(rg_host_first(words, true));
	words[sizeof(words) - 2] = 'y';
	assert_true(rg_host_first(words, false));
	assert_false(rg_host_first(words, true));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_self),
		cmocka_unit_test(test_others),
		cmocka_unit_test(test_child),
		cmocka_unit_test(test_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
