/* watch.c - watching the program's calls that change moved memory. */
#include <stdatomic.h>

#include "softhca/base/base.h"
#include "softhca/pages/remap.h"

bool hca_remap_watch(void)
{
	static _Atomic bool said;
	const char *why = "unknown";

	/* In force already, and cheap to ask; else every time, since it is not asked often. */
	if (rg_memwatch_start(hca_remap_hear, &why)) {
		if (!atomic_exchange(&said, true))
			hca_say("registered memory is copied by the kernel, whatever "
				"SOFTHCA_REMAP says: calls that change mappings cannot be watched "
				"(%s)", why);
		return false;
	}
	return rg_memwatch_check();
}
