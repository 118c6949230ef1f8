/* made_hosts.h - hosts that are made up, for the choice of their ports. */
#ifndef TESTS_MADE_HOSTS_H
#define TESTS_MADE_HOSTS_H

#include "cmocka_all.h"

#include <stdint.h>

#include "rail/open/port_choice.h"

enum { HOSTS = 16 };

static const uint64_t GB = 1000000000;

extern struct choice_host host[HOSTS];
extern struct choice choice;
extern struct choice_losses lost;
extern char lines[4096];		/* what choose tells */

/* Hosts without ports, and no losses. */
void begin(void);
/* The next port of a host, at a place of its own: a full member of the default partition. */
struct choice_port *port_add(unsigned h, uint8_t link_layer, uint64_t rate);
struct choice_port *ib_add(unsigned h, uint64_t rate, unsigned char prefix);
struct choice_port *eth_add(unsigned h, uint64_t rate, const char *address, uint8_t bits);
void gid_add(struct choice_port *p, const char *address, uint8_t type, uint8_t bits);

/* The choice of the first hosts, and its lines.  0 or -errno. */
int choose(unsigned hosts);
void is_rails(unsigned hosts, unsigned rails);
void is_end(unsigned rail, unsigned h, unsigned port);
/* A line has the words. */
void says(const char *words);
/* The end of a group of tests. */
int hosts_free(void **state);

#endif
