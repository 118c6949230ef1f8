/* rounds.c - the circle method (rounds.h). */
#include "accept/rounds.h"

static int even(int players)
{
	return players + players % 2;
}

int rounds_count(int players)
{
	return players < 2 ? 0 : even(players) - 1;
}

int rounds_opponent(int players, int round, int player)
{
	int last = even(players) - 1, other;

	if (player == last)
		/*
		 * The player i that meets itself: 2 i = round, and (last + 1) / 2 is the inverse of
		 * 2.
		 */
		other = (int)((long)round * ((last + 1) / 2) % last);
	else
		other = ((round - player) % last + last) % last;
	if (other == player)
		other = last;
	return other < players ? other : -1;
}
