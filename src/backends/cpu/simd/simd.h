/* What the vector tiers share: how a format's kernels present themselves to the driver (drive.c) that walks
 * over rows, tokens and blocks. Knows no instruction set. */
#ifndef MF_BACKENDS_CPU_SIMD_SIMD_H
#define MF_BACKENDS_CPU_SIMD_SIMD_H

#include "backends/cpu/kernels.h"

#ifdef MF_COMPACT /* see inline.h */
#define V_INLINE static inline
#else
#define V_INLINE static inline __attribute__((always_inline))
#endif

/* Before a loop: unroll it fully (its bounds are known once kernels are inlined; arrays live in registers
 * only then), or not at all. */
#if defined(MINFER_EMULATE_AVX512) || defined(MF_COMPACT)
#define V_UNROLL /* compilers take minutes otherwise: see inline.h */
#define V_LOOP
#elif defined(__clang__)
#define V_UNROLL _Pragma("clang loop unroll(full)")
#define V_LOOP   _Pragma("clang loop unroll(disable)")
#else
#define V_UNROLL _Pragma("GCC unroll 32")
#define V_LOOP   _Pragma("GCC unroll 1")
#endif

/* Bytes between reading and prefetching. */
enum { SIMD_AHEAD = 8192 };

/* As many consecutive rows of a weight matrix as a vector has lanes. */
typedef struct simd_panel {
    const uint8_t *w;    /* the first row */
    size_t stride;       /* bytes of a row */
    const uint8_t *next; /* prefetched from here on while reading: as many bytes as are read */
    float *y;            /* output of the first row for token 0 */
    size_t ldy;
    uint32_t lanes; /* bit i: row i is written */
} simd_panel;

/* One or two panels, unpacked, against the tokens of one tile. The chains start at 0 if first, else at y. */
typedef struct simd_product {
    const void *panel[2];
    float *y[2];
    uint32_t lanes[2];
    size_t ldy;
    const int32_t *tile;
    size_t blocks;
    bool first;
} simd_product;

/* One panel, native, against all of up to 8 tokens. */
typedef void simd_small_fn(const simd_panel *p, const cpu_act *a, void *scratch);
/* Unpacks `blocks` blocks of a panel to out. */
typedef void simd_unpack_fn(const simd_panel *p, size_t blocks, void *out);
typedef void simd_product_fn(const simd_product *p);

/* A quantized weight type in one tier. */
typedef struct simd_format {
    int32_t block_values, block_bytes;
    int32_t lanes;                        /* rows of a panel */
    int32_t panel_bytes;                  /* of one unpacked block of a panel */
    int32_t unit_bytes;                   /* of unpacked panels that stay in the second-level cache */
    simd_small_fn *small[CPU_TILE_SMALL]; /* [tokens - 1] */
    simd_unpack_fn *unpack;
    simd_product_fn *product[2][CPU_TILE]; /* [panels - 1][tokens - 1]; [1] may be NULL throughout */
} simd_format;

void cpu_matmul_simd(const simd_format *f, const cpu_matmul *m, int32_t r0, int32_t r1);

/* Rows and tokens for one float kernel. w: rows of the kernel's type, `stride` bytes apart. */
typedef struct simd_float_product {
    const uint8_t *w;
    size_t stride;
    const uint8_t *next; /* as above, or NULL */
    const float *x;
    size_t ldx;
    float *y;
    size_t ldy;
    size_t k;
} simd_float_product;

typedef void simd_float_fn(const simd_float_product *p);
/* Converts n values. */
typedef void simd_convert_fn(float *dst, const uint8_t *src, size_t n);

enum { SIMD_FLOAT_TOKENS = 6 };

/* A float weight type in one tier. */
typedef struct simd_float_format {
    size_t value_bytes;
    int32_t rows, tokens; /* of the largest kernel */
    simd_float_fn *one[SIMD_FLOAT_TOKENS],
        *full[SIMD_FLOAT_TOKENS];        /* [tokens - 1], for 1 row and for `rows` */
    simd_convert_fn *convert;            /* to F32; NULL: it is F32 */
    const struct simd_float_format *f32; /* the format to go on with */
} simd_float_format;

void cpu_matmul_simd_float(const simd_float_format *f, const cpu_matmul *m, int32_t r0, int32_t r1);

/* `bytes` bytes from p on into the second-level cache (the first level would lose what the kernels keep
 * there). p may be any address. */
V_INLINE void simd_prefetch(const uint8_t *p, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += 64) __builtin_prefetch(p + i, 0, 2);
}

#define SIMD_KERNELS(tier)                                                                              \
    cpu_matmul_fn cpu_matmul_f32_##tier, cpu_matmul_f16_##tier, cpu_matmul_bf16_##tier,                 \
        cpu_matmul_q4_0_##tier, cpu_matmul_q4_1_##tier, cpu_matmul_q5_0_##tier, cpu_matmul_q5_1_##tier, \
        cpu_matmul_q8_0_##tier, cpu_matmul_q4_k_##tier, cpu_matmul_q5_k_##tier, cpu_matmul_q6_k_##tier

/* A tier's matmul entries in the kernel table. */
#define SIMD_INIT(k, tier)                                  \
    do {                                                    \
        (k)->matmul[MF_TYPE_F32] = cpu_matmul_f32_##tier;   \
        (k)->matmul[MF_TYPE_F16] = cpu_matmul_f16_##tier;   \
        (k)->matmul[MF_TYPE_BF16] = cpu_matmul_bf16_##tier; \
        (k)->matmul[MF_TYPE_Q4_0] = cpu_matmul_q4_0_##tier; \
        (k)->matmul[MF_TYPE_Q4_1] = cpu_matmul_q4_1_##tier; \
        (k)->matmul[MF_TYPE_Q5_0] = cpu_matmul_q5_0_##tier; \
        (k)->matmul[MF_TYPE_Q5_1] = cpu_matmul_q5_1_##tier; \
        (k)->matmul[MF_TYPE_Q8_0] = cpu_matmul_q8_0_##tier; \
        (k)->matmul[MF_TYPE_Q4_K] = cpu_matmul_q4_k_##tier; \
        (k)->matmul[MF_TYPE_Q5_K] = cpu_matmul_q5_k_##tier; \
        (k)->matmul[MF_TYPE_Q6_K] = cpu_matmul_q6_k_##tier; \
    } while (0)

SIMD_KERNELS(avx2);
SIMD_KERNELS(avx512);
cpu_quantize_fn cpu_quantize_avx2;
/* One token, k up to Q6_ROWS_K: the sums, two bytes for a weight, must stay in the first-level cache. */
enum { Q6_ROWS_K = 14 * 1024 };
cpu_matmul_fn cpu_matmul_q6_k_rows_avx2;

#endif
