/* Quantizing activations on NEON, into tiles with pairs of entries. Scalar twin: ref/quantize.c. Test:
 * tests/cpu/test_matmul.c. */
#include "backends/cpu/act.h"
#include "backends/cpu/arm/arm.h"
#include "base/half.h"

#include <arm_neon.h>
#include <math.h>

/* 16 values, whose products with inv are below 128. */
V_INLINE int8x16_t rounded16(const float *x, float inv)
{
    int32x4_t v[4];
    for (int i = 0; i < 4; i++) v[i] = vcvtnq_s32_f32(vmulq_n_f32(vld1q_f32(x + 4 * i), inv));
    int16x8_t low = vuzp1q_s16(vreinterpretq_s16_s32(v[0]), vreinterpretq_s16_s32(v[1]));
    int16x8_t high = vuzp1q_s16(vreinterpretq_s16_s32(v[2]), vreinterpretq_s16_s32(v[3]));
    return vuzp1q_s8(vreinterpretq_s8_s16(low), vreinterpretq_s8_s16(high));
}

static void put_block(const cpu_act *a, int32_t t, int32_t b, float d, const int8x16_t q[2])
{
    int8_t *row = a->q + (size_t)t * (size_t)a->k + (size_t)b * 32;
    int32_t width, *tile = cpu_act_tile(a, t / a->tok, b, &width) + ACT_Q * width + t % a->tok * 2;
    cpu_act_put_sums(a, t, b, d, vaddlvq_s8(q[0]), vaddlvq_s8(q[1]));
    for (int i = 0; i < 2; i++) {
        vst1q_s8(row + 16 * i, q[i]);
        vst1_s32(tile + 4 * i * width, vreinterpret_s32_s8(vget_low_s8(q[i])));
        vst1_s32(tile + (4 * i + 2) * width, vreinterpret_s32_s8(vget_high_s8(q[i])));
    }
}

static void quantize_block(const cpu_act *a, const float *x, int32_t t, int32_t b)
{
    int8x16_t q[2] = {vdupq_n_s8(0), vdupq_n_s8(0)};
    uint32x4_t bits = vdupq_n_u32(0);
    for (int i = 0; i < 8; i++)
        bits = vmaxq_u32(bits, vreinterpretq_u32_f32(vabsq_f32(vld1q_f32(x + 4 * i))));
    uint32_t max = vmaxvq_u32(bits);
    float amax = mf_bits_f32(max);
    bool finite = max < 0x7f800000;
    if (!finite || amax < 0x1p-118f) {
        put_block(a, t, b, finite ? 0 : NAN, q);
        return;
    }
    for (int i = 0; i < 2; i++) q[i] = rounded16(x + 16 * i, 127 / amax);
    put_block(a, t, b, amax / 127, q);
}

void cpu_quantize_neon(const cpu_act *a, const float *x, size_t ldx, int32_t t0, int32_t t1, int32_t b0,
                       int32_t b1)
{
    for (int32_t t = t0; t < t1; t++)
        for (int32_t b = b0; b < b1; b++) quantize_block(a, x + (size_t)t * ldx + (size_t)b * 32, t, b);
}
