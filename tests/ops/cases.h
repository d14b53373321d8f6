/* The cases of every op: types, windows and cache formats a device may declare, in many shapes. */
#ifndef MF_TESTS_OPS_CASES_H
#define MF_TESTS_OPS_CASES_H

#include "ops/case.h"

typedef void op_use_fn(void *user, const op_case *c);

/* Calls use for every case of op in a fixed order; the seed chooses the shapes that are random. Under
 * sanitizers there are fewer, but at least one of each combination. */
void op_cases(mf_op op, uint64_t seed, op_use_fn *use, void *user);

/* A small case of a combination, also of those that no device runs; false: no graph can express it. */
bool op_case_minimal(mf_op op, mf_type type, mf_window window, mf_type cache, op_case *c);

/* Cases the size of models' layers, for measuring. */
void op_bench_cases(op_use_fn *use, void *user);

#endif
