/* map_learner.h - map_choice.h as a table of learned choices. */
#ifndef RAIL_MAP_LEARNER_H
#define RAIL_MAP_LEARNER_H

#include "rail/open/learner.h"

extern const struct rail_learner rail_map_learner;

#endif
