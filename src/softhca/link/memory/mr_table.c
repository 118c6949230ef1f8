/* mr_table.c - see mr_table.h. */
#include "softhca/link/memory/state.h"
#include "softhca/link/memory/mr_table.h"

#include <sys/mman.h>
#include <unistd.h>

#include "softhca/base/segment.h"

int hca_table_create(struct hca_fabric *f)
{
	void *at;
	int fd = hca_segment_create_own("softhca-table", sizeof(*f->table), &at,
					&f->link_state->table_guards);

	if (fd < 0)
		return fd;
	f->table_fd = fd;
	f->table = at;
	if (hca_segment_reserve(fd, 0, offsetof(struct hca_shm_table, mr)))
		return hca_fail(ENOMEM, "no memory for the table of registrations");
	return 0;
}

void hca_table_name(struct hca_fabric *f, pid_t pid, uint64_t start_time)
{
	f->table->magic = HCA_TABLE_MAGIC;
	f->table->abi = HCA_ABI;
	f->table->slot = f->slot;
	f->table->generation = f->generation;
	f->table->nonce = f->link_state->nonce;
	f->table->pid = pid;
	f->table->start_time = start_time;
}

void hca_table_free(struct hca_fabric *f)
{
	if (f->table)
		munmap(f->table, sizeof(*f->table));
	if (f->table_fd >= 0)
		close(f->table_fd);
}

/* Map the table, if it is the one that the slot names. */
static const struct hca_shm_table *view(const struct hca_fabric *f, uint32_t slot,
					const struct hca_shm_slot *s, int fd)
{
	const struct hca_shm_table *t = hca_segment_view(fd, sizeof(*t));

	if (t && t->magic == HCA_TABLE_MAGIC && t->abi == HCA_ABI &&
	    t->nonce == f->link_state->nonce && t->slot == slot &&
	    t->generation == atomic_load(&s->generation) && t->pid == s->pid &&
	    t->start_time == s->start_time)
		return t;
	hca_table_close(t);
	return NULL;
}

int hca_table_open(const struct hca_fabric *f, uint32_t slot, const struct hca_shm_slot *s,
		   const struct hca_shm_table **table)
{
	unsigned guards = f->link_state->table_guards;
	int got;

	/* Without copies by the kernel the pid is not used. */
	if (f->link_state->copy == HCA_COPY_BOUNCE)
		guards &= ~(unsigned)HCA_SIGNED;
	got = hca_segment_open_own(s->pid, s->table_fd, sizeof(**table), guards);
	if (got < 0)
		return got;
	*table = view(f, slot, s, got);
	close(got);
	return *table ? 0 : -EPROTO;
}

const struct hca_shm_table *hca_table_take(const struct hca_fabric *f, uint32_t slot,
					   const struct hca_shm_slot *s, int fd)
{
	const unsigned guards = f->link_state->table_guards & ~(unsigned)HCA_SIGNED;

	return hca_segment_check(fd, sizeof(struct hca_shm_table), guards) ? NULL :
	       view(f, slot, s, fd);
}

void hca_table_close(const struct hca_shm_table *t)
{
	if (t)
		munmap((void *)(uintptr_t)t, sizeof(*t));
}
