/* The words of the kernel templates for AVX2, FMA and F16C: vectors of 8 lanes. vec_avx512.h has the same
 * words for 16 lanes; panel.inc explains how rows lie in a vector. Include one of the two. */
#ifndef MF_BACKENDS_CPU_X86_VEC_AVX2_H
#define MF_BACKENDS_CPU_X86_VEC_AVX2_H

#include "backends/cpu/act.h"
#include "backends/cpu/simd/simd.h"

#include <immintrin.h>

/* The sum so far, in a register: compilers prefer to make all products first, which do not fit there. */
#define V_PIN(v) __asm__("" : "+x"(v))

#include "backends/cpu/x86/gather.h"

typedef __m256i vi;
typedef __m256 vf;
enum {
    V_LANES = 8,
    V_BYTES = 32,
    V_VNNI = 0,               /* dot products go through 16 bits; bytes with a sign stay as they are */
    V_PANELS = 1,             /* panels of 32-blocks multiplied together */
    V_UNIT_BYTES = 384 << 10, /* unpacked panels that stay in the second-level cache */
};

/* ---- integers */

#define vi_and(a, b)        _mm256_and_si256(a, b)
#define vi_or(a, b)         _mm256_or_si256(a, b)
#define vi_add32(a, b)      _mm256_add_epi32(a, b)
#define vi_add16(a, b)      _mm256_add_epi16(a, b)
#define vi_mul32(a, b)      _mm256_mullo_epi32(a, b)
#define vi_madd16(a, b)     _mm256_madd_epi16(a, b)
#define vi_srl16(v, n)      _mm256_srli_epi16(v, n)
#define vi_sll32(v, n)      _mm256_slli_epi32(v, n)
#define vi_srl32(v, n)      _mm256_srli_epi32(v, n)
#define vi_srl32_each(v, n) _mm256_srlv_epi32(v, n)
#define vi_lo32(a, b)       _mm256_unpacklo_epi32(a, b)
#define vi_hi32(a, b)       _mm256_unpackhi_epi32(a, b)
#define vi_lo64(a, b)       _mm256_unpacklo_epi64(a, b)
#define vi_hi64(a, b)       _mm256_unpackhi_epi64(a, b)
#define vi_order32(v, n)    _mm256_shuffle_epi32(v, n)
#define vi_bytes(v, index)  _mm256_shuffle_epi8(v, index)
#define vi_zero()           _mm256_setzero_si256()
#define vi_all8(x)          _mm256_set1_epi8(x)
#define vi_all32(x)         _mm256_set1_epi32(x)

/* Four dwords in every group of 16 bytes. */
#define vi_group(a, b, c, d) _mm256_broadcastsi128_si256(_mm_setr_epi32(a, b, c, d))

V_INLINE vi vi_load(const void *p)
{
    return _mm256_load_si256(p);
}

/* 16 bytes to every group; one dword to every lane. */
V_INLINE vi vi_cast128(const void *p)
{
    return _mm256_broadcastsi128_si256(_mm_loadu_si128(p));
}

V_INLINE vi vi_cast32(const int32_t *p)
{
    return _mm256_set1_epi32(*p);
}

/* 16 in every byte of v that has one of the bits. */
V_INLINE vi vi_bit4(vi v, vi bits)
{
    vi clear = _mm256_cmpeq_epi8(_mm256_and_si256(v, bits), _mm256_setzero_si256());
    return _mm256_andnot_si256(clear, _mm256_set1_epi8(16));
}

/* Bits 2i and 2i + 1 of every byte, moved to bits 4 and 5. Shifts are slow on some processors, shuffles on
 * none. */
V_INLINE vi vi_upper2(vi v, int i)
{
    const vi first = vi_all32(0x30201000), second = vi_group(0, 0x10101010, 0x20202020, 0x30303030);
    if (i < 2) return vi_bytes(i == 0 ? first : second, vi_and(v, vi_all8(15)));
    return vi_and(i == 2 ? v : vi_srl16(v, 2), vi_all8(0x30));
}

/* 16 bytes of rows 0 and 4, `stride` bytes apart. */
V_INLINE vi vi_rows16(const uint8_t *p, size_t stride)
{
    vi v = _mm256_castsi128_si256(_mm_loadu_si128((const void *)p));
    return _mm256_inserti128_si256(v, _mm_loadu_si128((const void *)(p + 4 * stride)), 1);
}

/* A half float of every row; a dword of every row. */
V_INLINE vf vf_half_rows(const uint8_t *p, size_t stride)
{
    return _mm256_cvtph_ps(v_half8(p, stride));
}

V_INLINE vi vi_dword_rows(const uint8_t *p, size_t stride)
{
    return _mm256_set_m128i(v_dword4(p + 4 * stride, stride), v_dword4(p, stride));
}

/* The half floats in the lower (upper) 16 bits of the lanes. */
V_INLINE vi v_split16(vi v)
{
    vi lower = _mm256_and_si256(v, _mm256_set1_epi32(0xffff));
    return _mm256_permute4x64_epi64(_mm256_packus_epi32(lower, _mm256_srli_epi32(v, 16)), 0xd8);
}

V_INLINE vf vf_half_lower(vi v)
{
    return _mm256_cvtph_ps(_mm256_castsi256_si128(v_split16(v)));
}

V_INLINE vf vf_half_upper(vi v)
{
    return _mm256_cvtph_ps(_mm256_extracti128_si256(v_split16(v), 1));
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

/* A sub-scale per lane, byte j of it (0..3; no sign), in the form v_dots_scaled takes: twice in 16 bits. */
V_INLINE vi vi_scale_byte(vi v, int j)
{
    return vi_lane_bytes(v, (int)0x80008000u + j * 0x00010001);
}

/* The same with a sign. */
V_INLINE vi vi_scale_signed(vi v, int j)
{
    return _mm256_srai_epi16(vi_lane_bytes(v, 0x00800080 + j * 0x01000100), 8);
}

/* Weights of 4, 5, 6 bits: so many products of two pairs fit 16 bits: 8 * 2 * 15 * 127, 4 * 2 * 31 * 127, and
 * 2 * 2 * 63 * 127 are below 32768. Weights of 8 bits have a sign, which goes over to the activation:
 * 2 * 128 * 127 fits. */
V_INLINE int v_products(int bits)
{
    return bits == 4 ? 8 : bits == 5 ? 4 : bits == 6 ? 2 : 1;
}

V_INLINE vi v_product(int bits, vi w, vi q)
{
    return bits == 8 ? _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(q, w))
                     : _mm256_maddubs_epi16(w, q);
}

/* sum[t] += c * (products of n vectors of weights with n entries of all nt tokens of a
 * tile). */
V_INLINE void v_dots_scaled(int nt, int bits, int n, const vi *w, const int32_t *q, vi c, vi *sum)
{
    int chain = v_products(bits);
    V_UNROLL for (int i = 0; i < n; i += chain)
    {
        vi s[CPU_TILE_SMALL];
        V_UNROLL for (int j = i; j < i + chain; j++)
        {
            V_UNROLL for (int t = 0; t < nt; t++)
            {
                vi x = v_product(bits, w[j], vi_cast32(q + j * nt + t));
                s[t] = j > i ? vi_add16(s[t], x) : x;
                if (chain > 2) V_PIN(s[t]);
            }
        }
        V_UNROLL for (int t = 0; t < nt; t++) sum[t] = vi_add32(sum[t], vi_madd16(s[t], c));
    }
}

/* Q6_K: the sub-scales of a block of 32, bytes 2j and 2j + 1 of every lane, doubled, as a pair. */
enum { K6_PAIRS = 2 };

V_INLINE vi vi_scale_pair(vi v, int j)
{
    return _mm256_srai_epi16(vi_lane_bytes(v, 0x01800080 + j * 0x02000200), 7);
}

/* Q6_K: sum[t] = the scaled products of both halves of a block of 32, offset included. scale: of the halves;
 * pair: both; tile: at the first of nt tokens. */
V_INLINE void v_dots_q6(int nt, const vi *w0, const vi *w1, const vi *scale, const vi *pair,
                        const int32_t *tile, vi *sum)
{
    V_UNROLL for (int t = 0; t < nt; t++) sum[t] = vi_madd16(vi_cast32(tile + ACT_PAIR * nt + t), *pair);
    v_dots_scaled(nt, 6, 4, w0, tile + ACT_Q * nt, scale[0], sum);
    v_dots_scaled(nt, 6, 4, w1, tile + (ACT_Q + 4) * nt, scale[1], sum);
}

/* sum[r * nt + t] += the products without a scale, for the block of 32 of `panels` panels. */
V_INLINE void v_dots32(int panels, int nt, int bits, const vi *const *w, const int32_t *q, vi *sum)
{
    V_UNROLL for (int r = 0; r < panels; r++)
        v_dots_scaled(nt, bits, 8, w[r], q, _mm256_set1_epi16(1), sum + r * nt);
}

/* Per lane: the products of 2 x 4 bytes; with a sign. */
V_INLINE vi v_dot2(vi w0, vi q0, vi w1, vi q1)
{
    vi s = vi_add16(_mm256_maddubs_epi16(w0, q0), _mm256_maddubs_epi16(w1, q1));
    return vi_madd16(s, _mm256_set1_epi16(1));
}

V_INLINE vi v_dot2_signed(vi w0, vi q0, vi w1, vi q1)
{
    vi one = _mm256_set1_epi16(1);
    return vi_add32(vi_madd16(v_product(8, w0, q0), one), vi_madd16(v_product(8, w1, q1), one));
}

/* Bytes with a sign in the form v_dots32 and v_dot2_signed take them. */
#define vi_signed8(v) (v)

/* ---- floats */

#define vf_zero()        _mm256_setzero_ps()
#define vf_mul(a, b)     _mm256_mul_ps(a, b)
#define vf_fma(a, b, c)  _mm256_fmadd_ps(a, b, c)
#define vf_fnma(a, b, c) _mm256_fnmadd_ps(a, b, c)
#define vf_from(v)       _mm256_cvtepi32_ps(v)
#define vf_bits(v)       _mm256_castps_si256(v)
#define vi_bits(v)       _mm256_castsi256_ps(v)

V_INLINE vf vf_cast(const void *p)
{
    return _mm256_set1_ps(*(const float *)p);
}

V_INLINE vf vf_load(const float *p)
{
    return _mm256_loadu_ps(p);
}

V_INLINE void vf_store(float *p, vf v)
{
    _mm256_storeu_ps(p, v);
}

V_INLINE vf vf_load_f16(const void *p)
{
    return _mm256_cvtph_ps(_mm_loadu_si128(p));
}

V_INLINE vf vf_load_bf16(const void *p)
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128(p)), 16));
}

/* Bit i of lanes stands for lane i. */
V_INLINE __m256i v_mask(uint32_t lanes)
{
    __m256i bit = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    return _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_set1_epi32((int)lanes), bit), bit);
}

V_INLINE vf vf_load_lanes(const float *p, uint32_t lanes)
{
    return lanes == 0xff ? _mm256_loadu_ps(p) : _mm256_maskload_ps(p, v_mask(lanes));
}

V_INLINE void vf_store_lanes(float *p, uint32_t lanes, vf v)
{
    if (lanes == 0xff)
        _mm256_storeu_ps(p, v);
    else
        _mm256_maskstore_ps(p, v_mask(lanes), v);
}

/* b in the lanes named, a in the others. */
V_INLINE vf vf_choose(uint32_t lanes, vf a, vf b)
{
    return _mm256_blendv_ps(a, b, _mm256_castsi256_ps(v_mask(lanes)));
}

/* tree16 of docs/numerics.md over 16 / V_LANES vectors. */
V_INLINE float vf_tree16(const vf *v)
{
    vf a = _mm256_add_ps(v[0], _mm256_permute_ps(v[0], 0x4e)),
       b = _mm256_add_ps(v[1], _mm256_permute_ps(v[1], 0x4e));
    a = _mm256_add_ps(a, _mm256_permute_ps(a, 0xb1));
    b = _mm256_add_ps(b, _mm256_permute_ps(b, 0xb1));
    __m128 low = _mm_add_ss(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    return _mm_cvtss_f32(_mm_add_ss(low, _mm_add_ss(_mm256_castps256_ps128(b), _mm256_extractf128_ps(b, 1))));
}

#endif
