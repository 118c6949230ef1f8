/*
 * common.c - the rails that all hosts of a job have: this host's list of ports, the lists of all, and
 * the ports of this process.  port_choice.h chooses.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rail/open/common.h"
#include "rail/open/options.h"
#include "rail/open/peer_gids.h"
#include "rail/open/rail_ctx.h"
#include "rail/open/wanted.h"
#include "rail/programs.h"
#include "rail/rail.h"
#include "util/err.h"
#include "verbs/vrb.h"

#define LIST_MAGIC 0x3630737472706772ull	/* "rgprts06" */

/* The head of a list on the wire; `count` ports follow. */
struct list_head {
	uint64_t magic;
	char host[64];
	uint32_t named, count, meets, processes;
	uint64_t pinned, cq_bytes, eager, qps;
};

static size_t list_bytes(unsigned ports)
{
	return sizeof(struct list_head) + ports * sizeof(struct choice_port);
}

/* ---- This host's list ------------------------------------------------------ */

static void wish_pkey(struct vrb_tables *t, uint16_t key)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < t->pkeys; i++)
		if (!key || ((t->pkey[i].key ^ key) & 0x7fff) == 0)
			t->pkey[kept++] = t->pkey[i];
	t->pkeys = kept;
}

static void wish_gid(struct vrb_tables *t, int index)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < t->gids; i++)
		if (index < 0 || t->gid[i].index == index)
			t->gid[kept++] = t->gid[i];
	t->gids = kept;
}

/* The GID of an InfiniBand port that is wished; none: the caller's lines are held. */
static void wish_infiniband_gid(const struct vrb_port *port, int index, struct vrb_tables *t)
{
	const struct vrb_port_wish wish = { .gid_index = index };
	struct vrb_port own = *port;

	if (index < 0 || index == port->gid_index)
		return;
	t->gids = vrb_port_configure(&own, &wish) == 0;
	t->gid[0].index = (uint8_t)own.gid_index;
	t->gid[0].type = own.gid_type;
	memcpy(t->gid[0].raw, own.gid.raw, sizeof(t->gid[0].raw));
}

/* A port; of its tables, what the settings allow. */
static int port_describe(const struct rail_settings *set, const struct vrb_port *port,
			 struct choice_port *out)
{
	struct vrb_port_wish wish;
	int rc = rail_port_wish(set, port, &wish);

	memset(out, 0, sizeof(*out));
	snprintf(out->name, sizeof(out->name), "%s", port->name);
	snprintf(out->place, sizeof(out->place), "%.32s:%u", *port->pci ? port->pci : port->name,
		 port->number);
	out->rate = port->rate_bytes_per_s;
	out->card = port->card;
	out->lag = port->lag;
	out->one_network = port->one_network;
	out->lid = port->lid;
	out->queue_pairs = port->queue_pairs;
	out->objects = port->objects;
	out->requests = port->requests;
	out->cq_entries = port->cq_entries;
	out->link_layer = port->link_layer;
	out->state = (uint8_t)port->state;
	out->usable = port->usable;
	if (rc || port->state != IBV_PORT_ACTIVE || !port->usable)
		return rc;
	rc = vrb_port_tables(port, &out->tables);
	if (rc)
		return rc;
	wish_pkey(&out->tables, wish.pkey);
	if (port->link_layer == IBV_LINK_LAYER_ETHERNET)
		wish_gid(&out->tables, wish.gid_index);
	else
		wish_infiniband_gid(port, wish.gid_index, &out->tables);
	return 0;
}

static bool is_wanted(const struct choice_port *p)
{
	return p->state == IBV_PORT_ACTIVE && p->usable;
}

/* The wishes that a port has nothing for end the job only if no port has it. */
static int wishes_check(const struct rail_settings *set, struct vrb_ports *ports,
			const struct choice_host *host)
{
	struct vrb_port *first = NULL;
	struct vrb_port_wish wish;
	int rc;

	for (unsigned p = 0; p < host->count; p++) {
		if (!is_wanted(&host->port[p]))
			continue;
		if (host->port[p].tables.pkeys && host->port[p].tables.gids && !host->named)
			return 0;
		if (!first && (!host->port[p].tables.pkeys || !host->port[p].tables.gids))
			first = rail_port_named(ports, host->port[p].name);
	}
	if (!first)
		return 0;
	rc = rail_port_wish(set, first, &wish);
	return rc ? rc : vrb_port_configure(first, &wish);
}

static int host_describe(const struct rail_settings *set, struct vrb_ports *ports,
			 struct choice_host *host)
{
	struct vrb_port *port[CHOICE_PORTS];
	int count, rc = 0;

	gethostname(host->name, sizeof(host->name) - 1);
	count = rail_ports_wanted(set, ports, port, CHOICE_PORTS);
	if (count < 0)
		return count;
	host->named = !rail_list_is_all(rail_list_of_host(set->rails ? set->rails : "all", host->name));
	host->count = (uint32_t)count;
	for (int p = 0; p < count && !rc; p++)
		rc = port_describe(set, port[p], &host->port[p]);
	return rc ? rc : wishes_check(set, ports, host);
}

/* A software HCA's ports, which are all of this host: select.c. */
static int soft_ports_all(const struct vrb_ports *ports, int index[RAIL_MAX])
{
	int chosen[RAIL_MAX], count = vrb_ports_choose(ports, RAIL_MAX, chosen, NULL);

	for (int i = 0; i < count; i++) {
		int before = 0;

		for (int k = 0; k < count; k++)
			before += vrb_port_order(&ports->port[chosen[k]], &ports->port[chosen[i]]) < 0;
		index[before] = chosen[i];
	}
	return count;
}

/*
 * of[p]: the place of port p of the list among the caller's ports.  A job has hosts like this one, which
 * limited members of a partition do not reach.
 */
static int adapter_ports_all(const struct choice_host *host, const int *of, int index[RAIL_MAX],
			     char (*why)[RAIL_WHY_BYTES])
{
	struct choice_host *like = malloc(sizeof(*like));
	const struct choice_host *both[] = { host, like };
	struct choice choice = { .hosts = 0 };
	int rc;

	if (!like)
		return -ENOMEM;
	*like = *host;
	snprintf(like->name, sizeof(like->name), "hosts like %.50s", host->name);
	rc = choice_make(&choice, both, 2, NULL);

	for (unsigned r = 0; r < choice.rails && !rc; r++)
		index[r] = of[choice.end[0][r].port];
	for (unsigned p = 0; p < host->count && why && choice.left; p++)
		if (is_wanted(&host->port[p]))
			choice_left_text(&choice, 0, p, why[of[p]], RAIL_WHY_BYTES);
	rc = rc == -ENOMEM ? rc : rc ? 0 : (int)choice.rails;
	choice_free(&choice);
	free(like);
	return rc;
}

/* The ports without those of software HCAs, which programs below the softhca command see, too; of: their places. */
static void adapters_keep(const struct vrb_ports *ports, struct vrb_ports *out, int *of)
{
	for (int p = 0; p < ports->count; p++)
		if (ports->port[p].kind != VRB_SOFTHCA) {
			of[out->count] = p;
			out->port[out->count++] = ports->port[p];
		}
}

static bool has_active(const struct vrb_ports *ports)
{
	for (int p = 0; p < ports->count; p++)
		if (ports->port[p].usable && ports->port[p].state == IBV_PORT_ACTIVE)
			return true;
	return false;
}

int rail_ports_all(const struct vrb_ports *ports, int index[RAIL_MAX], char (*why)[RAIL_WHY_BYTES])
{
	const size_t count = ports->count ? (size_t)ports->count : 1;
	struct vrb_ports adapters = { .port = calloc(count, sizeof(*adapters.port)) };
	struct choice_host *host = calloc(1, sizeof(*host));
	int *of = calloc(count, sizeof(*of)), rc = adapters.port && host && of ? 0 : -ENOMEM;
	struct rail_settings set;

	rail_settings_init(&set);
	if (!rc)
		adapters_keep(ports, &adapters, of);
	for (int p = 0; p < ports->count && why; p++)
		snprintf(why[p], RAIL_WHY_BYTES, "%s", ports->port[p].kind == VRB_SOFTHCA && has_active(&adapters) ?
			 "adapters are in use" : "");
	if (!rc && !has_active(&adapters)) {
		rc = soft_ports_all(ports, index);
	} else if (!rc) {
		rc = host_describe(&set, &adapters, host);
		rc = rc ? rc : adapter_ports_all(host, of, index, why);
	}
	free(adapters.port);
	free(host);
	free(of);
	return rc;
}

int rail_hosts_list(const struct rail_settings *set, unsigned processes, unsigned ranks, void **list,
		    size_t *bytes)
{
	struct choice_host *host = calloc(1, sizeof(*host));
	struct vrb_ports ports = { 0 };
	struct list_head *head = NULL;
	int rc = host ? vrb_ports_scan_real(ibv_get_device_list(NULL), &ports) : -ENOMEM;

	if (!rc)
		rc = host_describe(set, &ports, host);
	if (!rc && host->count)
		host->cq_bytes = rail_bound_queues(set, rail_port_named(&ports, host->port[0].name), host->count, ranks);
	if (!rc)
		head = calloc(1, list_bytes(host->count));
	if (head) {
		*head = (struct list_head){
			.magic = LIST_MAGIC, .named = host->named, .count = host->count,
			.meets = processes > 1 && set->intranode == RAIL_INTRANODE_HCA,
			.processes = processes, .pinned = rail_bound_pinned(processes),
			.cq_bytes = host->cq_bytes, .eager = set->eager, .qps = set->qps,
		};
		memcpy(head->host, host->name, sizeof(head->host));
		memcpy(head + 1, host->port, host->count * sizeof(host->port[0]));
		*list = head;
		*bytes = list_bytes(host->count);
	} else if (!rc) {
		rc = -ENOMEM;
	}
	if (rc == -ENOMEM)
		rg_error("no memory for the list of ports");
	vrb_ports_free(&ports);
	free(host);
	return rc;
}

/* ---- All hosts' lists --------------------------------------------------------- */

static int host_read(const void *list, size_t bytes, struct choice_host *out)
{
	struct list_head head;

	if (bytes < sizeof(head))
		return -EPROTO;
	memcpy(&head, list, sizeof(head));
	if (head.magic != LIST_MAGIC || head.count > CHOICE_PORTS || bytes != list_bytes(head.count))
		return -EPROTO;
	memcpy(out->name, head.host, sizeof(out->name) - 1);
	out->named = head.named;
	out->meets = head.meets;
	out->processes = head.processes;
	out->pinned = head.pinned;
	out->cq_bytes = head.cq_bytes;
	out->eager = head.eager;
	out->qps = head.qps;
	out->count = head.count;
	memcpy(out->port, (const char *)list + sizeof(head), head.count * sizeof(out->port[0]));
	return 0;
}

int rail_hosts_open(const void *lists, const size_t *bytes, unsigned hosts, unsigned mine,
		    struct rail_hosts **out)
{
	struct rail_hosts *h = calloc(1, sizeof(*h));
	int rc = 0;

	if (h) {
		h->mine = mine;
		h->host = calloc(hosts, sizeof(*h->host));
	}
	for (unsigned i = 0; h && h->host && i < hosts && !rc; i++) {
		h->host[i] = calloc(1, sizeof(*h->host[i]));
		h->hosts = i + 1;
		rc = h->host[i] ? host_read(lists, bytes[i], h->host[i]) : -ENOMEM;
		lists = (const char *)lists + bytes[i];
	}
	if (!h || !h->host)
		rc = -ENOMEM;
	if (!rc) {
		*out = h;
		return 0;
	}
	rg_error(rc == -ENOMEM ? "no memory for the ports of %u hosts" :
				 "one of %u hosts speaks another version of librail", hosts);
	rail_hosts_close(h);
	return rc;
}

int rail_hosts_choose(struct rail_hosts *h)
{
	int rc;

	choice_free(&h->choice);
	rc = choice_make(&h->choice, (const struct choice_host *const *)h->host, h->hosts, &h->lost);
	if (rc)
		rg_error("%s", h->choice.why);
	return rc;
}

void rail_hosts_tell(const struct rail_hosts *h, void (*line)(void *arg, const char *text), void *arg)
{
	choice_tell(&h->choice, line, arg);
}

void rail_hosts_narrow_text(const struct rail_hosts *h, char *text, size_t size)
{
	rail_hosts_narrow(h, text, size);
}

void rail_hosts_close(struct rail_hosts *h)
{
	if (!h)
		return;
	choice_free(&h->choice);
	for (unsigned i = 0; h->host && i < h->hosts; i++)
		free(h->host[i]);
	free(h->host);
	free(h->lost.at);
	free(h);
}

/* ---- Datagrams that are lost ----------------------------------------------------- */

static uint32_t ports_of(const struct rail_hosts *h, unsigned host, uint32_t rails)
{
	uint32_t ports = 0;

	for (unsigned r = 0; r < h->choice.rails; r++)
		if (!h->host[host]->port[h->choice.end[host][r].port].failed)
			ports |= (rails >> r & 1) << h->choice.end[host][r].port;
	return ports;
}

static bool is_of_hosts(const struct rail_hosts *h, const struct rail_loss *loss)
{
	return loss->from < h->hosts && loss->to < h->hosts && loss->rail < h->choice.rails;
}

static struct choice_port *loss_port(const struct rail_hosts *h, const struct rail_loss *loss)
{
	return &h->host[loss->from]->port[h->choice.end[loss->from][loss->rail].port];
}

/* A failed adapter takes all its ports along, those that are no rails, too: they are none later. */
static void port_fails(struct choice_host *host, struct choice_port *port, uint8_t event)
{
	for (uint32_t p = 0; p < host->count; p++) {
		struct choice_port *other = &host->port[p];

		if (other == port || (event != IBV_EVENT_PORT_ERR && choice_same_device(other, port))) {
			other->failed = event;
			other->state = IBV_PORT_DOWN;
		}
	}
}

/* Ports that have failed, by what their hosts say.  True: some was not known. */
static bool ports_fail(struct rail_hosts *h, const struct rail_loss *lost, size_t count)
{
	bool news = false;

	for (size_t i = 0; i < count; i++)
		if (is_of_hosts(h, &lost[i]) && lost[i].from == lost[i].to && !loss_port(h, &lost[i])->failed) {
			port_fails(h->host[lost[i].from], loss_port(h, &lost[i]), (uint8_t)lost[i].rails);
			news = true;
		}
	return news;
}

/* A path whose own port has failed is no loss. */
static bool is_loss(const struct rail_hosts *h, const struct rail_loss *loss)
{
	return is_of_hosts(h, loss) && loss->from != loss->to && !loss_port(h, loss)->failed &&
	       ports_of(h, loss->to, loss->rails);
}

int rail_hosts_lose(struct rail_hosts *h, const struct rail_loss *lost, size_t count, bool *news)
{
	struct choice_loss *more = calloc(count ? count : 1, sizeof(*more));
	const bool failed = ports_fail(h, lost, count);
	size_t kept = 0;
	int rc = -ENOMEM;

	for (size_t i = 0; more && i < count; i++)
		if (is_loss(h, &lost[i]))
			more[kept++] = (struct choice_loss){
				.a = lost[i].from, .port = h->choice.end[lost[i].from][lost[i].rail].port,
				.b = lost[i].to, .ports = ports_of(h, lost[i].to, lost[i].rails),
			};
	if (more)
		rc = choice_losses_add(&h->lost, more, kept, news);
	*news |= failed;
	free(more);
	return rc;
}

/* ---- Address handles ------------------------------------------------------------ */

static const struct choice_port *end_of(const struct rail_hosts *h, unsigned host, unsigned rail,
					const struct vrb_gid **gid)
{
	const struct choice_end *end = &h->choice.end[host][rail];
	const struct choice_port *p = &h->host[host]->port[end->port];

	*gid = &p->tables.gid[end->gid];
	return p;
}

/* InfiniBand needs none; each of the hosts' own GIDs is known to be usable (choice_port.tables). */
static bool needs_try(const struct rail_hosts *h, unsigned rail)
{
	const struct vrb_gid *gid;

	return h->hosts > 1 && !h->choice.pairwise[rail] &&
	       end_of(h, h->mine, rail, &gid)->link_layer == IBV_LINK_LAYER_ETHERNET;
}

static int rail_try(const struct rail_hosts *h, struct vrb_ports *ports, unsigned rail, unsigned peer)
{
	const struct vrb_gid *own, *theirs;
	const struct choice_port *p = end_of(h, h->mine, rail, &own);
	struct vrb_port *port = rail_port_named(ports, p->name);

	end_of(h, peer, rail, &theirs);
	return port ? vrb_port_try(port, own, theirs->raw) : 0;
}

void rail_hosts_try(const struct rail_hosts *h, struct rail_hosts_fault *out)
{
	struct vrb_ports ports;
	uint32_t rails = 0;

	*out = (struct rail_hosts_fault){ .rails = 0 };
	for (unsigned rail = 0; rail < h->choice.rails; rail++)
		rails |= (uint32_t)needs_try(h, rail) << rail;
	if (!rails || vrb_ports_scan_real(ibv_get_device_list(NULL), &ports))
		return;
	for (unsigned rail = 0; rail < h->choice.rails; rail++)
		for (uint64_t step = 1; rails >> rail & 1 && step < h->hosts; step *= 2) {
			const unsigned peer = (unsigned)((h->mine + step) % h->hosts);

			if (rail_try(h, &ports, rail, peer)) {
				out->rails |= UINT32_C(1) << rail;
				break;
			}
		}
	vrb_ports_free(&ports);
}

bool rail_hosts_exclude(struct rail_hosts *h, const struct rail_hosts_fault *all)
{
	for (unsigned rail = 0; rail < h->choice.rails; rail++)
		for (unsigned i = 0; all->rails >> rail & 1 && i < h->hosts; i++) {
			const struct choice_end *end = &h->choice.end[i][rail];

			h->host[i]->port[end->port].tables.gid[end->gid].dead = EHOSTUNREACH;
		}
	return all->rails != 0;
}

/* ---- The ports of this process ---------------------------------------------------- */

/* Ends of a rail have one key, as vrb_port.subnet says: that of the first host. */
static void subnet_set(const struct rail_hosts *h, unsigned rail, struct vrb_port *port)
{
	const struct vrb_gid *first;

	end_of(h, 0, rail, &first);
	memset(port->subnet, 0, sizeof(port->subnet));
	memcpy(port->subnet, first->raw, 8);
}

struct vrb_port *rail_hosts_port(const struct rail_hosts *h, const struct vrb_ports *ports, unsigned rail)
{
	const struct vrb_gid *gid;

	return rail_port_named(ports, end_of(h, h->mine, rail, &gid)->name);
}

void rail_hosts_port_use(const struct rail_hosts *h, unsigned rail, struct vrb_port *port)
{
	const struct vrb_gid *gid;
	const struct choice_port *p = end_of(h, h->mine, rail, &gid);

	if (port->link_layer == IBV_LINK_LAYER_ETHERNET)
		vrb_port_use_gid(port, gid);
	port->pkey_index = p->tables.pkey[h->choice.end[h->mine][rail].pkey].index;
	subnet_set(h, rail, port);
}

int rail_common_select(struct rail_ctx *ctx)
{
	const struct rail_hosts *h = ctx->cfg.hosts;

	for (unsigned rail = 0; rail < h->choice.rails; rail++) {
		const struct vrb_gid *gid;
		const struct choice_port *p = end_of(h, h->mine, rail, &gid);
		struct vrb_port *port = rail_hosts_port(h, &ctx->ports, rail);
		int rc;

		if (!port || port->state != IBV_PORT_ACTIVE) {
			rg_error(port ? "--rails: %s of %s was ACTIVE when the job began, and is %s now" :
				 "--rails: %s of %s, which other processes of that host use, is %s here", p->name,
				 h->host[h->mine]->name, port ? vrb_port_state_text(port->state) : "missing");
			return -ENODEV;
		}
		rc = rail_select_port(ctx, port);
		if (rc)
			return rc;
		rail_hosts_port_use(h, rail, port);
		ctx->limited |= !(p->tables.pkey[h->choice.end[h->mine][rail].pkey].key & CHOICE_PKEY_FULL);
	}
	ctx->lag = rail_hosts_lag(h);
	ctx->narrow = rail_hosts_narrow(h, NULL, 0);
	ctx->cq_bytes = h->host[h->mine]->cq_bytes;
	ctx->cfg.hosts = NULL;
	return rail_gids_make(ctx, h);
}
