/*
 * beside.h - the cases of beside_suite, in two files: beside_suite.c (calls that stay the
 * library's) and beside_turns.c (waits that serve both).
 */
#ifndef BESIDE_H
#define BESIDE_H

#include "suite.h"

enum { BESIDE_TAG = 7 };

void beside_unasked(MPI_Comm comm);
void beside_one_sided(MPI_Comm comm);
void beside_asked_once(MPI_Comm comm);
void beside_answered_once(MPI_Comm comm);

#endif
