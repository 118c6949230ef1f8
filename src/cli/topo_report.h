/*
 * topo_report.h - the content of railgauge topo, before it is printed as text or JSON.
 *
 * topo.c fills it in, topo_warn.c adds warnings, topo_text.c and topo_json.c print it and
 * use nothing else.
 */
#ifndef RG_CLI_TOPO_REPORT_H
#define RG_CLI_TOPO_REPORT_H

#include <stdbool.h>

#include "rail/plan.h"
#include "rail/programs.h"
#include "topo/topo.h"

/* An error counter since it was last cleared. */
enum { TOPO_ERRORS_MAX = 16 };
struct topo_error {
	const char *name;		/* "symbol_error" */
	uint64_t value;
	bool at_end;			/* it has stopped at its largest value */
};

/* A port of an adapter; the rails among them are numbered. */
struct topo_rail {
	int rail;			/* -1: not a rail, since it cannot carry messages now */
	char name[TOPO_NAME_BYTES + 8];	/* "mlx5_0:1"; "mlx5_0" if no port is known */
	struct topo_spot spot;		/* the adapter's place */
	struct topo_port port;		/* number 0: unknown */
	bool unusable;			/* true: no RDMA immediates */
	bool lag;			/* several cables under one name */
	char why[RAIL_WHY_BYTES];	/* why an ACTIVE port is no rail; "": it is, or its place decides */
	uint32_t queue_pairs;		/* of the adapter; 0: not known */
	uint32_t objects;		/* of the adapter, by the control group; 0: no limit */
	uint32_t requests, cq_entries;	/* of a queue pair, of a completion queue there; 0: not known */
	int link_count;
	struct topo_link link[TOPO_LINKS_MAX];	/* [0]: its slot */
	char netdev[16];		/* its network interface; "": none, or not known */
	int error_count;
	struct topo_error error[TOPO_ERRORS_MAX];
};

/* Per kind of binding, an index into rails; -1: no rail. */
enum topo_bind { TOPO_BIND_RANK, TOPO_BIND_NEAR, TOPO_BINDS };

struct topo_rank {
	struct topo_block block;
	int uses[TOPO_BINDS];
	enum topo_path path[TOPO_BINDS];
};

/* The resources of a connection to a peer, and their numbers on a node. */
enum { TOPO_BY_RING, TOPO_BY_SEND, TOPO_EAGER_KINDS };
struct topo_need {
	uint64_t peers, connections;	/* rail_plan_reached: of a rank, of a node */
	uint64_t eager;			/* bytes */
	uint32_t qps;			/* of a rail, for large messages; narrow: 1 */
	struct rail_plan_need peer[TOPO_EAGER_KINDS];	/* at most */
	struct rail_plan_need narrow[TOPO_EAGER_KINDS];	/* of one rail, rail_plan_narrow */
	uint64_t cq_bytes[TOPO_EAGER_KINDS], narrow_cq_bytes[TOPO_EAGER_KINDS];	/* locked memory of a rank */
};

struct topo_warning {
	const char *kind;		/* a word for machines: "shared_link" */
	char *text;
};

struct topo_report {
	struct topo *topo;
	const char *file;		/* NULL: this machine, now */
	char none[512];			/* why this machine's devices are of no use; "": it has none */
	bool assumed;			/* the file does not say which rail is which */
	int rail_count;
	struct topo_rail *rail;
	unsigned rank_count;
	struct topo_rank *rank;
	unsigned job_ranks;		/* of the job whose needs are shown; 0: none are */
	uint64_t pinned, lockable;	/* rail_host_bounds, of this machine's adapters */
	int warning_count;
	struct topo_warning *warning;
};

struct topo_need topo_need(const struct topo_report *r);
/*
 * Queue pairs that connections of all with all take of a rail's adapter, with all rails or one a
 * peer; 0: its number is not known, or an earlier rail is on it.
 */
uint64_t topo_pairs(const struct topo_report *r, int rail, bool narrow);
/* The same of objects that its control group counts; 0 also where that has no limit. */
uint64_t topo_objects(const struct topo_report *r, int rail, bool narrow);
/* Bytes of the completion queues of a rank, with SENDs; 0: they do not fit in r->lockable. */
uint64_t topo_queues(const struct topo_report *r, bool narrow);

#endif
