/* sizes.c - see sizes.h. */
#include "mpi/watch/sizes.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "mpi/comm/comm.h"
#include "mpi/p2p/send.h"
#include "util/units.h"

static struct sizes sizes;
static void (*next_eager)(void *user, unsigned index, bool sent, int rail,
			  const struct rail_header *header, size_t bytes);
static void (*next_send_done)(struct rail_op *op, int status);

/* ---- Counting ---------------------------------------------------------------------------- */

static int class_of(uint64_t bytes)
{
	int i = bytes > 1 ? 65 - __builtin_clzll(bytes - 1) : (int)bytes;

	return i < SIZES_CLASSES ? i : SIZES_CLASSES - 1;
}

static void sizes_add(const struct rail_header *header, uint64_t bytes)
{
	const int i = class_of(bytes);

	if (header->word[0] & COMM_COLLECTIVE_CONTEXT)
		sizes.of[i].collective++;
	else
		sizes.of[i].program++;
	sizes.of[i].bytes += bytes;
}

static void sized_eager(void *user, unsigned index, bool sent, int rail,
			const struct rail_header *header, size_t bytes)
{
	if (sent)
		sizes_add(header, bytes);
	if (next_eager)
		next_eager(user, index, sent, rail, header, bytes);
}

static void sized_send_done(struct rail_op *op, int status)
{
	struct rail_traced t;

	if (!status) {
		rail_op_traced(op, true, &t);
		if (!t.eager)
			sizes_add(rail_op_header(op), t.bytes);
	}
	next_send_done(op, status);
}

void sizes_open(struct rail_config *cfg)
{
	memset(&sizes, 0, sizeof(sizes));
	next_eager = cfg->on_eager;
	cfg->on_eager = sized_eager;
	next_send_done = send_done;
	send_done = sized_send_done;
}

void sizes_close(void)
{
	if (next_send_done)
		send_done = next_send_done;
	next_send_done = NULL;
}

/* ---- The table --------------------------------------------------------------------------- */

void sizes_read(struct sizes *out)
{
	*out = sizes;
}

void sizes_print(FILE *f, const struct sizes *s)
{
	char size[RG_UNIT_TEXT];

	fprintf(f, "  %-16s %14s %14s %18s\n", "messages of", "program's", "collectives'", "bytes sent");
	for (int i = 0; i < SIZES_CLASSES; i++)
		if (s->of[i].program || s->of[i].collective)
			fprintf(f, "  %s %-10s %14" PRIu64 " %14" PRIu64 " %18" PRIu64 "\n",
				i > 1 ? "up to" : "     ",
				rg_format_size(i ? UINT64_C(1) << (i - 1) : 0, size, sizeof(size)),
				s->of[i].program, s->of[i].collective, s->of[i].bytes);
}
