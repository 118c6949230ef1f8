/*
 * late.c - a program that knows no MPI: it loads a layer, then a module that uses MPI, as
 * interpreters do.
 *
 *	late LIBRARY MODULE ARGUMENT...
 */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	int (*run)(int, char **);
	void *module;

	if (argc < 3 || !dlopen(argv[1], RTLD_GLOBAL | RTLD_LAZY)) {
		fprintf(stderr, "late: %s\n", argc < 3 ? "late LIBRARY MODULE" : dlerror());
		return 3;
	}
	module = dlopen(argv[2], RTLD_LOCAL | RTLD_LAZY);
	*(void **)&run = module ? dlsym(module, "lifecycle_main") : NULL;
	if (!run) {
		fprintf(stderr, "late: %s\n", dlerror());
		return 3;
	}
	return run(argc - 2, argv + 2);
}
