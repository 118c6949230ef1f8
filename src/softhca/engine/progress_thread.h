/*
 * attend.h - a thread that runs the engine while the program does not.
 *
 * An adapter goes on sending while its program computes; here somebody has to.
 * While work is on the engine's list and no verb of the program has run the
 * engine since the last look, the attendant does, five thousand times a second.
 * It keeps out of the way of a program that polls, and sleeps when nothing has
 * waited for a while.  On a fabric with scheduled faults it also sees to those.
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
	_Atomic uint32_t alarm;		/* another: changes when alarm_ns does */
	_Atomic uint64_t alarm_ns;	/* 0: none */
};

/* Something has been put on the empty list: see that the attendant is awake. */
void hca_progress_thread_wake(struct hca_fabric *f);
/*
 * At this time, at the latest, ring the channels that are put off (channel.h)
 * and run the engine.
 */
void hca_progress_thread_arm(struct hca_fabric *f, uint64_t at_ns);
/* No queue pair is left. */
void hca_progress_thread_stop(struct hca_fabric *f);

#endif
