/* test_rounds.c - everybody meets everybody, once, and nobody waits without need. */
#include "cmocka_all.h"

#include <stdbool.h>
#include <string.h>

#include "accept/rounds.h"

enum { PLAYERS_MAX = 70 };

static void check_round(int players, int round, int met[PLAYERS_MAX][PLAYERS_MAX])
{
	int resting = 0;

	for (int i = 0; i < players; i++) {
		int other = rounds_opponent(players, round, i);

		if (other < 0) {
			resting++;
			continue;
		}
		assert_in_range(other, 0, players - 1);
		assert_int_not_equal(other, i);
		assert_int_equal(rounds_opponent(players, round, other), i);
		met[i][other]++;
	}
	assert_int_equal(resting, players % 2);
}

static void test_all_meet(void **state)
{
	static int met[PLAYERS_MAX][PLAYERS_MAX];

	(void)state;
	for (int players = 2; players < PLAYERS_MAX; players++) {
		int rests = players % 2;

		memset(met, 0, sizeof(met));
		assert_int_equal(rounds_count(players), players - 1 + rests);
		for (int round = 0; round < rounds_count(players); round++)
			check_round(players, round, met);
		for (int i = 0; i < players; i++)
			for (int j = 0; j < players; j++)
				assert_int_equal(met[i][j], i != j);
	}
}

static void test_too_few(void **state)
{
	(void)state;
	assert_int_equal(rounds_count(0), 0);
	assert_int_equal(rounds_count(1), 0);
	assert_int_equal(rounds_opponent(2, 0, 0), 1);
	assert_int_equal(rounds_opponent(2, 0, 1), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_meet),
		cmocka_unit_test(test_too_few),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
