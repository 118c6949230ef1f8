/* arrays.c - kinds of memory.h: Fortran's allocatable and automatic arrays (arrays.f90). */
#include "memory.h"

extern const struct kind kinds[] __attribute__((visibility("default")));

void *array_anew(size_t bytes);
void *array_assigned(size_t bytes);
void *array_moved(size_t bytes);
void array_gone(void);
void array_automatic(struct life *l, size_t bytes);

static const char *begin(struct life *l)
{
	life_is_unknown(l, array_anew(l->limit), 0, l->limit);
	return NULL;
}

static const char *change(struct life *l, size_t need)
{
	switch (life_draw(l, 3)) {
	case 0:
		life_is_kept(l, array_assigned(need), need);
		break;
	case 1:
		life_is_zero(l, array_moved(need), need);
		break;
	default:
		life_is_unknown(l, array_anew(need), 0, need);
	}
	return NULL;
}

static void end(struct life *l)
{
	(void)l;
	array_gone();
}

static const char *enter(struct life *l, size_t need)
{
	return frame_enter(l, array_automatic, need, l->limit + 256 * 1024);
}

static const char *begin_automatic(struct life *l)
{
	return enter(l, l->limit);
}

static const char *change_automatic(struct life *l, size_t need)
{
	frame_leave(l);
	return enter(l, need);
}

const struct kind kinds[] = {
	{"allocatable", begin, change, end, NULL, KIND_ALONE},
	{"automatic", begin_automatic, change_automatic, frame_leave, NULL, 0},
	{NULL, NULL, NULL, NULL, NULL, 0},
};
