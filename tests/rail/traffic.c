/* traffic.c - messages and their bookkeeping. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "traffic.h"

enum { GUARD = 64, GUARD_BYTE = 0xa5 };

const struct rail_way traffic_ways[3] = {
	{ RAIL_SINGLE, 8192, 8192 },
	{ RAIL_BIND, 8192, 8192 },
	{ RAIL_STRIPE, 8192, 8192 },
};

struct item {
	struct rail_op op;
	size_t bytes;			/* length of the message */
	size_t room;			/* length of the receive buffer */
	unsigned char *at;
	size_t offset;			/* offset of at in the memory of all */
	const struct rail_way *way;
	unsigned flags;
	bool started, finished;
	uint64_t rendezvous;		/* waits to be accepted */
	bool out_parts, in_parts;	/* memory that moves in parts, at the sender, at the receiver */
	bool out_slices, in_slices;	/* memory in several pieces */
	size_t moved;			/* this end's: through parts, so far */
};

/* Messages with a partner, in both directions. */
struct side {
	struct item *out, *in;
	unsigned char *out_memory, *in_memory;
	size_t out_bytes, in_bytes;
	int sent, sending, arrived, finished, later;
	int last_of_way[TRAFFIC_WAYS_MAX];
};

/* Each process has its own, or each member of one (members.c). */
static _Thread_local struct {
	struct job *job;
	const struct traffic *t;
	struct side side[JOB_MAX];
	uint64_t dice;
	unsigned gathered, scattered;	/* messages in slices */
} run;

/* ---- Content ------------------------------------------------------------ */

static uint64_t mix(uint64_t z)
{
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

static uint64_t key_of(int from, int to, int i)
{
	return mix(run.t->seed * 0x9e3779b97f4a7c15u + (uint64_t)from * 1000003 +
		   (uint64_t)to * 10007 + (uint64_t)i * 31);
}

/*
 * Bytes k to k + 7; the pattern depends on the message (the key is mixed) and on the place.
 * A step a word, because most of the time of these tests is spent here.
 */
static uint64_t word_of(uint64_t key, size_t k)
{
	return key + k * 0x9e3779b97f4a7c15u;
}

static void fill(unsigned char *at, size_t bytes, uint64_t key)
{
	size_t k = 0;
	uint64_t word;

	for (; k + 8 <= bytes; k += 8) {
		word = word_of(key, k);
		memcpy(at + k, &word, 8);
	}
	word = word_of(key, k);
	memcpy(at + k, &word, bytes - k);
}

static void verify_content(const struct item *item, size_t bytes, uint64_t key, int from, int i)
{
	uint64_t found;
	size_t k = 0;

	for (; k + 8 <= bytes; k += 8) {
		memcpy(&found, item->at + k, 8);
		if (found != word_of(key, k))
			break;
	}
	if (k < bytes) {
		size_t n = bytes - k < 8 ? bytes - k : 8;

		found = word_of(key, k);
		if (memcmp(item->at + k, &found, n))
			job_fail(__FILE__, __LINE__, "message %d from %d, %zu bytes on policy %d: "
				 "wrong bytes at %zu", i, from, item->bytes, item->way->policy, k);
	}
}

static void verify(const struct item *item, int from, int to, int i)
{
	size_t bytes = item->bytes < item->room ? item->bytes : item->room;

	verify_content(item, bytes, key_of(from, to, i), from, i);
	for (size_t k = 0; k < GUARD; k++)
		if (item->at[-1 - (long)k] != GUARD_BYTE || item->at[item->room + k] != GUARD_BYTE)
			job_fail(__FILE__, __LINE__, "message %d from %d, %zu bytes: written "
				 "outside its buffer", i, from, item->bytes);
}

/* ---- What is sent: the same at both ends -------------------------------- */

static _Thread_local size_t largest;	/* slow devices; 0: no limit */

static void describe(struct item *item, int from, int to, int i, size_t *offset)
{
	const struct traffic *t = run.t;
	uint64_t random = key_of(from, to, i);

	item->way = &t->ways[i % t->way_count];
	item->bytes = t->sizes ? t->sizes[i / t->way_count % t->size_count] :
				 (size_t)(mix(random) >> mix(random + 1) % 60) % (t->max_bytes + 1);
	if (largest && item->bytes > largest)
		item->bytes = largest;
	item->room = item->bytes;
	if (t->truncate_every && (size_t)i % t->truncate_every == 0)
		item->room /= 2;
	item->out_parts = t->part_bytes && item->bytes > item->way->eager && random >> 20 & 1;
	item->in_parts = t->part_bytes && random >> 21 & 1;
	item->out_slices = t->slices && random >> 22 & 1;
	item->in_slices = t->slices && random >> 23 & 1;
	item->flags = t->sync_every && (unsigned)i % t->sync_every == 0 ? RAIL_SEND_SYNC : 0;
	*offset += GUARD + random % 64;
	item->offset = *offset;
	*offset += item->bytes + GUARD;
}

static void *memory(size_t bytes)
{
	void *m = run.t->arena ? rail_alloc(run.job->ctx, bytes) : malloc(bytes);

	CHECK(m != NULL);
	return m;
}

static struct item *items_make(int from, int to, unsigned char **at, size_t *bytes)
{
	struct item *items = calloc((size_t)run.t->count, sizeof(*items));

	CHECK(items != NULL);
	*bytes = 0;
	for (int i = 0; i < run.t->count; i++)
		describe(&items[i], from, to, i, bytes);
	*at = memory(*bytes + 1);
	/* Memory between guards stays as a new process has it, which is no message's content. */
	for (int i = 0; i < run.t->count; i++) {
		items[i].at = *at + items[i].offset;
		memset(items[i].at - GUARD, GUARD_BYTE, GUARD);
		memset(items[i].at + items[i].room, GUARD_BYTE, items[i].bytes - items[i].room + GUARD);
	}
	return items;
}

static bool partner(int from, int to)
{
	return (from != to || run.t->with_self) && (!run.t->one_way || from < to);
}

static void side_make(int p)
{
	struct side *s = &run.side[p];
	int me = run.job->rank;

	memset(s, 0, sizeof(*s));
	for (int w = 0; w < TRAFFIC_WAYS_MAX; w++)
		s->last_of_way[w] = -1;
	if (partner(me, p)) {
		s->out = items_make(me, p, &s->out_memory, &s->out_bytes);
		for (int i = 0; i < run.t->count; i++)
			fill(s->out[i].at, s->out[i].bytes, key_of(me, p, i));
	}
	if (partner(p, me))
		s->in = items_make(p, me, &s->in_memory, &s->in_bytes);
}

static void side_free(int p)
{
	struct side *s = &run.side[p];

	if (run.t->arena) {
		rail_free(run.job->ctx, s->out_memory);
		rail_free(run.job->ctx, s->in_memory);
	} else {
		free(s->out_memory);
		free(s->in_memory);
	}
	free(s->out);
	free(s->in);
}

/* ---- Sending and receiving ---------------------------------------------- */

void traffic_on_part(void *user, struct rail_op *op, uint64_t from, void *part, size_t bytes,
		     bool gather)
{
	struct item *item = (struct item *)op;

	CHECK(user == run.job && !item->finished);
	CHECK_EQUAL(from, item->moved);
	CHECK(bytes > 0 && (bytes <= run.t->part_bytes || run.t->slices));
	item->moved += bytes;
	if (gather) {
		CHECK((item->out_parts || item->out_slices) && item->moved <= item->bytes);
		memcpy(part, item->at + from, bytes);
	} else {
		CHECK((item->in_parts || item->in_slices) && item->moved <= item->room);
		memcpy(item->at + from, part, bytes);
	}
}

static enum rail_mem_kind kind_of(bool parts)
{
	return parts ? RAIL_MEM_PARTS : run.t->arena ? RAIL_MEM_ARENA : RAIL_MEM_HOST;
}

static void sent(struct rail_op *op, int status)
{
	struct item *item = (struct item *)op;
	size_t taken = item->bytes < item->room ? item->bytes : item->room;

	CHECK_EQUAL(status, 0);
	CHECK(!item->finished);
	CHECK_EQUAL(item->moved, item->out_parts || item->out_slices ? taken : 0);
	run.gathered += item->out_slices && item->moved;
	item->finished = true;
	for (int p = 0; p < run.job->count; p++)
		if (run.side[p].out && item >= run.side[p].out &&
		    item < run.side[p].out + run.t->count)
			run.side[p].sending--;
}

static void received(struct rail_op *op, int status)
{
	struct item *item = (struct item *)op;

	CHECK_EQUAL(status, 0);
	CHECK(!item->finished);
	CHECK_EQUAL(item->moved, (item->in_parts && op->done) || (item->in_slices && item->moved) ?
		    (item->bytes < item->room ? item->bytes : item->room) : 0);
	run.scattered += item->in_slices && item->moved;
	item->finished = true;
	for (int p = 0; p < run.job->count; p++)
		if (run.side[p].in && item >= run.side[p].in &&
		    item < run.side[p].in + run.t->count) {
			verify(item, p, run.job->rank, (int)(item - run.side[p].in));
			run.side[p].finished++;
		}
}

static void send_some(int p)
{
	struct side *s = &run.side[p];

	while (s->out && s->sent < run.t->count && s->sending < run.t->window) {
		struct item *item = &s->out[s->sent];
		struct rail_header header = { { 0x7700 + (uint64_t)s->sent,
						(uint64_t)item->bytes } };
		struct rail_buf buf = { .bytes = item->bytes };
		int rc;

		item->out_slices = item->out_slices && rail_slices(run.job->peer[p], item->way, item->bytes);
		buf.in_slices = item->out_slices;
		buf.kind = kind_of(item->out_parts || item->out_slices);
		buf.addr = item->out_parts || item->out_slices ? NULL : item->at;
		item->op.done = sent;
		s->sending++;
		rc = rail_send(run.job->peer[p], item->way, &header, &buf, item->flags, &item->op);
		if (rc < 0)
			job_fail(__FILE__, __LINE__, "rail_send: %s", strerror(-rc));
		if (rc == 1) {
			CHECK(!(item->flags & RAIL_SEND_SYNC));
			item->finished = true;
			s->sending--;
			/* The buffer is free again: this write must not reach the receiver. */
			memset(item->at, 0xee, item->bytes);
		}
		s->sent++;
	}
}

static void accept_item(int p, int i)
{
	struct item *item = &run.side[p].in[i];
	struct rail_buf buf = {
		item->in_parts ? NULL : item->at, item->room, kind_of(item->in_parts), .in_slices = item->in_slices,
	};
	int rc;

	item->op.done = received;
	rc = rail_accept(run.job->peer[p], item->rendezvous, &buf, &item->op);
	if (rc)
		job_fail(__FILE__, __LINE__, "rail_accept: %s", strerror(-rc));
	item->rendezvous = 0;
}

static void accept_waiting(int p)
{
	struct side *s = &run.side[p];

	/* So many messages can come before one is accepted. */
	if (run.t->accept == ACCEPT_LATER && s->arrived < run.t->count && s->later < run.t->window)
		return;
	for (int i = run.t->count - 1; i >= 0 && s->later; i--)
		if (s->in[i].rendezvous &&
		    (run.t->accept == ACCEPT_LATER || mix(++run.dice) % 3)) {
			s->later--;
			accept_item(p, i);
		}
}

void traffic_on_message(void *user, const struct rail_message *msg)
{
	struct side *s = &run.side[msg->index];
	int i = (int)(msg->header->word[0] - 0x7700), w;
	struct item *item;

	CHECK(user == run.job && s->in);
	CHECK(i >= 0 && i < run.t->count);
	item = &s->in[i];
	CHECK(!item->started);
	item->started = true;
	CHECK_EQUAL(msg->bytes, item->bytes);
	CHECK_EQUAL(msg->header->word[1], item->bytes);
	w = i % run.t->way_count;
	CHECK(i > s->last_of_way[w]);		/* order within the way */
	CHECK(s->last_of_way[w] < 0 || i - s->last_of_way[w] == run.t->way_count);
	s->last_of_way[w] = i;
	s->arrived++;
	if (msg->payload) {
		size_t bytes = item->bytes < item->room ? item->bytes : item->room;

		CHECK(!msg->rendezvous && !(item->flags & RAIL_SEND_SYNC));
		memcpy(item->at, msg->payload, bytes);
		received(&item->op, 0);
		return;
	}
	CHECK(msg->rendezvous != 0);
	item->rendezvous = msg->rendezvous;
	if (run.t->accept == ACCEPT_NOW || (run.t->accept == ACCEPT_RANDOM && i % 2))
		accept_item((int)msg->index, i);
	else
		s->later++;
}

static bool all_done(void)
{
	bool done = true;

	for (int p = 0; p < run.job->count; p++) {
		const struct side *s = &run.side[p];

		done &= !s->out || (s->sent == run.t->count && !s->sending);
		done &= !s->in || s->finished == run.t->count;
	}
	return done;
}

void traffic_run(struct job *job, const struct traffic *t)
{
	run.job = job;
	run.t = t;
	run.gathered = run.scattered = 0;
	if (getenv("RAIL_TEST_BYTES"))
		largest = strtoul(getenv("RAIL_TEST_BYTES"), NULL, 0);
	for (int p = 0; p < job->count; p++)
		side_make(p);
	job_barrier(job);
	while (!all_done()) {
		for (int p = 0; p < job->count; p++) {
			send_some(p);
			if (run.side[p].in)
				accept_waiting(p);
		}
		job_progress(job);
	}
	job_barrier(job);
	while (rail_busy(job->ctx))
		job_progress(job);
	job_barrier(job);
	CHECK(!t->slices || (run.gathered && run.scattered));
	for (int p = 0; p < job->count; p++)
		side_free(p);
}
