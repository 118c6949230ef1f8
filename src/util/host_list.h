/* host_list.h - names of hosts in the short form of Slurm: "n[1-6,9]". */
#ifndef RG_UTIL_HOST_LIST_H
#define RG_UTIL_HOST_LIST_H

/*
 * Names in the order of their numbers, each once; one without a number is alone.  Leading zeros stay:
 * "n[08-10].cluster,login".  free() the result; NULL: no memory.
 */
char *rg_host_list(const char *const *name, int count);

#endif
