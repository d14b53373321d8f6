/* Matmul in double precision from the description of the formats alone (gguf/types.h, docs/numerics.md): what
 * the scalar kernels are measured against. Shares no code with them. */
#ifndef MF_TESTS_CPU_MATMUL_EXACT_H
#define MF_TESTS_CPU_MATMUL_EXACT_H

#include "backends/cpu/kernels.h"

/* The value of weight i of a row, unrounded: a product of two halves, an integer and a sub-scale, less
 * another product, fits a double. */
double exact_weight(mf_type type, const uint8_t *row, size_t i);

/* The part of weight i that multiplies the activations' sum in its block, as a number to add: the minimum of
 * Q4_1, Q5_1, Q4_K and Q5_K, 0 elsewhere. */
double exact_minimum(mf_type type, const uint8_t *row, size_t i);

/* A row times a token, and how far a kernel that keeps to the canonical order may be from it at most. */
typedef struct exact_dot {
    double value, bound;
} exact_dot;

exact_dot exact_quantized(mf_type type, const uint8_t *row, const cpu_act *a, int32_t t);
exact_dot exact_float(mf_type type, const uint8_t *row, const float *x, size_t k);

#endif
