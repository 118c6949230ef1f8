/* watch.c - watching the program's calls that change moved memory. */
#include <stdatomic.h>

#include "softhca/base/base.h"
#include "softhca/pages/remap.h"

bool hca_remap_watch(void)
{
	static _Atomic bool said;
	const char *why = "unknown";

	/* A watch in force is cheap to check; a failed one is tried each time, which is rare. */
	if (rg_memwatch_start(hca_remap_hear, &why)) {
		if (!atomic_exchange(&said, true))
			hca_say("registered memory is copied by the kernel, whatever "
				"SOFTHCA_REMAP says: calls that change mappings cannot be watched "
				"(%s)", why);
		return false;
	}
	return rg_memwatch_check();
}
