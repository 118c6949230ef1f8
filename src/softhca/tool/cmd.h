/* cmd.h - parts of the softhca command.  Each returns the exit code. */
#ifndef HCA_CMD_H
#define HCA_CMD_H

/* cmd_fabric.c; `fabric` NULL: SOFTHCA_FABRIC, else the only fabric. */
int hca_cmd_list(const char *fabric, int argc, char **argv);
int hca_cmd_port(const char *fabric, int argc, char **argv);
int hca_cmd_loss(const char *fabric, int argc, char **argv);

#endif
