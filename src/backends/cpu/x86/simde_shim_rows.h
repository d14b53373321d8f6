/* AVX-512 on SIMDe, for tests on processors without it: what SIMDe 0.7.4 lacks of the operations in vec16.h.
 */
#ifndef MF_BACKENDS_CPU_X86_SIMDE_SHIM_ROWS_H
#define MF_BACKENDS_CPU_X86_SIMDE_SHIM_ROWS_H

#define SIMDE_ENABLE_NATIVE_ALIASES
#include <simde/x86/avx512.h>
#include <simde/x86/f16c.h>

static inline __m512 mf_emulated_cvtph_ps(__m256i h)
{
    __m512 low = _mm512_castps256_ps512(_mm256_cvtph_ps(_mm256_castsi256_si128(h)));
    return _mm512_insertf32x8(low, _mm256_cvtph_ps(_mm256_extracti128_si256(h, 1)), 1);
}

static inline __m512i mf_emulated_cvtps_epi32(__m512 a)
{
    simde__m512_private x = simde__m512_to_private(a);
    simde__m512i_private r;
    for (int i = 0; i < 2; i++) r.m256i[i] = _mm256_cvtps_epi32(x.m256[i]);
    return simde__m512i_from_private(r);
}

#define _mm512_cvtph_ps(h)    mf_emulated_cvtph_ps(h)
#define _mm512_cvtps_epi32(a) mf_emulated_cvtps_epi32(a)

#endif
