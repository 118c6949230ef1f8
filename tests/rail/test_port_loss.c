/* test_port_loss.c - hosts that are made up, between whose ports datagrams are lost: the rails that are left. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "made_hosts.h"
#include "random.h"

static void like_hosts(unsigned hosts, unsigned ports)
{
	begin();
	for (unsigned h = 0; h < hosts; h++)
		for (unsigned p = 0; p < ports; p++)
			ib_add(h, 50 * GB, 1)->lid = (uint16_t)(10 * h + p);
}

/* Nothing passes between a port and these ones of another host. */
static void lose(unsigned a, unsigned port, unsigned b, uint32_t ports)
{
	const struct choice_loss l = { .a = a, .b = b, .port = port, .ports = ports };
	bool news = false;

	assert_int_equal(choice_losses_add(&lost, &l, 1, &news), 0);
	assert_true(news);
	assert_int_equal(choice_losses_add(&lost, &l, 1, &news), 0);
	assert_false(news);
}

/* Any two ports of a rail reach each other, and no port is of two rails. */
static void is_sound(unsigned hosts)
{
	for (unsigned r = 0; r < choice.rails; r++)
		for (unsigned a = 0; a < hosts; a++) {
			const unsigned port = choice.end[a][r].port;

			for (unsigned q = 0; q < r; q++)
				assert_int_not_equal(choice.end[a][q].port, port);
			for (unsigned b = 0; b < hosts; b++)
				assert_false(choice_lost_to(&choice, a, port, b) >> choice.end[b][r].port & 1);
		}
}

/* Cables of one network are crossed: ports that reach each other are paired, as many as can be. */
static void test_lost(void **state)
{
	(void)state;
	begin();
	for (unsigned h = 0; h < 3; h++)
		for (unsigned p = 0; p < 3; p++)
			ib_add(h, 50 * GB, 1)->lid = (uint16_t)(10 * h + p);
	is_rails(3, 3);
	says("");
	assert_null(strstr(lines, "crossed"));
	/* Ports 0 and 1 of node1 are on each other's fabric. */
	lose(0, 0, 1, 1 << 0);
	lose(1, 1, 0, 1 << 1);
	is_rails(3, 3);
	is_end(0, 1, 1);
	is_end(1, 1, 0);
	is_end(2, 1, 2);
	for (unsigned r = 0; r < 3; r++)
		is_end(r, 2, r);
	says("mlx5_0:1 (LID 0, GID ::1:0:0:0:1) of node0 meets mlx5_1:1 of node1, since nothing passes to "
	     "mlx5_0:1 (LID 10, GID ::1:0:0:0:11) there: are cables crossed?");
	/* Port 0 of node0 reaches port 2 of node1 alone, which others would take. */
	lost.count = 0;
	lose(0, 0, 1, 3);
	is_rails(3, 3);
	is_end(0, 1, 2);
	is_end(1, 1, 1);
	is_end(2, 1, 0);
	/* It reaches none: the others are rails. */
	lose(1, 2, 0, 1 << 0);
	is_rails(3, 2);
	is_end(0, 0, 1);
	is_end(1, 0, 2);
	says("mlx5_0:1 of node0 and another port are left out: nothing passes between mlx5_0:1 (LID 0, GID "
	     "::1:0:0:0:1) and mlx5_0:1 (LID 10, GID ::1:0:0:0:11) of node1: check cables");
	/* Nor does any other. */
	lose(1, 0, 0, 6);
	lose(1, 1, 0, 6);
	lose(1, 2, 0, 6);
	assert_int_equal(choose(3), -ENODEV);
	assert_non_null(strstr(choice.why, "mlx5_0:1 of node0: nothing passes between"));
}

/* The line names, of several ports to which nothing passes, the one of the same network. */
static void test_lost_nearest(void **state)
{
	(void)state;
	begin();
	for (unsigned h = 0; h < 2; h++) {
		eth_add(h, GB, h ? "::ffff:10.0.1.2" : "::ffff:10.0.1.1", 120);
		eth_add(h, GB, h ? "::ffff:10.0.2.2" : "::ffff:10.0.2.1", 120);
	}
	lose(1, 0, 0, 1 << 1);
	lose(1, 1, 0, 3);
	is_rails(2, 1);
	says("mlx5_1:1 of node0 and another port are left out: nothing passes between mlx5_1:1 (LID 0, GID "
	     "::ffff:10.0.2.1) and mlx5_1:1 (LID 0, GID ::ffff:10.0.2.2) of node1: check cables");
}

/* Two hosts, neither of them the one by whose ports the rails are counted, do not reach each other. */
static void test_lost_between(void **state)
{
	(void)state;
	like_hosts(3, 2);
	lose(1, 0, 2, 1 << 0);
	is_rails(3, 2);
	is_sound(3);
	is_end(0, 1, 0);
	is_end(0, 2, 1);
	says("mlx5_0:1 (LID 10, GID ::1:0:0:0:11) of node1 meets mlx5_1:1 of node2, since nothing passes to "
	     "mlx5_0:1 (LID 20, GID ::1:0:0:0:21) there: are cables crossed?");
	/* Port 0 of node1 reaches none of node2: one rail is left, with one line. */
	lose(1, 0, 2, 1 << 1);
	is_rails(3, 1);
	is_sound(3);
	is_end(0, 0, 1);
	says("mlx5_0:1 of node0 and 2 more ports are left out: nothing passes between mlx5_0:1 (LID 10, GID "
	     "::1:0:0:0:11) of node1 and mlx5_0:1 (LID 20, GID ::1:0:0:0:21) of node2: check cables");
	assert_ptr_equal(strchr(lines, '\n') + 1, lines + strlen(lines));
	/* A port more of node1 takes its place. */
	ib_add(1, 50 * GB, 1);
	is_rails(3, 2);
	is_sound(3);
	/* Nothing is left. */
	like_hosts(3, 2);
	lose(1, 0, 2, 3);
	lose(1, 1, 2, 3);
	assert_int_equal(choose(3), -ENODEV);
	assert_non_null(strstr(choice.why, "mlx5_0:1 of node0: nothing passes between mlx5_0:1 (LID 10, GID "
			       "::1:0:0:0:11) of node1 and mlx5_0:1 (LID 20, "));
}

/* Ports of node1 are bound by the reference, so that node2 gives way, and the other way round. */
static void test_lost_both(void **state)
{
	(void)state;
	for (unsigned bound = 1; bound < 3; bound++) {
		like_hosts(4, 2);
		lose(0, 0, bound, 1 << 0);
		lose(1, 0, 2, 1 << 1);
		lose(3 - bound, 1, 3, 1 << 1);
		is_rails(4, 2);
		is_sound(4);
		is_end(0, bound, 1);
	}
	/* Three hosts, no two of which share a cable's fabric in the same place. */
	like_hosts(4, 3);
	for (unsigned p = 0; p < 3; p++) {
		lose(1, p, 2, UINT32_C(1) << p);
		lose(2, p, 3, UINT32_C(1) << p);
		lose(1, p, 3, UINT32_C(1) << p);
	}
	is_rails(4, 3);
	is_sound(4);
}

/* Another host becomes the reference: losses are those of hosts, whatever the rails are counted by. */
static void test_lost_reference(void **state)
{
	(void)state;
	like_hosts(3, 3);
	lose(0, 0, 1, 1 << 0);
	is_rails(3, 3);
	is_sound(3);
	assert_int_equal(choice.ref, 0);
	is_end(0, 1, 1);
	is_end(0, 2, 0);
	host[2].port[1].state = IBV_PORT_DOWN;
	is_rails(3, 2);
	is_sound(3);
	assert_int_equal(choice.ref, 2);
	host[1].port[1].state = IBV_PORT_DOWN;
	is_rails(3, 2);
	is_sound(3);
	assert_int_equal(choice.ref, 1);
}

/* Where nothing passes over the best ports, others are rails: slower ones, or of another prefix. */
static void test_lost_set(void **state)
{
	(void)state;
	for (int kind = 0; kind < 3; kind++) {
		begin();
		for (unsigned h = 0; h < 4; h++) {
			ib_add(h, 50 * GB, 1);
			if (kind < 2)
				ib_add(h, kind ? 5 * GB : 25 * GB, 1);
			else
				ib_add(h, 50 * GB, 1)->tables.gid[0].raw[7] = (unsigned char)(h ? 2 : 3);
		}
		is_rails(4, 1);
		is_end(0, 3, 0);
		lose(1, 0, 3, 1);
		if (kind < 2) {
			is_rails(4, 1);
			is_sound(4);
			is_end(0, 3, 1);
			says("mlx5_0:1 of node0 and 3 more ports are left out: nothing passes between mlx5_0:1 (");
		} else {
			assert_int_equal(choose(4), -ENODEV);
			assert_non_null(strstr(choice.why, "nothing passes between mlx5_0:1"));
		}
	}
}

/* An assignment that is tried. */
struct tried {
	unsigned hosts, ports;
	uint32_t used[HOSTS];		/* a host's ports */
	unsigned char at[4][HOSTS];	/* a rail's ports */
};

static bool may_be(const struct tried *t, unsigned rail, unsigned h, unsigned q)
{
	for (unsigned g = 0; g < h; g++)
		if (choice_lost_to(&choice, h, q, g) >> t->at[rail][g] & 1)
			return false;
	return !(t->used[h] >> q & 1);
}

/* As many rails as any assignment has, from this one on: host 0's ports number them. */
static unsigned most_rails(struct tried *t, unsigned rail, unsigned h)
{
	const unsigned from = h ? 0 : rail, to = h ? t->ports : rail + 1;
	unsigned best = 0;

	if (rail == t->ports)
		return 0;
	if (h == t->hosts)
		return 1 + most_rails(t, rail + 1, 0);
	if (!h)
		best = most_rails(t, rail + 1, 0);
	for (unsigned q = from; q < to; q++) {
		unsigned n;

		if (!may_be(t, rail, h, q))
			continue;
		t->used[h] |= UINT32_C(1) << q;
		t->at[rail][h] = (unsigned char)q;
		n = most_rails(t, rail, h + 1);
		best = n > best ? n : best;
		t->used[h] &= ~(UINT32_C(1) << q);
	}
	return best;
}

static void lose_drawn(uint64_t *state, unsigned hosts, unsigned ports)
{
	for (uint64_t losses = random_below(state, 12) + 1; losses--;) {
		const unsigned a = (unsigned)random_below(state, hosts);
		const struct choice_loss l = {
			.a = a, .b = (a + 1 + (unsigned)random_below(state, hosts - 1)) % hosts,
			.port = (unsigned)random_below(state, ports),
			.ports = 1 + (uint32_t)random_below(state, (1u << ports) - 1),
		};
		bool news;

		assert_int_equal(choice_losses_add(&lost, &l, 1, &news), 0);
	}
}

/* As many rails as can be, by trying all. */
static void test_lost_drawn(void **state)
{
	const char *seed = getenv("RG_SEED");
	uint64_t random = seed ? strtoull(seed, NULL, 0) : 1;

	(void)state;
	print_message("seed %llu\n", (unsigned long long)random);
	for (unsigned turn = 0; turn < 400; turn++) {
		struct tried t = { .hosts = 3 + turn % 3, .ports = 2 + turn / 3 % 2 };
		int rc;

		like_hosts(t.hosts, t.ports);
		lose_drawn(&random, t.hosts, t.ports);
		rc = choose(t.hosts);
		assert_int_equal(rc, choice.rails ? 0 : -ENODEV);
		is_sound(t.hosts);
		assert_int_equal(choice.rails, most_rails(&t, 0, 0));
	}
}

/* Many hosts in two halves that do not meet over equal ports: each half has its own order. */
static void test_lost_halves(void **state)
{
	(void)state;
	like_hosts(HOSTS, 4);
	for (unsigned a = 1; a < HOSTS; a += 2)
		for (unsigned b = 2; b < HOSTS; b += 2)
			for (unsigned p = 0; p < 4; p++)
				lose(a, p, b, UINT32_C(1) << p);
	is_rails(HOSTS, 4);
	is_sound(HOSTS);
	/* No order helps: the search ends nevertheless. */
	for (unsigned a = 1; a < HOSTS; a += 2)
		for (unsigned b = 2; b < HOSTS; b += 2)
			for (unsigned p = 0; p < 3; p++)
				lose(a, p, b, 0xf & ~(UINT32_C(1) << p));
	choose(HOSTS);
	is_sound(HOSTS);
	is_rails(HOSTS, 1);
}

/* A rail that cannot be takes all steps of the search; another one is there nevertheless. */
static void test_lost_steps(void **state)
{
	(void)state;
	like_hosts(HOSTS, 3);
	/* Rail 0 has ports 0 of the last two, which do not reach each other; all hosts before have a choice. */
	for (unsigned h = HOSTS - 2; h < HOSTS; h++)
		lose(0, 0, h, 6);
	lose(HOSTS - 2, 0, HOSTS - 1, 1 << 0);
	for (unsigned h = 2; h < HOSTS - 2; h++)
		lose(1, 2, h, 1 << 2);
	/* Rails 1 and 2 are no equal ports of the first two. */
	lose(1, 1, 2, 1 << 1);
	choose(HOSTS);
	is_sound(HOSTS);
	is_rails(HOSTS, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lost), cmocka_unit_test(test_lost_nearest),
		cmocka_unit_test(test_lost_between), cmocka_unit_test(test_lost_both),
		cmocka_unit_test(test_lost_reference), cmocka_unit_test(test_lost_drawn),
		cmocka_unit_test(test_lost_halves), cmocka_unit_test(test_lost_set),
		cmocka_unit_test(test_lost_steps),
	};

	return cmocka_run_group_tests(tests, NULL, hosts_free);
}
