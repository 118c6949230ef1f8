/* size_memory.c - see size_memory.h. */
#include "config.h"		/* _GNU_SOURCE */
#include "size_memory.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

enum { FILLED = 0xa5, GAP = 0x11, BLANK = 0xee };

#define PERIOD (4 * MIB)
#define WINDOW (64 * KIB)

/* ---- Where the bytes of a message lie ------------------------------------------------------ */

const struct shape plain = {0, 0}, gapped = {MIB, 4096 + 24};

static size_t place_of(struct shape s, size_t m)
{
	return s.block ? m / s.block * (s.block + s.gap) + m % s.block : m;
}

/* False: a gap. */
static bool byte_at(struct shape s, size_t place, size_t *m)
{
	size_t turn = s.block + s.gap;

	*m = place;
	if (!s.block)
		return true;
	*m = place / turn * s.block + place % turn;
	return place % turn < s.block;
}

/* ---- Memory -------------------------------------------------------------------------------- */

static size_t page(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

/* Bytes around a place of the message; places come in order. */
static void window_add(struct memory *m, size_t middle)
{
	size_t low = middle < WINDOW / 2 ? 0 : middle - WINDOW / 2, high = middle + WINDOW / 2;
	size_t begin = place_of(m->shape, low) / page() * page();
	size_t end = (place_of(m->shape, high) / page() + 2) * page();

	end = end < m->mapped ? end : m->mapped;
	if (m->windows && begin < m->window[m->windows - 1].end) {
		m->window[m->windows - 1].end = end;
		return;
	}
	CHECK(m->windows < WINDOWS);
	m->window[m->windows].begin = begin;
	m->window[m->windows++].end = end;
}

static const size_t limits[] = {0, MIB, 16 * MIB, GIB, 2 * GIB, 4 * GIB, 6 * GIB, 8 * GIB};
enum { LIMITS = sizeof(limits) / sizeof(limits[0]) };

static int filler(void)
{
	static int fd = -1;
	unsigned char *p;

	if (fd >= 0)
		return fd;
	fd = memfd_create("size_suite", MFD_CLOEXEC);
	CHECK(fd >= 0 && !ftruncate(fd, PERIOD));
	p = mmap(NULL, PERIOD, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(p != MAP_FAILED);
	memset(p, FILLED, PERIOD);
	munmap(p, PERIOD);
	return fd;
}

struct memory memory_make(struct shape shape, size_t bytes, size_t room)
{
	struct memory m = {.bytes = bytes, .room = room, .shape = shape};
	size_t i, n, shorter = bytes < room ? bytes : room;

	m.mapped = (place_of(shape, room + WINDOW) / page() + 2) * page();
	m.at = mmap(NULL, m.mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	CHECK(m.at != MAP_FAILED);
	for (i = 0; i < m.mapped; i += n) {
		n = m.mapped - i < PERIOD ? m.mapped - i : PERIOD;
		CHECK(mmap(m.at + i, n, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, filler(), 0) !=
		      MAP_FAILED);
	}
	for (i = 0; i < LIMITS && limits[i] + WINDOW < shorter; i++)
		window_add(&m, limits[i]);
	window_add(&m, shorter);
	if (room > bytes)
		window_add(&m, room);
	for (i = 0; i < (size_t)m.windows; i++)
		CHECK(mmap(m.at + m.window[i].begin, m.window[i].end - m.window[i].begin,
			   PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) !=
		      MAP_FAILED);
	return m;
}

void memory_free(struct memory *m)
{
	munmap(m->at, m->mapped);
}

/* Does this byte of a message say whose it is?  Where each shape has a page of its own. */
static bool speaks(size_t bytes, size_t m)
{
	size_t i;

	for (i = 0; i < LIMITS && limits[i] + WINDOW < bytes; i++)
		if (m + WINDOW / 2 >= limits[i] && m < limits[i] + WINDOW / 2)
			return true;
	return m + WINDOW / 2 >= bytes;
}

unsigned char memory_content(size_t bytes, size_t m, int source, unsigned message)
{
	return speaks(bytes, m) ? suite_byte(source, message, m) : FILLED;
}

void memory_fill(struct memory *m, unsigned message)
{
	size_t i, x, at;

	for (i = 0; i < (size_t)m->windows; i++)
		for (x = m->window[i].begin; x < m->window[i].end; x++)
			m->at[x] = byte_at(m->shape, x, &at) && at < m->bytes ?
				   memory_content(m->bytes, at, suite_rank, message) : GAP;
}

void memory_blank(struct memory *m)
{
	size_t i;

	for (i = 0; i < (size_t)m->windows; i++)
		memset(m->at + m->window[i].begin, BLANK, m->window[i].end - m->window[i].begin);
}

void memory_verify(const struct memory *m, int source, unsigned message)
{
	size_t i, x, at;

	for (i = 0; i < (size_t)m->windows; i++)
		for (x = m->window[i].begin; x < m->window[i].end; x++) {
			bool data = byte_at(m->shape, x, &at) && at < m->bytes && at < m->room;
			unsigned char want = data ? memory_content(m->bytes, at, source, message) : BLANK;

			CHECK(m->at[x] == want || (data && m->room < m->bytes),
			      "place %zu (byte %zu of %zu) is %02x, not %02x", x, at, m->bytes,
			      m->at[x], want);
		}
}

enum { MEMORY_MAX = 128 << 20 };

void memory_limit(bool on)
{
	static struct rlimit before;
	unsigned long data = 0;
	struct rlimit now;
	char line[256];
	FILE *f;

#ifdef __SANITIZE_ADDRESS__
	return;
#endif
	if (!strncmp(suite_where, "native", 6))
		return;
	if (!on) {
		setrlimit(RLIMIT_DATA, &before);
		return;
	}
	f = fopen("/proc/self/status", "r");
	while (f && fgets(line, sizeof(line), f))
		sscanf(line, "VmData: %lu kB", &data);
	CHECK(f && data);
	fclose(f);
	getrlimit(RLIMIT_DATA, &before);
	now = before;
	now.rlim_cur = (rlim_t)data * KIB + MEMORY_MAX;
	CHECK(!setrlimit(RLIMIT_DATA, &now));
}
