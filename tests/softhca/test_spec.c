/* test_spec.c - the spec string: accepted values, their meaning, error messages. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmocka_all.h"
#include "scratch.h"
#include "softhca/softhca.h"
#include "softhca/model/spec.h"

static struct hca_spec parse(const char *text)
{
	struct hca_spec s;
	char why[HCA_WHY_MAX] = "";

	if (hca_spec_parse(text, &s, why, sizeof(why)))
		fail_msg("'%s' was refused: %s", text, why);
	return s;
}

static void test_defaults(void **state)
{
	struct hca_spec s = parse("");

	assert_int_equal(s.hcas, 1);
	assert_int_equal(s.ports, 2);
	assert_false(s.timed);
	assert_int_equal(s.mtu, 4096);
	assert_string_equal(parse("ideal").text, s.text);
}

static void test_every_key(void **state)
{
	struct hca_spec s = parse("ideal,hcas=2,ports=8,rate=1.5GB/s,latency=2.5us,"
				  "bus=781MB/s/1199MB/s:half,cap=1486MB/s,msg=100ns,pkt=20ns,"
				  "mtu=2048,window=64,outstanding=16,reads=4,cqe=1us,"
				  "loss=0.001,jitter=3us,seed=7,down=1/soft1:2@1ms+0/soft0:8@1us,"
				  "up=1/soft1:2@1.5ms");

	assert_int_equal(s.hcas, 2);
	assert_int_equal(s.ports, 8);
	assert_int_equal(s.rate[0], 1500000000);
	assert_int_equal(s.rate[7], 1500000000);
	assert_int_equal(s.latency_ns, 2500);
	assert_int_equal(s.bus_read, 781000000);
	assert_int_equal(s.bus_write, 1199000000);
	assert_true(s.bus_half);
	assert_int_equal(s.cap, 1486000000);
	assert_int_equal(s.msg_ns, 100);
	assert_int_equal(s.pkt_ns, 20);
	assert_int_equal(s.mtu, 2048);
	assert_int_equal(s.window, 64);
	assert_int_equal(s.outstanding, 16);
	assert_int_equal(s.reads, 4);
	assert_int_equal(s.cqe_ns, 1000);
	assert_int_equal(s.loss_ppb, 1000000);
	assert_int_equal(s.jitter_ns, 3000);
	assert_int_equal(s.seed, 7);
	assert_true(s.timed);
	assert_int_equal(s.schedule.count, 3);
	assert_int_equal(s.schedule.change[0].when_ns, 1000);
	assert_int_equal(s.schedule.change[0].at.port, 8);
	assert_false(s.schedule.change[0].up);
	assert_int_equal(s.schedule.change[1].at.node, 1);
	assert_int_equal(s.schedule.change[1].at.hca, 1);
	assert_true(s.schedule.change[2].up);
	assert_int_equal(s.schedule.change[2].when_ns, 1500000);
}

static void test_fractions(void **state)
{
	static const struct {
		const char *text, *canonical;
		uint32_t ppb;
	} good[] = {
		{ "0", "0", 0 }, { "1", "1", 1000000000 }, { "0.5", "0.5", 500000000 },
		{ "0.000000001", "0.000000001", 1 }, { "0.250", "0.25", 250000000 },
		{ "1.0", "1", 1000000000 }, { "0.999999999", "0.999999999", 999999999 },
	};
	static const char *const bad[] = { "", ".", ".5", "0.", "1.1", "2", "-0.1", "0.1e3", "10",
					   "0.0000000001", "0..1", "0.1 ", "0,1", "1.000000001" };
	uint32_t ppb;
	char text[16];
	unsigned i;

	for (i = 0; i < sizeof(good) / sizeof(*good); i++) {
		assert_int_equal(hca_fraction_parse(good[i].text, &ppb), 0);
		assert_int_equal(ppb, good[i].ppb);
		assert_string_equal(hca_fraction_format(ppb, text, sizeof(text)),
				    good[i].canonical);
	}
	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		if (hca_fraction_parse(bad[i], &ppb) == 0)
			fail_msg("'%s' was accepted", bad[i]);
}

/* A user's changes replace a profile's, and are ordered by time. */
static void test_schedule(void **state)
{
	struct hca_spec s = parse("down=0/soft0:1@3ms+0/soft0:2@1ms,up=0/soft0:1@3ms");
	static const struct { uint64_t ms; bool up; } expected[] = {
		{ 1, false }, { 3, false }, { 3, true },
	};
	unsigned i;

	assert_int_equal(s.schedule.count, 3);
	for (i = 0; i < 3; i++) {
		assert_int_equal(s.schedule.change[i].when_ns, expected[i].ms * 1000000);
		assert_int_equal(s.schedule.change[i].up, expected[i].up);
	}
	assert_false(s.timed);
	assert_non_null(strstr(s.text, "down=0/soft0:2@1ms+0/soft0:1@3ms,up=0/soft0:1@3ms"));
	assert_int_equal(parse("down=none,up=none").schedule.count, 0);
}

/* 32 changes, as long as their text fits. */
static void test_many_changes(void **state)
{
	char text[2048] = "down=0/soft0:1@1us", why[HCA_WHY_MAX];
	struct hca_spec s;
	int i;

	for (i = 1; i < HCA_CHANGES_MAX; i++)
		sprintf(text + strlen(text), "+0/soft0:1@%dus", i + 1);
	assert_int_equal(parse(text).schedule.count, HCA_CHANGES_MAX);
	strcat(text, "+0/soft0:1@1us");
	assert_int_equal(hca_spec_parse(text, &s, why, sizeof(why)), -EINVAL);
	assert_non_null(strstr(why, "down: too many (accepted: 32"));
	strcpy(text, "down=1000/soft0:1@1.000000001s");
	for (i = 1; i < 30; i++)
		strcat(text, "+1000/soft0:1@1.000000001s");
	assert_int_equal(hca_spec_parse(text, &s, why, sizeof(why)), -EINVAL);
	assert_non_null(strstr(why, "longer than"));
}

/* Ports of their own rates: the last one holds for later ports. */
static void test_rates(void **state)
{
	static const uint64_t three[] = { 750000000, 250000000, 250000000 };
	struct hca_spec s = parse("ports=3,rate=750MB/s+250MB/s");
	char text[160];

	for (int p = 0; p < 3; p++)
		assert_int_equal(s.rate[p], three[p]);
	assert_true(s.timed);
	assert_true(strstr(s.text, ",rate=750MB/s+250MB/s,") != NULL);
	assert_string_equal(parse("ports=3,rate=6Gb/s+250MB/s+250MB/s").text, s.text);
	assert_string_equal(parse("rate=1GB/s+1GB/s").text, parse("rate=1GB/s").text);
	assert_true(strstr(parse("rate=1GB/s+2GB/s").text, ",rate=1GB/s+2GB/s,") != NULL);
	hca_spec_describe(&s, text, sizeof(text));
	assert_string_equal(text, "3 ports, 750 MB/s + 250 MB/s per port and direction");
	/* A profile's rates are forgotten. */
	s = parse("mt23108-pcix,rate=2GB/s+1GB/s");
	assert_int_equal(s.rate[0], 2000000000);
	assert_int_equal(s.rate[1], 1000000000);
	assert_true(!parse("ports=2,rate=none").timed);
}

/* The canonical form means the same and is its own canonical form. */
static void test_canonical(void **state)
{
	static const char *const specs[] = {
		"", "ideal", "rate=1GB/s,latency=2us", "latency=2us,rate=8Gb/s",
		"bus=2GB/s/2GB/s", "bus=1GB/s/3GB/s:full,cap=none", "window=7,pkt=1ns,mtu=256",
		"rate=none,latency=0", "net=eth0,rate=1GB/s", "net=fd00::1/64+10.0.0.1/8", "rate=1GB/s+2GB/s", "ports=8,rate=1GB/s+2GB/s+1GB/s", "loss=0.01,jitter=2us,seed=0,cqe=1.5us",
		"down=1/soft0:2@10ms+0/soft0:1@20ms,up=1/soft0:2@15ms", "up=0/soft0:1@1ns",
	};
	unsigned i;

	for (i = 0; i < sizeof(specs) / sizeof(*specs); i++) {
		char text[HCA_SPEC_MAX], again[HCA_SPEC_MAX];

		assert_int_equal(softhca_spec_canonical(specs[i], text, sizeof(text)), 0);
		assert_int_equal(softhca_spec_canonical(text, again, sizeof(again)), 0);
		assert_string_equal(text, again);
	}
	assert_string_equal(parse("rate=1GB/s,latency=2us").text,
			    parse("latency=2000ns,rate=8Gb/s,ports=2").text);
}

/* Interfaces as ports: as many as names, in canonical form; nothing of a model. */
static void test_nets(void **state)
{
	static const struct {
		const char *spec, *net;
		unsigned count;
	} good[] = {
		{ "net=eth0", "eth0", 1 }, { "net=eth0+eth1,rate=1Gb/s", "eth0+eth1", 2 },
		{ "ports=2,net=eth0+eth1", "eth0+eth1", 2 },
		{ "net=10.0.1.77/24+10.0.2.0/24", "10.0.1.0/24+10.0.2.0/24", 2 },
		{ "net=10.1.2.3/32,reads=4", "10.1.2.3", 1 }, { "net=10.255.0.0/9", "10.128.0.0/9", 1 },
		{ "net=FD00:0:0::1/64", "fd00::/64", 1 }, { "net=fe80::1", "fe80::1", 1 },
		{ "net=::/0", "::/0", 1 }, { "net=0.0.0.0/0", "0.0.0.0/0", 1 },
		{ "net=a+b+c+d+e+f+g+h", "a+b+c+d+e+f+g+h", 8 },
		{ "net=0123456789abcde", "0123456789abcde", 1 }, { "rate=none,net=wlp3s0.7", "wlp3s0.7", 1 },
	};
	char expected[160];
	struct hca_spec s;

	for (unsigned i = 0; i < sizeof(good) / sizeof(*good); i++) {
		s = parse(good[i].spec);
		assert_int_equal(s.nets, good[i].count);
		assert_int_equal(s.ports, good[i].count);
		assert_false(s.timed);
		assert_int_equal(hca_spec_nodes(&s), 1);
		snprintf(expected, sizeof(expected), "ports=%u,net=%s,rate=%s,reads=%d",
			 good[i].count, good[i].net, s.rate[0] ? "125MB/s" : "none", (int)s.reads);
		assert_string_equal(s.text, expected);
		assert_string_equal(parse(s.text).text, s.text);
	}
	assert_int_equal(parse("net=eth0+eth1,rate=1Gb/s").rate[1], 125000000);
	assert_string_equal(parse("net=none").text, parse("").text);
	assert_int_equal(parse("").nets, 0);
	s = parse("net=eth0+10.0.0.0/8");
	hca_spec_describe(&s, expected, sizeof(expected));
	assert_string_equal(expected, "2 ports over TCP: eth0, 10.0.0.0/8");
}

/* The longest names fit, all eight of them. */
static void test_long_nets(void **state)
{
	char text[1024] = "rate=999999999999B/s,net=", one[64];
	struct hca_spec s;

	for (int i = 0; i < HCA_PORTS_MAX; i++) {
		sprintf(one, "%s1234:5678:9abc:def1:2345:6789:abcd:ef0%x/127", i ? "+" : "", 2 * i);
		strcat(text, one);
	}
	s = parse(text);
	assert_int_equal(s.nets, HCA_PORTS_MAX);
	assert_string_equal(s.net[7], "1234:5678:9abc:def1:2345:6789:abcd:ef0e/127");
	assert_string_equal(parse(s.text).text, s.text);
}

/* ---- Personalities -------------------------------------------------------- */

/* A value of each key, its canonical form if it is another, and none of it without the key. */
static void test_traits(void **state)
{
	static const struct {
		const char *spec, *canonical;
	} good[] = {
		{ "order=never", NULL }, { "order=rts", NULL }, { "order=timed", NULL }, { "place=late", NULL },
		{ "srq=0", NULL }, { "srq=7,srqwr=100", NULL }, { "ud=no", NULL }, { "uc=no", NULL },
		{ "atomics=no", NULL }, { "card=one", NULL }, { "inline=0", NULL }, { "inline=828", NULL },
		{ "inline=1K", "inline=1024" }, { "maxwr=1,maxsge=1", NULL },
		{ "qps=5,maxcqe=9", NULL }, { "cqmem=8MiB", "cqmem=8388608" }, { "rdatom=1", NULL }, { "rdinit=1/128", NULL },
		{ "link=ib", NULL }, { "link=ib+eth", NULL }, { "link=eth+eth", "link=eth" },
		{ "link=ib/eth", NULL }, { "link=ib+eth/eth+ib/eth", NULL },
		{ "lid=0", NULL }, { "lid=100+1", NULL }, { "prefix=1", "prefix=0000000000000001" },
		{ "prefix=fe80000000000000+FEC0000000000000",
		  "prefix=fe80000000000000+fec0000000000000" },
		{ "grh=required", NULL }, { "grh=optional+required", NULL },
		{ "pkeys=8001", NULL }, { "pkeys=7FFF:ffff+8001/1:2:3:4:5:6:7:8",
		  "pkeys=7fff:ffff+8001/0001:0002:0003:0004:0005:0006:0007:0008" },
		{ "gids=ll.v1:ll.v2:ip4.v1:ip4.v2", NULL },
		{ "gids=gap:alt4.v2!:gap:ip6.v1+ll.v2/gap:same4.v2", NULL },
		{ "order=rts/never/rts", NULL }, { "srq=0/65536", NULL }, { "srq=1/2/3/4", NULL },
		{ "fatal=0/soft0:1@1ms", NULL }, { "event=sm:0/soft0:1@2ms+gid:3/soft0:2@5s", NULL },
		{ "event=lid:0/soft0:1@0s+pkey:0/soft0:1@1ns+client:0/soft0:2@1us",
		  "event=lid:0/soft0:1@0ns+pkey:0/soft0:1@1ns+client:0/soft0:2@1us" },
		{ "event=newlid:0/soft0:1@1ms+lid:0/soft0:1@2ms+newgid:1/soft0:2@3ms", NULL },
		{ "reach=0/soft0:1-1/soft0:2", NULL },
		{ "reach=0/soft0:1-0/soft0:2+7/soft0:1-9/soft0:1", NULL },
	};
	static const char *const standard[] = {
		"order=memory", "place=order", "srq=65536,srqwr=32768", "ud=yes,uc=yes,atomics=yes,card=own",
		"inline=none,maxwr=32768,maxsge=32,qps=65536", "maxcqe=4194304,cqmem=none,rdatom=none,rdinit=none",
		"link=model", "lid=1", "prefix=fe80000000000000", "grh=optional", "pkeys=ffff",
		"gids=ll.v2:ip4.v2", "fatal=none,event=none,reach=none", "order=memory/memory/memory",
	};
	char bare[HCA_SPEC_MAX];
	unsigned i;

	strcpy(bare, parse("").text);
	for (i = 0; i < sizeof(good) / sizeof(*good); i++) {
		struct hca_spec s = parse(good[i].spec);
		const char *added = s.text + strlen(bare);

		assert_memory_equal(s.text, bare, strlen(bare));
		assert_string_equal(added + 1, good[i].canonical ? good[i].canonical : good[i].spec);
		assert_string_equal(parse(s.text).text, s.text);
	}
	for (i = 0; i < sizeof(standard) / sizeof(*standard); i++)
		assert_string_equal(parse(standard[i]).text, bare);
}

/* Values of nodes and ports: the last one also of all further ones. */
static void test_scopes(void **state)
{
	struct hca_spec s = parse("ports=3,lid=5+9,order=never/rts,gids=gap:ip4.v1!+ll.v2,pkeys=1/2:3");
	const struct hca_personality *p = hca_personality_of(&s, 0), *other = hca_personality_of(&s, 700);

	assert_int_equal(p->order, HCA_ORDER_NEVER);
	assert_int_equal(hca_personality_of(&s, 1)->order, HCA_ORDER_RTS);
	assert_int_equal(other->order, HCA_ORDER_RTS);
	assert_int_equal(p->lid[0], 5);
	assert_int_equal(p->lid[1], 9);
	assert_int_equal(p->lid[2], 9);
	assert_int_equal(other->lid[0], 5);
	assert_int_equal(p->gids[0], 2);
	assert_int_equal(p->gid[0][0].kind, HCA_GID_GAP);
	assert_int_equal(p->gid[0][1].kind, HCA_GID_IP4);
	assert_true(p->gid[0][1].fails && !p->gid[0][1].v2);
	assert_int_equal(p->gids[2], 1);
	assert_true(p->gid[2][0].v2);
	assert_int_equal(p->pkeys[0], 1);
	assert_int_equal(other->pkeys[1], 2);
	assert_int_equal(other->pkey[1][1], 3);
	assert_false(s.divided);
	assert_true(parse("link=ib+eth").divided);
	assert_false(parse("link=eth/model").divided);	/* both are Ethernet */
	assert_true(parse("link=ib,prefix=1/2").divided);
	assert_false(parse("prefix=1/2").divided);	/* Ethernet has none */
	s = parse("reach=0/soft0:2-1/soft0:2");
	assert_false(hca_reaches(&s, 1, 3));
	assert_false(hca_reaches(&s, 3, 1));
	assert_true(hca_reaches(&s, 0, 3) && hca_reaches(&s, 0, 2) && hca_reaches(&s, 1, 1));
}

/* Every set is valid, has every name that is accepted, and yields to keys beside it. */
static void test_like(void **state)
{
	const char *name, *set;
	char text[160];
	unsigned i;

	for (i = 0; hca_like_set(i, &name, &set); i++) {
		snprintf(text, sizeof(text), "like=%s", name);
		assert_string_equal(parse(text).text, parse(set).text);
		assert_non_null(strstr(HCA_LIKE_NAMES, name));
		snprintf(text, sizeof(text), "inline=7,like=%s,srq=3", name);
		assert_int_equal(parse(text).personality[3].inline_max, 7);
		assert_int_equal(parse(text).personality[0].srqs, 3);
		snprintf(text, sizeof(text), "hdr-2port,like=%s/irdma-e810", name);
		assert_int_equal(parse(text).personality[2].srqs, 0);
	}
	assert_int_equal(i, 7);
}

/* Each is refused, and the line names the key. */
static void test_refused(void **state)
{
	static const struct {
		const char *spec, *names;
	} bad[] = {
		{ "ports=0", "ports=0" }, { "ports=9", "ports=9" }, { "ports=", "ports=" },
		{ "ports", "ports" }, { "ports=2.5", "ports=2.5" }, { "ports=-1", "ports=-1" },
		{ "hcas=0", "hcas=0" }, { "hcas=9", "hcas=9" },
		{ "rate=0", "rate=0" }, { "rate=1", "rate=1" }, { "rate=1GB", "rate=1GB" },
		{ "rate=1GB/s+", "rate=1GB/s+" }, { "rate=1GB/s+none", "rate=1GB/s+none" },
		{ "rate=+1GB/s", "rate=+1GB/s" }, { "ports=1,rate=1GB/s+2GB/s", "2 values for 1 port" },
		{ "ports=8,rate=1GB/s+1GB/s+1GB/s+1GB/s+1GB/s+1GB/s+1GB/s+1GB/s+1GB/s", "rate=1GB/s+" },
		{ "rate=999B/s", "rate=999B/s" }, { "latency=5", "latency=5" },
		{ "latency=11s", "latency=11s" }, { "latency=none", "latency=none" },
		{ "bus=1GB/s", "bus=1GB/s" }, { "bus=1GB/s/0:half", "bus=1GB/s/0:half" },
		{ "bus=1GB/s/1GB/s:both", "bus=1GB/s/1GB/s:both" }, { "cap=0", "cap=0" },
		{ "mtu=1000", "mtu=1000" }, { "mtu=8192", "mtu=8192" }, { "mtu=128", "mtu=128" },
		{ "window=0", "window=0" }, { "outstanding=0", "outstanding=0" },
		{ "reads=0", "reads=0" }, { "reads=129", "reads=129" },
		{ "speed=1GB/s", "'speed'" }, { "ports=2,ports=2", "ports: given twice" },
		{ "ports=2,", "''" }, { ",ports=2,,", "''" }, { "fast", "'fast'" },
		{ "ports=2,ideal", "'ideal'" }, { "=1", "''" },
		{ "cqe=1", "cqe=1" }, { "cqe=2s", "cqe=2s" },
		{ "loss=2", "loss=2" }, { "loss=-0.1", "loss=-0.1" }, { "loss=", "loss=" },
		{ "loss=0.0000000001", "loss=0.0000000001" }, { "loss=1%", "loss=1%" },
		{ "jitter=1", "jitter=1" }, { "jitter=none", "jitter=none" },
		{ "seed=-1", "seed=-1" }, { "seed=4294967296", "seed=4294967296" },
		{ "down=", "down=" }, { "down=0/soft0:1", "down=0/soft0:1" },
		{ "down=soft0:1@1ms", "down=soft0:1@1ms" }, { "down=0/soft0@1ms", "down=0/soft0" },
		{ "down=0/soft0:1@1", "down=0/soft0:1@1" }, { "up=0/soft0:1@", "up=0/soft0:1@" },
		{ "up=0/soft0:1@1ms+", "up=0/soft0:1@1ms+" }, { "up=+", "up=+" },
		{ "up=0/mlx5_0:1@1ms", "up=0/mlx5_0:1@1ms" },
		{ "up=0/soft0:1@2s@3s", "up=0/soft0:1@2s@3s" },
		{ "down=0/soft0:1@366d", "366d" }, { "down=0/soft0:1@31536001s", "31536001s" },
		{ "down=0/soft0:3@1ms", "down=0/soft0:3: no such port" },
		{ "down=0/soft0:0@1ms", "down=0/soft0:0: no such port" },
		{ "up=0/soft1:1@1ms", "up=0/soft1:1: no such port" },
		{ "up=1024/soft0:1@1ms", "up=1024/soft0:1: no such port" },
		{ "up=00001/soft0:1@1ms", "up=00001/soft0:1" },
		{ "net=", "net=: " }, { "ports=1,net", "net=: " }, { "net=eth0+", "net=eth0+: " },
		{ "net=eth0+none", "net=eth0+none: not" }, { "net=eth0+eth0", "net=eth0+eth0: one is named" },
		{ "net=10.0.0.1/8+10.1.0.0/8", "named twice" }, { "net=eth0:1", "net=eth0:1: " },
		{ "net=0123456789abcdef", "net=0123456789abcdef" }, { "net=10.0.0.0/33", "/33" },
		{ "net=10.0.0.0/", "10.0.0.0/: " }, { "net=fd00::/129", "/129" }, { "net=..", "net=.." },
		{ "net=10.0.0.0/-1", "/-1" }, { "net=10.0.0/8", "10.0.0/8" }, { "net=e/8", "net=e/8" },
		{ "net=::ffff:10.0.0.1", "net=::ffff:10.0.0.1" },
		{ "net=a+b+c+d+e+f+g+h+i", "net=a+b+c+d+e+f+g+h+i" },
		{ "net=eth0,ports=2", "ports=2: net= names 1" },
		{ "net=eth0,rate=1GB/s+2GB/s", "2 values for 1 port" },
		{ "hcas=2,net=eth0", "hcas=2: no meaning with net=" },
		{ "net=eth0,latency=1us", "latency=1us: no meaning" },
		{ "net=eth0,bus=1GB/s/2GB/s:half", "bus=1GB/s/2GB/s:half: no meaning" },
		{ "cap=1GB/s,net=eth0", "cap=1GB/s: no" }, { "net=eth0,msg=1us", "msg=1us: no" },
		{ "net=eth0,pkt=1us", "pkt=1us: no" }, { "net=eth0,cqe=1us", "cqe=1us: no" },
		{ "net=eth0,mtu=4096", "mtu=4096: no" }, { "net=eth0,window=none", "window=none: no" },
		{ "net=eth0,outstanding=9", "outstanding=9: no" }, { "net=eth0,loss=0.5", "loss=0.5: no" },
		{ "net=eth0,jitter=1us", "jitter=1us: no" }, { "net=eth0,seed=1", "seed=1: no" },
		{ "net=eth0,down=0/soft0:1@1ms", "down=0/soft0:1@1ms: no" },
		{ "order=always", "order=always" }, { "order=", "order=" }, { "order=never/", "never/" },
		{ "order=never/rts/never/rts/never", "order=never/rts" }, { "order=neve", "neve: not" },
		{ "place=early", "place=early" }, { "srq=65537", "srq=65537" }, { "srq=none", "srq=none" },
		{ "srqwr=0", "srqwr=0" }, { "ud=maybe", "ud=maybe" }, { "uc=", "uc=: " },
		{ "atomics=1", "atomics=1" }, { "inline=65537", "inline=65537" }, { "inline=-1", "inline=-1" },
		{ "maxwr=0", "maxwr=0" }, { "maxwr=32769", "maxwr=32769" }, { "maxsge=33", "maxsge=33" },
		{ "qps=0", "qps=0" }, { "maxcqe=4194305", "maxcqe=4194305" }, { "cqmem=4095", "cqmem=4095" },
		{ "rdatom=0", "rdatom=0" }, { "rdatom=129", "rdatom=129" }, { "rdinit=129", "rdinit=129" }, { "link=opa", "link=opa" },
		{ "link=ib+", "link=ib+" }, { "ports=1,link=ib+eth", "link: more values than ports" },
		{ "link=ib+ib+eth", "link: more values" }, { "lid=32769", "lid=32769" },
		{ "prefix=fe80::", "prefix=fe80::" }, { "prefix=12345678901234567", "prefix=1234" },
		{ "prefix=", "prefix=: " }, { "grh=yes", "grh=yes" }, { "pkeys=", "pkeys=: " },
		{ "pkeys=12345", "pkeys=12345" }, { "pkeys=1:2:3:4:5:6:7:8:9", "pkeys=1:2" },
		{ "pkeys=1::2", "pkeys=1::2" }, { "pkeys=0xffff", "pkeys=0xffff" },
		{ "pkeys=1+2+3", "pkeys: more values" }, { "gids=", "gids=: " }, { "gids=ll", "gids=ll:" },
		{ "gids=ll.v3", "gids=ll.v3" }, { "gids=gap.v1", "gids=gap.v1" }, { "gids=ip4.v1!!", "v1!!" },
		{ "gids=gap:gap:gap:gap:gap:gap:gap:gap:gap:gap:gap:gap:gap:gap:gap:gap:gap", "gids=gap" },
		{ "gids=ll.v1+ll.v2+gap", "gids: more values" }, { "like=mlx6", "like=mlx6" },
		{ "like=", "like=: " }, { "like=mlx4/", "like=mlx4/" }, { "like=mlx4,like=mlx4", "like: given" },
		{ "fatal=0/soft1:1@1ms", "fatal=0/soft1:1: no such port" }, { "fatal=1ms", "fatal=1ms" },
		{ "event=0/soft0:1@1ms", "event=0/soft0:1" }, { "event=fatal:0/soft0:1@1ms", "event=fatal" }, { "event=newsm:0/soft0:1@1ms", "event=newsm" },
		{ "event=sm:0/soft0:9@1ms", "event=0/soft0:9: no such port" }, { "event=", "event=: " },
		{ "reach=0/soft0:1", "reach=0/soft0:1: not" }, { "reach=0/soft0:1-", "reach=0/soft0:1-" },
		{ "reach=0/soft0:1-1/soft0:3", "reach=1/soft0:3: no such port" },
		{ "reach=0/soft0:1-1/soft0:1+", "reach=0/soft0:1-1/soft0:1+" },
		{ "net=eth0,srq=0", "srq=0: no meaning" }, { "net=eth0,like=mlx4", "like=...: no meaning" },
		{ "net=eth0,up=none", "up=none: no" }, { "mt25208-pcie,net=eth0", "no meaning with net=" },
	};
	char why[HCA_WHY_MAX];
	unsigned i;

	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		why[0] = '\0';
		assert_int_equal(softhca_spec_check(bad[i].spec, why, sizeof(why)), -EINVAL);
		if (!strstr(why, bad[i].names) || !strstr(why, "accepted") || strchr(why, '\n'))
			fail_msg("'%s': the line is: %s", bad[i].spec, why);
	}
}

static void test_describe(void **state)
{
	struct hca_spec s = parse("rate=1GB/s,latency=2us");
	char text[160];

	hca_spec_describe(&s, text, sizeof(text));
	assert_string_equal(text, "2 ports, 1 GB/s per port and direction, 2 us");
	s = parse("ports=1");
	hca_spec_describe(&s, text, sizeof(text));
	assert_string_equal(text, "1 port, untimed");
	s = parse("hcas=8,ports=8,rate=999999999B/s,latency=9999999999ns,cap=999999999B/s,"
		  "bus=999999999B/s/999999998B/s:half");
	hca_spec_describe(&s, text, sizeof(text));
	assert_true(strlen(text) < sizeof(text));
	hca_spec_describe(&s, text, 20);
	assert_true(strlen(text) < 20);
}

/* The longest spec that can be written either fits or is refused, never cut. */
static void test_long(void **state)
{
	char why[HCA_WHY_MAX], text[2048];
	struct hca_spec s, again;

	if (hca_spec_parse("hcas=8,ports=8,rate=999999999999B/s,latency=9999999999ns,"
			   "bus=999999999999B/s/999999999998B/s:half,cap=999999999997B/s,"
			   "msg=999999999ns,pkt=999999998ns,mtu=4096,window=1048575,"
			   "outstanding=1048575,reads=128", &s, why, sizeof(why)) == 0) {
		assert_int_equal(hca_spec_parse(s.text, &again, why, sizeof(why)), 0);
		assert_string_equal(s.text, again.text);
	}
	memset(text, 'a', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	assert_int_equal(hca_spec_parse(text, &s, why, sizeof(why)), -EINVAL);
	assert_true(strlen(why) < sizeof(why));
}

/* ---- Profiles ------------------------------------------------------------ */

/* Every built-in profile is valid and has a summary. */
static void test_profiles(void **state)
{
	struct hca_profiles all;
	unsigned i;

	hca_profiles_own(&all);
	assert_true(all.count >= 9);
	for (i = 0; i < all.count; i++) {
		struct hca_spec s = parse(all.item[i].name);

		assert_string_equal(parse(all.item[i].spec).text, s.text);
		assert_true(strlen(all.item[i].summary) > 10);
		assert_true(s.timed == (i > 0));
	}
	assert_int_equal(parse("mt25208-pcie").bus_read, 1493000000);
	assert_int_equal(parse("wan-8600mi,latency=1ms").latency_ns, 1000000);
	assert_int_equal(parse("wan-8600mi,latency=1ms").outstanding, 142);
}

static char scratch[SCRATCH_PATH], profiles_path[SCRATCH_PATH + 16];

static void write_profiles(const char *text)
{
	FILE *f = fopen(profiles_path, "w");

	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

static void test_profile_file(void **state)
{
	struct hca_spec s;
	char why[HCA_WHY_MAX];

	write_profiles("# ours\n\nlab rate=2GB/s,latency=1us  The lab's adapter  # with a comment\n"
		       "\tlab-slow\tlab,rate=1GB/s\r\nplain ideal\nno-newline ports=1");
	s = parse("lab-slow,ports=4");
	assert_int_equal(s.rate[0], 1000000000);
	assert_int_equal(s.latency_ns, 1000);
	assert_int_equal(s.ports, 4);
	assert_int_equal(parse("lab").rate[0], 2000000000);
	assert_int_equal(parse("no-newline").ports, 1);
	assert_false(parse("plain").timed);
	assert_int_equal(hca_spec_parse("nowhere", &s, why, sizeof(why)), -EINVAL);
	assert_non_null(strstr(why, "'nowhere': unknown profile (accepted: ideal, "));
	assert_non_null(strstr(why, " lab, lab-slow, plain, no-newline, then"));
}

/* The message names the file and the line, and built-in profiles still work. */
static void test_bad_profile_files(void **state)
{
	static const struct {
		const char *text, *names;
	} bad[] = {
		{ "a rate=1\n", ":1: a: rate=1: not accepted (accepted: " },
		{ "\n#\nb\n", ":3: b: no spec (accepted: " },
		{ "ideal ports=1\n", ":1: ideal: there is a profile of that name" },
		{ "c ports=1\nc ports=2\n", ":2: c: there is a profile of that name" },
		{ "c/d ports=1\n", ":1: 'c/d' is not a name (accepted: " },
		{ "c d,ports=1\nd ports=1\n", ":1: c: 'd': unknown profile (accepted: " },
		{ "c c\n", ":1: c: 'c': unknown profile" },
		{ "c ports=1,ports=2\n", ":1: c: ports: given twice" },
		{ "c down=0/soft0:9@1s\n", ":1: c: down=0/soft0:9: no such port" },
	};
	char why[640], text[8192] = "";
	struct hca_spec s;
	unsigned i;

	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		write_profiles(bad[i].text);
		assert_int_equal(hca_spec_parse("lab", &s, why, sizeof(why)), -EINVAL);
		if (strncmp(why, "spec: ", 6) != 0 || !strstr(why, profiles_path) ||
		    !strstr(why, bad[i].names) || strchr(why, '\n'))
			fail_msg("'%s': the line is: %s", bad[i].text, why);
		parse("mt25208-pcie");
	}
	for (i = 0; i < HCA_PROFILES_MAX; i++)
		sprintf(text + strlen(text), "p%u ports=1\n", i);
	write_profiles(text);
	assert_int_equal(hca_spec_parse("lab", &s, why, sizeof(why)), -EINVAL);
	assert_non_null(strstr(why, "too many (accepted: 255 profiles)"));
	unlink(profiles_path);
	assert_int_equal(hca_spec_parse("lab", &s, why, sizeof(why)), -EINVAL);
	assert_non_null(strstr(why, "No such file"));
	setenv("SOFTHCA_PROFILES", "", 1);
	assert_int_equal(hca_spec_parse("lab", &s, why, sizeof(why)), -EINVAL);
	assert_non_null(strstr(why, "unknown profile"));
	setenv("SOFTHCA_PROFILES", "/", 1);
	assert_int_equal(hca_spec_parse("lab", &s, why, sizeof(why)), -EINVAL);
	assert_non_null(strstr(why, "profiles /: "));
	setenv("SOFTHCA_PROFILES", profiles_path, 1);
}

static void test_config_home(void **state)
{
	char sub[SCRATCH_PATH + 16], path[SCRATCH_PATH + 32], why[HCA_WHY_MAX];
	struct hca_spec s;
	FILE *f;

	snprintf(sub, sizeof(sub), "%s/softhca", scratch);
	snprintf(path, sizeof(path), "%s/profiles", sub);
	unsetenv("SOFTHCA_PROFILES");
	setenv("XDG_CONFIG_HOME", scratch, 1);
	assert_int_equal(hca_spec_parse("home", &s, why, sizeof(why)), -EINVAL);
	assert_non_null(strstr(why, "unknown profile"));
	assert_int_equal(mkdir(sub, 0700), 0);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs("home ports=7\n", f);
	fclose(f);
	assert_int_equal(parse("home").ports, 7);
	unsetenv("XDG_CONFIG_HOME");
	setenv("SOFTHCA_PROFILES", profiles_path, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults), cmocka_unit_test(test_every_key),
		cmocka_unit_test(test_rates), cmocka_unit_test(test_nets),
		cmocka_unit_test(test_long_nets),
		cmocka_unit_test(test_canonical), cmocka_unit_test(test_traits),
		cmocka_unit_test(test_scopes),
		cmocka_unit_test(test_like),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_fractions), cmocka_unit_test(test_schedule),
		cmocka_unit_test(test_many_changes), cmocka_unit_test(test_describe),
		cmocka_unit_test(test_long), cmocka_unit_test(test_profiles),
		cmocka_unit_test(test_profile_file), cmocka_unit_test(test_bad_profile_files),
		cmocka_unit_test(test_config_home),
	};
	FILE *f;
	int rc;

	/* Files of the tester must not matter. */
	if (scratch_make(scratch))
		return 1;
	snprintf(profiles_path, sizeof(profiles_path), "%s/profiles", scratch);
	f = fopen(profiles_path, "w");
	if (!f || fclose(f))
		return 1;
	setenv("SOFTHCA_PROFILES", profiles_path, 1);
	rc = cmocka_run_group_tests(tests, NULL, NULL);
	scratch_remove(scratch);
	return rc;
}
