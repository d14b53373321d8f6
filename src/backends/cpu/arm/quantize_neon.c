/* Quantizing activations on NEON, into tiles with pairs of entries. Scalar twin: ref/quantize.c. Test:
 * tests/cpu/test_matmul.c. */
#include "backends/cpu/act.h"
#include "backends/cpu/arm/arm.h"
#include "backends/cpu/arm/block32.h"
#include "base/half.h"

#include <math.h>

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
    uint32_t max = block32_amax_bits(x);
    float amax = mf_bits_f32(max);
    bool finite = max < 0x7f800000;
    if (!finite || amax < 0x1p-118f) {
        put_block(a, t, b, finite ? 0 : NAN, q);
        return;
    }
    for (int i = 0; i < 2; i++) q[i] = block32_round16(x + 16 * i, 127 / amax);
    put_block(a, t, b, amax / 127, q);
}

void cpu_quantize_neon(const cpu_act *a, const float *x, size_t ldx, int32_t t0, int32_t t1, int32_t b0,
                       int32_t b1)
{
    for (int32_t t = t0; t < t1; t++)
        for (int32_t b = b0; b < b1; b++) quantize_block(a, x + (size_t)t * ldx + (size_t)b * 32, t, b);
}
