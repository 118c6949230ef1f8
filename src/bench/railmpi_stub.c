/*
 * railmpi_stub.c - railmpi.h without a transport, for builds from before
 * src/mpi existed: configure takes it only if src/mpi has no source file.
 * Ways over rails fail and say so.
 */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "err.h"
#include "opt.h"
#include "railmpi.h"

struct stub_values { uint64_t nodes, threshold; const char *soft, *rails; };

static const struct opt_choice ways[] = {
	{ "native", RAILMPI_NATIVE, "the MPI library itself" },
	{ "single", RAILMPI_SINGLE, "one rail" },
	{ "bind", RAILMPI_BIND, "whole messages, on the rail bound to the pair of ranks" },
	{ "stripe", RAILMPI_STRIPE, "even pieces over all rails, above the threshold" },
	{ NULL },
};

static const struct opt rows[] = {
	{ .name = "nodes", .type = OPT_COUNT, .carry = OPT_JOB, .standard = "2", .min = 1,
	  .max = 1024, .offset = offsetof(struct stub_values, nodes), .arg = "N",
	  .help = "virtual nodes that the ranks of one host stand for" },
	{ .name = "threshold", .type = OPT_SIZE, .carry = OPT_COMM, .standard = "8K", .min = 1,
	  .max = UINT64_C(1) << 40, .special = "auto", .arg = "BYTES",
	  .offset = offsetof(struct stub_values, threshold), .help = "larger ones are striped" },
	{ .name = "soft", .type = OPT_TEXT, .carry = OPT_JOB, .arg = "SPEC",
	  .offset = offsetof(struct stub_values, soft), .help = "software HCA" },
	{ .name = "rails", .type = OPT_TEXT, .carry = OPT_JOB, .arg = "LIST",
	  .offset = offsetof(struct stub_values, rails), .help = "rails" },
	{ .name = NULL },
};

const struct opt *railmpi_options(void)
{
	return rows;
}

const struct opt_choice *railmpi_ways(void)
{
	return ways;
}

int railmpi_option(const char *name, const char *text, char *why, size_t why_size)
{
	return 0;
}

int railmpi_open(void)
{
	rg_error("this build has no transport (src/mpi was missing): only --over native works");
	return -ENODEV;
}

void railmpi_fabric(struct railmpi_fabric *out)
{
	memset(out, 0, sizeof(*out));
	out->kind = "none";
	out->text = out->spec = "";
}

int railmpi_ledger(int rail, struct railmpi_ledger *out)
{
	return -ENOENT;
}
