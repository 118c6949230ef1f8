/* test_run_why.c - a ledger is read again; why striping cannot help. */
#include "cmocka_all.h"

#include <stdlib.h>
#include <string.h>

#include "cli/run_why.h"

static const char ledger[] =
	"layer: yes\n"
	"a.out: ledger of 2 ranks together; messages are those sent at once, chunks are of large ones\n"
	"  function                       calls routed         bytes sent   calls native\n"
	"  MPI_Barrier                               2                  0              0\n"
	"  MPI_Sendrecv                              7             600000              1\n"
	"    native: 1 on MPI_COMM_SELF\n"
	"  all functions                                           600000\n"
	"  rail             sent: msgs     chunks           bytes  got: msgs     chunks           bytes   stalls  retries\n"
	"  mlx5_0:1                 11         20          299776         11         20          299776        1        0\n"
	"  mlx5_1:1                 12         40          300224         12         40          300224        2        -\n"
	"  local                     5          6               7          5          6               7        8        -\n"
	"  progress: 16384 rounds in calls over rails, 15677 turns of the MPI library among them;\n"
	"  looks at rails: 640 in the MPI library's progress, 0 by progress threads\n";

static void test_read(void **state)
{
	struct run_ledger l;

	assert_true(run_ledger_read(ledger, &l));
	assert_int_equal(l.routed, 9);
	assert_int_equal(l.native, 1);
	assert_int_equal(l.rails, 2);
	assert_string_equal(l.rail[1].name, "mlx5_1:1");
	assert_int_equal(l.rail[0].messages, 11);
	assert_int_equal(l.rail[1].chunks, 40);
	assert_int_equal(l.rail[1].bytes, 300224);
	assert_false(run_ledger_read("mpirun: no such program\n", &l));
	assert_false(run_ledger_read("", &l));
}

static struct run_ledger with(const char *first, const char *second, uint64_t chunks)
{
	struct run_ledger l = { .routed = 4, .rails = second ? 2 : 1 };

	strcpy(l.rail[0].name, first);
	if (second)
		strcpy(l.rail[1].name, second);
	l.rail[0].messages = 3;
	l.rail[0].chunks = chunks;
	return l;
}

static void says(struct run_ledger l, const char *expected)
{
	char why[RUN_WHY_TEXT];

	assert_string_equal(run_why(&l, "8K", why), expected);
}

static void machine(const char *name)
{
	const char *src = getenv("srcdir");
	char path[1024];

	snprintf(path, sizeof(path), "%s/tests/topo/%s.xml", src ? src : ".", name);
	setenv("HWLOC_XMLFILE", path, 1);
}

static void test_why(void **state)
{
	struct run_ledger none = { .rails = 0 }, still = with("mlx5_0:1", "mlx5_2:1", 0);

	still.rail[0].messages = 0;
	unsetenv("RAILGAUGE_SOFT");
	machine("dual");
	says(none, "no call of the program goes over rails");
	says(still, "no message leaves a node");
	says(with("mlx5_0:1", "mlx5_2:1", 0), "no message above 8K");
	says(with("mlx5_0:1", "mlx5_2:1", 9), "");
	says(with("mlx5_0:1", NULL, 9), "one rail only: mlx5_0:1");
	says(with("mlx5_0:1", NULL, 0), "no message above 8K; one rail only: mlx5_0:1");
	says(with("soft0:1", "soft0:2", 9), "one memory: the rails are ports of a software HCA");
	setenv("RAILGAUGE_SOFT", "ports=2,rate=1GB/s", 1);
	says(with("soft0:1", "soft0:2", 9), "");
}

static void test_slot(void **state)
{
	machine("slot");
	says(with("mlx5_0:1", "mlx5_1:1", 9), "one PCIe slot: all rails share 0000:01:00, 31.5 GB/s");
	says(with("mlx5_0:1", "mlx5_2:1", 9), "");
	says(with("mlx5_0:1", "other_0:1", 9), "");
	machine("dual");
	says(with("mlx5_0:1", "mlx5_3:1", 9), "");
}

static void test_threshold(void **state)
{
	char text[32];

	assert_string_equal(run_why_threshold(text, sizeof(text)), "8K");
	setenv("RAILGAUGE_THRESHOLD", "16K", 1);
	assert_string_equal(run_why_threshold(text, sizeof(text)), "16K");
	unsetenv("RAILGAUGE_THRESHOLD");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_read), cmocka_unit_test(test_why),
		cmocka_unit_test(test_slot), cmocka_unit_test(test_threshold),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
