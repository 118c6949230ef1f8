/*
 * dropin.c - a program that loads libibverbs with dlopen, and looks for device
 * files first, as some programs do.  Arguments: the expected number of software
 * devices through dlopen, and whether their files are visible.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#undef ibv_get_device_list

static int fails(const char *what)
{
	fprintf(stderr, "dropin: %s\n", what);
	return 1;
}

/* Calls that only a compiler makes, and programs of older C libraries. */
static int other_names(int files)
{
	static const char *const open_names[] = { "__open_2", "__open64_2" };
	static const char *const stat_names[] = { "__xstat", "__xstat64" };
	union { void *any; int (*open)(const char *, int);
		int (*stat)(int, const char *, struct stat *); } name;
	struct stat st;
	int i, fd;

	for (i = 0; i < 2; i++) {
		name.any = dlsym(RTLD_DEFAULT, open_names[i]);
		if (!name.any)
			continue;
		fd = name.open("/sys/class/infiniband/soft0/ports/1/gid_attrs/types/1", O_RDONLY);
		if ((fd >= 0) != files || name.open("/no/such/file", O_RDONLY) >= 0)
			return fails(open_names[i]);
		if (fd >= 0)
			close(fd);
	}
	for (i = 0; i < 2; i++) {
		name.any = dlsym(RTLD_DEFAULT, stat_names[i]);
		/* 1: the structure's version on 64 bits. */
		if (name.any && (name.stat(1, "/dev/infiniband/usoft0", &st) == 0) != files)
			return fails(stat_names[i]);
	}
	return 0;
}

int main(int argc, char **argv)
{
	int want = argc > 1 ? atoi(argv[1]) : 0, files = argc > 2 ? atoi(argv[2]) : 0;
	void *handle = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL);
	struct ibv_device **(*list_of)(int *), **list;
	const char *(*name_of)(struct ibv_device *);
	void (*free_list)(struct ibv_device **);
	struct stat st;
	int n, i, fd, seen = 0;
	char text[16];

	if (!handle)
		return fails(dlerror());
	list_of = (struct ibv_device **(*)(int *))dlvsym(handle, "ibv_get_device_list", "IBVERBS_1.1");
	name_of = (const char *(*)(struct ibv_device *))dlvsym(handle, "ibv_get_device_name",
							       "IBVERBS_1.1");
	free_list = (void (*)(struct ibv_device **))dlvsym(handle, "ibv_free_device_list",
							   "IBVERBS_1.1");
	if (!list_of || !name_of || !free_list)
		return fails("a function is missing");
	list = list_of(&n);
	for (i = 0; list && i < n; i++)
		seen += strncmp(name_of(list[i]), "soft", 4) == 0;
	if (list)
		free_list(list);
	if (seen != want) {
		fprintf(stderr, "dropin: %d software devices, not %d\n", seen, want);
		return 1;
	}
	if ((stat("/dev/infiniband/usoft0", &st) == 0 && S_ISCHR(st.st_mode)) != files ||
	    (access("/dev/infiniband/usoft0", R_OK | W_OK) == 0) != files)
		return fails("the device's file");
	fd = open("/sys/class/infiniband/soft0/ports/1/gid_attrs/types/1", O_RDONLY);
	if ((fd >= 0) != files || (files && (read(fd, text, sizeof(text)) != 8 ||
					     memcmp(text, "RoCE v2\n", 8) != 0)))
		return fails("the type of a GID");
	if (open("/sys/class/infiniband/soft0/ports/1/gid_attrs/types/1x", O_RDONLY) >= 0)
		return fails("a file that is not there");
	if (stat("/dev/null", &st) || !S_ISCHR(st.st_mode) || !stat("/no/such/file", &st))
		return fails("other files");
	return other_names(files);
}
