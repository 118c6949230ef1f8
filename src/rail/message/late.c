/* late.c - see late.h. */
#include "rail/message/late.h"
#include "util/clock.h"

void rail_late_ask(struct rail_late *late, uint64_t read_ns)
{
	late->watched = true;
	late->late = false;
	late->limit_ns = LATE_NS + read_ns;
	late->seen_ns = 0;
	late->before = late->answers;
}

/* Data has come. */
static void watch_end(struct rail_late *late, uint64_t now_ns)
{
	late->watched = false;
	if (!late->late) {
		late->row = 0;
		return;
	}
	late->late = false;
	late->until_ns = now_ns + ((now_ns - late->seen_ns) << 2 * late->row);
	if (late->row < LATE_ROW)
		late->row++;
}

bool rail_late_look(struct rail_late *late, uint64_t now_ns)
{
	if (!late->seen_ns)
		late->seen_ns = now_ns;
	if (late->answers != late->before)
		watch_end(late, now_ns);
	else if (rg_reached(late->seen_ns + late->limit_ns, now_ns))
		late->late = true;
	return late->watched;
}

bool rail_late_reads(struct rail_late *late, uint64_t now_ns)
{
	if (late->late)
		return true;
	if (late->until_ns && rg_reached(late->until_ns, now_ns))
		late->until_ns = 0;
	return late->until_ns;
}
