/*
 * order.c - puts what a plan has into one order of events.  A task becomes an event when the
 * events it depends on have become one; of the tasks that may be next, one is drawn.
 */
#include "programs.h"

#include <stdlib.h>
#include <string.h>

enum task_kind {
	TASK_SEND,
	TASK_RECEIVE,
	TASK_SEND_END,
	TASK_RECEIVE_END,
	TASK_OTHER,
	TASK_OTHER_END,
	TASK_CLOSE
};
struct task {
	enum task_kind kind;
	int index, rank, at; /* at: where about it is to be */
};

enum { TASKS_MAX = 4 * MESSAGES_MAX + OTHERS_MAX * (RANKS_MAX + 1) + EPOCHS_MAX };
static struct task task[TASKS_MAX];
static int tasks;

/* The number of the event, from 1; 0: not yet. */
static int sent[MESSAGES_MAX], posted[MESSAGES_MAX], sent_end[MESSAGES_MAX],
    posted_end[MESSAGES_MAX];
static int other_begun[OTHERS_MAX], closed[EPOCHS_MAX + 1];
/* A rank's knowledge of another rank: the other has had all events before this one. */
static int know[RANKS_MAX][RANKS_MAX], told[MESSAGES_MAX][RANKS_MAX];

/* ---- What depends on what ----------------------------------------------------------------- */

static bool is_wild(const struct plan *p, int comm)
{
	return p->comm[comm].style == STYLE_WILD;
}

/* The receives that this message may meet are posted; known: and its sender knows. */
static bool receive_is_posted(const struct plan *p, const struct message *m, bool known)
{
	int me = world_of(p, m->comm, m->from), peer = world_of(p, m->comm, m->to), i;

	for (i = 0; i < p->receives; i++) {
		const struct receive *r = &p->receive[i];

		if (m->receive >= 0 ? i != m->receive
				    : r->comm != m->comm || r->to != m->to || r->epoch != m->epoch)
			continue;
		if (!posted[i] || (known && know[me][peer] <= posted[i]))
			return false;
	}
	return true;
}

/* The message of this receive is sent, or as many as make sure that it gets one. */
static bool message_is_sent(const struct plan *p, const struct receive *r)
{
	int i, n = 0;

	if (r->message >= 0)
		return sent[r->message];
	for (i = 0; i < p->messages; i++)
		n += sent[i] && p->message[i].epoch == r->epoch && accepts(r, &p->message[i]);
	return n >= r->ordinal;
}

static bool epoch_is_open(const struct plan *p, int comm, int epoch)
{
	return !is_wild(p, comm) || epoch == 0 || closed[epoch - 1];
}

static bool send_may_start(const struct plan *p, const struct message *m)
{
	return (m->before < 0 || sent[m->before]) && (m->chain < 0 || sent_end[m->chain]) &&
	       epoch_is_open(p, m->comm, m->epoch);
}

static bool send_blocks(const struct message *m)
{
	return m->how == HOW_BLOCKING && m->mode != MODE_BUFFERED;
}

static bool receive_may_start(const struct plan *p, const struct receive *r)
{
	return (r->before < 0 || posted[r->before]) && (r->chain < 0 || posted_end[r->chain]) &&
	       epoch_is_open(p, r->comm, r->epoch);
}

/* All of an epoch's classes have ended; the last waits for everything. */
static bool may_close(const struct plan *p, int epoch)
{
	bool last = epoch == p->epochs - 1;
	int i;

	for (i = 0; i < tasks; i++) {
		const struct task *t = &task[i];
		int comm, of;

		if (t->kind == TASK_CLOSE && t->index < epoch)
			return false;
		if (last && t->kind != TASK_CLOSE)
			return false;
		if (t->kind > TASK_RECEIVE_END || t->kind == TASK_SEND_END)
			continue;
		comm = t->kind == TASK_SEND ? p->message[t->index].comm : p->receive[t->index].comm;
		of = t->kind == TASK_SEND ? p->message[t->index].epoch : p->receive[t->index].epoch;
		if (is_wild(p, comm) && of <= epoch)
			return false;
	}
	return true;
}

static bool may_be_next(const struct plan *p, const struct task *t)
{
	const struct message *m = &p->message[t->index];
	const struct receive *r = &p->receive[t->index];

	switch (t->kind) {
	case TASK_SEND:
		return send_may_start(p, m) && (!send_blocks(m) || receive_is_posted(p, m, false));
	case TASK_RECEIVE:
		return receive_may_start(p, r) && (!is_blocking(r->how) || message_is_sent(p, r));
	case TASK_SEND_END:
		return sent[t->index] &&
		       (m->mode == MODE_BUFFERED || receive_is_posted(p, m, false));
	case TASK_RECEIVE_END:
		return posted[t->index] && message_is_sent(p, r);
	case TASK_OTHER:
		return true;
	case TASK_OTHER_END:
		return other_begun[t->index];
	default:
		return may_close(p, t->index);
	}
}

/* ---- What a rank knows --------------------------------------------------------------------------
 */

static void learn(int *mine, const int *other, int ranks)
{
	int i;

	for (i = 0; i < ranks; i++)
		mine[i] = other[i] > mine[i] ? other[i] : mine[i];
}

/* All members have heard of all. */
static void meet(const struct plan *p, int comm, int now)
{
	int all[RANKS_MAX] = {0}, i;
	const struct comm_plan *c = &p->comm[comm];

	for (i = 0; i < c->size; i++) {
		know[c->member[i]][c->member[i]] = now;
		learn(all, know[c->member[i]], p->ranks);
	}
	for (i = 0; i < c->size; i++)
		learn(know[c->member[i]], all, p->ranks);
}

static void learn_from_message(const struct plan *p, const struct receive *r)
{
	if (r->message >= 0)
		learn(know[world_of(p, r->comm, r->to)], told[r->message], p->ranks);
}

/* ---- Events
 * ----------------------------------------------------------------------------------------- */

static struct event *event_add(struct plan *p, enum event_kind kind, int rank, int index)
{
	struct event *e = &p->event[p->events++];

	CHECK(p->events < EVENTS_MAX, "more than %d events", EVENTS_MAX);
	*e = (struct event){.kind = kind, .rank = rank, .index = index};
	return e;
}

static void remove_task(int i)
{
	memmove(&task[i], &task[i + 1], (size_t)(--tasks - i) * sizeof(*task));
}

static void add_task(enum task_kind kind, int index, int rank, int at)
{
	int i = tasks++;

	for (; i > 0 && task[i - 1].at > at; i--)
		task[i] = task[i - 1];
	task[i] = (struct task){kind, index, rank, at};
}

static void send_next(struct plan *p, int index, int at)
{
	struct message *m = &p->message[index];
	int rank = world_of(p, m->comm, m->from), now = p->events + 1;

	if (m->chain >= 0)
		m->mode = p->message[m->chain].mode;
	if (m->mode == MODE_READY && !receive_is_posted(p, m, true)) {
		m->mode = MODE_STANDARD;
		m->chain = -1;
	}
	event_add(p, EVENT_SEND, rank, index);
	know[rank][rank] = now;
	memcpy(told[index], know[rank], sizeof(told[index]));
	sent[index] = now;
	if (m->how != HOW_BLOCKING && !m->request_freed)
		add_task(TASK_SEND_END, index, rank, at);
	else
		sent_end[index] = now;
}

static void receive_next(struct plan *p, int index, int at)
{
	struct receive *r = &p->receive[index];
	int rank = world_of(p, r->comm, r->to);

	event_add(p, EVENT_RECEIVE, rank, index);
	posted[index] = p->events;
	if (is_blocking(r->how)) {
		posted_end[index] = p->events;
		learn_from_message(p, r);
	} else {
		add_task(TASK_RECEIVE_END, index, rank, at);
	}
}

static bool tells_all(const struct other *o)
{
	return !o->nonblocking &&
	       (o->kind == OTHER_BARRIER ||
		(o->units && (o->kind == OTHER_ALLREDUCE || o->kind == OTHER_ALLGATHER)));
}

static void other_next(struct plan *p, int index, int at)
{
	const struct other *o = &p->other[index];
	int i;

	event_add(p, EVENT_OTHER, -1, index);
	other_begun[index] = p->events;
	if (tells_all(o))
		meet(p, o->comm, p->events);
	if (o->kind == OTHER_ISENDRECV || o->kind == OTHER_ISENDRECV_REPLACE ||
	    (is_collective(o) && o->nonblocking))
		for (i = 0; i < p->comm[o->comm].size; i++)
			add_task(TASK_OTHER_END, index, p->comm[o->comm].member[i], at);
}

static void item_add(struct plan *p, struct event *e, const struct task *t)
{
	static const enum item_kind kinds[] = {
	    [TASK_SEND_END] = ITEM_SEND,
	    [TASK_RECEIVE_END] = ITEM_RECEIVE,
	    [TASK_OTHER_END] = ITEM_OTHER,
	};

	p->item[p->items++] = (struct item){kinds[t->kind], t->index};
	e->items++;
	if (t->kind == TASK_SEND_END)
		sent_end[t->index] = p->events;
	if (t->kind == TASK_RECEIVE_END) {
		posted_end[t->index] = p->events;
		learn_from_message(p, &p->receive[t->index]);
	}
}

static bool is_end(const struct task *t)
{
	return t->kind == TASK_SEND_END || t->kind == TASK_RECEIVE_END || t->kind == TASK_OTHER_END;
}

/* Choose one request, or all that this rank may wait for at this moment, or some of them. */
static void wait_next(struct plan *p, const struct task *t, struct draw *d)
{
	struct event *e = event_add(p, EVENT_WAIT, t->rank, 0);
	unsigned percent = draw_chance(d, 40) ? 0 : 20 + draw(d, 81);
	int i;

	e->first = p->items;
	item_add(p, e, t);
	for (i = 0; i < tasks; i++)
		if (is_end(&task[i]) && task[i].rank == t->rank && draw_chance(d, percent) &&
		    may_be_next(p, &task[i])) {
			item_add(p, e, &task[i]);
			remove_task(i--);
		}
	e->style = e->items == 1 ? (enum wait_style)draw(d, WAIT_STYLES)
				 : (enum wait_style)(WAIT_ALL + draw(d, WAIT_STYLES - WAIT_ALL));
}

static void task_next(struct plan *p, int i, struct draw *d)
{
	struct task t = task[i];
	/* A wait comes soon, as a rule. */
	int later = t.at + (draw_chance(d, 70) ? (int)draw(d, 12) : (int)draw(d, 100));

	remove_task(i);
	switch (t.kind) {
	case TASK_SEND:
		send_next(p, t.index, later);
		break;
	case TASK_RECEIVE:
		receive_next(p, t.index, later);
		break;
	case TASK_OTHER:
		other_next(p, t.index, later);
		break;
	case TASK_CLOSE:
		event_add(p, EVENT_CLOSE, -1, t.index);
		closed[t.index] = p->events;
		meet(p, 0, p->events);
		break;
	default:
		wait_next(p, &t, d);
	}
}

/*
 * Blocking calls wait for each other, and no event may be next.  A call becomes nonblocking; if
 * none can, a persistent request is a new one.
 */
static void untie(struct plan *p)
{
	int i, pass;

	for (pass = 0; pass < 2; pass++)
		for (i = 0; i < tasks; i++) {
			struct message *m = &p->message[task[i].index];
			struct receive *r = &p->receive[task[i].index];

			if (task[i].kind == TASK_SEND && pass)
				m->chain = -1;
			if (task[i].kind == TASK_RECEIVE && pass)
				r->chain = -1;
			if (task[i].kind == TASK_SEND && send_may_start(p, m)) {
				if (m->how == HOW_BLOCKING)
					m->how = HOW_NONBLOCKING;
				return;
			}
			if (task[i].kind == TASK_RECEIVE && receive_may_start(p, r)) {
				if (is_blocking(r->how))
					r->how = RECEIVE_NONBLOCKING;
				return;
			}
		}
	failed("no order of events");
}

static void tasks_add(struct plan *p, struct draw *d)
{
	int i, lag = (int)draw(d, 3);

	tasks = 0;
	for (i = 0; i < p->messages; i++)
		add_task(TASK_SEND, i, 0, 4 * i + (lag == 1 ? 12 : 0));
	for (i = 0; i < p->receives; i++) {
		const struct receive *r = &p->receive[i];
		int near = r->message >= 0 ? r->message
					   : r->epoch * p->messages / p->epochs +
						 (int)draw(d, (unsigned)(p->messages / p->epochs));

		add_task(TASK_RECEIVE, i, 0, 4 * near + (lag == 2 ? 12 : 0));
	}
	for (i = 0; i < p->others; i++)
		add_task(TASK_OTHER, i, 0, (int)draw(d, 4 * (unsigned)p->messages));
	for (i = 0; i < p->epochs; i++)
		add_task(TASK_CLOSE, i, 0, 4 * (i + 1) * p->messages / p->epochs);
}

void plan_order(struct plan *p, struct draw *d)
{
	int window = 2 + (int)draw(d, 30), choice[40], n, i;

	memset(sent, 0, sizeof(sent));
	memset(posted, 0, sizeof(posted));
	memset(sent_end, 0, sizeof(sent_end));
	memset(posted_end, 0, sizeof(posted_end));
	memset(other_begun, 0, sizeof(other_begun));
	memset(closed, 0, sizeof(closed));
	memset(know, 0, sizeof(know));
	tasks_add(p, d);
	while (tasks) {
		for (i = n = 0; i < tasks && n < window; i++)
			if (may_be_next(p, &task[i]))
				choice[n++] = i;
		if (n)
			task_next(p, choice[draw(d, (unsigned)n)], d);
		else
			untie(p);
	}
}
