/* nas_program.h - common parts of the NAS-style programs: the option --class, and a remark. */
#ifndef RG_NAS_PROGRAM_H
#define RG_NAS_PROGRAM_H

#include "bench/bench.h"
#include "nas/nas.h"

#define NAS_REMARK \
	"NAS-style, problem and verification as in NPB 3.4; not NASA's reference code"

struct nas_values { int class; };

#define NAS_OPTIONS { \
	{ .name = "class", .letter = 'C', .type = OPT_CHOICE, \
	  .offset = offsetof(struct nas_values, class), .arg = "CLASS", .standard = "S", \
	  .choices = nas_classes, .help = "size of the problem" }, \
	{ .name = NULL }, \
}

#endif
