/* What the machine can do at most: reading memory in order, and products of bytes in registers. Speeds are
 * given beside these, measured in the same run. */
#ifndef APP_COMMON_LIMITS_H
#define APP_COMMON_LIMITS_H

#include "base/status.h"

/* Reads n bytes (a multiple of 64, 8-byte aligned); the result only keeps the compiler from leaving it out.
 */
uint64_t app_limit_read(const void *p, size_t n);

/* Multiplies and adds int8 for a few milliseconds with a tier's best instruction, "avx2", "avx512" or "neon";
 * returns how many products, 0 where this processor has no such instruction or it is not written here. */
uint64_t app_limit_products(const char *tier);

typedef struct app_limits {
    double read; /* 10^9 bytes/s */
    double int8; /* 10^9 products/s; 0: not known */
} app_limits;

/* Medians of some rounds, on so many threads together; reading goes over about `bytes` of memory, at least
 * 1 MiB and at most 256. */
minfer_status app_limits_measure(int threads, const char *tier, uint64_t bytes, app_limits *out,
                                 minfer_error *err);

#endif
