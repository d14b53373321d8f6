/* The ops in double precision, from docs/numerics.md and gguf/types.h alone, and how far a float result that
 * keeps to the canonical orders may lie from them. Shares no code with the kernels.
 *
 * The bounds: every float operation rounds its result by at most U = 2^-24 of it, so a sum of n terms made by
 * a chain of additions or fmas is off by at most n U times the sum of magnitudes, and a tree of four levels
 * adds 4 U. e(x) is off by at most E = 2.4e-7 of itself, and is 0 below -87, where e^x < 1.7e-38. Products of
 * such factors are covered by SLACK. What is lost below the smallest normal float is TINY for each operation.
 */
#ifndef MF_TESTS_OPS_EXACT_H
#define MF_TESTS_OPS_EXACT_H

#include "gguf/types.h"

#include <stddef.h>

/* A value, and how far a result may be from it. NaN: the result must be NaN. */
typedef struct op_num {
    double v, e;
} op_num;

static inline op_num exact(double v)
{
    return (op_num){v, 0};
}

op_num exact_add(op_num a, op_num b);
op_num exact_mul(op_num a, op_num b);
op_num exact_silu(op_num x);

/* y[n] of one row. Sources without an error of their own. */
void exact_softmax(const float *x, size_t n, op_num *y);
/* x may carry errors; y may be x. */
void exact_rms_norm(const op_num *x, const float *w, size_t n, double eps, op_num *y);

typedef struct exact_rope_args {
    size_t n_rot, head_dim;
    bool interleaved;
    double base, scale;
    const float *factors; /* [n_rot/2] or NULL */
    int32_t position;
} exact_rope_args;
/* One head, in place. */
void exact_rope(const exact_rope_args *a, op_num *x);

/* The sum of w[i] * x[i] by sixteen chains and a tree. */
op_num exact_product(const double *w, const float *x, size_t n);

/* Weights as doubles: w = main + min, where min multiplies the activation's sum in its block of 32. */
typedef struct exact_weights {
    double *main, *min; /* [rows][k] */
    size_t rows, k;
} exact_weights;
exact_weights exact_weights_make(mf_type type, const void *data, size_t rows, size_t k);
void exact_weights_free(exact_weights *w);

/* A token quantized to blocks of 32, as docs/numerics.md says. */
typedef struct exact_act {
    double *d; /* [k/32]; NaN where a value is not finite */
    double *q; /* [k] */
    const float *x;
    size_t k;
} exact_act;
exact_act exact_act_make(const float *x, size_t k);
void exact_act_free(exact_act *a);

/* A row of quantized weights times a quantized token. *loose: the same as a bound on the distance from the
 * product with the token as it was: each value of a block is off by half a step, d/2, and by the roundings of
 * x * (127 / amax). */
op_num exact_quantized_dot(const exact_weights *w, size_t row, const exact_act *a, op_num *loose);

/* Attention of one query head over n cells in window order: their keys and values, head_dim each. */
typedef struct exact_attn_args {
    size_t head_dim, n;
    const float *q;
    const double *const *k, *const *v; /* [n] */
    double scale;
    bool packed; /* the keys are blocks of 32, which a quantized query meets */
} exact_attn_args;
void exact_attn(const exact_attn_args *a, op_num *y);

/* A value stored in a cache format, and read back. Q8_0: a block of 32. */
op_num exact_stored(mf_type format, op_num x);
void exact_stored_block(const op_num *x, op_num *y);
/* n finite floats as the bytes of a cache row. */
void exact_stored_bytes(mf_type format, const float *x, size_t n, uint8_t *row);

#endif
