/* The AVX-512 intrinsics the kernels use, on SIMDe, with what SIMDe 0.7.4 lacks written here on AVX2. For the
 * emulated tier only (MINFER_EMULATE_AVX512): it has the bits of a processor with AVX-512, not the speed. */
#ifndef MF_BACKENDS_CPU_X86_SIMDE_SHIM_H
#define MF_BACKENDS_CPU_X86_SIMDE_SHIM_H

#define SIMDE_ENABLE_NATIVE_ALIASES
#include <immintrin.h>
#include <simde/x86/avx512.h>

#define SHIM static inline __attribute__((always_inline))

SHIM __m256i shim_half(__m512i v, int i)
{
    return simde__m512i_to_private(v).m256i[i];
}

SHIM __m512i shim_join(__m256i low, __m256i high)
{
    simde__m512i_private p;
    p.m256i[0] = low;
    p.m256i[1] = high;
    return simde__m512i_from_private(p);
}

SHIM __m512 shim_join_ps(__m256 low, __m256 high)
{
    return simde_mm512_castsi512_ps(shim_join(_mm256_castps_si256(low), _mm256_castps_si256(high)));
}

SHIM __m512i shim_madd_epi16(__m512i a, __m512i b)
{
    return shim_join(_mm256_madd_epi16(shim_half(a, 0), shim_half(b, 0)),
                     _mm256_madd_epi16(shim_half(a, 1), shim_half(b, 1)));
}

/* Four products a lane in 32 bits: even and odd bytes apart, since a sum of two may not fit 16 bits. */
SHIM __m256i shim_dpbusd_half(__m256i acc, __m256i u, __m256i s)
{
    __m256i even = _mm256_madd_epi16(_mm256_and_si256(u, _mm256_set1_epi16(255)),
                                     _mm256_srai_epi16(_mm256_slli_epi16(s, 8), 8));
    __m256i odd = _mm256_madd_epi16(_mm256_srli_epi16(u, 8), _mm256_srai_epi16(s, 8));
    return _mm256_add_epi32(acc, _mm256_add_epi32(even, odd));
}

SHIM __m512i shim_dpbusd_epi32(__m512i acc, __m512i u, __m512i s)
{
    return shim_join(shim_dpbusd_half(shim_half(acc, 0), shim_half(u, 0), shim_half(s, 0)),
                     shim_dpbusd_half(shim_half(acc, 1), shim_half(u, 1), shim_half(s, 1)));
}

SHIM __m512 shim_cvtph_ps(__m256i v)
{
    return shim_join_ps(_mm256_cvtph_ps(_mm256_castsi256_si128(v)),
                        _mm256_cvtph_ps(_mm256_extracti128_si256(v, 1)));
}

SHIM __m512i shim_cvtps_epi32(__m512 a)
{
    simde__m512_private p = simde__m512_to_private(a);
    return shim_join(_mm256_cvtps_epi32(p.m256[0]), _mm256_cvtps_epi32(p.m256[1]));
}

SHIM __m512 shim_cvtepi32_ps(__m512i v)
{
    return shim_join_ps(_mm256_cvtepi32_ps(shim_half(v, 0)), _mm256_cvtepi32_ps(shim_half(v, 1)));
}

SHIM __m512i shim_cvtepu16_epi32(__m256i v)
{
    return shim_join(_mm256_cvtepu16_epi32(_mm256_castsi256_si128(v)),
                     _mm256_cvtepu16_epi32(_mm256_extracti128_si256(v, 1)));
}

SHIM __m512i shim_cvtepi8_epi32(__m128i v)
{
    return shim_join(_mm256_cvtepi8_epi32(v), _mm256_cvtepi8_epi32(_mm_unpackhi_epi64(v, v)));
}

/* Truncates. */
SHIM __m256i shim_cvtepi32_epi16(__m512i v)
{
    __m256i low = _mm256_and_si256(shim_half(v, 0), _mm256_set1_epi32(0xffff));
    __m256i high = _mm256_and_si256(shim_half(v, 1), _mm256_set1_epi32(0xffff));
    return _mm256_permute4x64_epi64(_mm256_packus_epi32(low, high), 0xd8);
}

SHIM __m256i shim_lanes(uint32_t mask, int half)
{
    __m256i bit = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    return _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_set1_epi32((int)(mask >> (8 * half))), bit), bit);
}

SHIM __m512 shim_maskz_loadu_ps(uint32_t mask, const float *p)
{
    return shim_join_ps(_mm256_maskload_ps(p, shim_lanes(mask, 0)),
                        _mm256_maskload_ps(p + 8, shim_lanes(mask, 1)));
}

SHIM void shim_mask_storeu_ps(float *p, uint32_t mask, __m512 v)
{
    __m512i bits = simde_mm512_castps_si512(v);
    _mm256_maskstore_ps(p, shim_lanes(mask, 0), _mm256_castsi256_ps(shim_half(bits, 0)));
    _mm256_maskstore_ps(p + 8, shim_lanes(mask, 1), _mm256_castsi256_ps(shim_half(bits, 1)));
}

/* Compilers have some of them as macros. */
#undef _mm512_madd_epi16
#undef _mm512_dpbusd_epi32
#undef _mm512_cvtph_ps
#undef _mm512_cvtepi32_ps
#undef _mm512_cvtepu16_epi32
#undef _mm512_cvtepi8_epi32
#undef _mm512_cvtepi32_epi16
#undef _mm512_maskz_loadu_ps
#undef _mm512_mask_storeu_ps
#undef _mm512_shuffle_epi32
#undef _mm512_srai_epi32
#define _mm512_madd_epi16(a, b)        shim_madd_epi16(a, b)
#define _mm512_dpbusd_epi32(acc, u, s) shim_dpbusd_epi32(acc, u, s)
#define _mm512_cvtph_ps(v)             shim_cvtph_ps(v)
#define _mm512_cvtepi32_ps(v)          shim_cvtepi32_ps(v)
#define _mm512_cvtps_epi32(v)          shim_cvtps_epi32(v)
#define _mm512_cvtepu16_epi32(v)       shim_cvtepu16_epi32(v)
#define _mm512_cvtepi8_epi32(v)        shim_cvtepi8_epi32(v)
#define _mm512_cvtepi32_epi16(v)       shim_cvtepi32_epi16(v)
#define _mm512_maskz_loadu_ps(mask, p) shim_maskz_loadu_ps(mask, p)
#define _mm512_mask_storeu_ps(p, m, v) shim_mask_storeu_ps(p, m, v)

/* With counts and patterns known when compiled. */
#define SHIM_EACH(f, v, n)         shim_join(f(shim_half(v, 0), n), f(shim_half(v, 1), n))
#define _mm512_shuffle_epi32(v, n) SHIM_EACH(_mm256_shuffle_epi32, v, n)
#define _mm512_srai_epi32(v, n)    SHIM_EACH(_mm256_srai_epi32, v, n)

#endif
