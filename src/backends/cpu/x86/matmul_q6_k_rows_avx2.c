/* One token of Q6_K on AVX2, row after row, so that memory is read strictly in order. The integer sums of
 * V_LANES rows, one for every 32 weights, go to a small buffer; then the float chains run with rows in lanes.
 * Scalar twin: ref/matmul.c (rows256). Test: tests/cpu/test_matmul.c. */
#include "backends/cpu/x86/vec_avx2.h"

#include "backends/cpu/simd/panel.inc"

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

/* The sums of a super-block: [half][row % 4 * V_LANES / 4 + row / 4][four blocks of 32]. */
typedef int32_t row_sums[2][V_LANES][4];

typedef struct rows_buffer {
    int16_t *offset; /* [k / 16]: -16 * sums of 16 activations */
    row_sums *sums;  /* [k / 256] */
    uint16_t (*d)[V_LANES];
} rows_buffer;

/* The float chains of all rows. */
static vf join_sums(const rows_buffer *s, const cpu_act *a)
{
    vf f = vf_zero();
    for (size_t b = 0; b < (size_t)a->k / 256; b++) {
        vf sum = vf_zero();
        vi v[8];
        V_UNROLL for (int h = 0; h < 2; h++)
        {
            V_UNROLL for (int i = 0; i < 4; i++) v[4 * h + i] = vi_load(s->sums[b][h][i * V_LANES / 4]);
            transpose4(v + 4 * h);
        }
        V_UNROLL for (int j = 0; j < 8; j++)
            sum = vf_fma(vf_from(v[j]), vf_cast(a->d + 8 * b + (size_t)j), sum);
        f = vf_fma(vf_load_f16(s->d[b]), sum, f);
    }
    return f;
}

/* n <= V_LANES rows. */
static void panel_of_rows(const uint8_t *w, size_t stride, int32_t n, const cpu_act *a, const rows_buffer *s,
                          float *y)
{
    size_t nb = (size_t)a->k / 256;
    for (int32_t r = 0; r < n; r++) {
        const uint8_t *p = w + (size_t)r * stride;
        int slot = r % 4 * (V_LANES / 4) + r / 4;
        for (size_t b = 0; b < nb; b++, p += MF_BYTES_Q6_K) {
            __m128i half[2];
            simd_prefetch(p + SIMD_AHEAD, MF_BYTES_Q6_K);
            q6_sums(p, a->q + 256 * b, s->offset + 16 * b, half);
            _mm_store_si128((void *)s->sums[b][0][slot], half[0]);
            _mm_store_si128((void *)s->sums[b][1][slot], half[1]);
            s->d[b][r] = mf_load_u16(p + 208);
        }
    }
    vf_store_lanes(y, (1u << n) - 1, join_sums(s, a));
}

static rows_buffer carve(void *scratch, const cpu_act *a)
{
    size_t n = (size_t)a->k / 16, nb = (size_t)a->k / 256;
    rows_buffer s = {.offset = scratch};
    s.sums = (row_sums *)(void *)((uint8_t *)scratch + (n * sizeof *s.offset + 63) / 64 * 64);
    s.d = (uint16_t(*)[V_LANES])(void *)(s.sums + nb);
    for (size_t i = 0; i < n; i++) {
        const int32_t *tile = a->tiles + i / 2 * ACT_DWORDS + ACT_PAIR;
        s.offset[i] = (int16_t)mf_load_u16((const uint8_t *)tile + i % 2 * 2);
    }
    return s;
}

void cpu_matmul_q6_k_rows_avx2(const cpu_matmul *m, int32_t r0, int32_t r1)
{
    size_t stride = (size_t)(m->k / MF_QK256) * MF_BYTES_Q6_K;
    rows_buffer s = carve(m->scratch, m->act);
    for (int32_t r = r0; r < r1; r += V_LANES) {
        int32_t n = r1 - r < V_LANES ? r1 - r : V_LANES;
        if (r1 - r <= V_LANES && m->next) simd_prefetch(m->next, SIMD_AHEAD);
        panel_of_rows(m->w + (size_t)r * stride, stride, n, m->act, &s, m->y + r);
    }
}
