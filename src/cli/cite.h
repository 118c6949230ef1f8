/* cite.h - railgauge cite. */
#ifndef CLI_CITE_H
#define CLI_CITE_H

int cli_cite(int argc, char **argv);

#endif
