/*
 * progress_thread.h - a thread that runs the engine while the program does not.
 *
 * An adapter continues to send while its program computes; in software a thread must.
 * While work is on the engine's list and no verb of the program has run the engine
 * since the last tick, the progress thread runs it, five thousand times a second.
 * The thread ticks less often while a program polls, and sleeps when nothing has waited for a
 * while. On a fabric with scheduled faults the thread also carries out the schedule.
 *
 * A fabric with a wire has the thread from the beginning.  While the program calls no verb, the
 * thread sleeps until the wire's descriptor is readable.  While verbs run the engine it ticks
 * without the descriptor: messages to a polling program wake no thread.  While a verb waits for an
 * event, and so for the descriptor, the thread waits for the end of that.
 */
#ifndef HCA_PROGRESS_THREAD_H
#define HCA_PROGRESS_THREAD_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct hca_fabric;

struct hca_progress_thread {
	pthread_t thread;
	_Atomic bool started, stop;
	_Atomic uint32_t asleep;	/* a futex */
	_Atomic uint32_t alarm;		/* a futex: changes when alarm_ns does */
	_Atomic uint64_t alarm_ns;	/* 0: none */
	/* A fabric with a wire. */
	bool on_wire;
	int wake_fd;			/* an eventfd, in place of `asleep` */
	_Atomic uint32_t waiting;	/* verbs that wait for an event */
};

/* Start the thread or wake it, when work has been put on the empty list. */
void hca_progress_thread_wake(struct hca_fabric *f);
/*
 * Arm a timer: at this time, at the latest, send the postponed channels' wake-ups
 * (channel.h) and run the engine, if work waits.
 */
void hca_progress_thread_arm(struct hca_fabric *f, uint64_t at_ns);
/* Serve the wire of a fabric from here on: 0 or -errno. */
int hca_progress_thread_serve(struct hca_fabric *f);
/* With a wire: a verb waits for an event from here on, and serves it meanwhile; it waits no longer. */
void hca_progress_thread_replace(struct hca_fabric *f);
void hca_progress_thread_return(struct hca_fabric *f);
/* Stop and join the thread; no queue pair is left. */
void hca_progress_thread_stop(struct hca_fabric *f);

#endif
