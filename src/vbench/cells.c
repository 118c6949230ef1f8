/* cells.c - ports, memory and queue pairs of cells. */
#include "vbench/cells.h"

#include <errno.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "util/clock.h"
#include "util/err.h"
#include "vbench/die.h"
#include "vbench/held.h"

enum {
	MARK = 78,			/* wr_id of the last request of a queue */
	RECEIVES = 1,
};
#define DRAIN_NS UINT64_C(200000000)

/* An adapter that cells have used. */
struct end {
	struct vrb_adapter adapter;
	struct ibv_mr *smr, *rmr;
	bool open;
	int rc;				/* why it cannot be used; 0: nothing is known */
};

static const struct vrb_ports *ports;
static struct end *end;			/* by port */
static unsigned char *sbuf, *rbuf;
static uint64_t message_bytes;

/* ---- Ports and memory ----------------------------------------------------------------- */

static void cells_close(void)
{
	for (int i = 0; end && i < ports->count; i++) {
		vrb_mr_deregister(end[i].smr);
		vrb_mr_deregister(end[i].rmr);
		if (end[i].open)
			vrb_adapter_close(&end[i].adapter);
	}
	if (sbuf)
		MPI_Free_mem(sbuf);
	if (rbuf)
		MPI_Free_mem(rbuf);
	free(end);
	sbuf = rbuf = NULL;
	end = NULL;
}

static int end_register(struct end *e)
{
	int rc = vrb_mr_register(&e->adapter, sbuf, message_bytes, VRB_MR_BULK, &e->smr);

	return rc ? rc : vrb_mr_register(&e->adapter, rbuf, message_bytes, VRB_MR_BULK, &e->rmr);
}

/* The adapter of a port, opened by its first cell; NULL: it cannot be used. */
static struct end *end_of(int port)
{
	struct end *e = &end[port];

	if (!e->open && !e->rc) {
		e->rc = vrb_adapter_open(&e->adapter, &ports->port[port]);
		e->open = !e->rc;
		e->rc = e->rc ? e->rc : end_register(e);
	}
	return e->rc ? NULL : e;
}

/* A lack of a healthy port is no fault of the fabric, of which the port would be accused. */
static bool is_lack(int rc)
{
	return rc == -ENOMEM || rc == -EINVAL || rc == -EAGAIN || rc == -EOPNOTSUPP;
}

static int ends_open(void)
{
	for (int i = 0; i < ports->count; i++)
		if (ports->port[i].usable && !end_of(i) && is_lack(end[i].rc))
			return end[i].rc;
	return 0;
}

static int cells_open(uint64_t bytes)
{
	ports = railmpi_ports();
	message_bytes = bytes;
	end = ports ? calloc((size_t)ports->count + 1, sizeof(end[0])) : NULL;
	if (end) {
		MPI_Alloc_mem((MPI_Aint)bytes + VRB_GRH_BYTES, MPI_INFO_NULL, &sbuf);
		MPI_Alloc_mem((MPI_Aint)bytes + VRB_GRH_BYTES, MPI_INFO_NULL, &rbuf);
	}
	if (sbuf && rbuf) {
		memset(sbuf, 0, bytes);
		memset(rbuf, 0, bytes);
		vb_hold();
		return vb_held(ends_open());
	}
	rg_error("no memory for the cells' messages (use smaller --sizes)");
	return -ENOMEM;
}

static void port_look(int i, struct bench_port *out)
{
	const struct vrb_port *p = &ports->port[i];
	struct end *e = p->usable ? end_of(i) : NULL;

	memset(out, 0, sizeof(*out));
	memcpy(out->name, p->name, strlen(p->name) < sizeof(out->name) ? strlen(p->name) + 1 : 0);
	out->active = e && vrb_port_state_now(e->adapter.context, p) == IBV_PORT_ACTIVE;
	out->counts_retries = e && vrb_port_retries(e->adapter.context, p, &out->retries) == 0;
}

static int cells_ports(struct bench_port *out, int most)
{
	int count = 0;

	for (int i = 0; i < ports->count && i < most; i++)
		port_look(i, &out[count++]);
	return count;
}

/* ---- Counters of errors ----------------------------------------------------------------- */

struct each { void (*call)(void *user, const char *name, uint64_t value); void *user; int count; };

static bool counts_errors(const char *name)
{
	static const char *const words[] = {
		"err", "discard", "drop", "downed", "recovery", "retry", "retrans", "timeout", "nak",
		"out_of_sequence", "integrity",
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strstr(name, words[i]))
			return true;
	return false;
}

static void counter_pass(void *user, const char *name, const uint64_t *value)
{
	struct each *e = user;

	if (!value || !counts_errors(name))
		return;
	e->call(e->user, name, *value);
	e->count++;
}

static int cells_errors(int port, void (*call)(void *user, const char *name, uint64_t value),
			void *user)
{
	struct each e = { .call = call, .user = user };

	if (port >= 0 && port < ports->count)
		vrb_port_counters_read(&ports->port[port], counter_pass, &e);
	return e.count;
}

/* ---- A cell ---------------------------------------------------------------------------------- */

static int cell_open(struct cell *c, struct end *e)
{
	const struct vrb_qp_limits want = { .send_wr = (uint32_t)c->of->window + 1,
					    .recv_wr = RECEIVES, .send_sge = 1, .recv_sge = 1 };
	struct vrb_service service = { .type = IBV_QPT_RC, .brief = true };
	int rc = vrb_cq_create(&e->adapter, c->of->window + 1 + RECEIVES + 2, false, &c->cq);

	if (rc)
		return rc;
	service.send_cq = service.recv_cq = c->cq.cq;
	c->adapter = &e->adapter;
	c->lkey = e->smr->lkey;
	c->rkey = e->rmr->rkey;
	return vrb_qp_create_of(&e->adapter, c->port, &service, &want, &c->qp);
}

/* Drain the queue pair before it is destroyed: some kernels' devices require it. */
static void cell_close(struct cell *c)
{
	const uint64_t until_ns = rg_now_ns() + DRAIN_NS;
	int marks = vrb_qp_stop_marked(&c->qp, MARK);
	struct ibv_wc wc;

	while (marks > 0 && rg_now_ns() < until_ns) {
		if (ibv_poll_cq(c->cq.cq, 1, &wc) > 0)
			marks -= wc.wr_id == MARK;
		else
			rg_yield();
	}
	vrb_qp_destroy(&c->qp);
	vrb_cq_destroy(&c->cq);
}

static int cell_prepare(struct cell *c)
{
	struct end *e = end_of(c->of->port);
	const int rc = e ? cell_open(c, e) : -EIO;

	if (is_lack(rc)) {
		vb_held(rc);
		rg_errors_release(true);
		vb_die(c->port->name, "a cell has no queue pair here");
	}
	return rc;
}

static void cells_measure(const struct bench_cell *of, struct bench_cell_result *out)
{
	struct cell c = { .of = of, .out = out, .port = &ports->port[of->port], .sbuf = sbuf,
			  .rbuf = rbuf, .bytes = message_bytes, .begun_ns = rg_now_ns() };

	*out = (struct bench_cell_result){ .valid = -1 };
	/* A failure here is the cell's result, and no error of the program. */
	rg_errors_hold();
	vb_hold();
	c.failed = cell_prepare(&c) != 0;
	cell_meet(&c);
	cell_close(&c);
	vb_held(0);
	rg_errors_release(false);
}

const struct bench_cells vbench_cells = {
	.open = cells_open, .ports = cells_ports, .errors = cells_errors, .measure = cells_measure,
	.close = cells_close,
};
