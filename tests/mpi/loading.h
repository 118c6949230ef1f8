/* loading.h - a way to call MPI: by the symbols of a module, or by pointers. */
#ifndef LOADING_H
#define LOADING_H

enum { LOADING_TAG = 5 };

struct caller {
	int (*begin)(void);		/* the rank of two, or -1 */
	int (*send)(const void *bytes, int count, int to);
	int (*receive)(void *bytes, int count, int from);
	int (*end)(void);
};

#endif
