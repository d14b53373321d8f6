/* Attention, norms, elements, rotation and KV storage with NEON. Every kernel gives the bits of its scalar
 * twin cpu_..._ref in ref/attn.c and ref/rows.c; tests/cpu/test_attn.c and tests/cpu/test_rows.c compare
 * them.
 */
#include "backends/cpu/ref/rows.h"

#include "backends/cpu/arm/arm.h"
#include "backends/cpu/arm/block32.h"
#include "base/bytes.h"
#include "base/half.h"

#include "backends/cpu/arm/vec4.h"

#include "backends/cpu/simd/rows.inc"

#define GROUP     6 /* 24 sums of dot products, four cells and a query need 29 of the 32 registers */
#define GROUPS(X) X(1) X(2) X(3) X(4) X(5) X(6)

static void packed_dots(const cpu_attn_tile *a, int32_t first, int32_t rows, float *s)
{
    cpu_attn_dots_q8_0(a, first, rows, cpu_quantize_neon, cpu_matmul_q8_0_neon, s);
}

#include "backends/cpu/simd/attn.inc"

#include "backends/cpu/simd/rows_kernels.inc"

/* y0 = x0 * c - x1 * s, y1 = x1 * c + x0 * s. */
VEC_INLINE float32x4x2_t rotate(float32x4x2_t x, vec c, vec s)
{
    return (float32x4x2_t){
        {v_fma(x.val[0], c, vnegq_f32(v_mul(x.val[1], s))), v_fma(x.val[1], c, v_mul(x.val[0], s))}};
}

/* Pairs (i, i + half), four at a time. */
static void rotate_halves(float *y, const float *x, const float *cs, int32_t half)
{
    for (int32_t i = 0; i < half; i += VL) {
        float32x4x2_t v = {{v_load(x + i), v_load(x + half + i)}};
        v = rotate(v, v_load(cs + i), v_load(cs + half + i));
        v_store(y + i, v.val[0]);
        v_store(y + half + i, v.val[1]);
    }
}

/* Pairs (2i, 2i + 1), four at a time. */
static void rotate_neighbours(float *y, const float *x, const float *cs, int32_t half)
{
    for (int32_t i = 0; i < half; i += VL)
        vst2q_f32(y + 2 * i, rotate(vld2q_f32(x + 2 * i), v_load(cs + i), v_load(cs + half + i)));
}

static void store_f16(unsigned char *dst, const float *x, int32_t n)
{
    int32_t i = 0;
    for (; i + VL <= n; i += VL) vst1_u8(dst + 2 * i, vreinterpret_u8_f16(vcvt_f16_f32(v_load(x + i))));
    if (i < n) {
        float16x4_t h = vcvt_f16_f32(v_load_n(x + i, n - i, 0));
        memcpy(dst + 2 * i, &h, (size_t)(n - i) * 2);
    }
}

static void store_q8_0(unsigned char *dst, const float *x, int32_t n)
{
    for (int32_t b = 0; b < n; b += MF_QK32, dst += MF_BYTES_Q8_0) {
        int8x16_t q[2] = {vdupq_n_s8(0), vdupq_n_s8(0)};
        float amax = mf_bits_f32(block32_amax_bits(x + b));
        bool plain = amax >= CPU_Q8_0_MIN && amax < INFINITY;
        uint16_t d = plain ? mf_f32_to_f16(amax / 127.f) : amax < CPU_Q8_0_MIN ? 0 : CPU_F16_NAN;
        for (int i = 0; i < 2 && plain; i++) q[i] = block32_round16(x + b + 16 * i, 127.f / amax);
        memcpy(dst, &d, sizeof d);
        for (int i = 0; i < 2; i++) vst1q_u8(dst + sizeof d + 16 * i, vreinterpretq_u8_s8(q[i]));
    }
}

#include "backends/cpu/simd/rows_moves.inc"

void cpu_rows_init_neon(cpu_kernels *k)
{
    init_rows(k);
    init_moves(k);
}
