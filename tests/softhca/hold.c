/*
 * hold.c - joins the fabric, prints that, stays until killed; with an argument until the first event
 * of its first device, and prints its number.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "softhca/softhca.h"

static int await_event(struct ibv_device *device)
{
	struct ibv_context *c = ibv_open_device(device);
	struct ibv_async_event event;

	if (!c)
		return 1;
	puts("ready");
	fflush(stdout);
	if (ibv_get_async_event(c, &event))
		return 1;
	printf("event %d\n", (int)event.event_type);
	ibv_ack_async_event(&event);
	return ibv_close_device(c);
}

int main(int argc, char **argv)
{
	const struct softhca_config cfg = { .node = -1 };
	struct ibv_device **list;

	/* Hide like a program that keeps secrets. */
	if (getenv("HOLD_HIDDEN"))
		prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	list = softhca_get_device_list(&cfg, NULL);

	if (!list) {
		fprintf(stderr, "softhca: %s\n", softhca_last_error());
		return 1;
	}
	alarm(300);
	if (argc > 1)
		return await_event(list[0]);
	puts("ready");
	fflush(stdout);
	pause();
	return 0;
}
