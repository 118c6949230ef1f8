/*
 * wire.h - the state of queue pairs whose peers are on other hosts.
 *
 * A connected queue pair has a stream to its peer, which carries both directions: requests of
 * this queue pair and answers to its peer's.  Messages of a direction are numbered; a sequence
 * number is acknowledged once its message and all earlier ones are complete at the responder.
 *
 * Locks: qp->lock guards the stream and all that is here of its queue pair; fabric.life guards
 * the lists, meetings and timers.  One thread at a time serves streams (link.c).
 */
#ifndef HCA_WIRE_H
#define HCA_WIRE_H

#include "softhca/base/netif.h"
#include "softhca/link/wire/meet.h"
#include "softhca/link/wire/stream.h"
#include "softhca/object/qp.h"
#include "softhca/object/responder.h"

enum hca_wire_state {
	HCA_WIRE_CLOSED,	/* the queue pair has stopped, or is new */
	HCA_WIRE_CALLING,	/* this end calls, until the other has got so far */
	HCA_WIRE_EXPECTING,	/* the other end calls */
	HCA_WIRE_GREETING,	/* the stream waits for the first frame of the other end */
	HCA_WIRE_OPEN,
	HCA_WIRE_LEFT,		/* the peer's queue pair has stopped */
	HCA_WIRE_REFUSED,	/* the other end has another secret or version */
};

/* An answer that this responder owes: data of a READ, or the result of an atomic operation. */
struct hca_wire_answer {
	uint32_t sequence, rkey, bytes, done;
	uint64_t addr;
	bool atomic;
	uint64_t value;
};

/* The message that arrives: a request of the peer or data that this requester asked for. */
struct hca_wire_arriving {
	struct hca_frame first;		/* its first frame */
	uint32_t done;			/* bytes of the message that have landed */
	uint32_t pause;			/* passes without a byte before it */
	bool refused;			/* the rest of the message is passed over */
	int theirs;			/* the status of its receive, if it fails */
	struct hca_arrival receive;
	unsigned char word[16];		/* operands of an atomic operation, or its result */
};

/* Does the peer's host answer (life.c)? */
struct hca_wire_life {
	uint64_t acked, acked_ns;	/* bytes that its kernel has acknowledged, and since when so many */
	uint64_t works_ns;		/* requests have waited since then; 0: none do */
	uint64_t alive_ns;		/* the last answer to a question */
	uint64_t asked_ns;
	int ask_fd;			/* the question; -1: none */
	/* In this silence, after losses: */
	bool heard, vain;		/* an answer; then packets were sent once more, and this question after them */
	uint32_t resent;		/* packets sent once more, at the first answer */
};

/* A frame whose payload leaves from its place: of the peer's READ, or (wr) of an own request. */
struct hca_wire_shown {
	const struct ibv_send_wr *wr;	/* or NULL */
	uint32_t end;			/* of the frame, in the request */
	uint32_t rkey, sequence;
	uint64_t addr;			/* of that end, of a READ */
};

/* Sources of epoll's events. */
enum hca_wire_source {
	HCA_WIRE_MEETINGS, HCA_WIRE_PORTS, HCA_WIRE_QP, HCA_WIRE_PEER, HCA_WIRE_GONE
};

struct hca_wire_qp {
	enum hca_wire_source source;	/* first */
	struct hca_qp *qp;
	struct hca_wire *wire;
	struct hca_wire_qp *next, **at;	/* all of the fabric; under fabric.life */
	struct hca_wire_qp *next_active;
	enum hca_wire_state state;
	bool calls;			/* this end calls the other */
	bool sends;			/* the queue pair has been in RTS: it has its sq_psn */
	bool of_this_life;		/* the stream: the peer expects the PSN of this end, or has not to */
	uint32_t peer_psn;		/* that it expects */
	bool active;			/* on wire->active: looked at in every pass */
	bool unwatched;			/* on wire->unwatched: not in the epoll set; under active_lock */
	struct hca_wire_qp *next_unwatched, **unwatched_at;
	uint32_t told;			/* events of the epoll set that passes did not need */
	int broken;			/* the stream cannot go on, for this -errno: the next pass ends it */
	uint32_t idle;			/* passes without a byte, in a row */
	uint64_t again_ns;		/* time of the next call; 0: one is in progress */
	uint64_t pause_ns;		/* before it */
	uint64_t deadline_ns;		/* requests that wait for the connection fail then; 0: none waits */
	char *why;			/* the last call was refused; or NULL */
	unsigned silent_calls;		/* that a stopped process has not answered */
	bool asking;			/* the end that waits for the other one asks whether it is stopped */
	struct hca_stream stream;
	struct hca_wire_life life;
	_Atomic uint64_t heard_ns;	/* when the peer's host answered last, by the last look; 0: not connected */

	/* Requester. */
	uint32_t acked;			/* sequence of the oldest request under way */
	uint32_t sequence;		/* the next request's */
	uint32_t replied;		/* `expected` when the last request was handed over */
	const struct ibv_send_wr *current;	/* a request that leaves in several frames; or NULL */
	uint32_t current_bytes, current_done, current_sequence;
	enum hca_fate fate;		/* of the other end's process, as the end of the stream tells */
	bool refused_one;		/* the engine waits for hca_link_upcalls.resume */
	uint32_t rnr_timer;		/* of the last RNR answer */
	bool withdrawn;			/* the memory of the request current_sequence: it fails */

	/* Responder. */
	uint32_t expected;		/* sequence of the next request */
	bool discards;			/* until the peer sends `expected` again */
	bool failed;			/* for good: the error state follows */
	bool owes;			/* an acknowledgement, or bytes that were kept back */
	bool owes_ack;
	uint64_t ack_at;		/* the pass in which the acknowledgement leaves alone */
	uint8_t refusal;		/* NAK or RNR, once all answers before it have left; 0: none */
	uint16_t refusal_aux;
	uint32_t refusal_sequence;
	uint32_t fault;			/* to report once the refusal has left; 0: none */
	struct hca_wire_answer *answer;	/* a ring */
	uint32_t answer_room, answer_first, answer_count;
	struct hca_wire_shown shown;
	struct hca_wire_arriving request;	/* the peer's message that arrives */

	/* Frames of requests and of answers may alternate. */
	struct hca_frame frame;		/* whose payload arrives */
	uint32_t left;			/* bytes of it that have not landed */
	struct hca_wire_arriving reply;	/* data that this requester asked for */
	bool unread;			/* the last pass has left bytes in the kernel */
};

struct hca_wire_peer;
struct hca_wire_parked;

/* Peers of datagrams (peers.h). */
enum { HCA_WIRE_PEERS_MAX = 4096, HCA_WIRE_BUCKETS = 1024, HCA_WIRE_FATES = 64 };

/* The result of the last call of a peer (hca_wire_datagram_fate). */
struct hca_wire_fate {
	union ibv_gid gid;
	uint32_t qpn;
	unsigned rail;
	enum hca_fate fate;
	bool stuck;			/* until all that was sent has arrived */
};

struct hca_wire_peers {
	struct hca_lock lock;		/* later than a queue pair's */
	struct hca_wire_peer *bucket[HCA_WIRE_BUCKETS];
	struct hca_wire_peer *oldest, *newest;	/* by last use */
	struct hca_wire_peer *gone;	/* removed in this pass; under fabric.life */
	_Atomic unsigned count;
	_Atomic uint64_t look_ns;	/* the next time for hca_wire_peers_look */
	_Atomic uint64_t busy;		/* the pass in which one was last heard or sent to */
	struct hca_wire_fate fate[HCA_WIRE_FATES];
};

/* Lines for people: one of a kind about a host on a rail, until it has been quiet for a while. */
enum hca_wire_line {
	HCA_WIRE_UNCONNECTED, HCA_WIRE_SILENT, HCA_WIRE_TOO_LONG, HCA_WIRE_BREACH, HCA_WIRE_TAKEN,
	HCA_WIRE_FORGOTTEN
};

/* With its header a frame fills the largest packet of Ethernet that segmentation divides. */
enum { HCA_WIRE_TURN = 45 * 1448 - HCA_FRAME_BYTES };

/* The wire of a fabric. */
struct hca_wire {
	enum hca_wire_source meetings;	/* first: HCA_WIRE_MEETINGS */
	enum hca_wire_source ports;	/* HCA_WIRE_PORTS: the kernel reports changes of interfaces */
	struct hca_fabric *fabric;
	struct hca_meet *meet;
	int epoll;
	_Atomic uint64_t passes;
	_Atomic uint64_t look_ns;	/* the next time for hca_wire_look */
	uint64_t life_ns;		/* open connections were last looked at */
	struct hca_wire_qp *all;
	struct hca_lock active_lock;
	struct hca_wire_qp *active;	/* linked by next_active */
	unsigned active_count;
	struct hca_wire_qp *unwatched;	/* passes read these, epoll does not report them ... */
	unsigned sleepers;		/* ... while no thread waits for it; both under active_lock */
	_Atomic bool shared;		/* several are busy: each has short turns */
	_Atomic uint32_t owed;		/* queue pairs that owe (hca_wire_qp.owes) */
	struct hca_wire_parked *parked;
	struct hca_wire_peers peers;
	uint16_t port_first, port_last;	/* SOFTHCA_PORTS */
	bool of_job;			/* its processes have a secret of their own */
};

static inline uint64_t hca_wire_pass(const struct hca_wire *wire)
{
	return atomic_load_explicit(&wire->passes, memory_order_relaxed);
}

/* Bytes to read or send in a pass, about: fewer where other queue pairs are active, too. */
static inline uint32_t hca_wire_turn_bytes(const struct hca_wire_qp *w, uint32_t alone)
{
	return atomic_load_explicit(&w->wire->shared, memory_order_relaxed) ? HCA_WIRE_TURN : alone;
}
/* Payload of the next frame of a long message, of which `left` bytes have not left. */
static inline uint32_t hca_wire_frame_bytes(const struct hca_wire_qp *w, uint32_t left)
{
	const uint32_t most = hca_wire_turn_bytes(w, HCA_STREAM_FRAME);

	return left < most ? left : most;
}

/* ---- requester.c --------------------------------------------------------- */

/* hca_link_operations.transfer_whole. */
int hca_wire_transfer(struct hca_qp *qp, const struct ibv_send_wr *wr, uint32_t bytes);
/* In a landing: the rest of an own request's frame, found anew; false: its memory is withdrawn. */
bool hca_wire_own_place(struct hca_wire_qp *w);
/* A request whose memory is withdrawn fails in a pass, after all before it; nothing follows it. */
void hca_wire_withdraw(struct hca_wire_qp *w);
/* Is all before it acknowledged, so that it can fail now? */
static inline bool hca_wire_withdrawn_ends(const struct hca_wire_qp *w)
{
	return w->withdrawn && (!w->qp->reliable || (w->acked == w->current_sequence &&
						     !hca_stream_waits(&w->stream)));
}
void hca_wire_end_withdrawn(struct hca_wire_qp *w);
/* Send frames of the current request while there is room. */
void hca_wire_send_current(struct hca_wire_qp *w);
/*
 * All requests before this sequence have ended; false: no such request is under way, it has not left,
 * or an answer is still to come.
 */
bool hca_wire_acknowledged(struct hca_wire_qp *w, uint32_t ack);
/* The beginning, a part and the end of an answer's frame; false: a breach of the protocol. */
bool hca_wire_answer_begins(struct hca_wire_qp *w, const struct hca_frame *f);
unsigned hca_wire_answer_place(struct hca_wire_qp *w, struct iovec *piece);
void hca_wire_answer_ends(struct hca_wire_qp *w, const struct hca_frame *f);
/* NAK and RNR; false: a breach of the protocol. */
bool hca_wire_refused(struct hca_wire_qp *w, const struct hca_frame *f);

/* ---- responder.c --------------------------------------------------------- */

/* A frame of a request begins; false: a breach of the protocol. */
bool hca_wire_request_begins(struct hca_wire_qp *w, const struct hca_frame *f);
/*
 * Places for bytes [request.done, request.done + left), in a landing; 0: none, *status is the
 * requester's.
 */
unsigned hca_wire_request_place(struct hca_wire_qp *w, struct iovec *piece, int *status);
/* The message that arrives has no place: it is refused, and its rest passed over. */
void hca_wire_request_refuse(struct hca_wire_qp *w, int status);
/* All of a frame has landed. */
void hca_wire_request_ends(struct hca_wire_qp *w);
/* Send answers while there is room. */
void hca_wire_send_answers(struct hca_wire_qp *w);
/* hca_stream_flush; memory that has been withdrawn leaves as zeros, and its message fails. */
int hca_wire_flush(struct hca_wire_qp *w);
/* The queue pair fails by what its peer has asked, once the refusal has left. */
void hca_wire_report_fault(struct hca_wire_qp *w);
/* Abandon the message that arrives. */
void hca_wire_request_drop(struct hca_wire_qp *w);

/* The acknowledgement that this end's frames carry. */
static inline uint32_t hca_wire_ack(const struct hca_wire_qp *w)
{
	return w->answer_count ? w->answer[w->answer_first].sequence : w->expected;
}

/* ---- serve.c ------------------------------------------------------------- */

/* Receive and send what can be; qp->lock and fabric.life held. */
void hca_wire_serve(struct hca_wire_qp *w);
/* Send what waits, and what can follow; watch for room if the kernel is full.  qp->lock held. */
void hca_wire_push(struct hca_wire_qp *w);
/* Answer a request by a NAK or RNR; nothing but answers to earlier requests leaves before. */
void hca_wire_refuse(struct hca_wire_qp *w, enum hca_frame_kind kind, uint16_t aux,
		     uint32_t sequence);
/* The first frame of the end that was called. */
void hca_wire_greet(struct hca_wire_qp *w);
/*
 * The peer learns that this queue pair has stopped, or that the stream is of another life of it, if the
 * kernel takes the frame at once.
 */
void hca_wire_farewell(struct hca_wire_qp *w);
void hca_wire_disown(struct hca_wire_qp *w);
/* A frame has carried the acknowledgement. */
static inline void hca_wire_settle(struct hca_wire_qp *w)
{
	w->owes_ack = false;
}
/* The next pass sends what waits. */
void hca_wire_owe(struct hca_wire_qp *w);
/* An acknowledgement of this message leaves, if no other frame has carried it before. */
void hca_wire_owe_ack(struct hca_wire_qp *w, const struct hca_wire_arriving *in);
/* Nothing is owed any more. */
void hca_wire_forgive(struct hca_wire_qp *w);
/* Look at all active queue pairs; false: none is left, or they are many and epoll tells. */
bool hca_wire_serve_active(struct hca_wire *wire);
/* The queue pair is looked at in every pass, until it has been idle for a while. */
void hca_wire_activate(struct hca_wire_qp *w);
void hca_wire_deactivate(struct hca_wire_qp *w);

/* ---- connection.c -------------------------------------------------------- */

int hca_wire_connect(struct hca_qp *qp);
/* A stream for the queue pair; psn: what the peer expects, if it has called.  qp->lock and fabric.life held. */
void hca_wire_open(struct hca_wire_qp *w, int fd, uint32_t psn);
void hca_wire_close(struct hca_wire_qp *w, enum hca_wire_state state);	/* qp->lock held */
/* There will be no connection: requests that wait for one fail. */
void hca_wire_give_up(struct hca_wire_qp *w);
/* Unreliable: without a stream, until the next one. */
void hca_wire_begin_anew(struct hca_wire_qp *w);
void hca_wire_qp_stop(struct hca_qp *qp);
void hca_wire_qp_reset(struct hca_qp *qp);
void hca_wire_qp_free(struct hca_qp *qp);
/* The first frame has come: requests may leave, if the stream is of this life. */
void hca_wire_greeted(struct hca_wire_qp *w, const struct hca_frame *f);
/*
 * The stream has ended without a farewell: 0, by the other end, whose process is gone; else -errno.
 */
void hca_wire_lost(struct hca_wire_qp *w, int error);
/* The program has closed descriptors that are not its own: all streams are lost. */
void hca_wire_lose_all(struct hca_wire *wire);
/* The fate of the process that has this queue pair number, as the ends of streams to it tell. */
enum hca_fate hca_wire_stream_fate(struct hca_wire *wire, uint32_t port, const union ibv_gid *gid, uint32_t qpn);
/* The peer's queue pair has stopped. */
void hca_wire_left(struct hca_wire_qp *w);
void hca_wire_look(struct hca_wire *wire, uint64_t now_ns);

/* ---- qp_calls.c ---------------------------------------------------------- */

bool hca_wire_this_end_calls(const struct hca_qp *qp);
/* Call a queue pair number of h->target over a rail; fills in the rest of h.  0 or -errno. */
int hca_wire_call(struct hca_wire *wire, unsigned rail, struct hca_hello *h, void *token);
void hca_wire_call_peer(struct hca_wire_qp *w);
/* The next call comes later than the last one did. */
void hca_wire_pause_calls(struct hca_wire_qp *w);
/* Requests wait for the connection: do they fail now? */
void hca_wire_look_at_waiting(struct hca_wire_qp *w, uint64_t now_ns);
enum hca_meet_answer hca_wire_find(void *arg, const struct hca_hello *h, uint16_t *at);
void hca_wire_arrived(void *arg, int fd, const struct hca_hello *h);
void hca_wire_reached(void *arg, void *token, int fd, const struct hca_hello *h);
void hca_wire_call_refused(void *arg, void *token, int error, const char *why);

/* ---- lives.c; qp->lock and fabric.life held ------------------------------- */

/* hca_link_operations.qp_sends. */
void hca_wire_qp_sends(struct hca_qp *qp);
/* The queue pair sends.  False: its stream is of another life, and has been left. */
bool hca_wire_is_of_this_life(struct hca_wire_qp *w);
/* Does nothing tell yet that the stream is of this life?  Its end is not the peer's then. */
bool hca_wire_is_of_any_life(const struct hca_wire_qp *w);
/* Without a stream again, as before it: the next one is called for, or is parked perhaps. */
void hca_wire_await_another(struct hca_wire_qp *w);
/* The peer says that the stream is of another life. */
void hca_wire_disowned(struct hca_wire_qp *w);

/* ---- parked.c: streams that wait for their queue pair; fabric.life held --- */

void hca_wire_park(struct hca_wire *wire, int fd, const struct hca_hello *h);
/* Did the connected peer of the queue pair say so? */
bool hca_wire_is_for(const struct hca_hello *h, const struct hca_qp *qp);
/*
 * The newest that is for the queue pair and has not ended, or -1; *psn: what its caller expects.  Once the
 * queue pair sends, it has the PSN.  Others that may be for it stay; all else to its number, of earlier
 * lives, is closed.
 */
int hca_wire_parked_for(struct hca_wire *wire, const struct hca_qp *qp, bool sends, uint32_t *psn);
/* The queue pair has its stream: all to its number are closed. */
void hca_wire_parked_drop(struct hca_wire *wire, const struct hca_qp *qp);
void hca_wire_parked_expire(struct hca_wire *wire, uint64_t now_ns);
void hca_wire_parked_free(struct hca_wire *wire);

/* ---- life.c -------------------------------------------------------------- */

/* How long requests wait for a connection or an answer; 0: for ever. */
uint64_t hca_wire_patience_ns(const struct hca_qp *qp);
/* The connection is open; it is closed. */
void hca_wire_life_begin(struct hca_wire_qp *w, uint64_t now_ns);
void hca_wire_life_end(struct hca_wire_qp *w);
/*
 * Look at an open connection, once a second.  True: its host, or the path there, has been silent too
 * long; people have been told, and the stream ends by a reset when it is closed.
 */
bool hca_wire_is_silent(struct hca_wire_qp *w, uint64_t now_ns);
bool hca_wire_hears_peer(const struct hca_qp *qp);
/* Lines about the end of a queue pair's connection: -errno of the kernel; a descriptor that the program closed. */
void hca_wire_say_failed(struct hca_wire_qp *w, int error);
void hca_wire_say_taken(struct hca_wire_qp *w);
/* A line about a path that passes no long packets to a host on a rail, from 0. */
void hca_wire_say_too_long(struct hca_wire *wire, unsigned rail, const union ibv_gid *gid, uint64_t silence_ns);
/* Prints a line about a host on a rail, from 0, once a host (said.c). */
void hca_wire_say(struct hca_wire *wire, unsigned rail, const union ibv_gid *host,
		  enum hca_wire_line line, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));
/* The lines about a connection that cannot be made; about one that is refused for good, in the words of meet.h. */
void hca_wire_say_unconnected(struct hca_wire_qp *w);
void hca_wire_say_refused(struct hca_wire *wire, unsigned rail, const union ibv_gid *gid, int error,
			  const char *why);
enum { HCA_WIRE_WHY_BYTES = 400 };
/* The reason of a call to a host that was refused, for a line: what the call knows, and what its rail's routes tell. */
const char *hca_wire_why(const struct hca_wire *wire, unsigned rail, const union ibv_gid *host, int error,
			 const char *why, char text[HCA_WIRE_WHY_BYTES]);

/* ---- link.c -------------------------------------------------------------- */

/*
 * Epoll reports what happens to a stream as `source`, which begins with enum hca_wire_source.  A
 * stream leaves the set before it is closed: a child of fork may have the same open file.
 */
bool hca_wire_watch(struct hca_wire *wire, int fd, void *source);
/* Report once more what is there already. */
void hca_wire_watch_again(struct hca_wire *wire, int fd, void *source);
void hca_wire_unwatch(struct hca_wire *wire, const struct hca_stream *s);
/* The stream of a queue pair is about to be closed. */
void hca_wire_qp_unwatch(struct hca_wire_qp *w);
/* Passes leave the stream to epoll again.  active_lock held. */
void hca_wire_qp_watch_again(struct hca_wire_qp *w);
/* A need at `at_ns`, unless an earlier one is noted. */
void hca_wire_look_at(_Atomic uint64_t *look_ns, uint64_t at_ns);

/* ---- datagram.c, peers.c ------------------------------------------------- */

int hca_wire_datagram(struct hca_qp *qp, const struct ibv_send_wr *wr, uint32_t bytes);
void hca_wire_peer_serve(struct hca_wire_peer *p);
void hca_wire_peer_opened(struct hca_wire *wire, int fd, const struct hca_hello *h);
void hca_wire_peer_reached(struct hca_wire_peer *p, int fd);
void hca_wire_peer_refused(struct hca_wire_peer *p, int error, const char *why);
enum hca_fate hca_wire_datagram_fate(struct hca_fabric *f, uint32_t port, const union ibv_gid *gid,
				     uint32_t qpn);
/* Call the peers of datagrams that wait for a stream. */
void hca_wire_peers_look(struct hca_wire *wire, uint64_t now_ns);
/* The end of a pass: no event names a removed peer any more. */
void hca_wire_peers_sweep(struct hca_wire *wire);
void hca_wire_peers_free(struct hca_wire *wire);

#endif
