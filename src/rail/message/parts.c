/* parts.c - see parts.h. */
#include <errno.h>
#include <stdlib.h>

#include "rail/message/chunks.h"
#include "util/err.h"
#include "rail/message/parts.h"
#include "rail/open/rail_ctx.h"
#include "rail/message/rail_op.h"
#include "rail/peer/peer.h"
#include "rail/message/rndv.h"

int rail_parts_make(struct op *op, size_t bytes, bool staged)
{
	const bool slices = staged && op->buf.in_slices;
	const size_t most = slices ? op->peer->slice_bytes[op->slicing] : op->peer->ctx->part_bytes;
	struct rail_parts *p;

	op->parts = NULL;
	op->in_parts = false;
	if (bytes <= most && !staged)
		return 0;
	p = calloc(1, sizeof(*p));
	if (p && staged) {
		p->memory_bytes = bytes < most ? bytes : most;
		p->memory = malloc(p->memory_bytes);
	}
	if (!p || (staged && !p->memory)) {
		free(p);
		rg_error("no memory to move a message of %zu bytes", bytes);
		return -ENOMEM;
	}
	op->parts = p;
	return 0;
}

void rail_parts_free(struct op *op)
{
	if (!op->parts)
		return;
	op->bytes = op->parts->cleared;		/* the whole, for rail_op_traced */
	free(op->parts->memory);
	free(op->parts);
	op->parts = NULL;
}

void rail_parts_memory(const struct op *op, void **addr, size_t *bytes)
{
	const struct rail_parts *p = op->parts;

	*addr = p && p->memory ? p->memory : op->buf.addr;
	*bytes = p && p->memory ? p->memory_bytes : op->buf.bytes;
}

unsigned char *rail_parts_data(const struct op *op)
{
	const struct rail_parts *p = op->parts;

	return p->memory ? p->memory : (unsigned char *)op->buf.addr + p->begin;
}

static void part_copy(struct op *op, bool gather)
{
	const struct rail_parts *p = op->parts;
	const struct rail_config *cfg = &op->peer->ctx->cfg;

	if (p->memory && op->bytes)
		cfg->on_part(cfg->user, op_outer(op), p->begin, p->memory, op->bytes, gather);
}

/* ---- Sender ------------------------------------------------------------- */

bool rail_parts_fit(const struct op *op, uint64_t bytes, bool more)
{
	const struct rail_parts *p = op->parts;
	uint64_t left = op->buf.bytes - (p ? p->cleared : 0);

	return bytes <= left && (!more || (p && bytes && bytes < left)) &&
	       (!p || !p->memory || op->buf.in_slices || bytes <= p->memory_bytes);
}

static void part_start(struct op *op)
{
	struct rail_parts *p = op->parts;

	op->bytes = p->next;
	p->begin = p->cleared - p->next;
	p->next = 0;
	part_copy(op, true);
}

void rail_parts_asked(struct op *op, uint64_t bytes, bool more)
{
	op->parts->cleared += bytes;
	op->parts->more = more;
	op->in_parts |= more;
}

bool rail_parts_cleared(struct op *op, uint64_t bytes)
{
	op->parts->next = bytes;
	if (op->stage == STAGE_POSTED)
		return false;
	part_start(op);
	return true;
}

bool rail_parts_sent(struct op *op)
{
	if (op->parts->next) {
		part_start(op);
		rndv_chunks_start(op);
		return true;
	}
	if (op->parts->more)
		op->stage = STAGE_RTS_SENT;	/* until the next CTS */
	return op->parts->more;
}

/* ---- Receiver ----------------------------------------------------------- */

static void part_request(struct op *op)
{
	struct rail_parts *p = op->parts;
	uint64_t left = op->buf.bytes - p->begin;

	op->bytes = left < p->most ? left : p->most;
	p->cleared = p->begin + op->bytes;
	p->more = op->bytes < left;
	op->in_parts |= p->more;
}

void rail_parts_begin(struct op *op, bool theirs)
{
	struct rail_parts *p = op->parts;

	p->most = p->memory || theirs ? op->peer->ctx->part_bytes : op->peer->table_bytes;
	part_request(op);
}

void rail_parts_landed(struct op *op)
{
	part_copy(op, false);
}

bool rail_parts_next(struct op *op)
{
	struct rail_parts *p = op->parts;

	if (!p->more)
		return false;
	p->begin = p->cleared;
	op->remote += op->bytes;	/* used by reads */
	part_request(op);
	return true;
}
