/* cmd_fabric.c - softhca list, port, loss: fabrics that are in use. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "softhca/base/base.h"
#include "softhca/link/memory/wakeup_peer.h"
#include "util/clock.h"
#include "softhca/tool/cmd.h"
#include "util/err.h"
#include "softhca/model/loss.h"
#include "softhca/softhca.h"
#include "softhca/tool/inspect.h"
#include "softhca/base/proc.h"
#include "softhca/base/segment.h"
#include "softhca/link/memory/ask.h"

/* ---- Listing ------------------------------------------------------------- */

static void name_of(pid_t pid, char *buf, size_t size)
{
	char path[32];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	f = fopen(path, "r");
	if (!f || !fgets(buf, (int)size, f))
		snprintf(buf, size, "?");
	buf[strcspn(buf, "\n")] = '\0';
	if (f)
		fclose(f);
}

/* The pid of another namespace's process is another process's here. */
static void list_process(pid_t pid, bool near, uint32_t node, const char *note)
{
	char comm[32] = "in another pid namespace";

	if (near)
		name_of(pid, comm, sizeof(comm));
	printf("  process %d (%s) on node %u%s\n", (int)pid, comm, (unsigned)node, note);
}

static const char *const notes[] = {
	[HCA_MEMBER_ALIVE] = "", [HCA_MEMBER_DEAD] = ", dead",
	[HCA_MEMBER_UNKNOWN] = ", in other namespaces",
};

/* Processes that left in good order are not listed. */
static void list_processes(const struct hca_identity *me, const struct hca_seen *f,
			   bool *node_used)
{
	uint32_t i, node;

	for (i = 0; i < HCA_PROCS_MAX; i++) {
		const struct hca_member *m = f->image ? &f->image->member[i] : NULL;
		const struct hca_shm_slot *s = m ? NULL : &f->shm->slot[i];

		if (m ? !m->pid : atomic_load(&s->phase) != HCA_PRESENT)
			continue;
		node = m ? m->node : s->node;
		if (m)
			list_process(m->pid, hca_is_near(me, m->pid_ns), node, notes[f->state[i]]);
		else
			list_process(s->pid, hca_is_near(me, s->pid_ns), node,
				     hca_slot_alive(me, f->shm, i) ? "" : notes[HCA_MEMBER_DEAD]);
		if (node < HCA_NODES_MAX)
			node_used[node] = true;
	}
}

/* A port without faults on a node without members is not listed. */
static void list_port(const struct hca_seen *f, const struct hca_port_name *name, bool used)
{
	const struct hca_shm_port *p = hca_shm_port_of(f->shm, &f->spec, name);
	uint64_t state = atomic_load(&p->state), now = rg_now_ns();
	uint32_t loss_ppb = atomic_load(&p->loss_ppb);
	char text[HCA_PORT_NAME], share[16];
	const char *net = f->spec.nets ? f->spec.net[name->port - 1] : NULL;

	if (!used && !hca_port_is_down(state) && !loss_ppb)
		return;
	printf("  port %s%s%s: %s", hca_port_name_format(name, text, sizeof(text)), net ? " " : "",
	       net ? net : "", hca_port_is_down(state) ? "down" : "active");
	if (state && now >= state >> 1)
		printf(" for %.3f s", (double)(now - (state >> 1)) / 1e9);
	if (loss_ppb)
		printf(", loses %s of its packets",
		       hca_fraction_format(loss_ppb % (HCA_ALL_PPB + 1u), share, sizeof(share)));
	putchar('\n');
}

static void list_ports(const struct hca_seen *f, const bool *node_used)
{
	const uint32_t nodes = hca_spec_nodes(&f->spec);
	const bool faulty = atomic_load(&f->shm->faulty);
	struct hca_port_name n;

	for (n.node = 0; n.node < nodes; n.node++)
		for (n.hca = 0; n.hca < f->spec.hcas && (faulty || node_used[n.node]); n.hca++)
			for (n.port = 1; n.port <= f->spec.ports; n.port++)
				list_port(f, &n, node_used[n.node]);
}

static void list_one(const struct hca_identity *me, const struct hca_seen *f)
{
	bool node_used[HCA_NODES_MAX] = { false };
	char text[256], why[HCA_WHY_MAX];
	struct hca_spec spec = f->spec;

	/* All members are dead: the file has the only information. */
	if (!f->shm && hca_spec_parse(f->image->spec, &spec, why, sizeof(why)))
		return;
	hca_spec_describe(&spec, text, sizeof(text));
	printf("fabric %s: %s\n  spec %s\n", f->name, text, spec.text);
	list_processes(me, f, node_used);
	if (f->shm)
		list_ports(f, node_used);
}

static int inspect(struct hca_sight *sight)
{
	if (hca_inspect(sight) == 0)
		return 0;
	rg_error("%s", softhca_last_error());
	return -1;
}

int hca_cmd_list(const char *fabric, int argc, char **argv)
{
	struct hca_sight sight;
	unsigned i, shown = 0;

	if (inspect(&sight))
		return RG_EXIT_FAULT;
	for (i = 0; i < sight.count; i++) {
		const struct hca_seen *f = &sight.fabric[i];

		if (fabric && strcmp(fabric, f->name) != 0)
			continue;
		shown++;
		if (f->damaged)
			printf("fabric %s: its file cannot be read; softhca reap removes it\n",
			       f->name);
		else if (f->shm || f->nonce)
			list_one(&sight.me, f);
	}
	if (!shown)
		puts("no fabric");
	hca_inspect_end(&sight);
	return RG_EXIT_OK;
}

/* ---- Faults -------------------------------------------------------------- */

/* The fabric in use of that name, or the only one; NULL: the error was printed. */
static struct hca_seen *choose(struct hca_sight *sight, const char *name)
{
	struct hca_seen *found = NULL;
	unsigned i;

	if (!name)
		name = getenv("SOFTHCA_FABRIC");
	for (i = 0; i < sight->count; i++) {
		struct hca_seen *f = &sight->fabric[i];

		if (!f->shm || (name && strcmp(name, f->name) != 0))
			continue;
		if (found) {
			rg_error("more than one fabric, such as %s and %s (accepted: --fabric NAME "
				 "of one)", found->name, f->name);
			return NULL;
		}
		found = f;
	}
	if (!found)
		rg_error("%s%s (softhca list shows all fabrics)",
			 name ? "no process is on fabric " : "no process is on any fabric",
			 name ? name : "");
	return found;
}

/* A port of the fabric whose faults are a model's, by its name. */
static struct hca_shm_port *find_port(struct hca_seen *f, const char *text,
				      struct hca_port_name *name)
{
	if (f->spec.nets) {
		rg_error("%.60s: the ports of fabric %s are network interfaces (accepted: ip link "
			 "set INTERFACE down, tc qdisc ... netem loss)", text, f->name);
		return NULL;
	}
	if (!hca_port_name_parse(text, name)) {
		rg_error("'%.60s' is not a port (accepted: NODE/DEVICE:PORT such as 1/soft0:2)",
			 text);
		return NULL;
	}
	if (!hca_spec_has_port(&f->spec, name)) {
		rg_error("%.60s: fabric %s has no such port (accepted: 0/soft0:1 to "
			 "%u/soft%u:%u)", text, f->name, hca_spec_nodes(&f->spec) - 1,
			 (unsigned)f->spec.hcas - 1, (unsigned)f->spec.ports);
		return NULL;
	}
	return hca_shm_port_of(f->shm, &f->spec, name);
}

/* A command's change to a port, and the function that carries it out. */
struct change {
	bool down;
	uint32_t loss_ppb;
	void (*carry_out)(struct hca_shm_fabric *shm, const struct hca_port_name *name,
			  struct hca_shm_port *p, const struct change *c);
};

static void change_state(struct hca_shm_fabric *shm, const struct hca_port_name *name,
			 struct hca_shm_port *p, const struct change *c)
{
	if (hca_port_change(shm, p, c->down, rg_now_ns()))
		hca_wakeup_send_adapter(shm, name->node, name->hca);
}

/* A loss causes no event: members find it at their next verb. */
static void change_loss(struct hca_shm_fabric *shm, const struct hca_port_name *name,
			struct hca_shm_port *p, const struct change *c)
{
	hca_port_lose(shm, p, c->loss_ppb);
	hca_wakeup_send_adapter(shm, HCA_NODES_MAX, 0);	/* no adapter: attention only */
}

static int change_port(const char *fabric, const char *port, const struct change *c)
{
	struct hca_port_name name;
	struct hca_shm_port *p;
	struct hca_sight sight;
	struct hca_seen *f;
	int rc = RG_EXIT_USAGE;

	/* A wake-up to a process that ends meanwhile must not kill this one. */
	signal(SIGPIPE, SIG_IGN);
	if (inspect(&sight))
		return RG_EXIT_FAULT;
	f = choose(&sight, fabric);
	p = f ? find_port(f, port, &name) : NULL;
	if (p) {
		c->carry_out(f->shm, &name, p, c);
		rc = RG_EXIT_OK;
	}
	hca_inspect_end(&sight);
	return rc;
}

int hca_cmd_port(const char *fabric, int argc, char **argv)
{
	struct change c = { .carry_out = change_state };

	if (argc != 3) {
		rg_error("port: accepted: port NODE/DEVICE:PORT up|down");
		return RG_EXIT_USAGE;
	}
	c.down = strcmp(argv[2], "down") == 0;
	if (!c.down && strcmp(argv[2], "up") != 0) {
		rg_error("port: '%.40s' is no state (accepted: up, down)", argv[2]);
		return RG_EXIT_USAGE;
	}
	return change_port(fabric, argv[1], &c);
}

int hca_cmd_loss(const char *fabric, int argc, char **argv)
{
	struct change c = { .carry_out = change_loss };

	if (argc != 3) {
		rg_error("loss: accepted: loss NODE/DEVICE:PORT SHARE|off");
		return RG_EXIT_USAGE;
	}
	if (strcmp(argv[2], "off") != 0 && hca_fraction_parse(argv[2], &c.loss_ppb)) {
		rg_error("loss: '%.40s' is no share of packets (accepted: 0 to 1, at most 9 "
			 "decimals, or off)", argv[2]);
		return RG_EXIT_USAGE;
	}
	return change_port(fabric, argv[1], &c);
}
