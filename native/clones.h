#ifndef PEMEANS_CLONES_H
#define PEMEANS_CLONES_H

/* One version of a function for each of these instruction sets, where the compiler can choose at run time. */
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
#define CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define CLONES
#endif

#endif
