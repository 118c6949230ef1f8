/* wakeup.c - see wakeup.h. */
#include "object/wakeup.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "object/fabric.h"

static int claim_number(struct hca_fabric *f, uint32_t *number)
{
	uint32_t i;

	pthread_mutex_lock(&f->slow);
	for (i = 0; i < HCA_WAKEUPS_MAX && (f->wakeups[i / 64] >> i % 64 & 1); i++)
		;
	if (i < HCA_WAKEUPS_MAX)
		f->wakeups[i / 64] |= 1ull << i % 64;
	pthread_mutex_unlock(&f->slow);
	*number = i + 1;
	return i < HCA_WAKEUPS_MAX ? 0 : -ENOMEM;
}

/*
 * The program chooses whether its end has O_NONBLOCK.  So the library empties the
 * pipe through an open file of its own, which is also the one that peers find.
 */
static int make_pipe(struct hca_wakeup *b, struct stat *st)
{
	char path[64];
	int end[2], err;

	if (pipe2(end, O_CLOEXEC))
		return -errno;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", end[0]);
	b->fd = end[0];
	b->own = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	err = errno;
	close(end[1]);
	if (b->own >= 0 && fstat(b->own, st) == 0)
		return 0;
	close(b->fd);
	if (b->own >= 0)
		close(b->own);
	return -err;
}

int hca_wakeup_make(struct hca_fabric *f, uint32_t adapter, struct hca_wakeup *b)
{
	struct hca_shm_wakeup *shm;
	struct stat st;
	int rc = make_pipe(b, &st);

	if (rc)
		return rc;
	rc = claim_number(f, &b->number);
	if (rc) {
		close(b->fd);
		close(b->own);
		return rc;
	}
	shm = &f->self->wakeup[b->number - 1];
	atomic_store(&shm->fd, b->own);
	atomic_store(&shm->adapter, adapter);
	atomic_store(&shm->ino, st.st_ino);
	return 0;
}

void hca_wakeup_free(struct hca_fabric *f, struct hca_wakeup *b)
{
	uint32_t i = b->number - 1;

	atomic_store(&f->self->wakeup[i].ino, 0);
	pthread_mutex_lock(&f->slow);
	f->wakeups[i / 64] &= ~(1ull << i % 64);
	pthread_mutex_unlock(&f->slow);
	close(b->fd);
	close(b->own);
}

/* A full pipe is readable anyhow: not an error. */
int hca_wakeup_write(int fd)
{
	const char byte = 1;
	int err = errno, rc = 0;

	if (write(fd, &byte, 1) < 0 && errno != EAGAIN)
		rc = -errno;
	errno = err;
	return rc;
}

void hca_wakeup_send(const struct hca_wakeup *b)
{
	hca_wakeup_write(b->own);
}

bool hca_wakeup_drain(const struct hca_wakeup *b)
{
	char bytes[4096];
	int err = errno, i = 0;
	ssize_t n;

	/* Bounded: a peer may go on writing. */
	do
		n = read(b->own, bytes, sizeof(bytes));
	while (n == sizeof(bytes) && ++i < 16);
	errno = err;
	return n > 0 || i;
}

bool hca_wakeup_blocks(const struct hca_wakeup *b)
{
	return !(fcntl(b->fd, F_GETFL) & O_NONBLOCK);
}

int hca_wakeup_wait(const struct hca_wakeup *b, uint64_t timeout_ns)
{
	return rg_wait_readable(b->own, timeout_ns);
}
