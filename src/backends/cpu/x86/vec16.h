/* Sixteen floats in an AVX-512 register: the operations that rows.inc, attn.inc and attn_block.inc are
 * written in. Included by AVX-512 files only. With MINFER_EMULATE_AVX512 the same operations run on SIMDe. */
#ifndef MF_BACKENDS_CPU_X86_VEC16_H
#define MF_BACKENDS_CPU_X86_VEC16_H

#include "backends/cpu/simd/inline.h"

#ifdef MINFER_EMULATE_AVX512
#include "backends/cpu/x86/simde_shim.h"
#else
#include <immintrin.h>
#endif

typedef __m512 vec;
enum {
    VL = 16,
    V_SUMS = 8, /* of attn_block.inc in flight */
};

VEC_INLINE void v_prefetch(uintptr_t p)
{
    _mm_prefetch((const char *)p, _MM_HINT_T1);
}

VEC_INLINE vec v_set(float f)
{
    return _mm512_set1_ps(f);
}

VEC_INLINE vec v_load(const float *p)
{
    return _mm512_loadu_ps(p);
}

VEC_INLINE void v_store(float *p, vec v)
{
    _mm512_storeu_ps(p, v);
}

VEC_INLINE vec v_load_f16(const void *p)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256(p));
}

/* int8 to float */
VEC_INLINE vec v_load_i8(const void *p)
{
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(p)));
}

VEC_INLINE vec v_add(vec a, vec b)
{
    return _mm512_add_ps(a, b);
}

VEC_INLINE vec v_sub(vec a, vec b)
{
    return _mm512_sub_ps(a, b);
}

VEC_INLINE vec v_mul(vec a, vec b)
{
    return _mm512_mul_ps(a, b);
}

VEC_INLINE vec v_div(vec a, vec b)
{
    return _mm512_div_ps(a, b);
}

VEC_INLINE vec v_fma(vec a, vec b, vec c)
{
    return _mm512_fmadd_ps(a, b, c);
}

/* a > b ? a : b */
VEC_INLINE vec v_max(vec a, vec b)
{
    return _mm512_max_ps(a, b);
}

/* Without optimization gcc's intrinsic is a macro that narrows its mask. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-conversion"
VEC_INLINE vec v_rint(vec a)
{
    return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
#pragma GCC diagnostic pop

VEC_INLINE vec v_minus_abs(vec a)
{
    return _mm512_or_ps(a, _mm512_set1_ps(-0.f));
}

/* a < b ? x : y */
VEC_INLINE vec v_if_less(vec a, vec b, vec x, vec y)
{
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, _CMP_LT_OQ), y, x);
}

/* p * 2^n through the exponent field, n integral. */
VEC_INLINE vec v_scale2(vec p, vec n)
{
    __m512i e = _mm512_slli_epi32(_mm512_cvtps_epi32(n), 23);
    return _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(p), e));
}

#include "backends/cpu/x86/quad.h"

/* Of four vectors c, each with groups of four lanes g: (g0 + g2) + (g1 + g3) in every group, then
 * (group 0 + group 1) + (group 2 + group 3). Element i of the result belongs to c[i]. */
VEC_INLINE quad v_fold4(const vec c[4])
{
    __m512 a = _mm512_add_ps(_mm512_unpacklo_ps(c[0], c[1]), _mm512_unpackhi_ps(c[0], c[1]));
    __m512 b = _mm512_add_ps(_mm512_unpacklo_ps(c[2], c[3]), _mm512_unpackhi_ps(c[2], c[3]));
    __m512 r = _mm512_add_ps(_mm512_shuffle_ps(a, b, 0x44), _mm512_shuffle_ps(a, b, 0xee));
    __m128 low = _mm_add_ps(_mm512_castps512_ps128(r), _mm512_extractf32x4_ps(r, 1));
    return _mm_add_ps(low, _mm_add_ps(_mm512_extractf32x4_ps(r, 2), _mm512_extractf32x4_ps(r, 3)));
}

#endif
