/* eager_learner.h - eager_choice.h as a table of learned choices. */
#ifndef RAIL_EAGER_LEARNER_H
#define RAIL_EAGER_LEARNER_H

#include "rail/open/learner.h"

extern const struct rail_learner rail_eager_learner;

#endif
