/*
 * test_real.c - a real adapter's ports, errors and registrations, on the libibverbs of
 * tests/softhca/fake_verbs.c, which real.sh installs.
 */
#include "config.h"		/* _GNU_SOURCE */
#include "cmocka_all.h"

#include <errno.h>
#include <stdio.h>
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

/* The traffic class is the host's, unless the user has another wish; not that of the last wish. */
static void test_traffic_class(void **state)
{
	struct vrb_port_wish wish = { .gid_index = -1, .tclass = -1 };
	struct vrb_port port = ports.port[0];

	(void)state;
	assert_int_equal(port.host_tclass, -1);
	assert_int_equal(vrb_port_configure(&port, &wish), 0);
	assert_int_equal(port.tclass, 0);
	port.host_tclass = 106;
	assert_int_equal(vrb_port_configure(&port, &wish), 0);
	assert_int_equal(port.tclass, 106);
	wish.tclass = 0;
	assert_int_equal(vrb_port_configure(&port, &wish), 0);
	assert_int_equal(port.tclass, 0);
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
	capture_begin(2);
	assert_int_equal(vrb_ud_create(&a, &ports.port[0], 11, 11, &ud), -EINVAL);
	assert_string_equal(capture_end(),
		"test_real: fake0:1: cannot make a queue pair for datagrams, by which peers connect: "
		"the device has none of type UD (Invalid argument)\n");
	for (uint32_t requests = 12; requests <= 13; requests++) {
		capture_begin(2);
		assert_int_equal(vrb_ud_create(&a, &ports.port[0], requests, requests, &ud),
				 requests == 12 ? -EOVERFLOW : -ENOSPC);
		assert_non_null(strstr(capture_end(), "(the device has 8 queue pairs, ulimit -l: "));
	}
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

static void raise_event(int fd, enum ibv_event_type type, int port, struct ibv_qp *qp)
{
	struct ibv_async_event event = { .element.qp = qp, .event_type = type };

	if (!qp)
		event.element.port_num = port;

	assert_int_equal(write(fd, &event, sizeof(event)), sizeof(event));
}

/* Events are read until there is none, without a wait; of a queue no port is told. */
static void test_events(void **state)
{
	struct vrb_event event;
	struct vrb_adapter a;
	struct ibv_qp qp;
	char number[16];
	int ends[2];

	(void)state;
	assert_int_equal(pipe(ends), 0);
	snprintf(number, sizeof(number), "%d", ends[0]);
	setenv("FAKE_EVENTS", number, 1);
	assert_int_equal(vrb_adapter_open(&a, &ports.port[0]), 0);
	assert_int_equal(vrb_events_open(&a), 0);
	qp.context = a.context;
	assert_int_equal(vrb_event_next(&a, &event), -EAGAIN);
	raise_event(ends[1], IBV_EVENT_PORT_ERR, 1, NULL);
	raise_event(ends[1], IBV_EVENT_COMM_EST, 0, &qp);
	raise_event(ends[1], IBV_EVENT_CLIENT_REREGISTER, 2, NULL);
	raise_event(ends[1], IBV_EVENT_DEVICE_FATAL, 1, NULL);
	assert_int_equal(vrb_event_next(&a, &event), 0);
	assert_int_equal(event.type, IBV_EVENT_PORT_ERR);
	assert_int_equal(event.port, 1);
	assert_int_equal(vrb_event_next(&a, &event), 0);
	assert_int_equal(event.type, IBV_EVENT_COMM_EST);
	assert_int_equal(event.port, 0);
	assert_int_equal(vrb_event_next(&a, &event), 0);
	assert_int_equal(event.port, 2);
	assert_int_equal(vrb_event_next(&a, &event), 0);
	assert_string_equal(vrb_event_name(event.type), "DEVICE_FATAL");
	assert_int_equal(event.port, 0);
	assert_int_equal(vrb_event_next(&a, &event), -EAGAIN);
	vrb_adapter_close(&a);
	unsetenv("FAKE_EVENTS");
	close(ends[0]);
	close(ends[1]);
}

/* A LID that changes is told with both numbers; the same one is no move. */
static void test_moved(void **state)
{
	struct vrb_port_place before, now;
	struct vrb_adapter a;
	char why[192];

	(void)state;
	assert_int_equal(vrb_adapter_open(&a, &ports.port[0]), 0);
	assert_int_equal(vrb_port_place(&a, &ports.port[0], &before), 0);
	assert_int_equal(vrb_port_place(&a, &ports.port[0], &now), 0);
	assert_false(vrb_port_moved(&ports.port[0], &before, &now, why, sizeof(why)));
	setenv("FAKE_LID", "7", 1);
	assert_int_equal(vrb_port_place(&a, &ports.port[0], &now), 0);
	unsetenv("FAKE_LID");
	assert_true(vrb_port_moved(&ports.port[0], &before, &now, why, sizeof(why)));
	assert_string_equal(why, "its LID has changed from 257 to 7");
	vrb_adapter_close(&a);
}

/* GID and P_Key: on Ethernet, or where paths have a GRH; the partition of a key. */
static void test_moved_by(void **state)
{
	static const struct vrb_port ib = { .link_layer = IBV_LINK_LAYER_INFINIBAND, .gid_index = 3 };
	static const struct vrb_port eth = { .link_layer = IBV_LINK_LAYER_ETHERNET, .gid_index = 3 };
	const struct vrb_port_place before = { .lid = 5, .pkey = 0x8001, .gid = { 0xfe, 0x80 } };
	struct vrb_port_place now = before;
	char why[192];

	(void)state;
	now.gid[15] = 1;
	now.pkey = 0x0001;
	assert_false(vrb_port_moved(&ib, &before, &now, why, sizeof(why)));
	assert_true(vrb_port_moved(&eth, &before, &now, why, sizeof(why)));
	assert_string_equal(why, "its GID 3 has changed from fe80:: to fe80::1");
	memset(now.gid, 0, sizeof(now.gid));
	assert_true(vrb_port_moved(&eth, &before, &now, why, sizeof(why)));
	assert_string_equal(why, "its GID 3 has changed from fe80:: to none");
	now.pkey = 0x8002;
	assert_true(vrb_port_moved(&ib, &before, &now, why, sizeof(why)));
	assert_string_equal(why, "its P_Key 0 has changed from 0x8001 to 0x8002");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_port), cmocka_unit_test(test_traffic_class), cmocka_unit_test(test_order),
		cmocka_unit_test(test_no_datagrams),
		cmocka_unit_test(test_fork), cmocka_unit_test(test_events), cmocka_unit_test(test_moved),
		cmocka_unit_test(test_moved_by),
	};

	rg_set_program("test_real");
	return cmocka_run_group_tests(tests, scan, drop);
}
