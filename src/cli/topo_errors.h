/* topo_errors.h - error counters of a port. */
#ifndef CLI_TOPO_ERRORS_H
#define CLI_TOPO_ERRORS_H

#include "cli/topo_report.h"

/* Read them below sysfs ("/sys"), of the port and of its network interface.  Missing ones are left out. */
void topo_errors_read(const char *sysfs, struct topo_rail *rail);

#endif
