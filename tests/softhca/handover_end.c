/* handover_end.c - see handover_end.h. */
#include "handover_end.h"

#include <string.h>
#include <unistd.h>

#include "cmocka_all.h"

struct meet_end caller, a, b, c;
char token;
struct meet_end *all[4];

unsigned open_ends(void)
{
	struct meet_end *const each[] = { &caller, &a, &b, &c };
	unsigned count = 0;

	for (unsigned i = 0; i < 4; i++)
		if (each[i]->meet)
			all[count++] = each[i];
	return count;
}

void start_there(struct meet_end *e, const char *fabric)
{
	meet_end_prepare(e, THERE);
	e->config.port_last = MEET_FIRST;
	if (fabric)
		e->config.fabric = fabric;
	assert_int_equal(meet_end_open(e), 0);
	assert_int_equal(hca_meet_port(e->meet), MEET_FIRST);
	assert_true(hca_meet_shared(e->meet) >= 0);
}

void start_caller_with(const char *fabric, uint16_t last)
{
	meet_end_prepare(&caller, CALLER);
	caller.config.port_last = last;
	if (fabric)
		caller.config.fabric = fabric;
	assert_int_equal(meet_end_open(&caller), 0);
}

void start_caller(const char *fabric)
{
	start_caller_with(fabric, MEET_FIRST);
}

void owner_is(struct meet_end *e, const struct meet_end *owner)
{
	e->answer = HCA_MEET_SHARED;
	e->answer_port = (uint16_t)hca_meet_shared(owner->meet);
}

void call(void)
{
	const unsigned count = caller.count;

	meet_end_call(&caller, THERE, QPN, &token);
	meet_until(ALL, &caller, count + 1);
}

void calls_reach(struct meet_end *owner)
{
	caller.count = owner->count = owner->arrived = 0;
	for (unsigned i = 0; i < CALLS; i++) {
		call();
		assert_int_equal(caller.told[i].error, 0);
		meet_until(ALL, owner, i + 1);
		meet_assert_connected(caller.told[i].fd, owner->told[i].fd);
	}
	assert_int_equal(owner->arrived, CALLS);
}

int begin(void **state)
{
	(void)state;
	memset(&caller, 0, sizeof(caller));
	memset(&a, 0, sizeof(a));
	memset(&b, 0, sizeof(b));
	memset(&c, 0, sizeof(c));
	return 0;
}

int end(void **state)
{
	(void)state;
	for (unsigned i = open_ends(); i-- > 0;)
		meet_end_close(all[i]);
	return 0;
}

void close_end(struct meet_end *e)
{
	meet_end_close(e);
	e->meet = NULL;
}

void be_another_user(void)
{
	if (setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534))
		_exit(77);
}
