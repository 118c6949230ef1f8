/*
 * rounds.h - who plays whom in a tournament in which everybody meets everybody.
 *
 * The circle method: with m players (one that does not exist added to an odd
 * number) there are m - 1 rounds; players i and j of the first m - 1 meet in round
 * (i + j) mod (m - 1), and whoever would meet himself meets the last.  So each
 * pair meets once, and in each round all play, of an odd number all but one.
 */
#ifndef BENCH_ROUNDS_H
#define BENCH_ROUNDS_H

/* 0 below two players. */
int rounds_count(int players);
/* The player whom `player` meets in a round, or -1: it rests. */
int rounds_opponent(int players, int round, int player);

#endif
