/*
 * registry.h - the member registry, the one file of a fabric:
 * /dev/shm/softhca.<uid>.<name>.
 *
 * It lists the members of the fabric, so that a new process finds the fabric
 * segment in a living member.  It is read and written under flock, never mapped,
 * and holds nothing that a message needs.  The last member to leave removes it;
 * what dead members left behind, the next new process, `softhca reap` or the
 * softhca command removes.  SOFTHCA_DIR names another directory.
 */
#ifndef HCA_REGISTRY_H
#define HCA_REGISTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/layout.h"

struct hca_member {
	int32_t pid;			/* 0: no member */
	int32_t fabric_fd;		/* its descriptor of the fabric segment */
	uint64_t start_time;
	uint64_t pid_ns;		/* inode of its pid namespace */
	uint32_t node;
	uint32_t pad;
};

/* The file, byte for byte. */
struct hca_registry_image {
	uint64_t magic;
	uint32_t abi;
	uint32_t slots;			/* HCA_PROCS_MAX */
	uint64_t nonce;			/* of the fabric; 0: the file is new */
	char spec[HCA_SPEC_MAX];
	char pad[1024 - 24 - HCA_SPEC_MAX];
	struct hca_member member[HCA_PROCS_MAX];	/* index = slot in the fabric */
};

struct hca_registry {
	int fd;
	char path[256];
};

/* 0, or -EINVAL with the line set.  NULL: SOFTHCA_FABRIC, else "default". */
int hca_registry_name(const char *name, char out[HCA_NAME_MAX + 1]);

/*
 * Open and lock (waiting a minute at most).  0 or -errno with the line set;
 * -ENOENT, also with the line set: !create and there is no file.
 */
int hca_registry_open(const char *name, bool create, struct hca_registry *r);
void hca_registry_close(struct hca_registry *r);

/*
 * Read the file into *image (which is large: allocate it).  An empty file gives
 * nonce 0.  0, or -errno with the line set; -EPROTO: another format or version.
 */
int hca_registry_read(struct hca_registry *r, struct hca_registry_image *image);

/* The format check alone, on bytes in memory: 0 or -EPROTO; pure. */
int hca_registry_check(const struct hca_registry_image *image, size_t bytes);

/* Begin a fabric: reserve the space, write the header, no members. */
int hca_registry_begin(struct hca_registry *r, uint64_t nonce, const char *spec);

int hca_registry_put(struct hca_registry *r, uint32_t slot, const struct hca_member *m);

/* Remove the file, if the name still refers to the open one. */
void hca_registry_remove(struct hca_registry *r);

/* Is that member's process alive, in this pid namespace? */
bool hca_member_alive(const struct hca_member *m);
bool hca_member_foreign(const struct hca_member *m);
uint64_t hca_pid_namespace(void);

/* The directory of the files, and the prefix of their names. */
const char *hca_registry_dir(void);
void hca_registry_prefix(char *buf, size_t size);	/* "softhca.1000." */

#endif
