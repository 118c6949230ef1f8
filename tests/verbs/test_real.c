/*
 * test_real.c - a real adapter's ports, errors and registrations, on the libibverbs of
 * tests/softhca/fake_verbs.c, which real.sh installs.
 */
#include "config.h"		/* _GNU_SOURCE */
#include "cmocka_all.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "capture.h"
#include "util/err.h"
#include "verbs/vrb.h"

static struct vrb_ports ports;

static int scan(void **state)
{
	(void)state;
	return vrb_ports_scan_real(ibv_get_device_list(NULL), &ports);
}

static int drop(void **state)
{
	(void)state;
	vrb_ports_free(&ports);
	return 0;
}

static void test_port(void **state)
{
	(void)state;
	assert_int_equal(ports.count, 1);
	assert_string_equal(ports.port[0].name, "fake0:1");
	assert_string_equal(ports.port[0].firmware, "1.2.3");
	assert_int_equal(ports.port[0].kind, VRB_HARDWARE);
	assert_true(ports.port[0].usable);
	assert_int_equal(ports.port[0].lid, 0x101);
	/* The kernel has no such device. */
	assert_string_equal(ports.port[0].pci, "");
}

/* Order is asked for in RTS, of each port with its SL; a port without it takes it from the adapter. */
static void test_order(void **state)
{
	struct vrb_port adaptive = ports.port[0];
	struct vrb_adapter a;

	(void)state;
	adaptive.sl = 1;
	assert_int_equal(vrb_adapter_open(&a, &ports.port[0]), 0);
	assert_true(a.in_order);
	assert_false(a.in_order_writes);
	assert_int_equal(vrb_adapter_ask_order(&a, &ports.port[0]), 0);
	assert_true(a.in_order);
	assert_int_equal(vrb_adapter_ask_order(&a, &adaptive), 0);
	assert_false(a.in_order);
	assert_int_equal(vrb_adapter_ask_order(&a, &ports.port[0]), 0);
	assert_false(a.in_order);
	vrb_adapter_close(&a);
	assert_int_equal(vrb_adapter_open(&a, &adaptive), 0);
	assert_false(a.in_order);
	vrb_adapter_close(&a);
}

static void test_no_datagrams(void **state)
{
	static const char memory[] =
		"test_real: fake0:1: cannot make a completion queue for datagrams, by which peers connect: "
		"Cannot allocate memory (256 entries of 64 bytes are 16 KiB of locked memory, ulimit -l: ";
	struct vrb_adapter a;
	struct vrb_ud ud;
	const char *text;

	(void)state;
	assert_int_equal(vrb_adapter_open(&a, &ports.port[0]), 0);
	capture_begin(2);
	assert_int_equal(vrb_ud_create(&a, &ports.port[0], 100, 100, &ud), -ENOMEM);
	assert_int_equal(vrb_ud_create(&a, &ports.port[0], 10, 10, &ud), -EOPNOTSUPP);
	text = capture_end();
	assert_memory_equal(text, memory, sizeof(memory) - 1);
	assert_string_equal(strchr(text, '\n') + 1,
		"test_real: fake0:1: cannot make a queue pair for datagrams, by which peers connect: "
		"the device has none of type UD (Operation not supported)\n");
	vrb_adapter_close(&a);
}

/* Can the middle of memory that is registered be moved together with the rest? */
static bool is_whole(struct vrb_adapter *a)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *at = mmap(NULL, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr;
	char *moved;

	assert_true(at != MAP_FAILED);
	memset(at, 'x', 3 * page);
	assert_int_equal(vrb_mr_register(a, at + page, page, VRB_MR_POLLED, &mr), 0);
	moved = mremap(at, 3 * page, 4 * page, MREMAP_MAYMOVE);
	if (moved != MAP_FAILED)
		assert_int_equal(moved[page] + moved[3 * page - 1], 2 * 'x');
	munmap(moved == MAP_FAILED ? at : moved, (moved == MAP_FAILED ? 3 : 4) * page);
	return moved != MAP_FAILED;
}

/*
 * A registration that splits mappings is undone where the kernel needs none of that; where the kernel
 * does, ibv_fork_init is called and its effect stays.
 */
static void test_fork(void **state)
{
	static const struct {
		const char *how;
		bool undo, whole;
		enum ibv_fork_status status;
	} cases[] = {
		{ "none", false, true, IBV_FORK_UNNEEDED },
		{ "split", true, true, IBV_FORK_UNNEEDED },
		{ "old", false, false, IBV_FORK_ENABLED },
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct vrb_adapter a;

		setenv("FAKE_FORK", cases[i].how, 1);
		vrb_fork_init();
		assert_int_equal(ibv_is_fork_initialized(), cases[i].status);
		assert_int_equal(vrb_adapter_open(&a, &ports.port[0]), 0);
		assert_int_equal(a.undo_fork, cases[i].undo);
		assert_int_equal(is_whole(&a), cases[i].whole);
		vrb_adapter_close(&a);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_port), cmocka_unit_test(test_order),
		cmocka_unit_test(test_no_datagrams),
		cmocka_unit_test(test_fork),
	};

	rg_set_program("test_real");
	return cmocka_run_group_tests(tests, scan, drop);
}
