/* maps.c - the mappings of this process. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <linux/fs.h>

#include "softhca/base/base.h"
#include "softhca/base/maps.h"
#include "softhca/base/proc.h"
#include "softhca/base/spare.h"

/* PROCMAP_QUERY: Linux 6.11 answers for one address; older kernels print everything. */
struct query {
	uint64_t size, query_flags, query_addr;
	uint64_t vma_start, vma_end, vma_flags, vma_page_size, vma_offset, inode;
	uint32_t dev_major, dev_minor, vma_name_size, build_id_size;
	uint64_t vma_name_addr, build_id_addr;
};
#define QUERY_IOCTL		_IOWR('f', 17, struct query)
enum {
	QUERY_READABLE = 1, QUERY_WRITABLE = 2, QUERY_EXECUTABLE = 4, QUERY_SHARED = 8,
	QUERY_COVERING_OR_NEXT = 16,
};

int hca_maps_open(uint64_t addr, uint64_t bytes, struct hca_maps *m)
{
	m->at = addr;
	m->end = addr + bytes;
	m->text = false;
	m->used = m->next = 0;
	m->fd = hca_proc_open("/proc/self/maps", O_RDONLY);
	if (m->fd < 0 && errno == EMFILE) {
		hca_spare_lend();
		m->fd = hca_proc_open("/proc/self/maps", O_RDONLY);
		hca_spare_return();
	}
	return m->fd < 0 ? -errno : 0;
}

void hca_maps_close(struct hca_maps *m)
{
	close(m->fd);
}

/* 1: *map is set; 0: no more; -1: the kernel does not support the request. */
static int next_by_query(struct hca_maps *m, struct hca_map *map)
{
	char name[32] = "";
	struct query q = { .size = sizeof(q), .query_flags = QUERY_COVERING_OR_NEXT,
			   .query_addr = m->at, .vma_name_size = sizeof(name),
			   .vma_name_addr = (uintptr_t)name };

	if (ioctl(m->fd, QUERY_IOCTL, &q)) {
		if (errno != ENAMETOOLONG)
			return errno == ENOENT ? 0 : -1;
		q.vma_name_size = 0;	/* a long name is not "[stack]" */
		q.vma_name_addr = 0;
		if (ioctl(m->fd, QUERY_IOCTL, &q))
			return 0;
	}
	*map = (struct hca_map){ .start = q.vma_start, .end = q.vma_end, .offset = q.vma_offset,
				 .inode = q.inode, .dev_major = q.dev_major,
				 .dev_minor = q.dev_minor,
				 .readable = q.vma_flags & QUERY_READABLE,
				 .writable = q.vma_flags & QUERY_WRITABLE,
				 .executable = q.vma_flags & QUERY_EXECUTABLE,
				 .shared = q.vma_flags & QUERY_SHARED,
				 .stack = strcmp(name, "[stack]") == 0 };
	return 1;
}

static bool parse_line(const char *line, struct hca_map *map)
{
	char mode[5];

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64, &map->start,
		   &map->end, mode, &map->offset, &map->dev_major, &map->dev_minor,
		   &map->inode) != 7)
		return false;
	map->readable = mode[0] == 'r';
	map->writable = mode[1] == 'w';
	map->executable = mode[2] == 'x';
	map->shared = mode[3] == 's';
	map->stack = strstr(line, "[stack]") != NULL;
	return true;
}

/* The next line, NUL-terminated in buf; NULL at the end. */
static char *next_line(struct hca_maps *m)
{
	for (;;) {
		char *line = m->buf + m->next;
		char *end = memchr(line, '\n', m->used - m->next);
		ssize_t n;

		if (end) {
			*end = '\0';
			m->next = (size_t)(end + 1 - m->buf);
			return line;
		}
		memmove(m->buf, line, m->used - m->next);
		m->used -= m->next;
		m->next = 0;
		if (m->used == sizeof(m->buf))
			return NULL;	/* no line is that long */
		n = read(m->fd, m->buf + m->used, sizeof(m->buf) - m->used);
		if (n <= 0)
			return NULL;
		m->used += (size_t)n;
	}
}

static bool next_by_text(struct hca_maps *m, struct hca_map *map)
{
	char *line;

	while ((line = next_line(m)))
		if (parse_line(line, map) && map->end > m->at)
			return true;
	return false;
}

bool hca_maps_next(struct hca_maps *m, struct hca_map *map)
{
	int rc = -1;

	if (m->at >= m->end)
		return false;
	if (!m->text)
		rc = next_by_query(m, map);
	if (rc < 0) {
		m->text = true;
		rc = next_by_text(m, map);
	}
	if (!rc)
		return false;
	m->at = map->end;
	return map->start < m->end;
}

int hca_maps_check(const void *addr, size_t bytes, bool write)
{
	uint64_t at = (uintptr_t)addr, end = at + bytes;
	struct hca_maps m;
	struct hca_map map;

	if (!bytes)
		return 0;
	if (hca_maps_open(at, bytes, &m))
		return EFAULT;
	while (at < end && hca_maps_next(&m, &map) && map.start <= at && map.readable &&
	       (map.writable || !write))
		at = map.end;
	hca_maps_close(&m);
	return at >= end ? 0 : EFAULT;
}
