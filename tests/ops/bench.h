/* The op matrix as a benchmark: time per op, with GB/s of what it must read and write and GMAC/s. */
#ifndef MF_TESTS_OPS_BENCH_H
#define MF_TESTS_OPS_BENCH_H

#include "ops/rig.h"

/* only: part of a case's name, or NULL. */
void op_bench(op_device *devices, size_t n, const char *only);

#endif
