/* text.c - a plan in words. */
#include "programs.h"

#include <stdarg.h>
#include <stdio.h>

const char *const other_names[OTHERS] = {
    "Barrier",
    "Bcast",
    "Gather",
    "Scatter",
    "Allgather",
    "Alltoall",
    "Reduce",
    "Allreduce",
    "Scan",
    "Exscan",
    "Reduce_scatter",
    "Reduce_scatter_block",
    "Sendrecv",
    "Sendrecv_replace",
    "Isendrecv",
    "Isendrecv_replace",
    "Comm_dup, messages, Comm_free",
    "messages to MPI_PROC_NULL",
    "Iprobe where nothing is",
    "Cancel of a receive",
    "Cancel of a send",
};

static const char *const maker_names[COMM_MAKERS] = {
    "duplicate of MPI_COMM_WORLD",
    "Comm_dup",
    "Comm_dup_with_info",
    "Comm_split",
    "Comm_create",
    "Comm_create_group",
    "Cart_create",
    "Comm_idup",
    "Intercomm_create",
};
static const char *const style_names[] = {"all named", "some MPI_ANY_TAG", "wildcards"};
static const char *const mode_letters[MODES] = {"", "b", "s", "r"};
static const char *const receive_names[RECEIVE_HOWS] = {
    "Recv", "Probe, Recv", "Iprobe, Recv", "Mprobe, Mrecv", "Improbe, Imrecv", "Irecv", "Recv_init",
};
static const char *const wait_names[WAIT_STYLES] = {
    "Wait",    "Test",     "Request_get_status, Wait", "Waitall", "Waitany", "Waitsome", "Testall",
    "Testany", "Testsome",
};

struct line {
	char *at;
	size_t left;
};

static void say(struct line *l, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(struct line *l, const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(l->at, l->left, format, args);
	va_end(args);
	if (n < 0 || (size_t)n >= l->left)
		n = (int)l->left - 1;
	l->at += n;
	l->left -= (size_t)n;
}

static void say_shape(struct line *l, const struct shape *s)
{
	say(l, "%s", layout_names[s->outer]);
	if (s->inner != LAYOUT_PLAIN)
		say(l, " of %s", layout_names[s->inner]);
	if (s->grain > 1)
		say(l, " of %u", s->grain);
}

static void say_side(struct line *l, const struct side *s, size_t n, int unit)
{
	say(l, "%zu %s (%zu bytes), ", n, units[unit].name, n * units[unit].bytes);
	say_shape(l, &s->shape);
	say(l, ", %s%s", origin_names[s->origin], s->type_freed ? ", type freed" : "");
}

static void say_send(struct line *l, const struct plan *p, int index)
{
	const struct message *m = &p->message[index];
	const char *i = m->how == HOW_NONBLOCKING ? "I" : "";
	const char *mode = mode_letters[m->mode];

	if (m->chain >= 0)
		say(l, "Start of message %d's request", m->chain);
	else if (m->mode == MODE_STANDARD || *i)
		say(l, "%s%s%s", *i ? i : "", mode, *i ? "send" : "Send");
	else
		say(l, "%c%s", *mode - 'a' + 'A', "send");
	say(l, "%s message %d to %d tag %d comm %d: ",
	    m->how == HOW_PERSISTENT && m->chain < 0 ? "_init" : "", index,
	    rank_of(p, m->comm, m->to), m->tag, m->comm);
	say_side(l, &m->side, m->units, m->unit);
	if (m->request_freed)
		say(l, ", request freed");
}

static void say_receive(struct line *l, const struct plan *p, int index)
{
	const struct receive *r = &p->receive[index];

	if (r->chain >= 0)
		say(l, "Start of receive %d's request: ", r->chain);
	else
		say(l, "%s ", receive_names[r->how]);
	say(l, "receive %d from ", index);
	if (r->source == MPI_ANY_SOURCE)
		say(l, "any");
	else
		say(l, "%d", rank_of(p, r->comm, r->source));
	if (r->tag == MPI_ANY_TAG)
		say(l, " any tag");
	else
		say(l, " tag %d", r->tag);
	say(l, " comm %d", r->comm);
	if (r->message >= 0)
		say(l, " (message %d)", r->message);
	say(l, ": room for ");
	say_side(l, &r->side, r->units, r->unit);
}

static void say_other(struct line *l, const struct plan *p, int index)
{
	const struct other *o = &p->other[index];

	say(l, "%s%s%s #%d comm %d", is_collective(o) && o->nonblocking ? "I " : "",
	    other_names[o->kind], is_collective(o) && o->vector ? " (v)" : "", index, o->comm);
	if (o->kind == OTHER_CANCEL_SEND || o->kind == OTHER_CANCEL_RECEIVE ||
	    o->kind == OTHER_NULL || o->kind == OTHER_NONE)
		say(l, " %d to %d", o->from, o->to);
	else if (!is_collective(o))
		say(l, " shift %d%s", o->shift, o->wraps ? " round" : "");
	else
		say(l, " root %d%s", o->root, o->in_place ? " in place" : "");
	say(l, ": %zu %s, ", o->units, units[o->unit].name);
	say_shape(l, &o->shape);
	say(l, ", %s", origin_names[o->origin]);
}

static void say_wait(struct line *l, const struct plan *p, const struct event *e)
{
	static const char *const kinds[] = {"message", "receive", "#"};
	int i;

	say(l, "%s", wait_names[e->style]);
	for (i = e->first; i < e->first + e->items; i++)
		say(l, "%s %s %d", i > e->first ? "," : "", kinds[p->item[i].kind],
		    p->item[i].index);
}

void event_text(const struct plan *p, const struct event *e, char *to, size_t bytes)
{
	struct line l = {to, bytes};

	switch (e->kind) {
	case EVENT_SEND:
		say_send(&l, p, e->index);
		break;
	case EVENT_RECEIVE:
		say_receive(&l, p, e->index);
		break;
	case EVENT_WAIT:
		say_wait(&l, p, e);
		break;
	case EVENT_OTHER:
		say_other(&l, p, e->index);
		break;
	case EVENT_CLOSE:
		say(&l, "epoch %d ends: wildcards are judged, Barrier comm 0", e->index);
	}
}

void plan_print(const struct plan *p)
{
	char text[2000];
	int i, k;

	printf("seed %llu program %lu ranks %d: %d messages, %d others, %d events\n",
	       (unsigned long long)p->seed, p->number, p->ranks, p->messages, p->others, p->events);
	for (i = 0; i < p->comms; i++) {
		printf("comm %d: %s", i, maker_names[p->comm[i].maker]);
		if (i)
			printf(" of comm %d", p->comm[i].parent);
		printf(", %s, ranks", style_names[p->comm[i].style]);
		for (k = 0; k < p->comm[i].size; k++)
			printf("%s %d",
			       p->comm[i].maker == COMM_INTER && k == p->comm[i].left ? " |" : "",
			       p->comm[i].member[k]);
		printf("\n");
	}
	for (i = 0; i < p->events; i++) {
		event_text(p, &p->event[i], text, sizeof(text));
		if (p->event[i].rank >= 0)
			printf("%4d rank %d: %s\n", i, p->event[i].rank, text);
		else
			printf("%4d all: %s\n", i, text);
	}
}
