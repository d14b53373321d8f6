/* One token of Q6_K on AVX-512: matmul_q6_k_rows.inc with sums made for this tier. */
#include "backends/cpu/x86/vec_avx512.h"

#include "backends/cpu/simd/panel.inc"

/* Sub-scales of even blocks of 32, then those of odd ones. */
static const uint8_t q6_order[16] = {0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15};

V_INLINE int q6_chain(int j)
{
    return j % 2 * 4 + j / 2;
}

/* half[0]: even blocks of 32; half[1]: odd ones. */
V_INLINE void q6_sums(const uint8_t *p, const int8_t *q, const int16_t *offset, __m128i *half)
{
    const __m256i two = _mm256_set1_epi16(2);
    const vi step = _mm512_set1_epi16(2), upper = vi_all8(0x30);
    const vi left = _mm512_inserti64x4(_mm512_set1_epi16(4), two, 1),
             right = _mm512_inserti64x4(vi_zero(), two, 1);
    const int64_t each = 0x0001000100010001;
    vi index = _mm512_setr_epi64(0, 0, each, each, 8 * each, 8 * each, 9 * each, 9 * each);
    __m128i order = _mm_loadu_si128((const void *)q6_order), bytes = _mm_loadu_si128((const void *)(p + 192));
    __m256i scale = _mm256_cvtepi8_epi16(_mm_shuffle_epi8(bytes, order));
    vi wide = _mm512_castsi256_si512(scale), v[4];
    V_UNROLL for (int h = 0; h < 2; h++)
    {
        vi low = _mm512_loadu_si512(p + 64 * h);
        vi high = _mm512_broadcast_i64x4(_mm256_loadu_si256((const void *)(p + 128 + 32 * h)));
        vi w0 = vi_or(nibble_low(low), vi_and(_mm512_sllv_epi16(high, left), upper));
        vi w1 = vi_or(nibble_high(low), vi_and(_mm512_srlv_epi16(high, right), upper));
        vi s0 = _mm512_permutexvar_epi16(index, wide);
        index = _mm512_add_epi16(index, step);
        vi s1 = _mm512_permutexvar_epi16(index, wide);
        index = _mm512_add_epi16(index, step);
        v[2 * h] = vi_madd16(_mm512_maddubs_epi16(w0, _mm512_loadu_si512(q + 128 * h)), s0);
        v[2 * h + 1] = vi_madd16(_mm512_maddubs_epi16(w1, _mm512_loadu_si512(q + 128 * h + 64)), s1);
    }
    vi x = tree4(v); /* groups 0 and 1: blocks 0 2 4 6 in two parts; 2 and 3: blocks 1 3 5 7 */
    __m256i z = _mm256_slli_epi32(_mm256_madd_epi16(scale, _mm256_loadu_si256((const void *)offset)), 1);
    __m256i first = _mm512_castsi512_si256(_mm512_shuffle_i32x4(x, x, 0x08));
    __m256i second = _mm512_castsi512_si256(_mm512_shuffle_i32x4(x, x, 0x0d));
    __m256i sum = _mm256_add_epi32(_mm256_add_epi32(first, second), z);
    half[0] = _mm256_castsi256_si128(sum);
    half[1] = _mm256_extracti128_si256(sum, 1);
}

#include "backends/cpu/x86/matmul_q6_k_rows.inc"

void cpu_matmul_q6_k_rows_avx512(const cpu_matmul *m, int32_t r0, int32_t r1)
{
    q6_rows(m, r0, r1);
}
