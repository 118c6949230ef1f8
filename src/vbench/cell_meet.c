/*
 * cell_meet.c - the two ends of a cell, by messages of MPI: addresses, the readiness of the end that
 * receives, the end of the one that sends, and, if bytes are checked, what the receiver found.
 *
 * Messages are short and so leave at once.  A wait for one ends with the cell's limit, its stop, or a
 * limit of its own; a message that comes later has a tag that no later cell uses.
 */
#include "vbench/cells.h"

#include <mpi.h>
#include <string.h>

#include "util/clock.h"

enum { CELL_TAG = 4096, STEPS = 4, CELLS = 4096 };
enum step { HELLO, READY, DONE, FOUND };
enum { SPINS = 200 };
/* Both ends begin a cell together, but for a rank that waits for a core. */
#define MEET_NS UINT64_C(1500000000)
#define FOUND_NS UINT64_C(10000000000)

struct hello {
	int ok;
	uint32_t rkey;
	uint64_t rbuf;
	struct vrb_address address;
};

static int tag_of(const struct cell *c, enum step step)
{
	return CELL_TAG + (int)(c->of->serial % CELLS) * STEPS + (int)step;
}

static void tell(const struct cell *c, enum step step, const void *what, size_t bytes)
{
	MPI_Send(what, (int)bytes, MPI_BYTE, c->of->peer, tag_of(c, step), MPI_COMM_WORLD);
}

/* Empty polls let a software HCA make progress for the peer's messages. */
static void progress(struct cell *c)
{
	struct ibv_wc wc;

	if (c->cq.cq && ibv_poll_cq(c->cq.cq, 1, &wc) > 0)
		return;
	rg_yield();
}

/* Wait for the peer's message, up to most_ns if that is not 0.  false: it has not come. */
static bool hear(struct cell *c, enum step step, void *what, size_t bytes, uint64_t most_ns)
{
	const uint64_t begun = rg_now_ns();
	MPI_Request request;
	int come = 0;

	MPI_Irecv(what, (int)bytes, MPI_BYTE, c->of->peer, tag_of(c, step), MPI_COMM_WORLD, &request);
	for (unsigned i = 1; ; i++) {
		bool late = most_ns && rg_now_ns() - begun > most_ns;

		MPI_Test(&request, &come, MPI_STATUS_IGNORE);
		if (come)
			return true;
		if (late || (c->of->stopped && c->of->stopped(c->of->user)))
			break;
		if (i % SPINS == 0)
			progress(c);
	}
	c->failed = true;
	MPI_Cancel(&request);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	return false;
}

/* Exchange addresses and connect.  Both ends say whether they can.  false: the peer says nothing. */
static bool meet(struct cell *c)
{
	struct hello mine, theirs;

	memset(&mine, 0, sizeof(mine));
	mine.ok = !c->failed;
	mine.rkey = c->rkey;
	mine.rbuf = (uintptr_t)c->rbuf;
	if (mine.ok)
		vrb_qp_address(c->adapter, &c->qp, c->port, &mine.address);
	tell(c, HELLO, &mine, sizeof(mine));
	if (!hear(c, HELLO, &theirs, sizeof(theirs), MEET_NS))
		return false;
	c->their_rkey = theirs.rkey;
	c->their_rbuf = theirs.rbuf;
	if (!mine.ok || !theirs.ok ||
	    vrb_qp_connect(c->adapter, &c->qp, c->port, &theirs.address))
		c->failed = true;
	return true;
}

/* ---- Bytes that are checked -------------------------------------------------------------- */

static unsigned char byte_of(const struct cell *c, uint64_t i)
{
	uint64_t word = (c->of->serial << 32 ^ i / 8) * UINT64_C(0x9e3779b97f4a7c15);

	return (unsigned char)(word >> (8 * (i % 8)) | 1);
}

static void bytes_fill(const struct cell *c)
{
	for (uint64_t i = 0; i < c->bytes; i++)
		c->sbuf[i] = byte_of(c, i);
}

static int bytes_are_right(const struct cell *c)
{
	for (uint64_t i = 0; i < c->bytes; i++)
		if (c->rbuf[i] != byte_of(c, i))
			return 0;
	return 1;
}

/* ---- Sides -------------------------------------------------------------------------------- */

static void sender(struct cell *c)
{
	int ready = 0, whole, right;

	if (c->of->validate)
		bytes_fill(c);
	/* A message that is not received stays with the MPI library, some of which tell it at their end. */
	if (meet(c) && hear(c, READY, &ready, sizeof(ready), MEET_NS) && ready && !c->failed)
		cell_send(c);
	whole = c->out->whole;
	tell(c, DONE, &whole, sizeof(whole));
	if (c->of->validate && whole && hear(c, FOUND, &right, sizeof(right), FOUND_NS))
		c->out->valid = right;
}

static void receiver(struct cell *c)
{
	int ready, whole = 0, right;

	if (c->of->validate)
		memset(c->rbuf, 0, c->bytes);
	meet(c);
	ready = !c->failed;
	tell(c, READY, &ready, sizeof(ready));
	if (!hear(c, DONE, &whole, sizeof(whole), ready ? 0 : 2 * MEET_NS) || !whole)
		return;
	c->out->whole = true;
	if (!c->of->validate)
		return;
	right = bytes_are_right(c);
	tell(c, FOUND, &right, sizeof(right));
}

void cell_meet(struct cell *c)
{
	if (c->of->sends)
		sender(c);
	else
		receiver(c);
}
