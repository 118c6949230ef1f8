/* wakeup.c - see wakeup.h. */
#include "softhca/object/wakeup.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "softhca/base/proc.h"
#include "softhca/object/fabric.h"

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
 * pipe through an open file of its own; peers find this open file, too.
 */
static int make_pipe(struct hca_wakeup *b)
{
	int end[2], err;

	if (pipe2(end, O_CLOEXEC))
		return -errno;
	b->is_socket = false;
	b->fd = end[0];
	b->own = hca_proc_reopen(end[0], O_RDWR | O_NONBLOCK);
	err = errno;
	close(end[1]);
	if (b->own >= 0)
		return 0;
	close(b->fd);
	return -err;
}

/* Sockets of datagrams: a datagram that arrives too late raises no signal. */
static int make_sockets(struct hca_wakeup *b)
{
	int end[2];

	if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, end))
		return -errno;
	b->is_socket = true;
	b->fd = end[0];
	b->own = end[1];
	fcntl(b->own, F_SETFL, O_NONBLOCK);
	return 0;
}

static void close_both(struct hca_wakeup *b)
{
	close(b->fd);
	close(b->own);
}

int hca_wakeup_make(struct hca_fabric *f, uint32_t adapter, struct hca_wakeup *b)
{
	struct hca_shm_wakeup *shm;
	struct stat st;
	int rc = make_pipe(b);

	if (rc && rc != -EMFILE && rc != -ENFILE)
		rc = make_sockets(b);		/* no /proc */
	if (rc)
		return rc;
	rc = fstat(b->own, &st) ? -errno : claim_number(f, &b->number);
	if (rc) {
		close_both(b);
		return rc;
	}
	hca_lock(&f->wakeup_lock);
	f->wakeup_fd[b->number - 1] = b->own + 1;
	hca_unlock(&f->wakeup_lock);
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
	hca_lock(&f->wakeup_lock);
	f->wakeup_fd[i] = 0;
	hca_unlock(&f->wakeup_lock);
	pthread_mutex_lock(&f->slow);
	f->wakeups[i / 64] &= ~(1ull << i % 64);
	pthread_mutex_unlock(&f->slow);
	close_both(b);
}

/* Peers can write to self->wakeup, so the descriptor is not taken from there. */
int hca_wakeup_duplicate(struct hca_fabric *f, uint32_t index)
{
	int fd = -1;

	if (index >= HCA_WAKEUPS_MAX)
		return -1;
	hca_lock(&f->wakeup_lock);
	if (f->wakeup_fd[index])
		fd = fcntl(f->wakeup_fd[index] - 1, F_DUPFD_CLOEXEC, 0);
	hca_unlock(&f->wakeup_lock);
	return fd;
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

static ssize_t wakeup_take(const struct hca_wakeup *b, char *bytes, size_t size)
{
	return b->is_socket ? recv(b->fd, bytes, size, MSG_DONTWAIT) : read(b->own, bytes, size);
}

bool hca_wakeup_drain(const struct hca_wakeup *b)
{
	enum { AT_MOST = 16, DATAGRAMS = 1024 };
	char bytes[4096];
	int err = errno, i = 0;
	ssize_t n;

	/* Bounded: a peer may go on writing. */
	do
		n = wakeup_take(b, bytes, sizeof(bytes));
	while (b->is_socket ? n > 0 && ++i < DATAGRAMS : n == sizeof(bytes) && ++i < AT_MOST);
	errno = err;
	return n > 0 || i;
}

bool hca_wakeup_blocks(const struct hca_wakeup *b)
{
	return !(fcntl(b->fd, F_GETFL) & O_NONBLOCK);
}

int hca_wakeup_wait(const struct hca_wakeup *b, int other, uint64_t timeout_ns)
{
	return rg_wait_either(b->is_socket ? b->fd : b->own, other, timeout_ns);
}
