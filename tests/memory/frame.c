/* frame.c - memory that lives only while a function runs: see memory.h. */
#include <errno.h>
#include <pthread.h>

#include "memory.h"

struct frame {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	enum { FRAME_ENTERING, FRAME_WAITING, FRAME_LEAVING } state;
	void (*body)(struct life *l, size_t need);
	size_t need;
};

static void *frame_run(void *argument)
{
	struct life *l = argument;
	struct frame *f = l->own;

	f->body(l, f->need);
	return NULL;
}

static void frame_set(struct frame *f, int state)
{
	pthread_mutex_lock(&f->lock);
	f->state = state;
	pthread_cond_broadcast(&f->changed);
	pthread_mutex_unlock(&f->lock);
}

static void frame_until(struct frame *f, int state)
{
	pthread_mutex_lock(&f->lock);
	while ((int)f->state != state)
		pthread_cond_wait(&f->changed, &f->lock);
	pthread_mutex_unlock(&f->lock);
}

void frame_wait(struct life *l, void *mem, size_t bytes)
{
	struct frame *f = l->own;

	l->mem = mem;
	if (mem)
		life_is_unknown(l, mem, 0, bytes);
	frame_set(f, FRAME_WAITING);
	frame_until(f, FRAME_LEAVING);
}

const char *frame_enter(struct life *l, void (*body)(struct life *l, size_t need), size_t need,
			size_t stack_bytes)
{
	struct frame *f = calloc(1, sizeof(*f));
	pthread_attr_t attributes;
	int rc;

	if (!f)
		return "no memory";
	pthread_mutex_init(&f->lock, NULL);
	pthread_cond_init(&f->changed, NULL);
	f->body = body;
	f->need = need;
	l->own = f;
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, life_round(stack_bytes, PAGE));
	rc = pthread_create(&f->thread, &attributes, frame_run, l);
	pthread_attr_destroy(&attributes);
	if (rc) {
		free(f);
		l->own = NULL;
		return "no thread";
	}
	frame_until(f, FRAME_WAITING);
	return l->mem ? NULL : "no memory in the thread";
}

void frame_leave(struct life *l)
{
	struct frame *f = l->own;

	if (!f)
		return;
	frame_set(f, FRAME_LEAVING);
	pthread_join(f->thread, NULL);
	free(f);
	l->own = NULL;
}
