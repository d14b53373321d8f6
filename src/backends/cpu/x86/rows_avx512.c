/* Attention, norms and elements with AVX-512 F, BW, VL, DQ. Every kernel gives the bits of its scalar twin
 * cpu_..._ref in ref/attn.c and ref/rows.c; tests/cpu/test_attn.c and tests/cpu/test_rows.c compare them.
 * Rotation and KV storage are those of the AVX2 tier: they move memory. */
#include "backends/cpu/ref/rows.h"

#include "backends/cpu/simd/simd.h"
#include "backends/cpu/x86/vec16.h"
#include "base/bytes.h"

#include "backends/cpu/simd/rows.inc"

#define GROUP     6 /* 24 sums of dot products, four cells and a query need 29 of the 32 registers */
#define GROUPS(X) X(1) X(2) X(3) X(4) X(5) X(6)

static void packed_dots(const cpu_attn_tile *a, int32_t first, int32_t rows, float *s)
{
    cpu_attn_dots_q8_0(a, first, rows, cpu_quantize_avx2, cpu_matmul_q8_0_avx512, s);
}

#include "backends/cpu/simd/attn.inc"

static void cpu_attn_tile_avx512(const cpu_attn_tile *a)
{
    if (a->head_dim % VL)
        cpu_attn_tile_ref(a);
    else
        attn_tile(a);
}

static void cpu_attn_merge_avx512(const float *part, size_t stride, int32_t n_tiles, int32_t head_dim,
                                  float *y)
{
    if (head_dim % VL)
        cpu_attn_merge_ref(part, stride, n_tiles, head_dim, y);
    else
        attn_merge(part, stride, n_tiles, head_dim, y);
}

static void cpu_rms_norm_avx512(float *y, const float *x, const float *w, int32_t n, float eps)
{
    rms_norm(y, x, w, n, eps);
}

static void cpu_softmax_avx512(float *y, const float *x, int32_t n)
{
    softmax(y, x, n);
}

static void cpu_add_avx512(float *y, const float *a, const float *b, int64_t n)
{
    map2(y, a, b, n, v_add);
}

static void cpu_mul_avx512(float *y, const float *a, const float *b, int64_t n)
{
    map2(y, a, b, n, v_mul);
}

static void cpu_swiglu_avx512(float *y, const float *a, const float *b, int64_t n)
{
    map2(y, a, b, n, v_swiglu);
}

static void cpu_silu_avx512(float *y, const float *x, int64_t n)
{
    map2(y, x, x, n, v_silu_first);
}

static void cpu_scale_avx512(float *y, const float *x, float s, int64_t n)
{
    map_scale(y, x, s, n);
}

void cpu_rows_init_avx512(cpu_kernels *k)
{
    k->attn_tile = cpu_attn_tile_avx512;
    k->attn_merge = cpu_attn_merge_avx512;
    k->rms_norm = cpu_rms_norm_avx512;
    k->softmax = cpu_softmax_avx512;
    k->add = cpu_add_avx512;
    k->mul = cpu_mul_avx512;
    k->swiglu = cpu_swiglu_avx512;
    k->silu = cpu_silu_avx512;
    k->scale = cpu_scale_avx512;
}
