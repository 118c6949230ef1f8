/* port_loss.c - pairs of ports between which datagrams are lost, of any two hosts. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rail/open/port_choice.h"

static int loss_order(const void *a, const void *b)
{
	const struct choice_loss *x = a, *y = b;

	if (x->a != y->a)
		return x->a < y->a ? -1 : 1;
	if (x->port != y->port)
		return x->port < y->port ? -1 : 1;
	return x->b < y->b ? -1 : x->b > y->b;
}

static uint64_t pairs_in(const struct choice_losses *l)
{
	uint64_t n = 0;

	for (size_t i = 0; i < l->count; i++)
		n += (uint64_t)__builtin_popcount(l->at[i].ports);
	return n;
}

/* Sorted, one entry for a port and a host. */
static void losses_merge(struct choice_losses *l)
{
	size_t kept = 0;

	if (l->count)
		qsort(l->at, l->count, sizeof(*l->at), loss_order);
	for (size_t i = 0; i < l->count; i++)
		if (kept && !loss_order(&l->at[kept - 1], &l->at[i]))
			l->at[kept - 1].ports |= l->at[i].ports;
		else
			l->at[kept++] = l->at[i];
	l->count = kept;
}

int choice_losses_add(struct choice_losses *l, const struct choice_loss *more, size_t count, bool *news)
{
	const uint64_t before = pairs_in(l);
	size_t room = l->count + count;
	struct choice_loss *at;

	for (size_t i = 0; i < count; i++)
		room += (size_t)__builtin_popcount(more[i].ports);
	at = realloc(l->at, (room ? room : 1) * sizeof(*at));
	if (!at)
		return -ENOMEM;
	l->at = at;
	for (size_t i = 0; i < count; i++) {
		l->at[l->count++] = more[i];
		for (uint32_t ports = more[i].ports; ports; ports &= ports - 1)
			l->at[l->count++] = (struct choice_loss){
				.a = more[i].b, .port = (uint32_t)__builtin_ctz(ports),
				.b = more[i].a, .ports = UINT32_C(1) << more[i].port,
			};
	}
	losses_merge(l);
	*news = pairs_in(l) > before;
	return 0;
}

const struct choice_loss *choice_losses_of(const struct choice *c, unsigned host, unsigned port, size_t *count)
{
	const struct choice_losses *l = c->lost;
	size_t low = 0, high = l ? l->count : 0, end = high;

	while (low < high) {
		const size_t middle = (low + high) / 2;
		const struct choice_loss *at = &l->at[middle];

		if (at->a < host || (at->a == host && at->port < port))
			low = middle + 1;
		else
			high = middle;
	}
	for (high = low; high < end && l->at[high].a == host && l->at[high].port == port; high++)
		;
	*count = high - low;
	return *count ? &l->at[low] : NULL;
}

uint32_t choice_lost_to(const struct choice *c, unsigned host, unsigned port, unsigned other)
{
	size_t count;
	const struct choice_loss *at = choice_losses_of(c, host, port, &count);

	for (size_t i = 0; i < count; i++)
		if (at[i].b == other)
			return at[i].ports;
	return 0;
}
