/* How the row kernels ask the compiler for one copy of a loop per shape. A sanitizer instruments every
 * access, and would take minutes over the copies: MF_COMPACT, set for such builds, compiles the same source
 * as plain loops. */
#ifndef MF_BACKENDS_CPU_SIMD_INLINE_H
#define MF_BACKENDS_CPU_SIMD_INLINE_H

#ifdef MF_COMPACT
#define VEC_INLINE static inline
#define UNROLL
#else
#define VEC_INLINE static inline __attribute__((always_inline))
#ifdef __clang__
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif
#endif

#endif
