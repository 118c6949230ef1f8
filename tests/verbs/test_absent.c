/*
 * test_absent.c - why a host has no port to use: trees of /sys, /dev and /proc that are made up, and
 * the libibverbs of tests/softhca/fake_verbs.c, whose only device is fake0.
 */
#include "config.h"		/* _GNU_SOURCE */
#include "cmocka_all.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "capture.h"
#include "scratch.h"
#include "util/err.h"
#include "verbs/vrb.h"

static char root[SCRATCH_PATH];

/* A file below the root, with its directories. */
static void put(const char *path, const char *text)
{
	char full[PATH_MAX];
	FILE *f;

	snprintf(full, sizeof(full), "%s%s", root, path);
	for (char *at = full + strlen(root) + 1; (at = strchr(at, '/')); *at++ = '/') {
		*at = 0;
		if (mkdir(full, 0700) && errno != EEXIST)
			fail_msg("%s: %s", full, strerror(errno));
	}
	f = fopen(full, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static void device(const char *name, const char *type, const char *uverbs)
{
	char path[PATH_MAX], text[64];

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/node_type", name);
	put(path, type);
	if (!uverbs)
		return;
	snprintf(path, sizeof(path), "/sys/class/infiniband_verbs/%s/ibdev", uverbs);
	snprintf(text, sizeof(text), "%s\n", name);
	put(path, text);
}

static int begin(void **state)
{
	(void)state;
	return scratch_make(root);
}

static int end(void **state)
{
	(void)state;
	unsetenv("FAKE_STATE");
	unsetenv("FAKE_OPEN");
	return scratch_remove(root);
}

static void says(const char *expected)
{
	struct vrb_ports ports;
	char why[512];

	assert_int_equal(vrb_ports_scan_real(ibv_get_device_list(NULL), &ports), 0);
	assert_string_equal(vrb_ports_why_none(&ports, root, why, sizeof(why)), expected);
	vrb_ports_free(&ports);
}

static void test_none(void **state)
{
	(void)state;
	says("");
	put("/sys/class/infiniband/.hidden", "");
	says("");
}

static void test_states(void **state)
{
	(void)state;
	device("fake0", "1: CA\n", "uverbs0");
	setenv("FAKE_STATE", "2", 1);
	says("fake0:1: INIT: no subnet manager has brought it up (opensm, or the switch's)");
	setenv("FAKE_STATE", "1", 1);
	says("fake0:1: DOWN: no cable, or the other end is off");
	unsetenv("FAKE_STATE");
	says("");
}

static void test_unopened(void **state)
{
	(void)state;
	device("fake0", "1: CA\n", "uverbs3");
	setenv("FAKE_OPEN", "13", 1);
	says("fake0: /dev/infiniband/uverbs3 is missing (a container needs --device /dev/infiniband)");
	put("/dev/infiniband/uverbs3", "");
	says("fake0: /dev/infiniband/uverbs3 may not be opened (Permission denied)");
	setenv("FAKE_OPEN", "5", 1);
	says("fake0: it cannot be opened (Input/output error)");
}

/* The class of verbs devices is of all network namespaces, that of devices of one. */
static void test_elsewhere(void **state)
{
	(void)state;
	put("/sys/class/infiniband_verbs/abi_version", "6\n");
	put("/sys/class/infiniband_verbs/uverbs0/ibdev", "rxe0\n");
	put("/sys/class/infiniband_verbs/uverbs1/ibdev", "rxe1\n");
	says("rxe0 and 1 more: it is in another network namespace than this process (rdma system: netns exclusive)");
}

/* The limit of the group itself, then of one around it; both versions of groups. */
static void test_groups(void **state)
{
	(void)state;
	device("fake0", "1: CA\n", "uverbs0");
	put("/dev/infiniband/uverbs0", "");
	put("/proc/self/cgroup", "0::/job/step\n");
	put("/sys/fs/cgroup/job/step/rdma.max", "fake0 hca_handle=max hca_object=max\n");
	put("/sys/fs/cgroup/job/rdma.max", "fake1 hca_handle=1 hca_object=1\nfake0 hca_handle=0 hca_object=max\n");
	setenv("FAKE_OPEN", "11", 1);
	says("fake0: the control group allows no more: rdma.max has fake0 hca_handle=0 hca_object=max of /job");
	put("/proc/self/cgroup", "5:cpu:/x\n3:rdma:/\n");
	says("fake0: it cannot be opened (Resource temporarily unavailable)");
	put("/sys/fs/cgroup/rdma/rdma.max", "fake0 hca_handle=2 hca_object=9\n");
	says("fake0: the control group allows no more: rdma.max has fake0 hca_handle=2 hca_object=9 of /");
}

/* Objects, by all groups of the process; made-up paths, and this host's own. */
static void test_objects(void **state)
{
	char limit[128];

	(void)state;
	assert_int_equal(vrb_cgroup_objects("fake0", root), 0);
	put("/proc/self/cgroup", "0::/job/step\n");
	put("/sys/fs/cgroup/job/step/rdma.max", "fake1 hca_handle=1 hca_object=2\nfake0 hca_handle=3 hca_object=max\n");
	assert_int_equal(vrb_cgroup_objects("fake0", root), 0);
	put("/sys/fs/cgroup/job/rdma.max", "fake0 hca_handle=max hca_object=900\n");
	assert_int_equal(vrb_cgroup_objects("fake0", root), 900);
	put("/sys/fs/cgroup/rdma.max", "fake0 hca_handle=max hca_object=1000\nfake1 hca_handle=max hca_object=1\n");
	assert_int_equal(vrb_cgroup_objects("fake0", root), 900);
	put("/sys/fs/cgroup/rdma.max", "fake0 hca_handle=max hca_object=800\n");
	assert_int_equal(vrb_cgroup_objects("fake0", root), 800);
	assert_int_equal(vrb_cgroup_objects("fake", root), 0);
	assert_string_equal(vrb_cgroup_limit("fake0", root, limit, sizeof(limit)),
			    "fake0 hca_handle=3 hca_object=max of /job/step");
}

/* Devices that libibverbs does not list, equal reasons once. */
static void test_unlisted(void **state)
{
	(void)state;
	device("mlx5_2", "1: CA\n", "uverbs1");
	device("mlx5_10", "1: CA\n", "uverbs2");
	device("mlx5_3", "1: CA\n", NULL);
	device("usnic_0", "6: usNIC UDP\n", NULL);
	says("mlx5_2 and 1 more: libibverbs has no provider for it (driver unknown): install the package "
	     "ibverbs-providers, or that of libibverbs which the vendor has; mlx5_3: the kernel has no verbs "
	     "device for it (modprobe ib_uverbs); usnic_0: usNIC, which carries datagrams only");
}

/* Devices share a line, however many they are. */
static void test_line(void **state)
{
	struct vrb_ports ports;
	const char *text;

	(void)state;
	setenv("FAKE_OPEN", "13", 1);
	capture_begin(2);
	assert_int_equal(vrb_ports_scan_real(ibv_get_device_list(NULL), &ports), 0);
	assert_int_equal(ports.count, 0);
	assert_int_equal(ports.unopened, 1);
	vrb_ports_tell_unopened(&ports);
	ports.unopened = 8;
	vrb_ports_tell_unopened(&ports);
	ports.unopened = 0;
	vrb_ports_tell_unopened(&ports);
	text = capture_end();
	assert_string_equal(text,
		"test_absent: warning: fake0: cannot be opened (Permission denied), left out\n"
		"test_absent: warning: fake0 and 7 more: cannot be opened (Permission denied), left out\n");
	vrb_ports_free(&ports);
}

/* A process that is out of descriptors ends; the device is not counted as one that cannot be opened. */
static void test_exhausted(void **state)
{
	struct vrb_ports ports;
	char number[16];
	const char *text;

	(void)state;
	snprintf(number, sizeof(number), "%d", EMFILE);
	setenv("FAKE_OPEN", number, 1);
	capture_begin(2);
	assert_int_equal(vrb_ports_scan_real(ibv_get_device_list(NULL), &ports), -EMFILE);
	errno = EMFILE;
	assert_int_equal(vrb_ports_scan_real(NULL, &ports), -EMFILE);
	text = capture_end();
	assert_non_null(strstr(text, "test_absent: fake0 cannot be opened: Too many open files (ulimit -n: "));
	assert_non_null(strstr(text, "test_absent: the RDMA devices cannot be listed: Too many open files (ulimit -n: "));
	/* No device, as libibverbs says it. */
	errno = ENOSYS;
	assert_int_equal(vrb_ports_scan_real(NULL, &ports), 0);
	assert_int_equal(ports.count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_none, begin, end),
		cmocka_unit_test_setup_teardown(test_states, begin, end),
		cmocka_unit_test_setup_teardown(test_unopened, begin, end),
		cmocka_unit_test_setup_teardown(test_elsewhere, begin, end),
		cmocka_unit_test_setup_teardown(test_groups, begin, end),
		cmocka_unit_test_setup_teardown(test_objects, begin, end),
		cmocka_unit_test_setup_teardown(test_unlisted, begin, end),
		cmocka_unit_test_setup_teardown(test_line, begin, end),
		cmocka_unit_test_setup_teardown(test_exhausted, begin, end),
	};

	rg_set_program("test_absent");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
