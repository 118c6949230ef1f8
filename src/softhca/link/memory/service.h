/* service.h - handing this process's descriptors over to members that ask (descriptors.h). */
#ifndef HCA_SERVICE_H
#define HCA_SERVICE_H

#include "softhca/link/memory/descriptors.h"

struct hca_service {
	int fd;			/* listens; -1: none */
	enum hca_address_kind kind;
	uint64_t inode;
	pthread_t thread;
	bool started;
	_Atomic bool stop, closed;	/* closed: to processes that want to join */
};

/* Listen there.  0, -EADDRINUSE or another -errno (silent). */
int hca_service_listen(struct hca_service *s, enum hca_address_kind kind,
		       const struct hca_address *a);
/* Start the thread that answers; without a thread, stop listening. */
void hca_service_start(struct hca_fabric *f);
void hca_service_stop(struct hca_service *s);

/* Tests set it: members that are tasks of one process need no thread for this. */
extern bool hca_service_unwanted;

#endif
