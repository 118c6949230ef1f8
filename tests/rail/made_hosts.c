/* made_hosts.c - see made_hosts.h. */
#include "made_hosts.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct choice_host host[HOSTS];
struct choice choice;
struct choice_losses lost;
char lines[4096];

void begin(void)
{
	memset(host, 0, sizeof(host));
	lost.count = 0;
	for (unsigned h = 0; h < HOSTS; h++)
		snprintf(host[h].name, sizeof(host[h].name), "node%u", h);
}

struct choice_port *port_add(unsigned h, uint8_t link_layer, uint64_t rate)
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

struct choice_port *ib_add(unsigned h, uint64_t rate, unsigned char prefix)
{
	struct choice_port *p = port_add(h, IBV_LINK_LAYER_INFINIBAND, rate);

	p->tables.gids = 1;
	p->tables.gid[0].raw[7] = prefix;
	p->tables.gid[0].raw[15] = (unsigned char)(h * 16 + host[h].count);
	return p;
}

void gid_add(struct choice_port *p, const char *address, uint8_t type, uint8_t bits)
{
	struct vrb_gid *g = &p->tables.gid[p->tables.gids];

	assert_int_equal(inet_pton(AF_INET6, address, g->raw), 1);
	g->index = (uint8_t)(2 * p->tables.gids++);
	g->type = type;
	g->bits = bits;
}

struct choice_port *eth_add(unsigned h, uint64_t rate, const char *address, uint8_t bits)
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

int choose(unsigned hosts)
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

void is_rails(unsigned hosts, unsigned rails)
{
	assert_int_equal(choose(hosts), 0);
	assert_int_equal(choice.rails, rails);
}

void is_end(unsigned rail, unsigned h, unsigned port)
{
	assert_int_equal(choice.end[h][rail].port, port);
}

void says(const char *words)
{
	if (!strstr(lines, words))
		print_error("%s", lines);
	assert_non_null(strstr(lines, words));
}

int hosts_free(void **state)
{
	(void)state;
	choice_free(&choice);
	free(lost.at);
	return 0;
}
