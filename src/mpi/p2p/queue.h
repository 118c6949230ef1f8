/* queue.h - circular doubly linked lists, whose head is a link, too. */
#ifndef RAILMPI_QUEUE_H
#define RAILMPI_QUEUE_H

#include <stdbool.h>
#include <stddef.h>

/* A link of a doubly linked list, embedded in the member. */
struct queue_link { struct queue_link *next, *prev; };

#define queue_entry(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

static inline void queue_init(struct queue_link *head)
{
	head->next = head->prev = head;
}

static inline bool queue_empty(const struct queue_link *head)
{
	return head->next == head;
}

static inline void queue_push(struct queue_link *head, struct queue_link *l)
{
	l->next = head;
	l->prev = head->prev;
	head->prev->next = l;
	head->prev = l;
}

static inline void queue_remove(struct queue_link *l)
{
	l->prev->next = l->next;
	l->next->prev = l->prev;
}

#define queue_each(pos, head) for (pos = (head)->next; pos != (head); pos = pos->next)

#endif
