/* test_fabric.c - joining, leaving, several fabrics and nodes, numbers, fork. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include "softhca/api/fabric.h"
#include "softhca/base/proc.h"
#include "softhca/base/segment.h"
#include "util/clock.h"
#include "cmocka_all.h"
#include "softhca/link/memory/numbers.h"
#include "softhca/object/device.h"
#include "softhca/object/fabric.h"
#include "softhca/object/query.h"
#include "softhca/softhca.h"

static char name_a[32], name_b[32];

static void path_of(char *path, size_t size, const char *name)
{
	snprintf(path, size, "/dev/shm/softhca.%u.%s", (unsigned)geteuid(), name);
}

static bool file_of(const char *name)
{
	char path[128];

	path_of(path, sizeof(path), name);
	return access(path, F_OK) == 0;
}

static struct softhca_config config(const char *name, const char *spec, int node)
{
	return (struct softhca_config){ .fabric = name, .spec = spec, .node = node };
}

static void test_list(void **state)
{
	struct softhca_config c = config(name_a, "hcas=3,ports=2,rate=1GB/s,latency=2us", 5);
	struct ibv_device **list, **again;
	struct softhca_model model;
	int count = 0;

	list = softhca_get_device_list(&c, &count);
	assert_non_null(list);
	assert_int_equal(count, 3);
	assert_null(list[3]);
	assert_string_equal(ibv_get_device_name(list[2]), "soft2");
	assert_true(softhca_is_device(list[0]));
	assert_int_equal(softhca_query_model(list[0], &model), 0);
	assert_true(model.timed);
	assert_int_equal(model.ports, 2);
	assert_int_equal(model.port_rate[0], 1000000000);
	assert_int_equal(model.latency_ns, 2000);
	/* The same devices again; other nodes have others. */
	again = softhca_get_device_list(&c, NULL);
	assert_ptr_equal(again[0], list[0]);
	ibv_free_device_list(again);
	c.node = 6;
	again = softhca_get_device_list(&c, NULL);
	assert_ptr_not_equal(again[0], list[0]);
	assert_int_not_equal(ibv_get_device_guid(again[0]), ibv_get_device_guid(list[0]));
	ibv_free_device_list(again);
	assert_true(file_of(name_a));
	ibv_free_device_list(list);
	assert_false(file_of(name_a));
}

static void test_asked(void **state)
{
	struct softhca_config c = config(name_a, "ports=2,cap=3GB/s,bus=2GB/s/1GB/s:half", 0);
	struct ibv_device **list = softhca_get_device_list(&c, NULL);
	struct ibv_context *context;
	struct softhca_model model;
	uint64_t retries = 77;

	assert_non_null(list);
	assert_int_equal(softhca_query_model(list[0], &model), 0);
	assert_int_equal(model.cap, 3000000000u);
	assert_int_equal(model.bus_read, 2000000000u);
	assert_int_equal(model.bus_write, 1000000000u);
	assert_true(model.bus_half);
	context = ibv_open_device(list[0]);
	assert_non_null(context);
	assert_int_equal(softhca_query_retries(context, 2, &retries), 0);
	assert_int_equal(retries, 0);
	retries = 77;
	assert_int_equal(softhca_query_retries(context, 0, &retries), -EINVAL);
	assert_int_equal(softhca_query_retries(context, 3, &retries), -EINVAL);
	assert_non_null(strstr(softhca_last_error(), "port 3: soft0 has ports 1 to 2"));
	assert_int_equal(retries, 77);
	assert_int_equal(ibv_close_device(context), 0);
	ibv_free_device_list(list);
}

/* A program may shorten its list, like a list of libibverbs. */
static void test_shortened(void **state)
{
	struct softhca_config cfg = config(name_a, "hcas=3", 0);
	struct ibv_device **list;
	int left, count;

	(void)state;
	for (left = 2; left >= 0; left--) {
		list = softhca_get_device_list(&cfg, &count);
		assert_non_null(list);
		assert_int_equal(count, 3);
		list[left] = NULL;
		ibv_free_device_list(list);
	}
}

static void test_refused(void **state)
{
	struct softhca_config a = config(name_a, "ports=2", 0), bad = a;
	struct ibv_device **list = softhca_get_device_list(&a, NULL);

	assert_non_null(list);
	bad.spec = "ports=3";
	errno = 0;
	assert_null(softhca_get_device_list(&bad, NULL));
	assert_int_equal(errno, EEXIST);
	assert_non_null(strstr(softhca_last_error(), "ports=2"));
	assert_non_null(strstr(softhca_last_error(), "ports=3"));
	bad = a;
	bad.node = 1024;
	assert_null(softhca_get_device_list(&bad, NULL));
	assert_int_equal(errno, EINVAL);
	bad = a;
	bad.fabric = "with/slash";
	assert_null(softhca_get_device_list(&bad, NULL));
	assert_int_equal(errno, EINVAL);
	assert_int_equal(softhca_fabric_close(&bad), -EINVAL);
	bad.fabric = "never-joined";
	assert_int_equal(softhca_fabric_close(&bad), -ENOENT);
	ibv_free_device_list(list);
}

/* A process on two fabrics at once; an open device holds its fabric. */
static void test_two_fabrics(void **state)
{
	struct softhca_config a = config(name_a, "ports=1", 0), b = config(name_b, "ports=8", 0);
	struct ibv_device **la = softhca_get_device_list(&a, NULL);
	struct ibv_device **lb = softhca_get_device_list(&b, NULL);
	struct ibv_device_attr attr;
	struct ibv_context *c;

	assert_non_null(la);
	assert_non_null(lb);
	c = ibv_open_device(lb[0]);
	assert_non_null(c);
	ibv_free_device_list(la);
	ibv_free_device_list(lb);
	assert_false(file_of(name_a));
	assert_true(file_of(name_b));
	assert_int_equal(ibv_query_device(c, &attr), 0);
	assert_int_equal(attr.phys_port_cnt, 8);
	assert_int_equal(ibv_close_device(c), 0);
	assert_false(file_of(name_b));
}

/* The name goes, the fabric stays; the next of that name is another one. */
static void test_close(void **state)
{
	struct softhca_config a = config(name_a, "ports=2", 0);
	struct ibv_device **list = softhca_get_device_list(&a, NULL);
	struct ibv_context *c = ibv_open_device(list[0]);
	struct ibv_port_attr port;

	assert_int_equal(softhca_fabric_close(&a), 0);
	assert_false(file_of(name_a));
	assert_int_equal(ibv_query_port(c, 1, &port), 0);
	assert_int_equal(ibv_close_device(c), 0);
	ibv_free_device_list(list);
}

/* Closing the device destroys the remaining objects. */
static void test_leftovers(void **state)
{
	struct softhca_config a = config(name_a, "ports=2", 0);
	struct ibv_device **list = softhca_get_device_list(&a, NULL);
	struct ibv_context *c = ibv_open_device(list[0]);
	struct ibv_pd *pd = ibv_alloc_pd(c);
	struct ibv_cq *cq = ibv_create_cq(c, 10, NULL, NULL, 0);
	struct ibv_qp_init_attr init = { .send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC };
	void *memory = softhca_arena_alloc(4096);

	assert_non_null(ibv_create_qp(pd, &init));
	assert_non_null(ibv_reg_mr(pd, memory, 4096, IBV_ACCESS_LOCAL_WRITE));
	ibv_free_device_list(list);
	assert_int_equal(ibv_close_device(c), 0);
	assert_false(file_of(name_a));
	softhca_arena_free(memory);
}

static void test_numbers(void **state)
{
	struct softhca_config a = config(name_a, "ports=2", 0);
	struct hca_fabric *f;
	uint32_t slot, index, qpn[1000], i, k;

	assert_int_equal(hca_fabric_get(&a, &f), 0);
	for (i = 0; i < 1000; i++) {
		qpn[i] = hca_number_claim(f, i);
		assert_true(qpn[i] > 1 && qpn[i] < 0xffffff);
		for (k = 0; k < i; k++)
			assert_int_not_equal(qpn[k], qpn[i]);
	}
	for (i = 0; i < 1000; i++) {
		assert_int_equal(hca_number_find(f, qpn[i], &slot, &index), 0);
		assert_int_equal(slot, f->slot);
		assert_int_equal(index, i);
		hca_number_release(f, qpn[i]);
		assert_int_equal(hca_number_find(f, qpn[i], &slot, &index), -ENOENT);
	}
	assert_int_equal(hca_number_find(f, 0xffffffff, &slot, &index), -ENOENT);
	assert_int_equal(hca_number_find(f, 0, &slot, &index), -ENOENT);
	/* All numbers: every one once, none twice, then none left. */
	for (i = 0; hca_number_claim(f, 0); i++)
		;
	assert_int_equal(i, HCA_FABRIC_QPS - 2);
	hca_fabric_put(f);
}

/* Slots and numbers of members that have ended are free for others. */
static void test_dead_members(void **state)
{
	enum { DEAD = 500 };
	struct softhca_config a = config(name_a, "ports=2", 0);
	struct hca_fabric *f;
	struct hca_shm_slot *s;
	uint32_t qpn, slot, index, i;
	int status;
	pid_t pid;

	assert_int_equal(hca_fabric_get(&a, &f), 0);
	for (i = 0; i < HCA_PROCS_MAX; i++) {
		if (i == f->slot)
			continue;
		s = &f->shm->slot[i];
		s->pid = getpid();
		s->start_time = hca_process_start_time(getpid()) + (i == DEAD);
		s->pid_ns = f->shm->slot[f->slot].pid_ns;
		atomic_store(&s->phase, HCA_PRESENT);
	}
	/* No number is free until those of the dead member are. */
	for (i = 0; i < HCA_FABRIC_QPS; i++)
		atomic_store(&f->shm->qp[i], hca_shm_qp_entry(i, i % 2 ? DEAD : DEAD + 1, 7));
	qpn = hca_number_claim(f, 5);
	assert_int_not_equal(qpn, 0);
	assert_int_equal(hca_number_find(f, qpn, &slot, &index), 0);
	assert_int_equal(slot, f->slot);
	assert_int_equal(index, 5);
	for (i = 1; hca_number_claim(f, 0); i++)
		;
	assert_int_equal(i, HCA_FABRIC_QPS / 2 - 1);
	/* A process joins in the slot of the dead member, whose numbers are free then. */
	atomic_store(&f->shm->qp[1000], hca_shm_qp_entry(3, DEAD, 9));
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		struct hca_fabric *mine;

		_exit(hca_fabric_get(&a, &mine) || mine->slot != DEAD ||
		      atomic_load(&mine->shm->qp[1000]) != 9);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	/* All members live. */
	s = &f->shm->slot[DEAD];
	s->pid = getpid();
	s->start_time = hca_process_start_time(getpid());
	pid = fork();
	if (pid == 0) {
		struct hca_fabric *mine;

		_exit(hca_fabric_get(&a, &mine) != -EUSERS ||
		      !strstr(softhca_last_error(), "is full, with 1024 processes"));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	hca_fabric_put(f);
}

/* A child is not its parent's member; it may become a member itself. */
static void test_fork(void **state)
{
	struct softhca_config a = config(name_a, "ports=2", 0);
	struct ibv_device **list = softhca_get_device_list(&a, NULL);
	int status;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid == 0)
		exit(0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(file_of(name_a));
	pid = fork();
	if (pid == 0) {
		struct ibv_device **mine = softhca_get_device_list(&a, NULL);

		if (!mine || mine[0] == list[0])
			_exit(1);
		ibv_free_device_list(mine);
		exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_true(file_of(name_a));
	ibv_free_device_list(list);
	assert_false(file_of(name_a));
}

/* Many processes come and go at once: always one fabric, at the end none. */
static void test_crowd(void **state)
{
	enum { PROCESSES = 16, ROUNDS = 30 };
	struct softhca_config a = config(name_a, "ports=2", 0);
	int status, i, round;

	fflush(NULL);
	for (i = 0; i < PROCESSES; i++) {
		if (fork())
			continue;
		for (round = 0; round < ROUNDS; round++) {
			struct ibv_device **list = softhca_get_device_list(&a, NULL);

			if (!list) {
				fprintf(stderr, "%s\n", softhca_last_error());
				_exit(1);
			}
			ibv_free_device_list(list);
		}
		exit(0);
	}
	for (i = 0; i < PROCESSES; i++) {
		assert_true(wait(&status) > 0);
		assert_int_equal(status, 0);
	}
	assert_false(file_of(name_a));
}

static uint64_t id_of(struct ibv_device **list)
{
	return ((struct hca_device *)(void *)list[0])->fabric->shm->id;
}

/* A member that waits for the registry's lock when it leaves, while another process joins. */
static void test_late_leaver(void **state)
{
	struct softhca_config a = config(name_a, "ports=2", 0);
	struct ibv_device **list;
	uint64_t id;
	int status, registry, joined[2], go[2];
	pid_t pid, next;
	char path[128], byte;

	assert_int_equal(pipe(joined) | pipe(go), 0);
	pid = fork();
	if (pid == 0) {
		list = softhca_get_device_list(&a, NULL);
		if (!list || write(joined[1], "", 1) != 1 || read(go[0], &byte, 1) != 1)
			_exit(1);
		ibv_free_device_list(list);
		_exit(0);
	}
	assert_int_equal(read(joined[0], &byte, 1), 1);
	path_of(path, sizeof(path), name_a);
	registry = open(path, O_RDWR | O_CLOEXEC);
	assert_int_equal(flock(registry, LOCK_EX), 0);
	assert_int_equal(write(go[1], "", 1), 1);
	rg_sleep_ns(50000000);
	assert_int_equal(kill(pid, SIGSTOP), 0);
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	close(registry);
	list = softhca_get_device_list(&a, NULL);
	assert_non_null(list);
	assert_int_equal(kill(pid, SIGCONT), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_true(file_of(name_a));
	id = id_of(list);
	next = fork();
	if (next == 0) {
		struct ibv_device **mine = softhca_get_device_list(&a, NULL);

		if (!mine || id_of(mine) != id)
			_exit(1);
		ibv_free_device_list(mine);
		_exit(0);
	}
	assert_int_equal(waitpid(next, &status, 0), next);
	assert_int_equal(status, 0);
	ibv_free_device_list(list);
	assert_false(file_of(name_a));
	for (status = 0; status < 2; status++) {
		close(joined[status]);
		close(go[status]);
	}
}

static void *wait_for_ever(void *arg)
{
	for (;;)
		pause();
	return arg;
}

/* A process that has lost only its first thread lives: it may still write to our memory. */
static void test_first_thread(void **state)
{
	char path[32], text[256] = "";
	uint64_t start_time;
	pthread_t thread;
	pid_t pid = fork();
	FILE *f;

	assert_true(pid >= 0);
	if (pid == 0) {
		if (pthread_create(&thread, NULL, wait_for_ever, NULL))
			_exit(1);
		pthread_exit(NULL);
	}
	start_time = hca_process_start_time(pid);
	assert_true(start_time != 0);
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	while (!strstr(text, ") Z ")) {
		f = fopen(path, "re");
		assert_non_null(f);
		assert_non_null(fgets(text, sizeof(text), f));
		fclose(f);
	}
	assert_true(hca_process_alive(pid, start_time, -1));
	assert_int_equal(hca_process_start_time(pid), start_time);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_false(hca_process_alive(pid, start_time, -1));
}

static void route(struct ibv_context *c, const struct hca_fabric *f, uint32_t node, uint8_t port)
{
	enum { GIDS = 2 };		/* link-local, IPv4 */
	struct ibv_ah_attr ah = { .port_num = port };
	struct ibv_port_attr attr;
	uint32_t address, want = hca_address(&f->spec, node, 0, port);
	int i;

	assert_int_equal(ibv_query_port(c, port, &attr), 0);
	ah.dlid = attr.lid;
	assert_int_equal(hca_route(c, &ah, &address), 0);
	assert_int_equal(address, want);
	ah.is_global = 1;
	assert_true(attr.gid_tbl_len >= GIDS);
	for (i = 0; i < GIDS; i++) {
		assert_int_equal(ibv_query_gid(c, port, i, &ah.grh.dgid), 0);
		assert_int_equal(hca_route(c, &ah, &address), 0);
		assert_int_equal(address, want);
		ah.grh.dgid.raw[9] ^= 1;
		assert_int_equal(hca_route(c, &ah, &address), -EHOSTUNREACH);
	}
}

/* Every LID and GID leads back to its port. */
static void test_addresses(void **state)
{
	static const int nodes[] = { 0, 1, 255, 256, 766 };
	unsigned i;
	uint8_t port;

	for (i = 0; i < sizeof(nodes) / sizeof(*nodes); i++) {
		struct softhca_config a = config(name_a, "hcas=8,ports=8", nodes[i]);
		struct ibv_device **list = softhca_get_device_list(&a, NULL);
		struct hca_fabric *f = ((struct hca_device *)(void *)list[0])->fabric;
		struct ibv_context *c = ibv_open_device(list[0]);

		for (port = 1; port <= 8; port++)
			route(c, f, (uint32_t)nodes[i], port);
		assert_int_equal(ibv_close_device(c), 0);
		ibv_free_device_list(list);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_list), cmocka_unit_test(test_asked),
		cmocka_unit_test(test_shortened),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_two_fabrics), cmocka_unit_test(test_close),
		cmocka_unit_test(test_leftovers), cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_dead_members),
		cmocka_unit_test(test_fork), cmocka_unit_test(test_crowd),
		cmocka_unit_test(test_late_leaver),
		cmocka_unit_test(test_addresses),
		cmocka_unit_test(test_first_thread),
	};

	snprintf(name_a, sizeof(name_a), "unit-a.%d", (int)getpid());
	snprintf(name_b, sizeof(name_b), "unit-b.%d", (int)getpid());
	return cmocka_run_group_tests(tests, NULL, NULL);
}
