/* words.c - accusations as text. */
#include "accept/accept.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "util/host_list.h"
#include "util/text.h"

static void low_add(const struct accept_fault *f, char *text, size_t size)
{
	static const char *const directions[] = {
		[ACCEPT_OUT] = " sending", [ACCEPT_IN] = " receiving",
	};

	if (f->failed_rounds)
		rg_text_add(text, size, ", failed in %d rounds", f->failed_rounds);
	else if (f->low >= 1)
		rg_text_add(text, size, ", down");
	else
		rg_text_add(text, size, ", %.0f %% low", f->low * 100);
	if (f->direction != ACCEPT_BOTH && f->other < 0)
		rg_text_add(text, size, "%s", directions[f->direction]);
}

static void port_add(const struct accept_fault *f, const struct accept_names *names, char *text,
		     size_t size)
{
	int at = f->node * names->rails + f->rail;

	rg_text_add(text, size, "%s %s", names->node[f->node], names->port[at]);
	if (f->kind == ACCEPT_PORT_MISSING) {
		rg_text_add(text, size, ", missing or down at the start");
		return;
	}
	low_add(f, text, size);
	if (names->retries && names->retries[at] != UINT64_MAX)
		rg_text_add(text, size, ", %" PRIu64 " retries", names->retries[at]);
}

static void path_add(const struct accept_fault *f, const struct accept_names *names, char *text,
		     size_t size)
{
	const char *joint = f->direction == ACCEPT_OUT ? "->" : f->direction == ACCEPT_IN ? "<-" :
			    "-";

	rg_text_add(text, size, "%s %s %s, %s", names->node[f->node], joint, names->node[f->other],
		    names->rail[f->rail]);
	low_add(f, text, size);
}

static void members_add(const struct accept_fault *f, const struct accept_names *names, char *text,
			size_t size)
{
	const char **list = calloc((size_t)f->member_count + 1, sizeof(list[0]));
	char *all;

	for (int i = 0; list && i < f->member_count; i++)
		list[i] = names->node[f->member[i]];
	all = list ? rg_host_list(list, f->member_count) : NULL;
	rg_text_add(text, size, "%s, %s", all ? all : "several nodes", names->rail[f->rail]);
	low_add(f, text, size);
	free(all);
	free(list);
}

void accept_text(const struct accept_fault *f, const struct accept_names *names, char *text,
		 size_t size)
{
	static const char *const what[] = {
		[ACCEPT_PORT_MISSING] = "cable or port", [ACCEPT_PORT_DOWN] = "cable or port",
		[ACCEPT_PORT_SLOW] = "cable or port", [ACCEPT_NODE_DOWN] = "node",
		[ACCEPT_NODE_SLOW] = "node", [ACCEPT_PATH_DOWN] = "path", [ACCEPT_PATH_SLOW] = "path",
		[ACCEPT_LEAF_SLOW] = "leaf switch", [ACCEPT_RAIL_SLOW] = "rail",
		[ACCEPT_ROUTING] = "routing",
	};

	snprintf(text, size, "%s: ", what[f->kind]);
	if (f->member_count)
		members_add(f, names, text, size);
	else if (f->other >= 0)
		path_add(f, names, text, size);
	else if (f->node >= 0 && f->rail >= 0)
		port_add(f, names, text, size);
	else {
		rg_text_add(text, size, "%s", f->node >= 0 ? names->node[f->node] :
			    names->rail[f->rail]);
		low_add(f, text, size);
		rg_text_add(text, size, f->node >= 0 ? " on all rails" : " as a whole");
	}
	if (f->kind == ACCEPT_ROUTING)
		rg_text_add(text, size, f->failed_rounds ? ", well alone" : ", in company only");
}
