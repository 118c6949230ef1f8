/* register.h - registrations through librail's cache. */
#ifndef VBENCH_REGISTER_H
#define VBENCH_REGISTER_H

#include "vbench/lanes.h"

/* Does this rank ask for a registration at each message? */
bool vb_registers(const struct bench *b);
int vb_register_open(void);
/* Register message i of the group that is posted next; by rail; NULL: the message is empty. */
struct ibv_mr *const *vb_register(int i, uintptr_t at, size_t bytes);
void vb_unregister_group(uint64_t group);
void vb_register_close(void);

#endif
