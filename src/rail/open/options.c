/* options.c - the transport's options. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/opt.h"
#include "rail/programs.h"
#include "rail/rail.h"
#include "rail/open/options.h"
#include "rail/message/rndv.h"
#include "softhca/softhca.h"
#include "rail/message/stripe.h"

/* ---- Other texts -------------------------------------------------------- */

static int check_soft(const char *text, char *why, size_t why_size)
{
	return softhca_spec_check(text, why, why_size);
}

/* The key net= of a spec: its value, to the next comma; NULL: it has none. */
static const char *spec_net(const char *spec, size_t *length)
{
	while (spec && strncmp(spec, "net=", 4)) {
		spec = strchr(spec, ',');
		spec += spec ? 1 : 0;
	}
	if (!spec)
		return NULL;
	*length = strcspn(spec + 4, ",");
	return spec + 4;
}

bool rail_soft_is_net(const struct rail_settings *set)
{
	const char *spec = set->soft ? set->soft : getenv("SOFTHCA_SPEC");
	size_t length;

	return spec_net(spec, &length);
}

void rail_soft_terms(const char *spec, char *terms, size_t size)
{
	size_t length, rails = 1;
	const char *net = spec_net(spec, &length);

	if (!net) {
		snprintf(terms, size, "%s", spec);
		return;
	}
	for (size_t i = 0; i < length; i++)
		rails += net[i] == '+';
	snprintf(terms, size, "%.*s%zu%s", (int)(net - spec), spec, rails, net + length);
}

int rail_pkey_parse(const char *text, uint16_t *key)
{
	char *end;
	unsigned long value;

	errno = 0;
	value = strtoul(text, &end, 0);
	if (*text < '0' || *text > '9' || *end || errno || !(value & 0x7fff) || value > 0xffff)
		return -EINVAL;
	*key = (uint16_t)value;
	return 0;
}

static int check_pkey(const char *text, char *why, size_t why_size)
{
	uint16_t key;
	int rc = rail_pkey_parse(text, &key);

	if (rc)
		snprintf(why, why_size, "'%s' is no partition key, accepted: 1 to 0xffff, such as "
			 "0x8001", text);
	return rc;
}

/* ---- The table ---------------------------------------------------------- */

static const struct opt_choice binds[] = {
	{ "rank", RAIL_BIND_RANK, "by rank within the node, in turn" },
	{ "near", RAIL_BIND_NEAR, "the rail nearest to the cores that the process may run on" },
	{ 0 },
};

static const struct opt_choice intranodes[] = {
	{ "memory", RAIL_INTRANODE_SOFT, "through memory, by an untimed software HCA" },
	{ "rails", RAIL_INTRANODE_HCA, "over the rails, as between nodes" },
	{ "soft", RAIL_INTRANODE_SOFT, NULL, "" },
	{ "hca", RAIL_INTRANODE_HCA, NULL, "" },
	{ 0 },
};

#define AT(field) .offset = offsetof(struct rail_settings, field)

static const struct opt_choice rendezvous[] = {
	{ "auto", RAIL_BY_AUTO, "read, or both, by what is measured as messages flow between "
	  "processes that an untimed software HCA connects; else write" },
	{ "write", RAIL_BY_WRITE, "the sender writes, when the receiver has named its buffer" },
	{ "read", RAIL_BY_READ, "the receiver reads, also while the sender computes" },
	{ "both", RAIL_BY_BOTH, "the sender writes one half, the receiver reads the other half" },
	{ "turns", RAIL_BY_TURNS, "the receiver reads one message, the sender writes the next; between "
	  "hosts, and by timed software HCAs, as both" },
	{ "ring", RAIL_BY_RING, "the sender copies slices into a ring in shared memory, the receiver out of it; "
	  "between hosts, and by timed software HCAs, as both" },
	{ "ring-short", RAIL_BY_RING_SHORT, "the same in slices of half the length" },
	{ "ring-long", RAIL_BY_RING_LONG, "the same in slices of twice the length" },
	{ NULL },
};

static const struct opt_choice completions[] = {
	{ "immediate", RAIL_BY_IMMEDIATE, "each chunk carries an immediate" },
	{ "imm", RAIL_BY_IMMEDIATE, NULL, "" },
	{ "control", RAIL_BY_CONTROL, "a message without data after the chunks of each rail" },
	{ NULL },
};

static const struct opt_choice registrations[] = {
	{ "cache", RAIL_REGISTER_KEPT, "until the memory goes away" },
	{ "kept", RAIL_REGISTER_KEPT, NULL, "" },
	{ "each", RAIL_REGISTER_EACH, "for each message, and no longer" },
	{ NULL },
};

static const struct opt options[] = {
	{ .name = "rails", .type = OPT_TEXT, .carry = OPT_JOB, AT(rails), .arg = "LIST",
	  .standard = "all", .check = rail_lists_check,
	  .help = "ports to use: all, or names such as mlx5_0:1,mlx5_1:1 in the order in which "
		  "they meet the peers' ports; ';HOST=LIST' for a host with other names" },
	{ .name = "soft", .type = OPT_TEXT, .carry = OPT_JOB, AT(soft), .arg = "SPEC",
	  .check = check_soft,
	  .help = "use the software HCA, as [PROFILE][,key=value...], even where devices exist; "
		  "net=eth0+eth1: over TCP, between hosts" },
	{ .name = "threshold", .type = OPT_SIZE, .carry = OPT_COMM, AT(threshold), .arg = "BYTES",
	  .standard = "8K", .special = "auto", .min = 1, .max = (uint64_t)1 << 40,
	  .help = "messages above this size are striped over all rails; auto measures it" },
	{ .name = "eager", .type = OPT_SIZE, .carry = OPT_BOTH, AT(eager), .arg = "BYTES",
	  .standard = "auto", .special = "auto", .min = 0, .max = RAIL_EAGER_MAX,
	  .help = "messages up to this size are sent at once, larger and striped messages go by "
		  "rendezvous; auto: 8K, over TCP 32K; within a host up to 64K where the sender "
		  "measures a gain; of an item of --over: within a host up to 64K, too, if the job's is auto" },
	{ .name = "rendezvous", .type = OPT_CHOICE, .carry = OPT_COMM, AT(rendezvous),
	  .arg = "HOW", .standard = "auto", .choices = rendezvous,
	  .help = "who moves the data of messages above the eager limit" },
	{ .name = "costs", .type = OPT_TEXT, .carry = OPT_JOB, AT(costs), .arg = "FILE",
	  .check = opt_check_path,	/* ranks read the file once they are joined */
	  .help = "take the costs of who moves an offered message, and the choices by them, from a file "
		  "of railgauge tune instead of learning, and its rules for collectives unless "
		  "--coll is given" },
	{ .name = "completion", .type = OPT_CHOICE, .carry = OPT_COMM, AT(completion),
	  .arg = "HOW", .standard = "immediate", .choices = completions,
	  .help = "how a receiver learns that the writes of a message are there; control not with "
		  "read, both, turns, ring and ways whose chunks take any rail" },
	{ .name = "chunk", .type = OPT_SIZE, .carry = OPT_JOB, AT(chunk), .arg = "BYTES",
	  .standard = "auto", .special = "auto", .min = RAIL_CHUNK_BYTES_MIN,
	  .max = RAIL_CHUNK_MAX_BYTES,
	  .help = "largest request of a piece of a large message; auto: 64K, over TCP 256K, of "
		  "one rail within a host 4M; pull and both have sizes of their own; long distances need more" },
	{ .name = "qps", .type = OPT_COUNT, .carry = OPT_JOB, AT(qps), .arg = "N",
	  .standard = "auto", .special = "auto", .min = 1, .max = RAIL_QPS_MAX,
	  .help = "queue pairs per rail and peer that share large messages, more for long distances; "
		  "auto: 1, where a port is a LAG 2, since each is on one cable" },
	{ .name = "bind", .type = OPT_CHOICE, .carry = OPT_JOB, AT(bind), .arg = "HOW",
	  .standard = "rank", .choices = binds,
	  .help = "which rail carries the whole messages of a process" },
	{ .name = "intranode", .type = OPT_CHOICE, .carry = OPT_JOB, AT(intranode), .arg = "HOW",
	  .standard = "memory", .choices = intranodes,
	  .help = "how ranks on one node reach each other" },
	{ .name = "registration", .type = OPT_CHOICE, .carry = OPT_JOB, AT(registration),
	  .arg = "HOW", .standard = "cache", .choices = registrations,
	  .help = "how long buffers of rendezvous messages stay registered" },
	{ .name = "map-buffers", .type = OPT_FLAG, .carry = OPT_JOB, AT(map_buffers),
	  .help = "software HCA: peers map receive buffers of large messages that are used again, where "
		  "that is measured to cost less" },
	{ .name = "gid-index", .type = OPT_TEXT, .carry = OPT_JOB, AT(gid_index), .arg = "N",
	  .standard = "auto", .check = rail_gid_lists_check,
	  .help = "entry of the ports' GID tables to use, or PORT=N,PORT=N for each, ';HOST=LIST' for a "
		  "host that differs; auto finds one in a network with the peers, RoCE v2 before v1" },
	{ .name = "mtu", .type = OPT_SIZE, .carry = OPT_JOB, AT(mtu), .arg = "BYTES",
	  .standard = "active", .special = "active", .min = 256, .max = 4096,
	  .help = "largest path MTU; active: the MTU of the ports" },
	{ .name = "sl", .type = OPT_COUNT, .carry = OPT_JOB, AT(sl), .arg = "N", .standard = "0",
	  .min = 0, .max = 15, .help = "service level (Ethernet: priority)" },
	{ .name = "tclass", .type = OPT_COUNT, .carry = OPT_JOB, AT(tclass), .arg = "N",
	  .standard = "auto", .special = "auto", .min = 0, .max = 255,
	  .help = "traffic class (RoCE v2: the DSCP byte); auto: the one that the host has set for its "
		  "adapters, else 0" },
	{ .name = "pkey", .type = OPT_TEXT, .carry = OPT_JOB, AT(pkey), .arg = "KEY",
	  .check = check_pkey,
	  .help = "partition key, such as 0x8001; default: the first one that all hosts have" },
	{ 0 },
};

const struct opt *rail_options(void)
{
	return options;
}

_Static_assert(RAIL_AUTO == OPT_SPECIAL, "rail.h has the value of a special word");

void rail_settings_init(struct rail_settings *set)
{
	opt_defaults(&(struct opt_table){ .rows = options, .values = set });
}
