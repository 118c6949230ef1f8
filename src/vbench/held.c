/* held.c - errors of src/verbs, which librailmpi holds in a copy of util/err.h of its own. */
#include "vbench/held.h"

#include "util/err.h"
#include "verbs/vrb.h"

void vb_hold(void)
{
	vrb_errors_hold();
}

int vb_held(int rc)
{
	char text[1024];

	if (vrb_errors_take(text, sizeof(text))) {
		rg_errors_hold();
		rg_error("%s", text);
	}
	return rc;
}
