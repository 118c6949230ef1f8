/* test_shared_limit.c - limits of several rails: PCIe links of a saved machine, a model's. */
#include "config.h"		/* _GNU_SOURCE */
#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rail/message/shared_limit.h"
#include "rail/open/rail_ctx.h"
#include "rail/rail.h"
#include "topo/topo.h"
#include "traffic.h"

static void expect(const struct rail_share *s, const char *name, uint32_t rails, uint64_t out,
		   uint64_t in, bool half)
{
	assert_string_equal(s->name, name);
	assert_int_equal(s->rails, rails);
	assert_int_equal(s->out, out);
	assert_int_equal(s->in, in);
	assert_int_equal(s->half, half);
}

/* Two ports of a card in a Gen4 x16 slot; two cards in a switch with a Gen3 x16 link. */
static void test_slots(void **state)
{
	static const char *const device[] = { "mlx5_2", "mlx5_0", "mlx5_1", "mlx5_3" };
	static const char *const none[] = { "rxe0", "nothing" };
	struct rail_share share[RAIL_SHARES_MAX];
	char path[512];
	struct topo *t;

	(void)state;
	snprintf(path, sizeof(path), "%s/tests/topo/slot.xml", getenv("srcdir"));
	assert_int_equal(topo_open_xml(path, &t), 0);
	assert_int_equal(rail_shared_limits_on(t, device, 4, share), 4);
	/* 16 GT/s x 8 and x 16, 8 GT/s x 16; 128 of 130 bits are data. */
	expect(&share[0], "PCIe link 0000:43:00", 0x1, 15753846153, 15753846153, false);
	expect(&share[1], "PCIe link 0000:44:00", 0x8, 15753846153, 15753846153, false);
	expect(&share[2], "PCIe link 0000:41:00.0", 0x9, 15753846153, 15753846153, false);
	expect(&share[3], "PCIe link 0000:01:00", 0x6, 31507692307, 31507692307, false);
	assert_int_equal(rail_shared_limits_on(t, none, 2, share), 0);
	topo_close(t);
}

/* A device that the machine does not show shares no link. */
static void test_real(void **state)
{
	static struct ibv_device device = { .name = "nothing0" };
	struct vrb_port port = { .device = &device };
	struct rail_share share[RAIL_SHARES_MAX];
	struct rail_ctx *ctx = calloc(1, sizeof(*ctx));

	(void)state;
	assert_non_null(ctx);
	ctx->rail_count = 2;
	ctx->rail[0].port = ctx->rail[1].port = &port;
	assert_int_equal(rail_shares(ctx, share), 0);
	free(ctx);
}

static void check(const struct rail_share *s, const char *name, uint32_t rails, uint64_t out,
		  uint64_t in, bool half)
{
	CHECK(!strcmp(s->name, name));
	CHECK_EQUAL(s->rails, rails);
	CHECK_EQUAL(s->out, out);
	CHECK_EQUAL(s->in, in);
	CHECK_EQUAL(s->half, half);
}

static void model_body(struct job *job)
{
	struct rail_share share[RAIL_SHARES_MAX];

	job->rail.on_message = traffic_on_message;
	job_connect(job);
	CHECK_EQUAL(rail_shares(job->ctx, share), 4);
	/* Rails are sorted by network: adapters and ports take turns, or not. */
	for (int i = 0; i < 4; i += 2) {
		CHECK(!(share[0].rails & share[2].rails));
		check(&share[i], i ? "cap of soft1" : "cap of soft0", share[i].rails, 1500000000,
		      1500000000, false);
		check(&share[i + 1], i ? "bus of soft1" : "bus of soft0", share[i].rails,
		      1000000000, 1200000000, true);
		CHECK_EQUAL(__builtin_popcount(share[i].rails), 2);
	}
	job_close(job);
}

static void plain_body(struct job *job)
{
	struct rail_share share[RAIL_SHARES_MAX];

	job->rail.on_message = traffic_on_message;
	job_connect(job);
	CHECK_EQUAL(rail_shares(job->ctx, share), 0);
	job_close(job);
}

static void test_model(void **state)
{
	(void)state;
	assert_int_equal(job_run(&(struct job_config){
		.soft = "hcas=2,ports=2,rate=1GB/s,cap=1.5GB/s,bus=1GB/s/1.2GB/s:half" },
		model_body, NULL, 0), 0);
	assert_int_equal(job_run(&(struct job_config){ .soft = "ideal" }, plain_body, NULL, 0), 0);
}

/* slot.xml with the names of a software fabric's adapters: the machine that hwloc shows us. */
static void machine_write(char *path)
{
	static const char theirs[] = "name=\"mlx5_", ours[] = "name=\"soft";
	char from[512], line[4096], *name;
	FILE *in, *out;

	snprintf(from, sizeof(from), "%s/tests/topo/slot.xml", getenv("srcdir"));
	in = fopen(from, "r");
	out = fdopen(mkstemp(path), "w");
	assert_true(in && out);
	while (fgets(line, sizeof(line), in)) {
		name = strstr(line, theirs);
		if (name)
			fprintf(out, "%.*s%s%s", (int)(name - line), line, ours,
				name + strlen(theirs));
		else
			fputs(line, out);
	}
	fclose(in);
	assert_int_equal(fclose(out), 0);
}

/* The rails of adapters `first` to `last`, whose names end in these digits. */
static uint32_t rails_of(const struct job *job, char first, char last)
{
	uint32_t rails = 0;

	for (int r = 0; r < rail_count(job->ctx); r++) {
		const char *name = ibv_get_device_name(job->ctx->rail[r].port->device);
		char digit = name[strlen(name) - 1];

		rails |= (uint32_t)(digit >= first && digit <= last) << r;
	}
	return rails;
}

/* Real adapters have the limits of their slots, whatever the order of the rails. */
static void machine_body(struct job *job)
{
	const struct { const char *name; uint32_t rails; uint64_t rate; } links[] = {
		{ "PCIe link 0000:43:00", rails_of(job, '2', '2'), 15753846153 },
		{ "PCIe link 0000:44:00", rails_of(job, '3', '3'), 15753846153 },
		{ "PCIe link 0000:41:00.0", rails_of(job, '2', '3'), 15753846153 },
		{ "PCIe link 0000:01:00", rails_of(job, '0', '1'), 31507692307 },
	};
	struct rail_share share[RAIL_SHARES_MAX];
	unsigned found = 0;

	job->ctx->cfg.use_softhca = false;
	CHECK_EQUAL(rail_shares(job->ctx, share), 4);
	job->ctx->cfg.use_softhca = true;
	for (int i = 0; i < 4; i++)
		for (unsigned l = 0; l < 4; l++)
			if (!strcmp(share[i].name, links[l].name)) {
				check(&share[i], links[l].name, links[l].rails, links[l].rate,
				      links[l].rate, false);
				found |= 1u << l;
			}
	CHECK_EQUAL(found, 0xf);
}

static void on_machine_body(struct job *job)
{
	job->rail.on_message = traffic_on_message;
	job_connect(job);
	CHECK(!setenv("HWLOC_XMLFILE", job->arg, 1));
	machine_body(job);
	CHECK(!unsetenv("HWLOC_XMLFILE"));
	job_close(job);
}

static void test_machine(void **state)
{
	char path[] = "/tmp/rg-limits-XXXXXX";

	(void)state;
	machine_write(path);
	assert_int_equal(job_run(&(struct job_config){ .soft = "hcas=4,ports=1" }, on_machine_body,
				 path, 0), 0);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_slots),
		cmocka_unit_test(test_real),
		cmocka_unit_test(test_model),
		cmocka_unit_test(test_machine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
