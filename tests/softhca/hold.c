/* hold.c - joins the fabric, prints that, stays until killed. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "softhca/softhca.h"

int main(void)
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
	puts("ready");
	fflush(stdout);
	alarm(300);
	pause();
	return 0;
}
