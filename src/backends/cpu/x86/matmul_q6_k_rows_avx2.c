/* One token of Q6_K on AVX2: matmul_q6_k_rows.inc with sums made for this tier. */
#include "backends/cpu/x86/vec_avx2.h"

#include "backends/cpu/simd/panel.inc"

/* As they lie. */
static const uint8_t q6_order[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

V_INLINE int q6_chain(int j)
{
    return j;
}

/* Four blocks of 32 (half h of a block at p), times their activations, times their sub-scales, which are 8
 * int16 in each group of `scale`. */
V_INLINE void q6_half(const uint8_t *p, const int8_t *q, int h, vi scale, vi *v)
{
    const vi first = _mm256_setr_epi64x(0x0100010001000100, 0x0100010001000100, 0x0302030203020302,
                                        0x0302030203020302);
    vi low = _mm256_loadu_si256((const void *)(p + 64 * h)),
       high = _mm256_loadu_si256((const void *)(p + 64 * h + 32));
    vi bits = _mm256_loadu_si256((const void *)(p + 128 + 32 * h)), w[4];
    w[0] = vi_or(nibble_low(low), vi_upper2(bits, 0));
    w[1] = vi_or(nibble_low(high), vi_upper2(bits, 1));
    w[2] = vi_or(nibble_high(low), vi_upper2(bits, 2));
    w[3] = vi_or(nibble_high(high), vi_upper2(bits, 3));
    V_UNROLL for (int i = 0; i < 4; i++)
    {
        vi x = _mm256_maddubs_epi16(w[i], _mm256_loadu_si256((const void *)(q + 128 * h + 32 * i)));
        v[i] = vi_madd16(x, vi_bytes(scale, _mm256_add_epi8(first, vi_all8((char)(4 * i)))));
    }
}

/* The lower 128 bits of v plus the upper. */
V_INLINE __m128i fold(vi v)
{
    return _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
}

/* half[0]: the first four blocks of 32. */
V_INLINE void q6_sums(const uint8_t *p, const int8_t *q, const int16_t *offset, __m128i *half)
{
    __m256i scale = _mm256_cvtepi8_epi16(_mm_loadu_si128((const void *)(p + 192)));
    __m256i z = _mm256_slli_epi32(vi_madd16(scale, _mm256_loadu_si256((const void *)offset)), 1);
    vi v[4];
    q6_half(p, q, 0, _mm256_broadcastsi128_si256(_mm256_castsi256_si128(scale)), v);
    half[0] = _mm_add_epi32(fold(tree4(v)), _mm256_castsi256_si128(z));
    q6_half(p, q, 1, _mm256_broadcastsi128_si256(_mm256_extracti128_si256(scale, 1)), v);
    half[1] = _mm_add_epi32(fold(tree4(v)), _mm256_extracti128_si256(z, 1));
}

#include "backends/cpu/x86/matmul_q6_k_rows.inc"

void cpu_matmul_q6_k_rows_avx2(const cpu_matmul *m, int32_t r0, int32_t r1)
{
    q6_rows(m, r0, r1);
}
