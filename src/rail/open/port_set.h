/*
 * port_set.h - for the files of port_choice.h: which ports of each host may be rails, as bits, before they
 * are matched with those of others.
 */
#ifndef RAIL_PORT_SET_H
#define RAIL_PORT_SET_H

#include "rail/open/port_choice.h"

enum { CHOICE_SLOWEST = 4 };		/* a port below this part of the best rate takes no part */

struct trial {
	struct choice *c;
	uint8_t link_layer;
	uint32_t *set;			/* [hosts]: ports that may be rails */
	uint32_t *barred;		/* [hosts]: of sets whose ports do not reach each other */
};

static inline const struct choice_port *trial_port(const struct trial *t, unsigned h, unsigned p)
{
	return &t->c->host[h]->port[p];
}

static inline bool trial_has(const struct trial *t, unsigned h, unsigned p)
{
	return t->set[h] >> p & 1;
}

static inline void choice_leave(struct choice *c, unsigned h, unsigned p, enum choice_why why, unsigned other)
{
	c->left[h][p] = (struct choice_left){ .why = (uint8_t)why, .host = other };
}

/* CHOICE_USED, or why a port of any host cannot be a rail of this link layer. */
enum choice_why choice_usable(const struct choice_port *p, uint8_t link_layer);
/* The largest set of one link layer, rate and prefix, without the ports in t->barred; the others have a reason. */
void trial_sets(struct trial *t);

#endif
