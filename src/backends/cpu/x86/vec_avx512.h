/* The words of the kernel templates for AVX-512 (F, BW, VL, DQ, VNNI): vectors of 16 lanes. vec_avx2.h has
 * the same words for 8 lanes. With MINFER_EMULATE_AVX512 they run on AVX2 through SIMDe. */
#ifndef MF_BACKENDS_CPU_X86_VEC_AVX512_H
#define MF_BACKENDS_CPU_X86_VEC_AVX512_H

#include "backends/cpu/act.h"
#include "backends/cpu/simd/simd.h"

#ifdef MINFER_EMULATE_AVX512
#include "backends/cpu/x86/simde_shim.h"
#define V_PIN(v) (void)(v)
#else
#include <immintrin.h>
/* Keeps v in a register: compilers prefer to broadcast it from memory for every use. */
#define V_PIN(v) __asm__("" : "+v"(v))
#endif

#include "backends/cpu/x86/gather.h"

typedef __m512i vi;
typedef __m512 vf;
enum {
    V_LANES = 16,
    V_BYTES = 64,
    V_VNNI = 1,   /* dot products stay in 32 bits; bytes with a sign are shifted by 128 */
    V_PANELS = 2, /* panels of 32-blocks multiplied together: one broadcast serves two products */
    V_UNIT_BYTES = CPU_SCRATCH / 4, /* unpacked panels that stay in the second-level cache */
};

/* ---- integers */

#define vi_and(a, b)        _mm512_and_si512(a, b)
#define vi_or(a, b)         _mm512_or_si512(a, b)
#define vi_add32(a, b)      _mm512_add_epi32(a, b)
#define vi_mul32(a, b)      _mm512_mullo_epi32(a, b)
#define vi_madd16(a, b)     _mm512_madd_epi16(a, b)
#define vi_sll16(v, n)      _mm512_slli_epi16(v, (unsigned)(n))
#define vi_srl16(v, n)      _mm512_srli_epi16(v, (unsigned)(n))
#define vi_sll32(v, n)      _mm512_slli_epi32(v, (unsigned)(n))
#define vi_srl32(v, n)      _mm512_srli_epi32(v, (unsigned)(n))
#define vi_sra32(v, n)      _mm512_srai_epi32(v, (unsigned)(n))
#define vi_srl32_each(v, n) _mm512_srlv_epi32(v, n)
#define vi_srl32_all(v, n)  _mm512_srl_epi32(v, _mm_cvtsi32_si128(n))
#define vi_lo32(a, b)       _mm512_unpacklo_epi32(a, b)
#define vi_hi32(a, b)       _mm512_unpackhi_epi32(a, b)
#define vi_lo64(a, b)       _mm512_unpacklo_epi64(a, b)
#define vi_hi64(a, b)       _mm512_unpackhi_epi64(a, b)
#define vi_order32(v, n)    _mm512_shuffle_epi32(v, (_MM_PERM_ENUM)(n))
#define vi_bytes(v, index)  _mm512_shuffle_epi8(v, index)
#define vi_zero()           _mm512_setzero_si512()
#define vi_all8(x)          _mm512_set1_epi8(x)
#define vi_all32(x)         _mm512_set1_epi32(x)

/* Four dwords in every group of 16 bytes. */
#define vi_group(a, b, c, d) _mm512_broadcast_i32x4(_mm_setr_epi32(a, b, c, d))

V_INLINE vi vi_load(const void *p)
{
    return _mm512_load_si512(p);
}

/* 16 bytes to every group; one dword to every lane. */
V_INLINE vi vi_cast128(const void *p)
{
    return _mm512_broadcast_i32x4(_mm_loadu_si128(p));
}

V_INLINE vi vi_cast32(const int32_t *p)
{
    return _mm512_set1_epi32(*p);
}

/* 16 in every byte of v that has one of the bits. */
V_INLINE vi vi_bit4(vi v, vi bits)
{
    return _mm512_maskz_set1_epi8(_mm512_test_epi8_mask(v, bits), 16);
}

/* Bits 2i and 2i + 1 of every byte, moved to bits 4 and 5. */
V_INLINE vi vi_upper2(vi v, int i)
{
    return vi_and(i == 0   ? vi_sll16(v, 4)
                  : i == 1 ? vi_sll16(v, 2)
                  : i == 2 ? v
                           : vi_srl16(v, 2),
                  vi_all8(0x30));
}

/* 16 bytes of rows 0, 4, 8 and 12, `stride` bytes apart. */
V_INLINE vi vi_rows16(const uint8_t *p, size_t stride)
{
    vi v = _mm512_castsi128_si512(_mm_loadu_si128((const void *)p));
    v = _mm512_inserti32x4(v, _mm_loadu_si128((const void *)(p + 4 * stride)), 1);
    v = _mm512_inserti32x4(v, _mm_loadu_si128((const void *)(p + 8 * stride)), 2);
    return _mm512_inserti32x4(v, _mm_loadu_si128((const void *)(p + 12 * stride)), 3);
}

/* A half float of every row; a dword of every row. */
V_INLINE vf vf_half_rows(const uint8_t *p, size_t stride)
{
    return _mm512_cvtph_ps(_mm256_set_m128i(v_half8(p + 8 * stride, stride), v_half8(p, stride)));
}

V_INLINE vi vi_dword_rows(const uint8_t *p, size_t stride)
{
    vi v = _mm512_castsi128_si512(v_dword4(p, stride));
    v = _mm512_inserti32x4(v, v_dword4(p + 4 * stride, stride), 1);
    v = _mm512_inserti32x4(v, v_dword4(p + 8 * stride, stride), 2);
    return _mm512_inserti32x4(v, v_dword4(p + 12 * stride, stride), 3);
}

/* The half floats in the lower (upper) 16 bits of the lanes. */
V_INLINE vf vf_half_lower(vi v)
{
    return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(v));
}

V_INLINE vf vf_half_upper(vi v)
{
    return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(_mm512_srli_epi32(v, 16)));
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
    return vi_sra32(vi_lane_bytes(v, 0x00808080 + j * 0x01000000), 24);
}

/* sum[t] += c * (start[t] + products of n vectors of weights with n entries of all nt tokens of a
 * tile); start may be NULL. */
V_INLINE void v_dots_from(int nt, int n, const vi *w, const int32_t *q, vi c, const int32_t *start, vi *sum)
{
    vi s[CPU_TILE_SMALL];
    V_UNROLL for (int t = 0; t < nt; t++) s[t] = start ? vi_cast32(start + t) : vi_zero();
    V_UNROLL for (int i = 0; i < n; i++)
    {
        vi v = w[i];
        V_UNROLL for (int t = 0; t < nt; t++) s[t] = _mm512_dpbusd_epi32(s[t], v, vi_cast32(q + i * nt + t));
    }
    V_UNROLL for (int t = 0; t < nt; t++) sum[t] = vi_add32(sum[t], vi_mul32(s[t], c));
}

V_INLINE void v_dots_scaled(int nt, int bits, int n, const vi *w, const int32_t *q, vi c, vi *sum)
{
    (void)bits;
    v_dots_from(nt, n, w, q, c, NULL, sum);
}

/* Q6_K: sum[t] = the scaled products of both halves of a block of 32, offset included. scale: of the halves;
 * tile: at the first of nt tokens. */
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
    V_UNROLL for (int i = 0; i < 8; i++)
    {
        vi v[V_PANELS];
        V_UNROLL for (int r = 0; r < panels; r++) v[r] = w[r][i];
        V_UNROLL for (int t = 0; t < nt; t++)
        {
            vi x = vi_cast32(q + i * nt + t);
            if (panels > 1) V_PIN(x);
            V_UNROLL for (int r = 0; r < panels; r++)
                sum[r * nt + t] = _mm512_dpbusd_epi32(sum[r * nt + t], v[r], x);
        }
    }
}

/* Per lane: the products of 2 x 4 bytes; with a sign. */
V_INLINE vi v_dot2(vi w0, vi q0, vi w1, vi q1)
{
    return _mm512_dpbusd_epi32(_mm512_dpbusd_epi32(vi_zero(), w0, q0), w1, q1);
}

#define v_dot2_signed(w0, q0, w1, q1) v_dot2(w0, q0, w1, q1)

/* Bytes with a sign in the form v_dots32 and v_dot2_signed take them: plus 128, which ACT_Z takes back. */
#define vi_signed8(v) _mm512_xor_si512(v, _mm512_set1_epi8((char)0x80))

/* ---- floats */

#define vf_zero()        _mm512_setzero_ps()
#define vf_mul(a, b)     _mm512_mul_ps(a, b)
#define vf_fma(a, b, c)  _mm512_fmadd_ps(a, b, c)
#define vf_fnma(a, b, c) _mm512_fnmadd_ps(a, b, c)
#define vf_from(v)       _mm512_cvtepi32_ps(v)
#define vf_bits(v)       _mm512_castps_si512(v)
#define vi_bits(v)       _mm512_castsi512_ps(v)

V_INLINE vf vf_cast(const void *p)
{
    return _mm512_set1_ps(*(const float *)p);
}

V_INLINE vf vf_load(const float *p)
{
    return _mm512_loadu_ps(p);
}

V_INLINE void vf_store(float *p, vf v)
{
    _mm512_storeu_ps(p, v);
}

V_INLINE vf vf_load_f16(const void *p)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256(p));
}

V_INLINE vf vf_load_bf16(const void *p)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256(p)), 16));
}

/* Bit i of lanes stands for lane i. */
V_INLINE vf vf_load_lanes(const float *p, uint32_t lanes)
{
    return _mm512_maskz_loadu_ps((__mmask16)lanes, p);
}

V_INLINE void vf_store_lanes(float *p, uint32_t lanes, vf v)
{
    _mm512_mask_storeu_ps(p, (__mmask16)lanes, v);
}

/* b in the lanes named, a in the others. */
V_INLINE vf vf_choose(uint32_t lanes, vf a, vf b)
{
    return _mm512_mask_mov_ps(a, (__mmask16)lanes, b);
}

/* tree16 of docs/numerics.md over 16 / V_LANES vectors. */
V_INLINE float vf_tree16(const vf *v)
{
    vf a = _mm512_add_ps(v[0], _mm512_shuffle_ps(v[0], v[0], 0x4e));
    a = _mm512_add_ps(a, _mm512_shuffle_ps(a, a, 0xb1));
    vi upper = _mm512_shuffle_i32x4(vf_bits(a), vf_bits(a), 0x4e);
    __m256 low = _mm512_castps512_ps256(a), high = _mm512_castps512_ps256(vi_bits(upper));
    low = _mm256_add_ps(low, _mm256_permute2f128_ps(low, low, 1));
    high = _mm256_add_ps(high, _mm256_permute2f128_ps(high, high, 1));
    return _mm256_cvtss_f32(_mm256_add_ps(low, high));
}

#endif
