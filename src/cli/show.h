/* show.h - railgauge show. */
#ifndef CLI_SHOW_H
#define CLI_SHOW_H

int cli_show(int argc, char **argv);

#endif
