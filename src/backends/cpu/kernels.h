/* CPU kernels: their arguments and the table that a tier fills. ref/ is scalar C and the specification: every
 * entry of every tier gives the same bits as ref/ for finite inputs. docs/numerics.md has the orders of all
 * sums. A kernel works on the part of the output it is told; who calls it for which part changes no bit. No
 * kernel allocates, and none reads outside the values its arguments describe (prefetches excepted). */
#ifndef MF_BACKENDS_CPU_KERNELS_H
#define MF_BACKENDS_CPU_KERNELS_H

#include "gguf/types.h"

/* ---- quantized activations
 * ------------------------------------------------------------------------------------ */

enum { CPU_TILE_SMALL = 8, CPU_TILE = 6 }; /* most tokens per tile: of few tokens, and of more */

/* nt tokens of k values (k a multiple of 32) as Q8_0 blocks of 32, in the forms the matmul kernels read. One
 * value in the graph has one of these, made once and read by all matmuls. The memory is the caller's. */
typedef struct cpu_act {
    int32_t k, nt;
    int32_t tok;    /* tokens per tile; the last tile has what is left */
    bool few;       /* so few that each tile reads the weights as they are; else they are unpacked first */
    int8_t *q;      /* [nt][k]: rint(x * (127 / amax)) */
    float *d;       /* [nt][k/32]: amax / 127 */
    float *ds;      /* [nt][k/32]: d * sum of q */
    int32_t *tiles; /* [ceil(nt/tok)][k/32] tiles, the same numbers laid out for broadcast (act.h) */
} cpu_act;

/* Never wraps: k and nt are 31 bits each, and a value takes less than 4 bytes. */
size_t cpu_act_bytes(int32_t k, int32_t nt);
/* Tokens per tile for nt tokens, of which up to `few` are few (cpu_kernels). */
int32_t cpu_act_tokens(int32_t nt, int32_t few);
/* Points a into mem (cpu_act_bytes(k, nt) bytes, 64-byte aligned). Touches none of it. */
void cpu_act_bind(cpu_act *a, void *mem, int32_t k, int32_t nt, int32_t few);

/* Quantizes tokens [t0, t1) of x (row t at x + t * ldx), 32-blocks [b0, b1), and lays them out in their
 * tiles. Any split over tokens and blocks gives the same; parts may run at the same time. A block with a
 * value that is not finite gets d = NaN and q = 0, so that every output that reads it is NaN. */
typedef void cpu_quantize_fn(const cpu_act *a, const float *x, size_t ldx, int32_t t0, int32_t t1, int32_t b0,
                             int32_t b1);

/* ---- matmul
 * ----------------------------------------------------------------------------------------------------- */

/* y[t * ldy + r] = sum over k of w[r][i] * x[t][i], for nt tokens and the rows the call names. */
typedef struct cpu_matmul {
    mf_type type;
    int32_t rows, k, nt; /* k: a multiple of the type's block_values */
    const uint8_t *w;    /* rows of native blocks, 2-byte aligned, in place in the file's mapping */
    const uint8_t *next; /* what this thread will read after its last row (prefetched), or NULL */
    const cpu_act *act;  /* for quantized types: of nt tokens and k values */
    const float *x;      /* for F32, F16, BF16: token t at x + t * ldx */
    size_t ldx;          /* floats */
    float *y;
    size_t ldy;    /* floats */
    void *scratch; /* CPU_SCRATCH bytes, 64-byte aligned, one per thread */
} cpu_matmul;

enum {
    CPU_SCRATCH = 1 << 20,
    CPU_SCRATCH_Q8_0 = 2048, /* enough for up to CPU_TILE_SMALL tokens on Q8_0 */
};

/* Rows [r0, r1), any part of [0, rows). */
typedef void cpu_matmul_fn(const cpu_matmul *m, int32_t r0, int32_t r1);

/* ---- attention
 * -------------------------------------------------------------------------------------------------- */

enum { CPU_ATTN_TILE = 256 }; /* cells per tile, at absolute indices within the sequence */
enum { CPU_ATTN_HEAD = 256 }; /* largest head_dim */

/* One tile of one KV head against some query rows (any mix of tokens and query heads of the group). Partial
 * result of row i at part + i * (2 + head_dim): m, l, o[head_dim] of docs/numerics.md; m is never -0. A row's
 * result does not depend on the other rows of the call. Cells from the last row's n on are not read. */
typedef struct cpu_attn_tile {
    int32_t head_dim; /* even, 2..CPU_ATTN_HEAD; multiples of 16 are fast */
    int32_t rows; /* any number from 0; 16 and more that share a tile are the efficient case of a prefill */
    float scale;  /* finite */
    mf_type kv_type;   /* F32, F16, or Q8_0: head_dim a multiple of 32 */
    const void *k, *v; /* cell c at k + c * cell_bytes: head_dim values, aligned to their type (Q8_0: to 2) */
    size_t cell_bytes; /* Q8_0: a row's own, cells lie one behind the other */
    const float *const *q; /* [rows]: head_dim floats each */
    const int32_t *n;      /* [rows]: cells this row sees, 1..CPU_ATTN_TILE, never decreasing */
    float *part;           /* overlaps no input */
} cpu_attn_tile;

typedef void cpu_attn_tile_fn(const cpu_attn_tile *a);

/* y[head_dim] of one row from its n_tiles >= 1 partials, `stride` floats apart, in tile order. y overlaps
 * none of them. */
typedef void cpu_attn_merge_fn(const float *part, size_t stride, int32_t n_tiles, int32_t head_dim, float *y);

/* ---- rows and elements
 * ------------------------------------------------------------------------------------------ */

/* Where "y may be x" is said, y is x or overlaps it nowhere. Any alignment of float is fine. */

/* y = (x * r) * w over n >= 1 values, r = 1 / sqrt(sum x^2 / n + eps). y may be x. */
typedef void cpu_rms_norm_fn(float *y, const float *x, const float *w, int32_t n, float eps);
/* y = e(x - max) / sum of these over n >= 1 values. y may be x. */
typedef void cpu_softmax_fn(float *y, const float *x, int32_t n);

/* Rotates the first n_rot values (even, <= head_dim) of each of n_heads heads of head_dim values; the rest is
 * copied. cs holds n_rot/2 cosines, then n_rot/2 sines. interleaved: pairs (2i, 2i+1); otherwise
 * (i, i + n_rot/2). y may be x. */
typedef void cpu_rope_fn(float *y, const float *x, const float *cs, int32_t n_heads, int32_t head_dim,
                         int32_t n_rot, bool interleaved);

/* cs for one position: cosines and sines of position * inv_freq[i], i < half = n_rot/2, rounded from double.
 */
typedef void cpu_rope_angles_fn(float *cs, const double *inv_freq, int32_t half, int32_t position);

typedef void cpu_binary_fn(float *y, const float *a, const float *b, int64_t n); /* y may be a or b */
typedef void cpu_unary_fn(float *y, const float *x, int64_t n);                  /* y may be x */
typedef void cpu_scale_fn(float *y, const float *x, float s, int64_t n);         /* y may be x */

/* Stores n floats as type: F32; F16, rounded to nearest even; Q8_0 (n a multiple of 32), where a block holds
 * d = half(amax / 127) and q = rint(x * (127 / amax)), zeros for amax < 2^-118, and d = NaN with zeros where
 * a value is not finite. dst has no alignment. */
typedef void cpu_store_row_fn(mf_type type, void *dst, const float *x, int32_t n);

/* ---- the table
 * -------------------------------------------------------------------------------------------------- */

typedef struct cpu_kernels {
    const char *tier; /* "scalar", "avx2", "avx512", "neon" */
    int32_t few;      /* up to so many tokens are few for these kernels */
    cpu_quantize_fn *quantize;
    cpu_matmul_fn *matmul[MF_TYPE_COUNT]; /* NULL where the type is no weight type */
    cpu_attn_tile_fn *attn_tile;
    cpu_attn_merge_fn *attn_merge;
    cpu_rms_norm_fn *rms_norm;
    cpu_softmax_fn *softmax;
    cpu_rope_fn *rope;
    cpu_rope_angles_fn *rope_angles;   /* scalar in every tier */
    cpu_binary_fn *add, *mul, *swiglu; /* swiglu: silu(a) * b */
    cpu_unary_fn *silu;
    cpu_scale_fn *scale;
    cpu_store_row_fn *store_row;
} cpu_kernels;

/* A tier's own entries, written over the table of the tier below. _matmul_: quantize and matmul; _rows_:
 * attention, norms, elements. */
void cpu_matmul_init_ref(cpu_kernels *k);
void cpu_rows_init_ref(cpu_kernels *k);
void cpu_matmul_init_avx2(cpu_kernels *k);
void cpu_rows_init_avx2(cpu_kernels *k);
void cpu_matmul_init_avx512(cpu_kernels *k);
void cpu_rows_init_avx512(cpu_kernels *k);
void cpu_matmul_init_neon(cpu_kernels *k);
void cpu_rows_init_neon(cpu_kernels *k);

/* Those of one processor family in order; a table takes from all below its cap. */
typedef enum cpu_tier {
    CPU_TIER_SCALAR,
    CPU_TIER_AVX2,
    CPU_TIER_AVX512,
    CPU_TIER_NEON, /* with dotprod; i8mm is used where the processor has it */
    CPU_TIER_COUNT
} cpu_tier;

const char *cpu_tier_name(cpu_tier t);
/* This build has its kernels: those of another processor family are left out. */
bool cpu_tier_built(cpu_tier t);
/* Built, and this processor and its system have it (or it is emulated). */
bool cpu_tier_usable(cpu_tier t);
/* The table of the highest usable tier that is not above cap. */
void cpu_kernels_select(cpu_kernels *k, cpu_tier cap);

#endif
