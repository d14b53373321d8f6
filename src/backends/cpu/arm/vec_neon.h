/* The words of the matmul templates for NEON with dotprod: vectors of 4 lanes. x86/vec_avx2.h has the same
 * words for 8 lanes; simd/panel.inc explains how rows lie in a vector. */
#ifndef MF_BACKENDS_CPU_ARM_VEC_NEON_H
#define MF_BACKENDS_CPU_ARM_VEC_NEON_H

#include "backends/cpu/act.h"
#include "backends/cpu/arm/arm.h"
#include "base/bytes.h"

#include <arm_neon.h>

typedef int32x4_t vi;
typedef float32x4_t vf;
enum {
    V_LANES = 4,
    V_BYTES = 16,
    V_VNNI = 0,               /* bytes with a sign stay as they are */
    V_PANELS = 2,             /* panels of 32-blocks multiplied together: a load of activations serves both */
    V_UNIT_BYTES = 384 << 10, /* unpacked panels that stay in the second-level cache */
};

/* ---- integers */

#define v_u8(v)    vreinterpretq_u8_s32(v)
#define v_u16(v)   vreinterpretq_u16_s32(v)
#define v_u32(v)   vreinterpretq_u32_s32(v)
#define v_s8(v)    vreinterpretq_s8_s32(v)
#define v_s64(v)   vreinterpretq_s64_s32(v)
#define v_of_u8(v) vreinterpretq_s32_u8(v)

#define vi_and(a, b)        vandq_s32(a, b)
#define vi_or(a, b)         vorrq_s32(a, b)
#define vi_add32(a, b)      vaddq_s32(a, b)
#define vi_mul32(a, b)      vmulq_s32(a, b)
#define vi_srl16(v, n)      vreinterpretq_s32_u16(vshrq_n_u16(v_u16(v), n))
#define vi_sll32(v, n)      vshlq_n_s32(v, n)
#define vi_srl32(v, n)      vreinterpretq_s32_u32(vshrq_n_u32(v_u32(v), n))
#define vi_srl32_each(v, n) vreinterpretq_s32_u32(vshlq_u32(v_u32(v), vnegq_s32(n)))
#define vi_lo32(a, b)       vzip1q_s32(a, b)
#define vi_hi32(a, b)       vzip2q_s32(a, b)
#define vi_lo64(a, b)       vreinterpretq_s32_s64(vzip1q_s64(v_s64(a), v_s64(b)))
#define vi_hi64(a, b)       vreinterpretq_s32_s64(vzip2q_s64(v_s64(a), v_s64(b)))
#define vi_bytes(v, index)  v_of_u8(vqtbl1q_u8(v_u8(v), v_u8(index)))
#define vi_zero()           vdupq_n_s32(0)
#define vi_all8(x)          vreinterpretq_s32_s8(vdupq_n_s8((int8_t)(x)))
#define vi_all32(x)         vdupq_n_s32(x)
#define vi_high4(v)         v_of_u8(vshrq_n_u8(v_u8(v), 4))
#define vi_tree4(v)         vpaddq_s32(vpaddq_s32((v)[0], (v)[1]), vpaddq_s32((v)[2], (v)[3]))

/* Four dwords in every group of 16 bytes, of which there is one. */
#define vi_group(a, b, c, d) ((vi){a, b, c, d})

V_INLINE vi vi_load(const void *p)
{
    return vld1q_s32(p);
}

/* 16 bytes to every group; one dword to every lane. */
V_INLINE vi vi_cast128(const void *p)
{
    return v_of_u8(vld1q_u8(p));
}

V_INLINE vi vi_cast32(const int32_t *p)
{
    return vld1q_dup_s32(p);
}

/* Dwords in the order of n's four pairs of bits. */
V_INLINE vi vi_order32(vi v, int n)
{
    const int first = 0x03020100, step = 0x04040404;
    return vi_bytes(v, vi_group(first + step * (n & 3), first + step * (n >> 2 & 3),
                                first + step * (n >> 4 & 3), first + step * (n >> 6 & 3)));
}

/* 16 in every byte of v that has one of the bits. */
V_INLINE vi vi_bit4(vi v, vi bits)
{
    return v_of_u8(vandq_u8(vtstq_u8(v_u8(v), v_u8(bits)), vdupq_n_u8(16)));
}

/* Bits 2i and 2i + 1 of every byte, moved to bits 4 and 5. */
V_INLINE vi vi_upper2(vi v, int i)
{
    uint8x16_t b = v_u8(v);
    b = i == 0 ? vshlq_n_u8(b, 4) : i == 1 ? vshlq_n_u8(b, 2) : i == 2 ? b : vshrq_n_u8(b, 2);
    return v_of_u8(vandq_u8(b, vdupq_n_u8(0x30)));
}

/* 16 bytes of row 0. */
V_INLINE vi vi_rows16(const uint8_t *p, size_t stride)
{
    (void)stride;
    return vi_cast128(p);
}

/* A half float of every row; a dword of every row. */
V_INLINE vf vf_half_rows(const uint8_t *p, size_t stride)
{
    uint64_t low = mf_load_u16(p) | (uint64_t)mf_load_u16(p + stride) << 16;
    uint64_t high = mf_load_u16(p + 2 * stride) | (uint64_t)mf_load_u16(p + 3 * stride) << 16;
    return vcvt_f32_f16(vcreate_f16(low | high << 32));
}

V_INLINE vi vi_dword_rows(const uint8_t *p, size_t stride)
{
    uint64_t low = mf_load_u32(p) | (uint64_t)mf_load_u32(p + stride) << 32;
    uint64_t high = mf_load_u32(p + 2 * stride) | (uint64_t)mf_load_u32(p + 3 * stride) << 32;
    return vcombine_s32(vcreate_s32(low), vcreate_s32(high));
}

/* The half floats in the lower (upper) 16 bits of the lanes. */
V_INLINE vf vf_half_lower(vi v)
{
    return vcvt_f32_f16(vreinterpret_f16_u16(vmovn_u32(v_u32(v))));
}

V_INLINE vf vf_half_upper(vi v)
{
    return vcvt_f32_f16(vreinterpret_f16_u16(vshrn_n_u32(v_u32(v), 16)));
}

/* Bytes of every lane: the four bytes of `index` say which of its own a lane gets, 0x80 zero. */
V_INLINE vi vi_lane_bytes(vi v, int index)
{
    vi own = vi_group(0, 0x04040404, 0x08080808, 0x0c0c0c0c);
    return vi_bytes(v, vi_or(vi_all32(index), own));
}

/* Byte j of every lane. */
V_INLINE vi vi_byte(vi v, int j)
{
    return vi_lane_bytes(v, (int)0x80808000u + j);
}

/* ---- dot products of bytes */

/* A sub-scale per lane, byte j of it (0..3; no sign), in the form v_dots_scaled takes. */
#define vi_scale_byte(v, j) vi_byte(v, j)

/* The same with a sign. */
V_INLINE vi vi_scale_signed(vi v, int j)
{
    return vshrq_n_s32(vi_lane_bytes(v, 0x00808080 + j * 0x01000000), 24);
}

/* Entries 2g and 2g + 1 of tokens 2p and 2p + 1, from the entries at q of a tile of nt tokens. A last token
 * without a second comes twice. */
V_INLINE vi v_token_pair(int nt, const int32_t *q, int g, int p)
{
    const int32_t *at = q + 2 * g * nt + 4 * p;
    if (2 * p + 1 < nt) return vld1q_s32(at);
    return vcombine_s32(vld1_s32(at), vld1_s32(at));
}

/* s plus, per lane, the products of four bytes of w with dword i of x. The instruction has i in its code. */
V_INLINE vi v_dot_dword(vi s, vi w, vi x, int i)
{
    switch (i) {
    case 0: return vdotq_laneq_s32(s, v_s8(w), v_s8(x), 0);
    case 1: return vdotq_laneq_s32(s, v_s8(w), v_s8(x), 1);
    case 2: return vdotq_laneq_s32(s, v_s8(w), v_s8(x), 2);
    default: return vdotq_laneq_s32(s, v_s8(w), v_s8(x), 3);
    }
}

/* sum[r * nt + t] += products of n vectors of weights of `panels` panels with n entries of all nt tokens of a
 * tile. */
V_INLINE void v_dots(int panels, int nt, int n, const vi *const *w, const int32_t *q, vi *sum)
{
    V_UNROLL for (int i = 0; i < n; i++)
    {
        V_UNROLL for (int r = 0; r < panels; r++)
        {
            vi v = w[r][i];
            V_UNROLL for (int t = 0; t < nt; t++) sum[r * nt + t] = v_dot_dword(
                sum[r * nt + t], v, v_token_pair(nt, q, i / 2, t / 2), t % 2 * 2 + i % 2);
        }
    }
}

/* sum[t] += c * (start[t] + products of n vectors of weights with n entries); start may be NULL. */
V_INLINE void v_dots_from(int nt, int n, const vi *w, const int32_t *q, vi c, const int32_t *start, vi *sum)
{
    vi s[CPU_TILE_SMALL];
    V_UNROLL for (int t = 0; t < nt; t++) s[t] = start ? vi_cast32(start + t) : vi_zero();
    v_dots(1, nt, n, &w, q, s);
    V_UNROLL for (int t = 0; t < nt; t++) sum[t] = vmlaq_s32(sum[t], s[t], c);
}

V_INLINE void v_dots_scaled(int nt, int bits, int n, const vi *w, const int32_t *q, vi c, vi *sum)
{
    (void)bits;
    v_dots_from(nt, n, w, q, c, NULL, sum);
}

/* Q6_K: sum[t] = the scaled products of both halves of a block of 32, offset included. scale: of the halves.
 */
enum { K6_PAIRS = 0 };
#define vi_scale_pair(v, j) (v)

V_INLINE void v_dots_q6(int nt, const vi *w0, const vi *w1, const vi *scale, const vi *pair,
                        const int32_t *tile, vi *sum)
{
    (void)pair;
    V_UNROLL for (int t = 0; t < nt; t++) sum[t] = vi_zero();
    v_dots_from(nt, 4, w0, tile + ACT_Q * nt, scale[0], tile + ACT_Z16 * nt, sum);
    v_dots_from(nt, 4, w1, tile + (ACT_Q + 4) * nt, scale[1], tile + (ACT_Z16 + 1) * nt, sum);
}

/* sum[r * nt + t] += the products without a scale, for the block of 32 of `panels` panels. */
V_INLINE void v_dots32(int panels, int nt, int bits, const vi *const *w, const int32_t *q, vi *sum)
{
    (void)bits;
    v_dots(panels, nt, 8, w, q, sum);
}

/* Per lane: the products of 2 x 4 bytes; with a sign. */
V_INLINE vi v_dot2(vi w0, vi q0, vi w1, vi q1)
{
    return vdotq_s32(vdotq_s32(vi_zero(), v_s8(w0), v_s8(q0)), v_s8(w1), v_s8(q1));
}

#define v_dot2_signed(w0, q0, w1, q1) v_dot2(w0, q0, w1, q1)

/* Bytes with a sign in the form v_dots32 and v_dot2_signed take them. */
#define vi_signed8(v) (v)

/* ---- floats */

#define vf_zero()        vdupq_n_f32(0)
#define vf_mul(a, b)     vmulq_f32(a, b)
#define vf_fma(a, b, c)  vfmaq_f32(c, a, b)
#define vf_fnma(a, b, c) vfmsq_f32(c, a, b)
#define vf_from(v)       vcvtq_f32_s32(v)
#define vf_bits(v)       vreinterpretq_s32_f32(v)
#define vi_bits(v)       vreinterpretq_f32_s32(v)

V_INLINE vf vf_cast(const void *p)
{
    return vld1q_dup_f32(p);
}

V_INLINE vf vf_load(const float *p)
{
    return vld1q_f32(p);
}

V_INLINE void vf_store(float *p, vf v)
{
    vst1q_f32(p, v);
}

V_INLINE vf vf_load_f16(const void *p)
{
    return vcvt_f32_f16(vreinterpret_f16_u8(vld1_u8(p)));
}

V_INLINE vf vf_load_bf16(const void *p)
{
    return vreinterpretq_f32_u32(vshll_n_u16(vreinterpret_u16_u8(vld1_u8(p)), 16));
}

/* Bit i of lanes stands for lane i. Not all of them is rare, and has no copy in each kernel. */
static __attribute__((noinline, unused)) vf v_load_some(const float *p, uint32_t lanes)
{
    float t[4] = {0};
    for (int i = 0; i < 4; i++)
        if (lanes >> i & 1) t[i] = p[i];
    return vld1q_f32(t);
}

static __attribute__((noinline, unused)) void v_store_some(float *p, uint32_t lanes, vf v)
{
    float t[4];
    vst1q_f32(t, v);
    for (int i = 0; i < 4; i++)
        if (lanes >> i & 1) p[i] = t[i];
}

V_INLINE vf vf_load_lanes(const float *p, uint32_t lanes)
{
    return lanes == 15 ? vld1q_f32(p) : v_load_some(p, lanes);
}

V_INLINE void vf_store_lanes(float *p, uint32_t lanes, vf v)
{
    if (lanes == 15)
        vst1q_f32(p, v);
    else
        v_store_some(p, lanes, v);
}

/* b in the lanes named, a in the others. */
V_INLINE vf vf_choose(uint32_t lanes, vf a, vf b)
{
    const uint32x4_t bit = {1, 2, 4, 8};
    return vbslq_f32(vtstq_u32(vdupq_n_u32(lanes), bit), b, a);
}

/* tree16 of docs/numerics.md over four vectors. */
V_INLINE float vf_tree16(const vf *v)
{
    vf s[2];
    V_UNROLL for (int i = 0; i < 2; i++)
    {
        vi a = vf_bits(v[2 * i]), b = vf_bits(v[2 * i + 1]);
        s[i] = vaddq_f32(vi_bits(vi_lo64(a, b)), vi_bits(vi_hi64(a, b)));
    }
    vf g = vpaddq_f32(s[0], s[1]);
    g = vpaddq_f32(g, g);
    return vpadds_f32(vget_low_f32(g));
}

#endif
