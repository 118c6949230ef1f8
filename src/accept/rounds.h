/*
 * rounds.h - the pairs of each round of a tournament in which every pair of players meets.
 *
 * The circle method.  An odd number of players is made even by a player that does not exist.  m
 * players have m - 1 rounds.  Players i and j of the first m - 1 meet in round (i + j) mod (m - 1);
 * the player for which i = j meets the last one.  So each pair meets once, and in each round all
 * players take part, of an odd number all but one.
 */
#ifndef ACCEPT_ROUNDS_H
#define ACCEPT_ROUNDS_H

/* 0 below two players. */
int rounds_count(int players);
/* The player that `player` meets in a round; -1: it has none. */
int rounds_opponent(int players, int round, int player);

#endif
