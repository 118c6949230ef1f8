/*
 * merge.h - several launches of one job as one table: a launch gives one value, its median.
 *
 * The median over launches and its interval hold for the next launch, too; the interval within a
 * launch does not.
 */
#ifndef REPORT_MERGE_H
#define REPORT_MERGE_H

#include "report/report.h"

/* Launches with fewer values have no 95 % interval of the median, and no quartiles. */
enum { MERGE_LAUNCHES_MIN = 6, MERGE_QUARTILES_MIN = 4 };

/*
 * Are a and b launches of one job: the same program and build, the same ways and options (but those
 * of the output), as many ranks on as many nodes, the same kind of machine and fabric?  Else *why
 * names the difference.
 */
bool report_same_job(const struct report_file *a, const struct report_file *b, const char **why);

/* Is it an option that says where the output goes, or how it looks? */
bool report_is_output(const char *option);

/*
 * Divide files into jobs: group[i] is the number of file i's job, counted from 0 in the order of
 * first files.  Returns the number of jobs.
 */
int report_group(const struct report_file *file, int count, int *group);

/*
 * Merge launches of one job; the files must outlive *out.  Rows are those of the first file, at
 * each the median over launches (`median`), its interval (`ci_low`, `ci_high`; NaN below
 * MERGE_LAUNCHES_MIN), the number of launches (`ci_n`), the mean of means (harmonic for rates), the
 * extremes and the sum of n.  `sd` and `iqr` are of the launches' medians: what differs from launch to
 * launch.  Percentiles and outliers of samples do not follow from those of launches, launches are
 * too few for percentiles of their own, and they have no order in time: percentiles, outliers,
 * autocorrelation and drift are NaN.  A row is cut, invalid or not converged if that of a launch is.
 * out->launches is count, and its run record has `launches` and `ci_of` "launches".
 * report_file_record gives the record of the launch in the middle, with these values.  0 or -ENOMEM
 * after an error line.
 */
int report_merge(const struct report_file *const *file, int count, struct report_file *out);

#endif
