/* What quantizing activations and storing keys and values share: a block of 32 floats. */
#ifndef MF_BACKENDS_CPU_ARM_BLOCK32_H
#define MF_BACKENDS_CPU_ARM_BLOCK32_H

#include "backends/cpu/simd/simd.h"

#include <arm_neon.h>

/* The largest |x| of the block by its bits, which order as the values do, with infinity and NaN above all. */
V_INLINE uint32_t block32_amax_bits(const float *x)
{
    uint32x4_t m = vdupq_n_u32(0);
    for (int i = 0; i < 8; i++) m = vmaxq_u32(m, vreinterpretq_u32_f32(vabsq_f32(vld1q_f32(x + 4 * i))));
    return vmaxvq_u32(m);
}

/* rint(x * scale) of 16 values, which are below 128. */
V_INLINE int8x16_t block32_round16(const float *x, float scale)
{
    int32x4_t v[4];
    for (int i = 0; i < 4; i++) v[i] = vcvtnq_s32_f32(vmulq_n_f32(vld1q_f32(x + 4 * i), scale));
    int16x8_t low = vuzp1q_s16(vreinterpretq_s16_s32(v[0]), vreinterpretq_s16_s32(v[1]));
    int16x8_t high = vuzp1q_s16(vreinterpretq_s16_s32(v[2]), vreinterpretq_s16_s32(v[3]));
    return vuzp1q_s8(vreinterpretq_s8_s16(low), vreinterpretq_s8_s16(high));
}

#endif
