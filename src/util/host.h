/*
 * host.h - the host of a process: who shares its processors, and who its memory.
 *
 * A name proves neither: two machines may be called localhost, and containers of one machine have
 * names of their own.
 */
#ifndef RG_UTIL_HOST_H
#define RG_UTIL_HOST_H

#include <stdbool.h>
#include <stdint.h>

/* The record has no pointers or padding: it may be sent to other processes. */
struct rg_host {
	unsigned char boot[48];		/* the running kernel, as text; without one, the host's name */
	uint64_t net_device, net_inode;	/* the network namespace */
	uint64_t ipc_device, ipc_inode;	/* the IPC namespace */
};

/* The host of this process. */
void rg_host_find(struct rg_host *out);

/* Two processes of one kernel, which share processors. */
bool rg_host_same_machine(const struct rg_host *a, const struct rg_host *b);
/* The same with one network namespace: software HCAs of both meet in memory. */
bool rg_host_same(const struct rg_host *a, const struct rg_host *b);

/*
 * Two processes of one kernel and one IPC namespace: they share memory, whatever their host is called in
 * their containers.
 */
bool rg_host_shares_memory(const struct rg_host *a, const struct rg_host *b);

/*
 * True for the first process of this host and network namespace that asks with these words, false for all
 * others while that one lives.  Where nothing can tell: `otherwise`.
 */
bool rg_host_first(const char *words, bool otherwise);

#endif
