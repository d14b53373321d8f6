/* 16-byte vectors gathered from rows: for vec_avx2.h and vec_avx512.h, after their intrinsics. */
#ifndef MF_BACKENDS_CPU_X86_GATHER_H
#define MF_BACKENDS_CPU_X86_GATHER_H

#include "backends/cpu/simd/simd.h"
#include "base/bytes.h"

/* The first half float of 8 rows. Four short chains: one after the other, eight insertions take longer than
 * the products that wait for them. */
V_INLINE __m128i v_half2(const uint8_t *p, size_t s)
{
    return _mm_insert_epi16(_mm_insert_epi16(_mm_setzero_si128(), (short)mf_load_u16(p), 0),
                            (short)mf_load_u16(p + s), 1);
}

V_INLINE __m128i v_half8(const uint8_t *p, size_t s)
{
    const uint8_t *p4 = p + 4 * s;
    __m128i a = _mm_unpacklo_epi32(v_half2(p, s), v_half2(p + 2 * s, s));
    return _mm_unpacklo_epi64(a, _mm_unpacklo_epi32(v_half2(p4, s), v_half2(p4 + 2 * s, s)));
}

/* The first dword of 4 rows. */
V_INLINE __m128i v_dword4(const uint8_t *p, size_t s)
{
    __m128i v = _mm_cvtsi32_si128((int)mf_load_u32(p));
    v = _mm_insert_epi32(v, (int)mf_load_u32(p + s), 1);
    v = _mm_insert_epi32(v, (int)mf_load_u32(p + 2 * s), 2);
    return _mm_insert_epi32(v, (int)mf_load_u32(p + 3 * s), 3);
}

#endif
