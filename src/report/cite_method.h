/* cite_method.h - the method sentence: launches, counts, interval, timing, clock, units. */
#ifndef REPORT_CITE_METHOD_H
#define REPORT_CITE_METHOD_H

#include "report/cite_facts.h"

void cite_method(const struct report_file *f, const struct cite_facts *c,
		 const struct cite_rows *rows, FILE *out);

#endif
