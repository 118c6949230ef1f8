/*
 * registry.h - the member registry, the one file of a fabric:
 * /dev/shm/softhca.<uid>.<name>, or the same name in the next directory of place.h.  With net= the
 * name ends in @<host>, since a directory may be shared by network namespaces, each a host.
 *
 * The registry lists the members of the fabric, so that a new process finds the
 * fabric segment in a living member.  The file is read and written under flock, never mapped, and
 * holds nothing that a message needs.  The last member to leave removes it; the next new process,
 * `softhca reap` or the softhca command removes the registry of members that have all died.
 */
#ifndef HCA_REGISTRY_H
#define HCA_REGISTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "softhca/base/layout.h"
#include "softhca/link/memory/descriptors.h"

struct hca_member {
	int32_t pid;			/* 0: no member */
	int32_t fabric_fd;		/* the member's descriptor of the fabric segment */
	uint64_t start_time;
	uint64_t net_ns;		/* see struct hca_shm_slot */
	uint32_t pid_ns;
	uint32_t address;
	uint32_t node;
	uint32_t pad;
};

/* The file, byte for byte. */
struct hca_registry_image {
	uint64_t magic;
	uint32_t abi;
	uint32_t slots;			/* HCA_PROCS_MAX */
	uint64_t nonce;			/* the fabric's; 0: the file is new */
	uint64_t id, place;
	char spec[HCA_SPEC_MAX];
	char pad[1024 - 40 - HCA_SPEC_MAX];
	struct hca_member member[HCA_PROCS_MAX];	/* index = slot in the fabric */
};

struct hca_registry {
	int fd;
	char path[256];
};

/* 0, or -EINVAL with the line set.  NULL: SOFTHCA_FABRIC, else "default". */
int hca_registry_name(const char *name, char out[HCA_NAME_MAX + 1]);

/*
 * Open or make, and lock (waiting a minute at most); host: "" without net=.  0 or -errno with the line set;
 * HCA_NO_PLACE, also with the line set: no directory takes it, and SOFTHCA_DIR names none.
 */
enum { HCA_NO_PLACE = 1 };
int hca_registry_open(const char *name, const char *host, struct hca_registry *r);
/* Open and lock the registry at this path; -ENOENT: no file exists. */
int hca_registry_open_at(const char *path, struct hca_registry *r);
void hca_registry_close(struct hca_registry *r);

/*
 * Read the file into *image, a large structure: allocate it.  An empty file gives
 * nonce 0.  0, or -errno with the line set; -EPROTO: another format or version.
 */
int hca_registry_read(struct hca_registry *r, struct hca_registry_image *image);

/* The format check alone, on bytes in memory: 0 or -EPROTO; pure. */
int hca_registry_check(const struct hca_registry_image *image, size_t bytes);

/*
 * Begin a fabric without members: reserve the space, write the header; the caller has set nonce, id,
 * place and spec.
 */
int hca_registry_begin(struct hca_registry *r, struct hca_registry_image *head);

int hca_registry_put(struct hca_registry *r, uint32_t slot, const struct hca_member *m);

/* Remove the file, if the name still refers to the open one. */
void hca_registry_remove(struct hca_registry *r);

enum hca_member_state {
	HCA_MEMBER_NONE,
	HCA_MEMBER_ALIVE,
	HCA_MEMBER_DEAD,
	HCA_MEMBER_UNKNOWN,	/* in other namespaces: taken to be alive */
};

enum hca_member_state hca_member_look(const struct hca_identity *me,
				      const struct hca_registry_image *image, uint32_t slot,
				      const char *fabric);
/* A member's address; false: it has none, or none in this network namespace. */
bool hca_member_address(const struct hca_identity *me, const struct hca_registry_image *image,
			uint32_t slot, const char *fabric, struct hca_address *a);

/* Visit the file of each fabric of this user until a result is not 0; returns that result. */
int hca_registry_each(int (*visit)(void *arg, const char *path, const char *name), void *arg);

#endif
