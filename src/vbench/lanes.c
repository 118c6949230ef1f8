/* lanes.c - the state that the files of src/vbench share. */
#include "vbench/lanes.h"

struct vb vb;
