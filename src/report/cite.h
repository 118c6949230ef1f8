/*
 * cite.h - a measurement as text for a paper: sentence, method, BibTeX.
 *
 * All facts come from the records.  A fact that the file lacks is "not recorded", and a fabric that the
 * file does not call hardware is called software.
 */
#ifndef REPORT_CITE_H
#define REPORT_CITE_H

#include "report/report.h"

/*
 * Write one job: a warning line unless the verdict is "citable", the sentence, the method, and the
 * BibTeX entry of the run.  size: the row, as text ("4M"; a value of the table's axis); NULL: the
 * smallest of times, the largest of rates.  0, or -EINVAL after an error line that names the sizes of
 * the file.
 */
int report_cite(const struct report_file *f, const char *size, FILE *out);

/* Write the BibTeX entry of the software that measured f; its key is that of other runs of it. */
void report_cite_software(const struct report_file *f, FILE *out);
enum { CITE_KEY = 96 };
char *report_cite_software_key(const struct report_file *f, char *buf, size_t size);

#endif
