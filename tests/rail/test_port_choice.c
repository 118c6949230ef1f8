/* test_port_choice.c - hosts that are made up: the rails that their ports make. */
#include "cmocka_all.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rail/open/options.h"
#include "rail/open/port_choice.h"
#include "random.h"

enum { HOSTS = 16 };

static const uint64_t GB = 1000000000;

static struct choice_host host[HOSTS];
static struct choice choice;
static struct choice_losses lost;
static char lines[4096];

static void begin(void)
{
	memset(host, 0, sizeof(host));
	lost.count = 0;
	for (unsigned h = 0; h < HOSTS; h++)
		snprintf(host[h].name, sizeof(host[h].name), "node%u", h);
}

/* The next port of a host, at a place of its own: a full member of the default partition. */
static struct choice_port *port_add(unsigned h, uint8_t link_layer, uint64_t rate)
{
	const unsigned n = host[h].count++;
	struct choice_port *p = &host[h].port[n];

	snprintf(p->name, sizeof(p->name), "mlx5_%u:1", n);
	snprintf(p->place, sizeof(p->place), "0000:%02x:00.0:1", n);
	p->link_layer = link_layer;
	p->rate = rate;
	p->state = IBV_PORT_ACTIVE;
	p->usable = 1;
	p->card = n + 1;
	p->tables.pkeys = 1;
	p->tables.pkey[0].key = 0xffff;
	return p;
}

static struct choice_port *ib_add(unsigned h, uint64_t rate, unsigned char prefix)
{
	struct choice_port *p = port_add(h, IBV_LINK_LAYER_INFINIBAND, rate);

	p->tables.gids = 1;
	p->tables.gid[0].raw[7] = prefix;
	p->tables.gid[0].raw[15] = (unsigned char)(h * 16 + host[h].count);
	return p;
}

static void gid_add(struct choice_port *p, const char *address, uint8_t type, uint8_t bits)
{
	struct vrb_gid *g = &p->tables.gid[p->tables.gids];

	assert_int_equal(inet_pton(AF_INET6, address, g->raw), 1);
	g->index = (uint8_t)(2 * p->tables.gids++);
	g->type = type;
	g->bits = bits;
}

static struct choice_port *eth_add(unsigned h, uint64_t rate, const char *address, uint8_t bits)
{
	struct choice_port *p = port_add(h, IBV_LINK_LAYER_ETHERNET, rate);

	gid_add(p, address, IBV_GID_TYPE_ROCE_V2, bits);
	return p;
}

static void keep(void *arg, const char *text)
{
	(void)arg;
	strcat(strcat(lines, text), "\n");
}

static int choose(unsigned hosts)
{
	static const struct choice_host *of[HOSTS];	/* the choice keeps it */
	int rc;

	for (unsigned h = 0; h < hosts; h++)
		of[h] = &host[h];
	choice_free(&choice);
	rc = choice_make(&choice, of, hosts, &lost);
	*lines = 0;
	if (!rc)
		choice_tell(&choice, keep, NULL);
	return rc;
}

static void is_rails(unsigned hosts, unsigned rails)
{
	assert_int_equal(choose(hosts), 0);
	assert_int_equal(choice.rails, rails);
}

static void is_end(unsigned rail, unsigned h, unsigned port)
{
	assert_int_equal(choice.end[h][rail].port, port);
}

static void says(const char *words)
{
	if (!strstr(lines, words))
		print_error("%s", lines);
	assert_non_null(strstr(lines, words));
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

/* Of each rail any two hosts' ports reach each other, and no port is of two rails. */
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

/* A DGX: eight ports for messages, four for storage on a fabric of their own or of another kind. */
static void test_eight_and_four(void **state)
{
	(void)state;
	for (int kind = 0; kind < 3; kind++) {
		begin();
		for (unsigned h = 0; h < 2; h++)
			for (unsigned p = 0; p < 12; p++)
				if (p % 3 != 2)
					ib_add(h, 50 * GB, 1);
				else if (kind == 0)
					ib_add(h, 50 * GB, 2);
				else if (kind == 1)
					ib_add(h, 25 * GB, 1);
				else
					eth_add(h, 50 * GB, "::ffff:10.0.0.1", 120);
		is_rails(2, 8);
		for (unsigned r = 0; r < 8; r++) {
			is_end(r, 0, r / 2 * 3 + r % 2);
			is_end(r, 1, r / 2 * 3 + r % 2);
		}
		says("mlx5_2:1 of node0 and 7 more ports are left out");
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

/* Of several ports to which nothing passes the line names the one that is of the same network. */
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

static void like_hosts(unsigned hosts, unsigned ports)
{
	begin();
	for (unsigned h = 0; h < hosts; h++)
		for (unsigned p = 0; p < ports; p++)
			ib_add(h, 50 * GB, 1)->lid = (uint16_t)(10 * h + p);
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

/* An assignment that is tried: of each host the ports in use, of each rail the hosts' ports. */
struct tried {
	unsigned hosts, ports;
	uint32_t used[HOSTS];
	unsigned char at[4][HOSTS];
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

/* Each port of a card is a device: of nine cards with two, the first ports of eight. */
static void test_cards(void **state)
{
	(void)state;
	begin();
	for (unsigned h = 0; h < 2; h++)
		for (unsigned p = 0; p < 18; p++)
			ib_add(h, 50 * GB, 1)->card = 1 + p / 2;
	is_rails(2, 8);
	for (unsigned r = 0; r < 8; r++)
		is_end(r, 1, 2 * r);
	says("8 rails are in use");
	/* No ports are of one card without its number. */
	for (unsigned h = 0; h < 2; h++)
		for (unsigned p = 0; p < 18; p++)
			host[h].port[p].card = 0;
	is_rails(2, 8);
	is_end(7, 0, 7);
}

static void test_unlike_hosts(void **state)
{
	(void)state;
	begin();
	for (unsigned h = 0; h < 3; h++)
		for (unsigned p = 0; p < 4; p++)
			ib_add(h, 50 * GB, 1);
	host[1].port[1].state = IBV_PORT_DOWN;
	is_rails(3, 3);
	is_end(1, 0, 2);
	is_end(1, 1, 2);
	says("mlx5_1:1 of node0 and another port are left out: mlx5_1:1 of node1 is DOWN");
	/* A port fewer, and none at the places of others: in PCI order. */
	host[1].count = 2;
	host[1].port[1] = host[1].port[0];
	snprintf(host[1].port[0].place, sizeof(host[1].port[0].place), "0001:00:00.0:1");
	snprintf(host[1].port[1].place, sizeof(host[1].port[1].place), "0001:01:00.0:1");
	is_rails(3, 2);
	is_end(1, 1, 1);
	is_end(1, 0, 1);
	says("mlx5_2:1 of node0 and 3 more ports are left out: node1 has no port left for it");
	/* A port that lost half of its lanes. */
	begin();
	for (unsigned h = 0; h < 2; h++)
		for (unsigned p = 0; p < 2; p++)
			ib_add(h, h + p == 2 ? 25 * GB : 50 * GB, 1);
	is_rails(2, 1);
	says("mlx5_1:1 of node1 is left out: 25GB/s, the rails are of another rate");
	/* Hosts of two generations. */
	host[1].port[0].rate = 25 * GB;
	is_rails(2, 2);
}

static void test_prefixes(void **state)
{
	(void)state;
	begin();
	for (unsigned h = 0; h < 2; h++)
		for (unsigned p = 0; p < 4; p++)
			ib_add(h, 50 * GB, (unsigned char)(p + 1));
	is_rails(2, 4);
	/* Cables in another order. */
	host[1].port[0].tables.gid[0].raw[7] = 2;
	host[1].port[1].tables.gid[0].raw[7] = 1;
	is_rails(2, 4);
	is_end(0, 1, 1);
	is_end(1, 1, 0);
	for (unsigned p = 0; p < 4; p++)
		host[1].port[p].tables.gid[0].raw[7] = 9;
	assert_int_equal(choose(2), -ENODEV);
	assert_non_null(strstr(choice.why, "router's LID"));
}

static void test_networks(void **state)
{
	(void)state;
	begin();
	eth_add(0, 50 * GB, "::ffff:10.0.1.1", 120);
	eth_add(0, 50 * GB, "::ffff:10.0.2.1", 120);
	eth_add(1, 50 * GB, "::ffff:10.0.2.2", 120);
	eth_add(1, 50 * GB, "::ffff:10.0.1.2", 120);
	is_rails(2, 2);
	is_end(0, 1, 1);
	is_end(1, 1, 0);
	assert_string_equal(lines, "");
	/* Networks of a rail each host: by place, through routers. */
	begin();
	for (unsigned h = 0; h < 2; h++)
		for (unsigned p = 0; p < 2; p++) {
			char address[32];

			snprintf(address, sizeof(address), "::ffff:10.%u.0.%u", 2 - p, 2 * h);
			eth_add(h, 50 * GB, address, 127);
		}
	is_rails(2, 2);
	is_end(0, 0, 0);
	is_end(0, 1, 0);
	says("2 of 2 rails: RoCE v2 is routed");
	/* v1 knows no router. */
	for (unsigned p = 0; p < 2; p++)
		host[1].port[p].tables.gid[0].type = host[0].port[p].tables.gid[0].type = IBV_GID_TYPE_ROCE_V1;
	assert_int_equal(choose(2), -ENODEV);
	/* A mask that only one host knows. */
	begin();
	eth_add(0, 50 * GB, "::ffff:10.0.1.1", 112);
	eth_add(1, 50 * GB, "::ffff:10.0.2.1", 0);
	is_rails(2, 1);
	assert_string_equal(lines, "");
}

static void test_gids(void **state)
{
	struct choice_port *a, *b;

	(void)state;
	begin();
	a = eth_add(0, 50 * GB, "::ffff:10.0.1.1", 120);
	gid_add(a, "fd00::1", IBV_GID_TYPE_ROCE_V2, 64);
	gid_add(a, "fe80::1", IBV_GID_TYPE_ROCE_V2, 64);
	b = eth_add(1, 50 * GB, "::ffff:10.0.9.1", 120);
	gid_add(b, "fd00::2", IBV_GID_TYPE_ROCE_V2, 64);
	gid_add(b, "fe80::2", IBV_GID_TYPE_ROCE_V2, 64);
	is_rails(2, 1);
	assert_int_equal(choice.end[0][0].gid, 1);
	assert_int_equal(choice.end[1][0].gid, 1);
	/* No handle: the next one. */
	b->tables.gid[1].dead = EHOSTUNREACH;
	is_rails(2, 1);
	assert_int_equal(choice.end[1][0].gid, 0);
	says("1 of 1 rails: RoCE v2 is routed between IP networks, such as ::ffff:10.0.1.1 of node0 and "
	     "::ffff:10.0.9.1 of node1");
	b->tables.gid[0].dead = EHOSTUNREACH;
	is_rails(2, 1);
	assert_int_equal(choice.end[1][0].gid, 2);
	says("link-local");
	b->tables.gid[2].dead = EHOSTUNREACH;
	assert_int_equal(choose(2), -ENODEV);
	assert_non_null(strstr(choice.why, "no address handle"));
}

/* No GID that all hosts meet: each pair has its own. */
static void test_pairwise(void **state)
{
	static const char *const net[] = { "::ffff:10.0.0.0", "::ffff:10.1.0.0", "::ffff:10.2.0.0" };
	uint8_t a, b, a2, b2;

	(void)state;
	begin();
	for (unsigned h = 0; h < 3; h++) {
		struct choice_port *p = port_add(h, IBV_LINK_LAYER_ETHERNET, 50 * GB);

		gid_add(p, net[h], IBV_GID_TYPE_ROCE_V1, 120);
		gid_add(p, net[(h + 2) % 3], IBV_GID_TYPE_ROCE_V1, 120);
	}
	is_rails(3, 1);
	assert_true(choice.pairwise[0]);
	for (unsigned g = 0; g < 3; g++)
		for (unsigned h = 0; h < 3; h++) {
			assert_true(choice_gid_pair(&choice, 0, g, h, &a, &b));
			assert_memory_equal(host[g].port[0].tables.gid[a].raw,
					    host[h].port[0].tables.gid[b].raw, 15);
			assert_true(choice_gid_pair(&choice, 0, h, g, &b2, &a2));
			assert_true(a == a2 && b == b2);
		}
	host[2].port[0].tables.gid[0].dead = EHOSTUNREACH;
	assert_int_equal(choose(3), -ENODEV);
	assert_non_null(strstr(choice.why, "node2"));
	is_rails(2, 1);
	assert_false(choice.pairwise[0]);
}

static void pkeys_set(unsigned h, uint16_t first, uint16_t second)
{
	struct vrb_tables *t = &host[h].port[0].tables;

	t->pkey[0] = (struct vrb_pkey){ .key = first, .index = 3 };
	t->pkey[1] = (struct vrb_pkey){ .key = second, .index = 7 };
	t->pkeys = second ? 2 : 1;
}

static void is_pkey(unsigned h, uint16_t key)
{
	assert_int_equal(host[h].port[0].tables.pkey[choice.end[h][0].pkey].key, key);
}

static void test_pkeys(void **state)
{
	(void)state;
	begin();
	for (unsigned h = 0; h < 3; h++)
		ib_add(h, 50 * GB, 1);
	pkeys_set(0, 0x7fff, 0x8001);
	pkeys_set(1, 0x7fff, 0x8001);
	pkeys_set(2, 0x0001, 0);
	is_rails(3, 1);
	is_pkey(0, 0x8001);
	is_pkey(2, 0x0001);
	pkeys_set(1, 0x7fff, 0x0001);
	assert_int_equal(choose(3), -ENODEV);
	assert_non_null(strstr(choice.why, "no partition key in common with node2"));
	/* Both memberships: the full one. */
	pkeys_set(1, 0x0001, 0x8001);
	is_rails(3, 1);
	is_pkey(1, 0x8001);
	pkeys_set(0, 0x7fff, 0x8002);
	is_rails(1, 1);
	is_pkey(0, 0x8002);
	/* Processes of a host that meet over its ports are pairs, too. */
	pkeys_set(0, 0x0001, 0x8002);
	pkeys_set(1, 0x8001, 0x8002);
	is_rails(2, 1);
	is_pkey(0, 0x0001);
	host[0].meets = 1;
	is_rails(2, 1);
	is_pkey(0, 0x8002);
	is_pkey(1, 0x8002);
	pkeys_set(0, 0x0001, 0);
	assert_int_equal(choose(2), -ENODEV);
	assert_non_null(strstr(choice.why, "also of ranks of one host (--intranode memory)"));
	host[0].meets = 0;
	host[1].meets = 1;
	is_rails(2, 1);
}

static void test_named(void **state)
{
	(void)state;
	begin();
	for (unsigned h = 0; h < 2; h++)
		for (unsigned p = 0; p < 2; p++)
			ib_add(h, (p + 1) * 10 * GB, (unsigned char)(h == p));
	host[0].named = host[1].named = 1;
	assert_int_equal(choose(2), -ENETUNREACH);
	assert_non_null(strstr(choice.why, "order the ports"));
	for (unsigned p = 0; p < 2; p++)
		host[1].port[p].tables.gid[0].raw[7] = (unsigned char)!p;
	is_rails(2, 2);
	host[1].count = 1;
	assert_int_equal(choose(2), -EINVAL);
	assert_non_null(strstr(choice.why, "2 ports on node0, 1 on node1"));
	/* The other host has what it has. */
	host[1].count = 2;
	host[1].named = 0;
	is_rails(2, 2);
	host[1].port[1].state = IBV_PORT_DOWN;
	assert_int_equal(choose(2), -ENETUNREACH);
}

static void test_gid_lists(void **state)
{
	static const char *const good[] = { "auto", "0", "255", "mlx5_0:1=3", "mlx5_0:1=3,mlx5_1:2=auto", "3;n1=4",
					    "auto;n1=mlx5_0:1=2,7;n2=1" };
	static const char *const bad[] = { "", "256", "-1", "x", "3,", "mlx5_0:1=", "3;n1=", ";" };
	char why[512];

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
		assert_int_equal(rail_gid_lists_check(good[i], why, sizeof(why)), 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		assert_int_equal(rail_gid_lists_check(bad[i], why, sizeof(why)), -EINVAL);
		assert_non_null(strstr(why, "accepted: auto, 0 to 255"));
	}
	assert_int_equal(rail_gid_index_of(NULL, "n1", "mlx5_0:1"), -1);
	assert_int_equal(rail_gid_index_of("auto", "n1", "mlx5_0:1"), -1);
	assert_int_equal(rail_gid_index_of("mlx5_0:1=3,5", "n1", "mlx5_0:1"), 3);
	assert_int_equal(rail_gid_index_of("mlx5_0:1=3,5", "n1", "mlx5_0:2"), 5);
	assert_int_equal(rail_gid_index_of("3;n1=mlx5_0:1=4", "n1", "mlx5_0:1"), 4);
	assert_int_equal(rail_gid_index_of("3;n1=mlx5_0:1=4", "n1", "mlx5_1:1"), -1);
	assert_int_equal(rail_gid_index_of("3;n1=mlx5_0:1=4", "n2", "mlx5_1:1"), 3);
	assert_int_equal(rail_gid_index_of("n1=4", "n2", "mlx5_1:1"), -1);
}

static int end(void **state)
{
	(void)state;
	choice_free(&choice);
	free(lost.at);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_eight_and_four), cmocka_unit_test(test_lost),
		cmocka_unit_test(test_lost_nearest), cmocka_unit_test(test_lost_between),
		cmocka_unit_test(test_lost_both),
		cmocka_unit_test(test_lost_reference), cmocka_unit_test(test_lost_drawn),
		cmocka_unit_test(test_lost_halves), cmocka_unit_test(test_lost_set),
		cmocka_unit_test(test_cards),
		cmocka_unit_test(test_unlike_hosts),
		cmocka_unit_test(test_prefixes),
		cmocka_unit_test(test_networks),
		cmocka_unit_test(test_gids), cmocka_unit_test(test_pairwise),
		cmocka_unit_test(test_pkeys),
		cmocka_unit_test(test_named),
		cmocka_unit_test(test_gid_lists),
	};

	return cmocka_run_group_tests(tests, NULL, end);
}
