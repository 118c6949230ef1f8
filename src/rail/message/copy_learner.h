/* copy_learner.h - copy_choice.h as a table of learned choices. */
#ifndef RAIL_COPY_LEARNER_H
#define RAIL_COPY_LEARNER_H

#include "rail/open/learner.h"

extern const struct rail_learner rail_copy_learner;

#endif
