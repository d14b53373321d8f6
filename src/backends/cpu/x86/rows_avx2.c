/* Attention, norms, elements and KV storage with AVX2, FMA and F16C. Every kernel gives the bits of its
 * scalar twin cpu_..._ref in ref/attn.c and ref/rows.c; tests/cpu/test_attn.c and tests/cpu/test_rows.c
 * compare them. */
#include "backends/cpu/ref/rows.h"

#include "backends/cpu/simd/simd.h"
#include "backends/cpu/x86/vec8.h"
#include "base/bytes.h"
#include "base/half.h"

#include "backends/cpu/simd/rows.inc"

#define GROUP     3 /* 12 sums of dot products, three queries and one cell fill the 16 registers */
#define GROUPS(X) X(1) X(2) X(3)

static void packed_dots(const cpu_attn_tile *a, int32_t first, int32_t rows, float *s)
{
    cpu_attn_dots_q8_0(a, first, rows, cpu_quantize_avx2, cpu_matmul_q8_0_avx2, s);
}

#include "backends/cpu/simd/attn.inc"

#include "backends/cpu/simd/rows_kernels.inc"

/* Pairs (i, i + half), eight at a time. */
static void rotate_halves(float *y, const float *x, const float *cs, int32_t half)
{
    for (int32_t i = 0; i < half; i += VL) {
        vec x0 = v_load(x + i), x1 = v_load(x + half + i), c = v_load(cs + i), s = v_load(cs + half + i);
        v_store(y + i, _mm256_fmsub_ps(x0, c, v_mul(x1, s)));
        v_store(y + half + i, v_fma(x1, c, v_mul(x0, s)));
    }
}

/* Pairs (2i, 2i + 1), four at a time: even lanes subtract, odd lanes add. */
static void rotate_neighbours(float *y, const float *x, const float *cs, int32_t half)
{
    const __m256i twice = _mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3);
    for (int32_t i = 0; i < half; i += 4) {
        vec c = _mm256_permutevar8x32_ps(_mm256_castps128_ps256(_mm_loadu_ps(cs + i)), twice);
        vec s = _mm256_permutevar8x32_ps(_mm256_castps128_ps256(_mm_loadu_ps(cs + half + i)), twice);
        vec v = v_load(x + 2 * i), swapped = _mm256_permute_ps(v, 0xb1);
        v_store(y + 2 * i, _mm256_fmaddsub_ps(v, c, v_mul(swapped, s)));
    }
}

static void store_f16(unsigned char *dst, const float *x, int32_t n)
{
    int32_t i = 0;
    for (; i + VL <= n; i += VL)
        _mm_storeu_si128((void *)(dst + 2 * i), _mm256_cvtps_ph(v_load(x + i), _MM_FROUND_TO_NEAREST_INT));
    if (i < n) {
        __m128i h = _mm256_cvtps_ph(v_load_n(x + i, n - i, 0), _MM_FROUND_TO_NEAREST_INT);
        memcpy(dst + 2 * i, &h, (size_t)(n - i) * 2);
    }
}

/* The largest of the bit patterns in m, as a float; they are positive as integers. */
static float largest(__m256i m)
{
    __m128i h = _mm_max_epi32(_mm256_castsi256_si128(m), _mm256_extracti128_si256(m, 1));
    h = _mm_max_epi32(h, _mm_shuffle_epi32(h, 0x4e));
    h = _mm_max_epi32(h, _mm_shuffle_epi32(h, 0xb1));
    return _mm_cvtss_f32(_mm_castsi128_ps(h));
}

static __m256i rounded(vec x, vec scale)
{
    return _mm256_cvtps_epi32(v_mul(x, scale));
}

static __m256i quantized(const vec v[4], float scale)
{
    /* Packing works in halves of a register. */
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    vec s = v_set(scale);
    __m256i low = _mm256_packs_epi32(rounded(v[0], s), rounded(v[1], s));
    __m256i high = _mm256_packs_epi32(rounded(v[2], s), rounded(v[3], s));
    return _mm256_permutevar8x32_epi32(_mm256_packs_epi16(low, high), order);
}

static void store_q8_0(unsigned char *dst, const float *x, int32_t n)
{
    for (int32_t b = 0; b < n; b += MF_QK32, dst += MF_BYTES_Q8_0) {
        vec v[4];
        __m256i m = _mm256_setzero_si256(), q = m;
        for (int i = 0; i < 4; i++) {
            v[i] = v_load(x + b + i * VL);
            m = _mm256_max_epi32(m, _mm256_castps_si256(_mm256_andnot_ps(v_set(-0.f), v[i])));
        }
        float amax = largest(m);
        bool plain = amax >= CPU_Q8_0_MIN && amax < INFINITY;
        uint16_t d = plain ? mf_f32_to_f16(amax / 127.f) : amax < CPU_Q8_0_MIN ? 0 : CPU_F16_NAN;
        if (plain) q = quantized(v, 127.f / amax);
        memcpy(dst, &d, sizeof d);
        _mm256_storeu_si256((void *)(dst + sizeof d), q);
    }
}

#include "backends/cpu/simd/rows_moves.inc"

void cpu_rows_init_avx2(cpu_kernels *k)
{
    init_rows(k);
    init_moves(k);
}
