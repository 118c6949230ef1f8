/* scheme_learner.h - scheme.h as a table of learned choices. */
#ifndef RAIL_SCHEME_LEARNER_H
#define RAIL_SCHEME_LEARNER_H

#include "rail/open/learner.h"

extern const struct rail_learner rail_scheme_learner;

#endif
