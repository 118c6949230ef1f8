/*
 * railmpi.h - librailmpi: MPI over rails, for programs that want to know.
 *
 * A program needs none of this: linked with or preloaded by librailmpi, its
 * point-to-point messages go over rails (RAILGAUGE_OVER and the other
 * RAILGAUGE_ variables steer it).  This header is for programs that compare.
 *
 * The way of a communicator is chosen when it is made and never changes:
 *
 *	MPI_Info_set(info, RAILMPI_INFO_KEY, "stripe,threshold=16K");
 *	MPI_Comm_dup_with_info(comm, info, &striped);
 *
 * The harness sets over=native (railmpi_option) before MPI_Init, so that
 * MPI_COMM_WORLD stays the MPI library's own and only such duplicates go over
 * rails; a program that compares does well to do the same.
 *
 * Value: native | single | bind | stripe, then ",name=value" for options that
 * belong to a communicator.  All ranks must give the same.  Communicators made
 * from a routed one by dup and split inherit its way.
 */
#ifndef RAILMPI_H
#define RAILMPI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

#define RAILMPI_INFO_KEY "railgauge"

struct opt;
struct opt_choice;

/*
 * The rows of the transport's options (util/opt.h), for a program that offers
 * them as its own; their values are passed on by railmpi_option and, where a
 * row's carry is OPT_COMM, in the info value.
 */
const struct opt *railmpi_options(void);

/* The choices of --over: name -> enum railmpi_way. */
enum railmpi_way { RAILMPI_NATIVE, RAILMPI_SINGLE, RAILMPI_BIND, RAILMPI_STRIPE };
const struct opt_choice *railmpi_ways(void);

/*
 * Set one process-wide option before MPI_Init, as RAILGAUGE_<NAME> would; the
 * same on all ranks.  0, or -EINVAL with a reason in why.
 */
int railmpi_option(const char *name, const char *text, char *why, size_t why_size);

enum { RAILMPI_RAILS_MAX = 8 };

struct railmpi_rail {
	char name[72];
	uint64_t rate_bytes_per_s;	/* nominal, per direction; 0 = unlimited */
	uint32_t mtu_bytes;
	bool polls_memory;
};

struct railmpi_fabric {
	const char *kind;		/* "hardware", "kernel software", "software HCA" or "none" */
	bool hardware;			/* numbers may be cited as hardware's */
	bool modelled;			/* timed by a model, not by the machine */
	const char *text;		/* for people */
	const char *spec;		/* of the software HCA or "" */
	unsigned nodes;			/* virtual nodes, 0 on a real fabric */
	int rail_count;
	struct railmpi_rail rail[RAILMPI_RAILS_MAX];
};

/*
 * Bring up the rails now (collective over MPI_COMM_WORLD; otherwise the first
 * routed communicator does it).  0 or -errno on every rank, after one error
 * line on one of them.
 */
int railmpi_open(void);

/* What the rails run on; kind "none" when no communicator is routed. */
void railmpi_fabric(struct railmpi_fabric *out);

struct railmpi_ledger {
	uint64_t tx_messages, tx_chunks, tx_bytes;
	uint64_t rx_messages, rx_chunks, rx_bytes;
	uint64_t stalls;
};
int railmpi_ledger(int rail, struct railmpi_ledger *out);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
