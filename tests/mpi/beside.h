/*
 * beside.h - the cases of beside_suite, in two files: beside_suite.c (calls that stay the
 * library's) and beside_turns.c (waits that serve both).
 */
#ifndef BESIDE_H
#define BESIDE_H

#include "suite.h"

enum { BESIDE_TAG = 7 };

/* Ways to ask whether a message is here: by its request, or by a probe. */
enum ask {
	ASK_TEST, ASK_TESTALL, ASK_TESTANY, ASK_TESTSOME, ASK_GET_STATUS, ASK_IPROBE, ASK_IMPROBE, ASK_WAYS,
};

static inline bool ask_probes(int how)
{
	return how == ASK_IPROBE || how == ASK_IMPROBE;
}

/* Ask once, by q or for a message from `source` with BESIDE_TAG; MPI_Improbe sets *message. */
bool beside_ask(enum ask how, MPI_Request *q, int source, MPI_Comm comm, MPI_Message *message);
/* Receive the word that a probe asked for; `found` is the probe's answer. */
void beside_receive(enum ask how, bool found, int source, MPI_Comm comm, MPI_Message *message,
		    long *word);

void beside_unasked(MPI_Comm comm);
void beside_one_sided(MPI_Comm comm);
void beside_asked_once(MPI_Comm comm);
void beside_answered_once(MPI_Comm comm);

#endif
