/* Eight floats in an AVX2 register: the operations that rows.inc, attn.inc and attn_block.inc are written in.
 * Included by AVX2 files only. */
#ifndef MF_BACKENDS_CPU_X86_VEC8_H
#define MF_BACKENDS_CPU_X86_VEC8_H

#include "backends/cpu/simd/inline.h"

#include <immintrin.h>

typedef __m256 vec;
enum {
    VL = 8,
    V_SUMS = 8, /* of attn_block.inc in flight */
};

VEC_INLINE void v_prefetch(uintptr_t p)
{
    _mm_prefetch((const char *)p, _MM_HINT_T0); /* this tier is faster when the next cells are in L1 */
}

VEC_INLINE vec v_set(float f)
{
    return _mm256_set1_ps(f);
}

VEC_INLINE vec v_load(const float *p)
{
    return _mm256_loadu_ps(p);
}

VEC_INLINE void v_store(float *p, vec v)
{
    _mm256_storeu_ps(p, v);
}

VEC_INLINE vec v_load_f16(const void *p)
{
    return _mm256_cvtph_ps(_mm_loadu_si128(p));
}

/* int8 to float */
VEC_INLINE vec v_load_i8(const void *p)
{
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(p)));
}

VEC_INLINE vec v_add(vec a, vec b)
{
    return _mm256_add_ps(a, b);
}

VEC_INLINE vec v_sub(vec a, vec b)
{
    return _mm256_sub_ps(a, b);
}

VEC_INLINE vec v_mul(vec a, vec b)
{
    return _mm256_mul_ps(a, b);
}

VEC_INLINE vec v_div(vec a, vec b)
{
    return _mm256_div_ps(a, b);
}

VEC_INLINE vec v_fma(vec a, vec b, vec c)
{
    return _mm256_fmadd_ps(a, b, c);
}

/* a > b ? a : b */
VEC_INLINE vec v_max(vec a, vec b)
{
    return _mm256_max_ps(a, b);
}

VEC_INLINE vec v_rint(vec a)
{
    return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

VEC_INLINE vec v_minus_abs(vec a)
{
    return _mm256_or_ps(a, _mm256_set1_ps(-0.f));
}

/* a < b ? x : y */
VEC_INLINE vec v_if_less(vec a, vec b, vec x, vec y)
{
    return _mm256_blendv_ps(y, x, _mm256_cmp_ps(a, b, _CMP_LT_OQ));
}

/* p * 2^n through the exponent field, n integral. */
VEC_INLINE vec v_scale2(vec p, vec n)
{
    __m256i e = _mm256_slli_epi32(_mm256_cvtps_epi32(n), 23);
    return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(p), e));
}

#include "backends/cpu/x86/quad.h"

/* Of four vectors c, each with groups of four lanes g: (g0 + g2) + (g1 + g3) in every group, then group 0 +
 * group 1. Element i of the result belongs to c[i]. */
VEC_INLINE quad v_fold4(const vec c[4])
{
    __m256 a = _mm256_add_ps(_mm256_unpacklo_ps(c[0], c[1]), _mm256_unpackhi_ps(c[0], c[1]));
    __m256 b = _mm256_add_ps(_mm256_unpacklo_ps(c[2], c[3]), _mm256_unpackhi_ps(c[2], c[3]));
    __m256 r = _mm256_add_ps(_mm256_shuffle_ps(a, b, 0x44), _mm256_shuffle_ps(a, b, 0xee));
    return _mm_add_ps(_mm256_castps256_ps128(r), _mm256_extractf128_ps(r, 1));
}

#endif
