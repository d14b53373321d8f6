/* Four floats in a NEON register: the operations that rows.inc, attn.inc and attn_block.inc are written in.
 * Included by NEON files only. */
#ifndef MF_BACKENDS_CPU_ARM_VEC4_H
#define MF_BACKENDS_CPU_ARM_VEC4_H

#include "backends/cpu/simd/inline.h"

#include <arm_neon.h>

typedef float32x4_t vec, quad;
enum {
    VL = 4,
    V_SUMS = 16, /* of attn_block.inc in flight: 32 registers hold them, and some processors need as many */
};

VEC_INLINE void v_prefetch(uintptr_t p)
{
    __builtin_prefetch((const void *)p, 0, 3);
}

VEC_INLINE vec v_set(float f)
{
    return vdupq_n_f32(f);
}

VEC_INLINE vec v_load(const float *p)
{
    return vld1q_f32(p);
}

VEC_INLINE void v_store(float *p, vec v)
{
    vst1q_f32(p, v);
}

VEC_INLINE vec v_load_f16(const void *p)
{
    return vcvt_f32_f16(vreinterpret_f16_u8(vld1_u8(p)));
}

/* int8 to float */
VEC_INLINE vec v_load_i8(const void *p)
{
    int32_t four;
    memcpy(&four, p, sizeof four);
    int16x8_t wide = vmovl_s8(vreinterpret_s8_s32(vdup_n_s32(four)));
    return vcvtq_f32_s32(vmovl_s16(vget_low_s16(wide)));
}

/* A half float to all lanes. */
VEC_INLINE vec v_set_f16(uint16_t h)
{
    return vcvt_f32_f16(vreinterpret_f16_u16(vdup_n_u16(h)));
}

VEC_INLINE vec v_add(vec a, vec b)
{
    return vaddq_f32(a, b);
}

VEC_INLINE vec v_sub(vec a, vec b)
{
    return vsubq_f32(a, b);
}

VEC_INLINE vec v_mul(vec a, vec b)
{
    return vmulq_f32(a, b);
}

VEC_INLINE vec v_div(vec a, vec b)
{
    return vdivq_f32(a, b);
}

VEC_INLINE vec v_fma(vec a, vec b, vec c)
{
    return vfmaq_f32(c, a, b);
}

/* a > b ? a : b */
VEC_INLINE vec v_max(vec a, vec b)
{
    return vbslq_f32(vcgtq_f32(a, b), a, b);
}

VEC_INLINE vec v_rint(vec a)
{
    return vrndnq_f32(a);
}

VEC_INLINE vec v_minus_abs(vec a)
{
    return vnegq_f32(vabsq_f32(a));
}

/* a < b ? x : y */
VEC_INLINE vec v_if_less(vec a, vec b, vec x, vec y)
{
    return vbslq_f32(vcltq_f32(a, b), x, y);
}

/* p * 2^n through the exponent field, n integral; it may wrap where the caller takes another value. */
VEC_INLINE vec v_scale2(vec p, vec n)
{
    uint32x4_t e = vshlq_n_u32(vreinterpretq_u32_s32(vcvtnq_s32_f32(n)), 23);
    return vreinterpretq_f32_u32(vaddq_u32(vreinterpretq_u32_f32(p), e));
}

/* ---- four floats beside the vectors */

#define quad_load(p)     vld1q_f32(p)
#define quad_store(p, v) vst1q_f32(p, v)
#define quad_add(a, b)   vaddq_f32(a, b)

/* Lanes 0 and 1 (2 and 3) of a, then those of b. */
VEC_INLINE quad quad_low(quad a, quad b)
{
    return vreinterpretq_f32_f64(vzip1q_f64(vreinterpretq_f64_f32(a), vreinterpretq_f64_f32(b)));
}

VEC_INLINE quad quad_high(quad a, quad b)
{
    return vreinterpretq_f32_f64(vzip2q_f64(vreinterpretq_f64_f32(a), vreinterpretq_f64_f32(b)));
}

VEC_INLINE void quad_transpose(quad r[4])
{
    quad a = vzip1q_f32(r[0], r[1]), b = vzip2q_f32(r[0], r[1]);
    quad c = vzip1q_f32(r[2], r[3]), d = vzip2q_f32(r[2], r[3]);
    r[0] = quad_low(a, c);
    r[1] = quad_high(a, c);
    r[2] = quad_low(b, d);
    r[3] = quad_high(b, d);
}

/* Of four vectors c: (c0 + c2) + (c1 + c3). Element i of the result belongs to c[i]. */
VEC_INLINE quad v_fold4(const vec c[4])
{
    quad a = vaddq_f32(quad_low(c[0], c[1]), quad_high(c[0], c[1]));
    quad b = vaddq_f32(quad_low(c[2], c[3]), quad_high(c[2], c[3]));
    return vpaddq_f32(a, b);
}

#endif
