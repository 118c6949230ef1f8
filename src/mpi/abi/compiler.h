/* compiler.h - hints to the compiler. */
#ifndef RAILMPI_COMPILER_H
#define RAILMPI_COMPILER_H

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/* Found without a call: the library is linked or preloaded, not loaded later. */
#define FAST_THREAD_LOCAL _Thread_local __attribute__((tls_model("initial-exec")))

#endif
