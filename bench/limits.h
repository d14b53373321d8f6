/* What the machine can do at most: reading memory in order, and products of bytes in registers. */
#ifndef MF_BENCH_LIMITS_H
#define MF_BENCH_LIMITS_H

#include <stddef.h>
#include <stdint.h>

/* Reads n bytes (a multiple of 64, 8-byte aligned); the result only keeps the compiler from leaving it out.
 */
uint64_t limit_read(const void *p, size_t n);

/* Multiplies and adds int8 for a few milliseconds with a tier's best instruction, "avx2" or "avx512"; returns
 * how many products, 0 where this processor has no such instruction. */
uint64_t limit_products(const char *tier);

#endif
