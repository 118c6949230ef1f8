/* test_peer_rules.c - peers that break the rules: records and answers that make no sense. */
#include "config.h"		/* _GNU_SOURCE */
#include "cmocka_all.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "capture.h"
#include "rail/message/eager.h"
#include "rail/message/landing.h"
#include "rail/lane/lane.h"
#include "rail/peer/peer_failure.h"
#include "rail/rail.h"
#include "rail/open/rail_ctx.h"
#include "rail/peer/peer.h"
#include "rail/message/rail_record.h"
#include "rail/message/rndv.h"
#include "rail/message/rndv_receive.h"
#include "rail/message/rndv_send.h"
#include "traffic.h"

#define MODELLED "rate=20GB/s,latency=1us"

enum { FIRST_SLICES = 27, FIRST_CONTROL = 34, LAST_RULE = 38 };

static void inject(struct job *job, int what)
{
	struct rail_peer *peer = job->peer[0];
	struct rail_record record = { .header = { { 12345, 0 } }, .word = 100 };
	struct rail_rts_wire rts = { .policy = 9 };
	uint32_t rkeys[RAIL_MAX] = { 0 };
	struct rail_landing *landing = &peer->landing[0];
	uint8_t generation = landing->generation;
	uint32_t landed = (uint32_t)generation << 16;
	struct op *op = landing->op;

	switch (what) {
	case 0:		/* a landing that nobody prepared */
		rail_chunk_landed(&peer->bulk[0], 7u << 24, 8, true);
		break;
	case 1:		/* beyond all landings */
		rail_chunk_landed(&peer->bulk[0], 0xffu << 24, 8, true);
		break;
	case 2:		/* an earlier generation */
		rail_chunk_landed(&peer->bulk[0], (uint32_t)(uint8_t)(generation - 1) << 16, 32768, true);
		break;
	case 3:		/* a number that the table does not have */
		rail_chunk_landed(&peer->bulk[0], (uint32_t)generation << 16 | 2, 32768, true);
		break;
	case 4:		/* the wrong length */
		rail_chunk_landed(&peer->bulk[0], (uint32_t)generation << 16, 32767, true);
		break;
	case 5:		/* the wrong rail */
		rail_chunk_landed(&peer->bulk[1], (uint32_t)generation << 16, 32768, true);
		break;
	case 6:		/* twice */
		rail_chunk_landed(&peer->bulk[0], (uint32_t)generation << 16, 32768, true);
		CHECK_EQUAL(peer->error, 0);
		rail_chunk_landed(&peer->bulk[0], (uint32_t)generation << 16, 32768, true);
		break;
	case 7:
		rail_cts_arrived(peer, &record, rkeys);
		break;
	case 8:
		rail_rts_arrived(&peer->rx[0], &record, &rts);
		break;
	case 9:
		rail_record_arrived(&peer->rx[0], 77, &record, &rts, 8);
		break;
	case 10:	/* to be read, without KEYS */
		rts = (struct rail_rts_wire){ .handle = 5, .rndv_flags = RNDV_READ };
		rail_rts_arrived(&peer->rx[0], &record, &rts);
		break;
	case 11:	/* weights that are all 0 */
		rts = (struct rail_rts_wire){ .policy = RAIL_WEIGHTED };
		rail_rts_arrived(&peer->rx[0], &record, &rts);
		break;
	case 12:	/* a policy that excludes control messages */
		rts = (struct rail_rts_wire){ .policy = RAIL_PULL, .rndv_flags = RNDV_CONTROL };
		rail_rts_arrived(&peer->rx[0], &record, &rts);
		break;
	case 13:	/* slices without RNDV_BOTH */
		rts = (struct rail_rts_wire){ .rndv_flags = RNDV_RING };
		rail_rts_arrived(&peer->rx[0], &record, &rts);
		break;
	case 14:	/* both, without KEYS */
		rts = (struct rail_rts_wire){ .handle = 5, .rndv_flags = RNDV_BOTH };
		rail_rts_arrived(&peer->rx[0], &record, &rts);
		break;
	case 15:	/* both, and chunks for any rail */
		peer->rx[0].keys.handle = 5;
		rts = (struct rail_rts_wire){ .handle = 5, .rndv_flags = RNDV_BOTH, .policy = RAIL_PULL };
		rail_rts_arrived(&peer->rx[0], &record, &rts);
		break;
	case 16:	/* both, and read */
		peer->rx[0].keys.handle = 5;
		rts = (struct rail_rts_wire){ .handle = 5, .rndv_flags = RNDV_BOTH | RNDV_READ };
		rail_rts_arrived(&peer->rx[0], &record, &rts);
		break;
	case 17:	/* a control message, where every chunk has an immediate */
		rail_chunk_landed(&peer->bulk[0], landed | IMM_CONTROL, 0, false);
		break;
	case 18:	/* an immediate without a write */
		rail_chunk_landed(&peer->bulk[0], landed, 32768, false);
		break;
	case 19:	/* edges, where the buffer is not mapped */
		record.header.word[0] = landed >> 24;
		record.header.word[1] = landed >> 16 & 0xff;
		rail_edges_arrived(&peer->rx[0], &record, &rts, 0);
		break;
	case 20:	/* RNDV_MORE without RNDV_BOTH */
		rts = (struct rail_rts_wire){ .rndv_flags = RNDV_MORE };
		rail_rts_arrived(&peer->rx[0], &record, &rts);
		break;
	case 21:	/* memory in parts, and read */
		peer->rx[0].keys.handle = 5;
		rts = (struct rail_rts_wire){ .handle = 5, .rndv_flags = RNDV_READ, .parts = 1 };
		rail_rts_arrived(&peer->rx[0], &record, &rts);
		break;
	case 22:	/* in what is no answer to the question */
		rts = (struct rail_rts_wire){ .handle = 5, .parts = 2 };
		rail_rts_arrived(&peer->rx[0], &record, &rts);
		break;
	case 23:	/* a scheme of messages that cross, which does not exist */
		peer->rx[0].keys.handle = 5;
		rts = (struct rail_rts_wire){ .handle = 5, .rndv_flags = RNDV_BOTH | RNDV_CHOICE,
					      .crossing = RAIL_SCHEMES };
		rail_rts_arrived(&peer->rx[0], &record, &rts);
		break;
	case 24:	/* the same of a message that leaves no choice */
		peer->rx[0].keys.handle = 5;
		rts = (struct rail_rts_wire){ .handle = 5, .rndv_flags = RNDV_BOTH, .crossing = SCHEME_HALVES };
		rail_rts_arrived(&peer->rx[0], &record, &rts);
		break;
	case 25:	/* a scheme that the sender has found, and that does not exist */
		peer->rx[0].keys.handle = 5;
		rts = (struct rail_rts_wire){ .handle = 5, .rndv_flags = RNDV_BOTH | RNDV_CHOICE,
					      .found = SCHEME_TOLD + RAIL_SCHEMES };
		rail_rts_arrived(&peer->rx[0], &record, &rts);
		break;
	case 26:	/* the same of a message that leaves no choice */
		peer->rx[0].keys.handle = 5;
		rts = (struct rail_rts_wire){ .handle = 5, .rndv_flags = RNDV_BOTH, .found = SCHEME_TOLD };
		rail_rts_arrived(&peer->rx[0], &record, &rts);
		break;
	case FIRST_SLICES:	/* a slice, where chunks are due */
		record.header.word[1] = generation;
		rail_record_arrived(&peer->rx[0], RECORD_SLICE, &record, &rts, 8);
		break;
	case 28:	/* an earlier generation */
		op->rndv_flags |= RNDV_RING;
		record.header = (struct rail_header){ { 0, (uint8_t)(generation - 1) } };
		rail_record_arrived(&peer->rx[0], RECORD_SLICE, &record, &rts, 8);
		break;
	case 29:	/* beyond the message */
		op->rndv_flags |= RNDV_RING;
		op->sliced = op->bytes - 7;
		record.header = (struct rail_header){ { 0, generation } };
		rail_record_arrived(&peer->rx[0], RECORD_SLICE, &record, &rts, 8);
		break;
	case 30:	/* without bytes */
		op->rndv_flags |= RNDV_RING;
		op->sliced = 0;
		record.header = (struct rail_header){ { 0, generation } };
		rail_record_arrived(&peer->rx[0], RECORD_SLICE, &record, &rts, 0);
		break;
	case 31:	/* a landing that nobody prepared */
		record.header = (struct rail_header){ { 7, 0 } };
		rail_record_arrived(&peer->rx[0], RECORD_SLICE, &record, &rts, 8);
		break;
	case 32:	/* slices, and by turns */
		peer->rx[0].keys.handle = 5;
		rts = (struct rail_rts_wire){ .handle = 5, .rndv_flags = RNDV_BOTH | RNDV_TURNS | RNDV_RING };
		rail_rts_arrived(&peer->rx[0], &record, &rts);
		break;
	case 33:	/* slices alone, and a choice */
		peer->rx[0].keys.handle = 5;
		rts = (struct rail_rts_wire){ .handle = 5, .rndv_flags = RNDV_BOTH | RNDV_CHOICE | RNDV_RING,
					      .parts = RTS_SLICES };
		rail_rts_arrived(&peer->rx[0], &record, &rts);
		break;
	case FIRST_CONTROL:	/* an immediate of a write, where control messages are due */
		rail_chunk_landed(&peer->bulk[0], landed, 32768, true);
		break;
	case 35:	/* the control message of another rail */
		rail_chunk_landed(&peer->bulk[0], landed | IMM_CONTROL | 1, 0, false);
		break;
	case 36:	/* with data */
		rail_chunk_landed(&peer->bulk[0], landed | IMM_CONTROL, 8, false);
		break;
	case 37:	/* twice */
		rail_chunk_landed(&peer->bulk[0], landed | IMM_CONTROL, 0, false);
		CHECK_EQUAL(peer->error, 0);
		rail_chunk_landed(&peer->bulk[0], landed | IMM_CONTROL, 0, false);
		break;
	case LAST_RULE:	/* a rail that does not exist */
		rail_chunk_landed(&peer->bulk[0], landed | IMM_CONTROL | 7, 0, false);
		break;
	default:
		job_fail(__FILE__, __LINE__, "no such case");
	}
}

static void rules_body(struct job *job)
{
	const int what = *(const int *)job->arg;
	struct rail_header header = { { 1, 2 } };
	struct rail_op op = { .done = job_count_done };
	struct rail_way way = traffic_ways[RAIL_STRIPE];
	unsigned char *data;
	const char *text;

	way.completion = what >= FIRST_CONTROL ? RAIL_BY_CONTROL : RAIL_BY_IMMEDIATE;
	job->rail.on_message = job_keep_handle;
	job->rail.on_peer_error = job_count_error;
	job_connect(job);
	data = calloc(1, 65536);
	if (job->rank == 0) {
		/* A message of two chunks is offered, without an answer. */
		CHECK_EQUAL(rail_send(job->peer[1], &way, &header,
				      &(struct rail_buf){ data, 65536, RAIL_MEM_HOST }, 0, &op), 0);
		capture_begin(2);
		job_barrier(job);
		/* The peer has stopped: once, wait until that shows. */
		if (what)
			rail_peer_fail(job->peer[1], -EPROTO, "to save time");
		for (uint64_t until = rg_now_ns() + 60000000000u;
		     !job_seen.errors && rg_now_ns() < until; )
			job_progress(job);
		text = capture_end();
		CHECK(strstr(text, "peer 1 is lost") != NULL);
	} else {
		while (!job_seen.handle)
			job_progress(job);
		/* Accepted, without letting the CTS out: the chunks come from this test. */
		job->peer[0]->route[RAIL_STRIPE]->lane->sq_depth = 0;
		CHECK_EQUAL(rail_accept(job->peer[0], job_seen.handle,
					&(struct rail_buf){ data, 65536, RAIL_MEM_HOST }, &op), 0);
		CHECK_EQUAL(job_seen.done, 0);
		capture_begin(2);
		inject(job, what);
		for (int i = 0; i < 100; i++)
			rail_progress(job->ctx);
		text = capture_end();
		if (!strstr(text, "peer 0 is lost") || strchr(text, '\n') != strrchr(text, '\n'))
			job_fail(__FILE__, __LINE__, "not one line: %s", text);
		job_barrier(job);
	}
	CHECK_EQUAL(job_seen.errors, 1);
	CHECK_EQUAL(job_seen.done, 1);
	CHECK_EQUAL(job_seen.status, -ECONNRESET);
	CHECK(!rail_busy(job->ctx));
	CHECK_EQUAL(rail_send(job->peer[!job->rank], &traffic_ways[0], &header,
			      &(struct rail_buf){ data, 8, RAIL_MEM_HOST }, 0, &op), -ECONNRESET);
	free(data);
	job_close(job);
}

static void test_rules(void **state)
{
	(void)state;
	for (int what = 0; what <= LAST_RULE; what++)
		assert_int_equal(job_run(&(struct job_config){ .soft = "ideal" }, rules_body,
					 &what, 0), 0);
}

/* Answers to a message of 65536 bytes that make no sense; process 1 stays silent. */
static const struct answer {
	enum rail_rendezvous by;	/* memory of the message */
	bool fin;			/* the answer, else a CTS */
	uint64_t word;
	uint32_t units[RAIL_MAX];
	const char *soft;		/* "ideal" when NULL */
	bool parts;			/* the message may move in some */
	bool ask;			/* the answer */
	bool slices;			/* the message goes in slices alone */
	uint64_t length;		/* of slices, in a question for them */
} answers[] = {
	{ RAIL_BY_READ, false, 65536, { 0 } },			/* a CTS for what is to be read */
	{ RAIL_BY_WRITE, false, 0, { 0 } },			/* a CTS of no bytes */
	{ RAIL_BY_WRITE, false, 65537, { 0 } },			/* a CTS of too many bytes */
	{ RAIL_BY_WRITE, true, 65536, { 256, 256 } },		/* a FIN for what is to be written */
	{ RAIL_BY_READ, true, 65536, { 256, 255 } },		/* fewer units than bytes */
	{ RAIL_BY_READ, true, 65536, { 256, 257 } },		/* more units than bytes */
	{ RAIL_BY_READ, true, 65664, { 256, 257 } },		/* a FIN of too many bytes */
	{ RAIL_BY_READ, true, 2ull << 56 | 100, { 0 } },	/* on a rail that does not exist */
	{ RAIL_BY_BOTH, true, 32768, { 128, 128 }, MODELLED },	/* a FIN before any CTS */
	{ RAIL_BY_BOTH, true, 65664, { 256, 257 } },	/* all read, of more than there is */
	{ RAIL_BY_BOTH, false, 0, { 0 } },		/* a CTS of nothing */
	{ RAIL_BY_WRITE, false, 1ull << 47 | 65536, { 0 } },	/* for all, but not both */
	{ RAIL_BY_WRITE, false, 1ull << 46 | 65536, { 0 } },	/* with edges of no bytes */
	{ RAIL_BY_BOTH, false, 3ull << 46 | 16, { 0 } },	/* edges of too few bytes */
	{ RAIL_BY_WRITE, false, 1ull << 45 | 16384, { 0 } },	/* a part, but not in parts */
	{ RAIL_BY_READ, true, 1ull << 45 | 16384, { 64, 64 } },
	{ RAIL_BY_WRITE, false, 1ull << 45 | 65536, { 0 }, NULL, true },	/* all, and more to come */
	{ RAIL_BY_READ, true, 1ull << 45 | 65536, { 256, 256 }, NULL, true },
	{ RAIL_BY_WRITE, false, 1ull << 45, { 0 }, NULL, true },	/* a part of no bytes */
	{ RAIL_BY_READ, true, 1ull << 45, { 0 }, NULL, true },
	{ RAIL_BY_BOTH, false, 1ull << 45 | 16384, { 0 }, NULL, true },	/* both, and in parts */
	{ RAIL_BY_BOTH, false, 5ull << 45 | 16384, { 0 }, NULL, true },	/* for all, and for a part */
	/* Slices of what is not offered so, of nothing, of too many bytes, for all, of a part. */
	{ RAIL_BY_WRITE, false, 65536, { 0 }, "ideal,ports=1", .ask = true },
	{ RAIL_BY_BOTH, false, 65536, { 0 }, "ideal,ports=1", .ask = true },
	{ RAIL_BY_RING, false, 0, { 0 }, "ideal,ports=1", .ask = true },
	{ RAIL_BY_RING, false, 65537, { 0 }, "ideal,ports=1", .ask = true },
	{ RAIL_BY_RING, false, 1ull << 47 | 65536, { 0 }, "ideal,ports=1", .ask = true },
	{ RAIL_BY_RING, false, 1ull << 45 | 16384, { 0 }, "ideal,ports=1", true, true },
	/* Slices of a length that does not exist. */
	{ RAIL_BY_RING, false, 65536, { 0 }, "ideal,ports=1", .ask = true, .length = SLICINGS },
	{ RAIL_BY_AUTO, false, 65536, { 0 }, "ideal,ports=1", .ask = true, .length = UINT64_MAX },
	/* A CTS, one for all, a FIN and too many slices, for what goes in slices alone. */
	{ RAIL_BY_RING, false, 65536, { 0 }, "ideal,ports=1", .slices = true },
	{ RAIL_BY_AUTO, false, 1ull << 47 | 65536, { 0 }, "ideal,ports=1", .slices = true },
	{ RAIL_BY_AUTO, true, 65536, { 512 }, "ideal,ports=1", .slices = true },
	{ RAIL_BY_AUTO, false, 65537, { 0 }, "ideal,ports=1", .ask = true, .slices = true },
};

static void answers_body(struct job *job)
{
	const struct answer *a = job->arg;
	const struct rail_way way = { .policy = RAIL_STRIPE, .threshold = 8192, .eager = 8192,
				      .rendezvous = a->by };
	struct rail_header header = { { 1, 2 } };
	struct rail_op op = { .done = job_count_done };
	struct rail_record record = { .word = a->word };
	unsigned char *data = calloc(1, 65536);
	struct rail_buf buf = { data, 65536, .in_slices = a->slices };

	job->rail.on_message = job_keep_handle;
	job->rail.on_peer_error = job_count_error;
	job_connect(job);
	if (a->parts)
		job->ctx->part_bytes = 16384;
	capture_begin(2);
	if (job->rank == 0) {
		CHECK(!a->slices || rail_slices(job->peer[1], &way, 65536));
		buf.kind = a->slices ? RAIL_MEM_PARTS : RAIL_MEM_HOST;
		CHECK_EQUAL(rail_send(job->peer[1], &way, &header, &buf, 0, &op), 0);
		record.header = (struct rail_header){ { op_of(&op)->handle, a->length } };
		rail_record_arrived(&job->peer[1]->rx[0], a->ask ? RECORD_ASK :
				    a->fin ? RECORD_FIN : RECORD_CTS, &record, a->units, 0);
		for (int i = 0; i < 100; i++)
			rail_progress(job->ctx);
		CHECK_EQUAL(job_seen.errors, 1);
		CHECK_EQUAL(job_seen.error, -EPROTO);
		CHECK_EQUAL(job_seen.done, 1);
		CHECK_EQUAL(job_seen.status, -ECONNRESET);
		CHECK(!rail_busy(job->ctx));
		/* Records from before a told failure are dropped: job_keep_handle checks it. */
		record.word = 8;
		rail_record_arrived(&job->peer[1]->rx[0], RECORD_EAGER, &record, data, 8);
	}
	job_barrier(job);
	CHECK(job->rank == 1 || strstr(capture_end(), "for no message of ours"));
	free(data);
	job_close(job);
}

static void test_answers(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++)
		assert_int_equal(job_run(&(struct job_config){
				.soft = answers[i].soft ? answers[i].soft : "ideal" }, answers_body,
					 &answers[i], 0), 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rules),
		cmocka_unit_test(test_answers),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
