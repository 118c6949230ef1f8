/* cite_bibtex.h - the BibTeX entry of a run. */
#ifndef REPORT_CITE_BIBTEX_H
#define REPORT_CITE_BIBTEX_H

#include "report/cite_facts.h"

void cite_bibtex_run(const struct report_file *f, const struct cite_facts *c, FILE *out);

#endif
