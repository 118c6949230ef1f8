/* compiler.h - hints to the compiler. */
#ifndef RG_UTIL_COMPILER_H
#define RG_UTIL_COMPILER_H

/* Branches of the fast path that are taken nearly always, or nearly never. */
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/* Found without a call, in a library that is linked or preloaded and never loaded later. */
#define FAST_THREAD_LOCAL _Thread_local __attribute__((tls_model("initial-exec")))

#endif
