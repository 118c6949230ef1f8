/* fuzz_registry.c - joining a fabric whose member registry has arbitrary contents. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../scratch.h"
#include "softhca/api/fabric.h"
#include "softhca/base/segment.h"
#include "fuzz.h"
#include "softhca/link/memory/registry.h"
#include "softhca/object/fabric.h"

const unsigned fuzz_rounds = 2000;

static char directory[SCRATCH_PATH];

static void clean_up(void)
{
	scratch_remove(directory);
}

static void prepare(void)
{
	static bool done;

	if (done)
		return;
	done = true;
	if (scratch_make(directory))
		abort();
	setenv("SOFTHCA_DIR", directory, 1);
	setenv("SOFTHCA_FABRIC", "fuzz", 1);
	unsetenv("SOFTHCA_SPEC");
	atexit(clean_up);
}

static void path_of(char *path, size_t size)
{
	snprintf(path, size, "%s/softhca.%u.fuzz", directory, (unsigned)geteuid());
}

/* A real file of a fabric with one member, as a seed: cut to what matters. */
size_t fuzz_seed(unsigned index, unsigned char *to, size_t most)
{
	struct hca_fabric *f;
	char path[SCRATCH_PATH + 32];
	size_t size;
	FILE *file;

	prepare();
	if (index == 1) {
		if (most < sizeof(struct hca_registry_image))
			return 0;
		memset(to, 0, sizeof(struct hca_registry_image));
		return sizeof(struct hca_registry_image);
	}
	path_of(path, sizeof(path));
	unlink(path);
	if (index > 1 || hca_fabric_get(NULL, &f))
		return 0;
	file = fopen(path, "rb");
	size = file ? fread(to, 1, most, file) : 0;
	if (file)
		fclose(file);
	hca_fabric_put(f);
	return size;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct hca_fabric *f;
	char path[SCRATCH_PATH + 32];
	FILE *file;

	prepare();
	path_of(path, sizeof(path));
	umask(077);
	file = fopen(path, "wb");
	if (!file)
		abort();
	fwrite(data, 1, size, file);
	fclose(file);
	/* Either it is refused, and left alone; or joined or begun anew, and left clean. */
	if (hca_fabric_get(NULL, &f) == 0) {
		if (f->shm->magic != HCA_FABRIC_MAGIC || f->slot >= HCA_PROCS_MAX)
			abort();
		hca_fabric_put(f);
		if (access(path, F_OK) == 0)
			abort();
	} else if (!softhca_last_error()[0]) {
		abort();
	}
	unlink(path);
	return 0;
}
