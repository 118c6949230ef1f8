/*
 * meet_end.h - processes that meet, as ends in one process: each has an address of 127.0.0.0/8 as
 * its host's, and a list of what its callbacks were told.
 */
#ifndef MEET_END_H
#define MEET_END_H

#include <netinet/in.h>
#include <stdbool.h>

#include "softhca/link/wire/meet.h"

enum { MEET_TOLD_MAX = 512, MEET_FIRST = 18600, MEET_LAST = 18607 };

/* A result of a call, or a connection of another. */
struct meet_told {
	void *token;			/* NULL: it arrived */
	int error, fd;
	char why[256];
	struct hca_hello h;
};

struct meet_end {
	struct hca_meet *meet;
	struct sockaddr_storage at;
	struct hca_meet_config config;
	enum hca_meet_answer answer;	/* to find */
	uint16_t answer_port;
	unsigned asked;			/* calls of find */
	struct meet_told told[MEET_TOLD_MAX];
	unsigned count, arrived;
	void (*also)(struct meet_end *e);	/* in each callback but find, if not NULL */
};

/* Hosts 1, 2 and 3 have addresses of this process alone. */
struct sockaddr_storage meet_host(unsigned host);
/* The end's configuration, with the fabric and secret of this process; then, if open, its port. */
void meet_end_prepare(struct meet_end *e, unsigned host);
int meet_end_open(struct meet_end *e);
void meet_end_start(struct meet_end *e, unsigned host);	/* both; it must succeed */
/* Close it with all that was handed over. */
void meet_end_close(struct meet_end *e);

struct hca_hello meet_hello(const struct meet_end *from, unsigned to_host, uint32_t qpn);
/* Call queue pair `qpn` of a host; the token is any address. */
void meet_end_call(struct meet_end *e, unsigned host, uint32_t qpn, void *token);

/*
 * A round of progress of these ends, or a moment's sleep; fails 60 s after `begun`, of
 * meet_real_ns.
 */
void meet_turn(struct meet_end *const *ends, unsigned ends_count, uint64_t begun);
uint64_t meet_real_ns(void);
/* Progress of these ends until the condition holds. */
#define meet_wait(ends, ends_count, condition)			\
	do {							\
		const uint64_t begun_ = meet_real_ns();		\
		while (!(condition))				\
			meet_turn(ends, ends_count, begun_);	\
	} while (0)
/* Progress of these ends until one of them has `count` results in all. */
void meet_until(struct meet_end *const *ends, unsigned ends_count, const struct meet_end *e,
		unsigned count);
/*
 * Progress of these ends, so often that nothing is left to do now, as a rule: what must have
 * happened needs meet_wait.
 */
void meet_settle(struct meet_end *const *ends, unsigned ends_count);

/* The clock does not advance by itself; this advances it. */
void meet_time_pass(uint64_t ns);

/* A listener or a connection that knows nothing of all this, at MEET_FIRST. */
int meet_raw_listen(unsigned host, int backlog);
int meet_raw_connect(unsigned host, uint16_t port);
/* Bytes until the other end closes, or would block; the count, or -1: closed without one more. */
ssize_t meet_raw_read(int fd, unsigned char *to, size_t most);
/* These bytes, all of which must come. */
void meet_raw_await(int fd, unsigned char *to, size_t bytes);
/* The two descriptors are the ends of one connection. */
void meet_assert_connected(int x, int y);

#endif
