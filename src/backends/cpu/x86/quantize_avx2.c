/* Quantizing activations on AVX2. Scalar twin: ref/quantize.c. Test: tests/cpu/test_matmul.c. */
#include "backends/cpu/act.h"
#include "backends/cpu/simd/simd.h"
#include "base/half.h"

#include <immintrin.h>

V_INLINE uint32_t max_lane(__m256i v)
{
    __m128i m = _mm_max_epu32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    m = _mm_max_epu32(m, _mm_shuffle_epi32(m, 0x4e));
    m = _mm_max_epu32(m, _mm_shuffle_epi32(m, 0xb1));
    return (uint32_t)_mm_cvtsi128_si32(m);
}

/* Sum of 16 int8. */
V_INLINE int32_t sum16(__m128i q)
{
    __m128i s = _mm_madd_epi16(_mm_maddubs_epi16(_mm_set1_epi8(1), q), _mm_set1_epi16(1));
    s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0x4e));
    return _mm_cvtsi128_si32(_mm_add_epi32(s, _mm_shuffle_epi32(s, 0xb1)));
}

static void quantize_block(const cpu_act *a, const float *x, int32_t t, int32_t b)
{
    int8_t *q = a->q + (size_t)t * (size_t)a->k + (size_t)b * 32;
    __m256i bits = _mm256_setzero_si256(), word[4];
    for (int i = 0; i < 4; i++)
        bits = _mm256_max_epu32(bits, _mm256_and_si256(_mm256_castps_si256(_mm256_loadu_ps(x + 8 * i)),
                                                       _mm256_set1_epi32(0x7fffffff)));
    uint32_t max = max_lane(bits);
    float amax = mf_bits_f32(max);
    bool finite = max < 0x7f800000;
    if (!finite || amax < 0x1p-118f) {
        memset(q, 0, 32);
        cpu_act_put(a, t, b, finite ? 0 : NAN, 0, 0);
        return;
    }
    __m256 inv = _mm256_set1_ps(127 / amax);
    for (int i = 0; i < 4; i++) word[i] = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x + 8 * i), inv));
    __m256i packed = _mm256_packs_epi16(_mm256_packs_epi32(word[0], word[1]),
                                        _mm256_packs_epi32(word[2], word[3]));
    packed = _mm256_permutevar8x32_epi32(packed, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
    _mm256_storeu_si256((void *)q, packed);
    cpu_act_put(a, t, b, amax / 127, sum16(_mm256_castsi256_si128(packed)),
                sum16(_mm256_extracti128_si256(packed, 1)));
}

void cpu_quantize_avx2(const cpu_act *a, const float *x, size_t ldx, int32_t t0, int32_t t1, int32_t b0,
                       int32_t b1)
{
    for (int32_t t = t0; t < t1; t++)
        for (int32_t b = b0; b < b1; b++) quantize_block(a, x + (size_t)t * ldx + (size_t)b * 32, t, b);
}
