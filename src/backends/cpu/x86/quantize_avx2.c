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

/* 32 values times inv, rounded, in order. */
V_INLINE __m256i round_block(const float *x, __m256 inv)
{
    __m256i word[4];
    V_UNROLL for (int i = 0; i < 4; i++)
        word[i] = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x + 8 * i), inv));
    __m256i packed = _mm256_packs_epi16(_mm256_packs_epi32(word[0], word[1]),
                                        _mm256_packs_epi32(word[2], word[3]));
    return _mm256_permutevar8x32_epi32(packed, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

static void quantize_block(const cpu_act *a, const float *x, int32_t t, int32_t b)
{
    int8_t *q = a->q + (size_t)t * (size_t)a->k + (size_t)b * 32;
    __m256i bits = _mm256_setzero_si256();
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
    __m256i packed = round_block(x, _mm256_set1_ps(127 / amax));
    _mm256_storeu_si256((void *)q, packed);
    cpu_act_put(a, t, b, amax / 127, sum16(_mm256_castsi256_si128(packed)),
                sum16(_mm256_extracti128_si256(packed, 1)));
}

/* ---- a block of 32 of all tokens of a tile: what is one number a token stands in lanes, and so does what
 * the tile wants side by side. With fewer than eight tokens the last one stands in the lanes left over. */

enum { LANES = 8, TOKENS_MIN = 4 /* fewer are faster one by one */ };

/* Eight values to each of v to one in each lane, halves of 128 bits apart: low of 0..3 and high of 0..3 in
 * r[0], 4..7 in r[1]. */
#define FOLD8(op, v, r)                                                                           \
    V_UNROLL for (int h = 0; h < 2; h++)                                                          \
    {                                                                                             \
        const __m256i *f = (v) + 4 * h;                                                           \
        __m256i left = op(_mm256_unpacklo_epi32(f[0], f[1]), _mm256_unpackhi_epi32(f[0], f[1]));  \
        __m256i right = op(_mm256_unpacklo_epi32(f[2], f[3]), _mm256_unpackhi_epi32(f[2], f[3])); \
        (r)[h] = op(_mm256_unpacklo_epi64(left, right), _mm256_unpackhi_epi64(left, right));      \
    }

V_INLINE __m256i lower_halves(const __m256i *r)
{
    return _mm256_permute2x128_si256(r[0], r[1], 0x20);
}

V_INLINE __m256i upper_halves(const __m256i *r)
{
    return _mm256_permute2x128_si256(r[0], r[1], 0x31);
}

/* The largest |x| of each token, as bits: they order as the numbers do, and what is not finite is above all.
 */
V_INLINE __m256i max_bits(const float *const *row)
{
    __m256i v[LANES], r[2];
    for (int i = 0; i < LANES; i++) {
        __m256i m[4];
        V_UNROLL for (int j = 0; j < 4; j++) m[j] = _mm256_and_si256(
            _mm256_castps_si256(_mm256_loadu_ps(row[i] + 8 * j)), _mm256_set1_epi32(0x7fffffff));
        v[i] = _mm256_max_epu32(_mm256_max_epu32(m[0], m[1]), _mm256_max_epu32(m[2], m[3]));
    }
    FOLD8(_mm256_max_epu32, v, r)
    return _mm256_max_epu32(lower_halves(r), upper_halves(r));
}

/* Dword e of token i to lane i of v[e]. */
V_INLINE void transpose8(__m256i *v)
{
    __m256i a[LANES], b[LANES];
    V_UNROLL for (int i = 0; i < LANES; i += 2)
    {
        a[i] = _mm256_unpacklo_epi32(v[i], v[i + 1]);
        a[i + 1] = _mm256_unpackhi_epi32(v[i], v[i + 1]);
    }
    V_UNROLL for (int i = 0; i < LANES; i += 4)
    {
        b[i] = _mm256_unpacklo_epi64(a[i], a[i + 2]);
        b[i + 1] = _mm256_unpackhi_epi64(a[i], a[i + 2]);
        b[i + 2] = _mm256_unpacklo_epi64(a[i + 1], a[i + 3]);
        b[i + 3] = _mm256_unpackhi_epi64(a[i + 1], a[i + 3]);
    }
    V_UNROLL for (int i = 0; i < 4; i++)
    {
        v[i] = _mm256_permute2x128_si256(b[i], b[4 + i], 0x20);
        v[4 + i] = _mm256_permute2x128_si256(b[i], b[4 + i], 0x31);
    }
}

/* Entries [0, ACT_Q) of a tile. The sums of q come out of q, token by token. */
V_INLINE void make_sums(const __m256i *q, __m256 d, __m256i *entry)
{
    __m256i v[LANES], r[2];
    for (int i = 0; i < LANES; i++)
        v[i] = _mm256_madd_epi16(_mm256_maddubs_epi16(_mm256_set1_epi8(1), q[i]), _mm256_set1_epi16(1));
    FOLD8(_mm256_add_epi32, v, r)
    __m256i bs0 = lower_halves(r), bs1 = upper_halves(r), all = _mm256_add_epi32(bs0, bs1),
            zero = _mm256_setzero_si256();
    __m256i z0 = _mm256_sub_epi32(zero, _mm256_slli_epi32(bs0, 4)),
            z1 = _mm256_sub_epi32(zero, _mm256_slli_epi32(bs1, 4));
    entry[ACT_Z] = _mm256_sub_epi32(zero, _mm256_slli_epi32(all, 3));
    entry[ACT_D] = _mm256_castps_si256(d);
    entry[ACT_DS] = _mm256_castps_si256(_mm256_mul_ps(d, _mm256_cvtepi32_ps(all)));
    entry[ACT_PAIR] = _mm256_or_si256(_mm256_and_si256(z0, _mm256_set1_epi32(0xffff)),
                                      _mm256_slli_epi32(z1, 16));
    entry[ACT_Z16] = _mm256_slli_epi32(z0, 1);
    entry[ACT_Z16 + 1] = _mm256_slli_epi32(z1, 1);
}

/* Every entry overwrites what the one before has written of it; the last one writes n lanes alone. */
V_INLINE void store_tile(int32_t *tile, const __m256i *entry, int32_t n)
{
    _Alignas(32) int32_t last[LANES];
    for (int e = 0; e < ACT_DWORDS - 1; e++) _mm256_storeu_si256((void *)(tile + e * n), entry[e]);
    _mm256_store_si256((void *)last, entry[ACT_DWORDS - 1]);
    for (int32_t i = 0; i < n; i++) tile[(ACT_DWORDS - 1) * n + i] = last[i];
}

/* Block b of tokens [t, t + n), a tile. */
static void quantize_tile(const cpu_act *a, const float *x, size_t ldx, int32_t t, int32_t n, int32_t b)
{
    const float *row[LANES];
    __m256i entry[ACT_DWORDS], *q = entry + ACT_Q;
    _Alignas(32) float d[LANES], ds[LANES];
    for (int32_t i = 0; i < LANES; i++) row[i] = x + (size_t)(t + (i < n ? i : n - 1)) * ldx + (size_t)b * 32;
    __m256i max = max_bits(row), least = _mm256_castps_si256(_mm256_set1_ps(0x1p-118f));
    __m256i bad = _mm256_or_si256(_mm256_cmpgt_epi32(least, max),
                                  _mm256_cmpgt_epi32(max, _mm256_set1_epi32(0x7f7fffff)));
    if (_mm256_movemask_epi8(bad)) {
        for (int32_t i = 0; i < n; i++) quantize_block(a, row[i], t + i, b);
        return;
    }
    __m256 amax = _mm256_castsi256_ps(max), inv = _mm256_div_ps(_mm256_set1_ps(127), amax);
    for (int i = 0; i < LANES; i++) {
        q[i] = round_block(row[i], _mm256_permutevar8x32_ps(inv, _mm256_set1_epi32(i)));
        if (i < n)
            _mm256_storeu_si256((void *)(a->q + (size_t)(t + i) * (size_t)a->k + (size_t)b * 32), q[i]);
    }
    make_sums(q, _mm256_div_ps(amax, _mm256_set1_ps(127)), entry);
    transpose8(q);
    _mm256_store_ps(d, _mm256_castsi256_ps(entry[ACT_D]));
    _mm256_store_ps(ds, _mm256_castsi256_ps(entry[ACT_DS]));
    for (int32_t i = 0; i < n; i++) {
        size_t g = (size_t)(t + i) * ((size_t)a->k / 32) + (size_t)b;
        a->d[g] = d[i];
        a->ds[g] = ds[i];
    }
    int32_t width;
    store_tile(cpu_act_tile(a, t / a->tok, b, &width), entry, n);
}

void cpu_quantize_avx2(const cpu_act *a, const float *x, size_t ldx, int32_t t0, int32_t t1, int32_t b0,
                       int32_t b1)
{
    for (int32_t t = t0, n; t < t1; t += n) {
        cpu_act_tile(a, t / a->tok, 0, &n);
        bool whole = t % a->tok == 0 && n <= t1 - t && n >= TOKENS_MIN;
        if (!whole) n = 1;
        for (int32_t b = b0; b < b1; b++)
            if (whole)
                quantize_tile(a, x, ldx, t, n, b);
            else
                quantize_block(a, x + (size_t)t * ldx + (size_t)b * 32, t, b);
    }
}
