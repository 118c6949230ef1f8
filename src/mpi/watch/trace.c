/* trace.c - lines of text of one length, so that each can be written over an old one. */
#include "mpi/watch/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "mpi/comm/comm.h"
#include "mpi/job/progress.h"
#include "mpi/p2p/match.h"
#include "mpi/p2p/request.h"
#include "mpi/p2p/send.h"
#include "rail/rail.h"
#include "util/err.h"
#include "util/text.h"

enum {
	LINE_BYTES = 160,
	STATE_BYTES = 100,		/* the head's last line, which is written again */
};

static int fd = -1;
static char path[PATH_MAX];
static uint64_t written;		/* lines */
static off_t state_at, lines_at;
static void (*plain_send_done)(struct rail_op *op, int status);
static void (*plain_recv_done)(struct rail_op *op, int status);

/* ---- The file --------------------------------------------------------------------------- */

/* Full disks and the like end the trace, not the program. */
static void trace_put(const char *text, size_t bytes, off_t at)
{
	ssize_t n;

	if (fd < 0)
		return;
	do
		n = pwrite(fd, text, bytes, at);
	while (n < 0 && errno == EINTR);
	if (n == (ssize_t)bytes)
		return;
	rg_warn("rank %d: --trace %s: %s; no more messages are traced", layer.world_rank, path,
		n < 0 ? strerror(errno) : "short write");
	close(fd);
	fd = -1;
}

/* Padded with blanks to its length. */
static void put_padded(char *line, int used, int bytes, off_t at)
{
	if (used > bytes - 1)
		used = bytes - 1;
	memset(line + used, ' ', (size_t)(bytes - 1 - used));
	line[bytes - 1] = '\n';
	trace_put(line, (size_t)bytes, at);
}

static void put_state(const char *state)
{
	char line[STATE_BYTES];

	put_padded(line, snprintf(line, sizeof(line), "# %s", state), sizeof(line), state_at);
}

static void name_file(const char *name)
{
	const char *mark = strstr(name, "%r");

	if (mark)
		snprintf(path, sizeof(path), "%.*s%d%s", (int)(mark - name), name, layer.world_rank,
			 mark + 2);
	else
		snprintf(path, sizeof(path), "%s.%d", name, layer.world_rank);
}

/* ---- Messages ----------------------------------------------------------------------------- */

struct message {
	unsigned peer;
	bool sent;
	uint64_t context;
	int tag;
	uint64_t bytes;
	const char *how, *rails;
};

static void message_put(const struct message *m)
{
	bool collective = m->context & COMM_COLLECTIVE_CONTEXT;
	char line[LINE_BYTES];
	struct timespec now;
	int used;

	clock_gettime(CLOCK_REALTIME, &now);
	used = snprintf(line, sizeof(line), "%10" PRIu64 " %10lld.%06ld %s %6u %12" PRIx64 " %s %11d "
			"%12" PRIu64 " %-9s %s", written + 1, (long long)now.tv_sec,
			now.tv_nsec / 1000, m->sent ? "sent" : "got ", m->peer,
			m->context & ~COMM_COLLECTIVE_CONTEXT, collective ? "coll" : "p2p ", m->tag,
			m->bytes, m->how, m->rails);
	put_padded(line, used, sizeof(line),
		   lines_at + (off_t)(written % TRACE_LINES) * (off_t)sizeof(line));
	if (++written == TRACE_LINES + 1)
		put_state("cut: lines of older messages have been written over; the lowest number is "
			  "the oldest");
}

static void on_eager(void *user, unsigned index, bool sent, int rail,
		     const struct rail_header *header, size_t bytes)
{
	char rails[16];

	(void)user;
	snprintf(rails, sizeof(rails), "%d", rail);
	message_put(&(struct message){
		.peer = index, .sent = sent, .context = header->word[0],
		.tag = (int)(uint32_t)header->word[1], .bytes = bytes, .how = "eager",
		.rails = rails,
	});
}

/* "0:8,1:8": chunks by rail. */
static void chunks_text(const struct rail_traced *t, char *text, size_t size)
{
	*text = '\0';
	for (int r = 0; r < RAIL_ALL; r++)
		if (t->chunks[r])
			rg_text_add(text, size, "%s%d:%u", *text ? "," : "", r,
				    (unsigned)t->chunks[r]);
	if (!*text)
		rg_text_add(text, size, "%s", t->in_parts ? "parts" : t->any ? "any" : "-");
}

static void rendezvous_put(const struct rail_op *op, bool sent, uint64_t context, int tag, int status)
{
	struct rail_traced t = {.index = 0};
	char rails[64] = "-";

	if (!status) {
		rail_op_traced(op, sent, &t);
		if (t.eager)
			return;
		chunks_text(&t, rails, sizeof(rails));
	} else {
		t.index = rail_op_index(op);
	}
	message_put(&(struct message){
		.peer = t.index, .sent = sent, .context = context, .tag = tag, .bytes = t.bytes,
		.how = status == -ECANCELED ? "cancelled" : status ? "failed" :
		       t.both ? "both" : t.read ? "read" : t.ring ? "ring" : "write",
		.rails = rails,
	});
}

static void traced_send_done(struct rail_op *op, int status)
{
	const struct rail_header *header = rail_op_header(op);

	rendezvous_put(op, true, header->word[0], (int)(uint32_t)header->word[1], status);
	plain_send_done(op, status);
}

static void traced_recv_done(struct rail_op *op, int status)
{
	const struct req *r = (const struct req *)op;

	rendezvous_put(op, false, r->comm->context, r->tag, status);
	plain_recv_done(op, status);
}

/* ---- Begin and end ------------------------------------------------------------------------- */

int trace_open(const char *name, struct rail_config *cfg)
{
	int rc;

	if (!name)
		return 0;
	name_file(name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (fd < 0) {
		rc = -errno;
		rg_error("--trace %s: %s (accepted: a file that can be written; %%r becomes the rank)",
			 path, strerror(-rc));
		return rc;
	}
	written = 0;
	cfg->on_eager = on_eager;
	plain_send_done = send_done;
	plain_recv_done = recv_done;
	send_done = traced_send_done;
	recv_done = traced_recv_done;
	return 0;
}

void trace_begin(void)
{
	char head[2048];
	struct rail_info info;

	if (fd < 0)
		return;
	snprintf(head, sizeof(head), "# railgauge trace of rank %d of %d, at most its last %d messages\n"
		 "# rails:", layer.world_rank, layer.world_size, TRACE_LINES);
	for (int r = 0; r < rail_count(layer.rails) + (rail_local(layer.rails) >= 0); r++) {
		rail_info(layer.rails, r, &info);
		rg_text_add(head, sizeof(head), " %d=%s%s%s", r, info.name, *info.netdev ? " " : "", info.netdev);
	}
	rg_text_add(head, sizeof(head), "; those of large messages with their chunks\n# fabric: %s\n"
		    "# number, seconds since 1970, way, peer, communicator, use, tag, bytes, how, rails\n",
		    rail_fabric_text(layer.rails));
	trace_put(head, strlen(head), 0);
	state_at = (off_t)strlen(head);
	lines_at = state_at + STATE_BYTES;
	put_state("not cut so far; a rank that ends well says here how many messages there were");
}

void trace_close(void)
{
	char state[STATE_BYTES];

	if (!plain_send_done)
		return;
	send_done = plain_send_done;
	recv_done = plain_recv_done;
	plain_send_done = plain_recv_done = NULL;
	snprintf(state, sizeof(state), "%s: %" PRIu64 " messages%s",
		 written > TRACE_LINES ? "cut" : "complete", written, written > TRACE_LINES ?
		 ", the last ones are here; sort -n orders them" : "");
	put_state(state);
	if (fd >= 0)
		close(fd);
	fd = -1;
}
