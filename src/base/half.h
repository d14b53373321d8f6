/* IEEE half and bfloat16: exact conversions, the same on every machine. F16C instructions give the same bits.
 */
#ifndef MF_BASE_HALF_H
#define MF_BASE_HALF_H

#include <math.h>
#include <stdint.h>
#include <string.h>

static inline float mf_bits_f32(uint32_t u)
{
    float f;
    memcpy(&f, &u, 4);
    return f;
}

static inline uint32_t mf_f32_bits(float f)
{
    uint32_t u;
    memcpy(&u, &f, 4);
    return u;
}

/* NaN payloads keep their upper bits and become quiet, as the hardware does. */
static inline float mf_f16_to_f32(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, e = (h >> 10) & 31, m = h & 1023;
    if (e == 0) {
        float f = (float)m * 0x1p-24f;
        return sign ? -f : f;
    }
    if (e == 31) return mf_bits_f32(sign | 0x7f800000u | m << 13 | (m ? 1u << 22 : 0));
    return mf_bits_f32(sign | (e + 112) << 23 | m << 13);
}

/* Rounds to nearest even; values from 65520 on become infinite. */
static inline uint16_t mf_f32_to_f16(float f)
{
    uint32_t u = mf_f32_bits(f), sign = (u >> 16) & 0x8000;
    u &= 0x7fffffff;
    if (u > 0x7f800000) return (uint16_t)(sign | 0x7e00 | (u >> 13 & 0x3ff));
    if (u >= 0x477ff000) return (uint16_t)(sign | 0x7c00);
    if (u < 0x38800000) return (uint16_t)(sign | (uint32_t)rintf(mf_bits_f32(u) * 0x1p24f));
    u += 0xfff + (u >> 13 & 1);
    return (uint16_t)(sign | ((u >> 13) - (112u << 10)));
}

static inline float mf_bf16_to_f32(uint16_t h)
{
    return mf_bits_f32((uint32_t)h << 16);
}

static inline uint16_t mf_f32_to_bf16(float f)
{
    uint32_t u = mf_f32_bits(f);
    if ((u & 0x7fffffff) > 0x7f800000) return (uint16_t)(u >> 16 | 64);
    return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

#endif
