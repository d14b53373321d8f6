/* One token of Q6_K on AVX-512, row after row, so that memory is read strictly in order. The integer sums of
 * 16 rows, one for every 32 weights, go to a small buffer; then the float chains run with rows in lanes.
 * Scalar twin: ref/matmul.c. Test: tests/cpu/test_matmul.c. */
#include "backends/cpu/x86/vec_avx512.h"

#include "backends/cpu/x86/panel.inc"

/* The sums of a super-block: [even or odd block of 32][row % 4 * 4 + row / 4][the four blocks]. */
typedef int32_t row_sums[2][16][4];

typedef struct rows_buffer {
    int16_t *offset;   /* [k / 16]: -16 * sums of 16 activations, in the order of even_odd */
    row_sums *sums;    /* [k / 256] */
    uint16_t (*d)[16]; /* [k / 256][row] */
} rows_buffer;

/* The order in which the 16 sub-scales are used: those of even blocks of 32, then those of odd ones. */
static const uint8_t even_odd[16] = {0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15};

/* Integer sums of one block of 256: even blocks of 32 in the lower half, odd ones in the upper. */
V_INLINE __m256i block_sums(const uint8_t *p, const int8_t *q, const int16_t *offset)
{
    const __m256i two = _mm256_set1_epi16(2);
    const vi step = _mm512_set1_epi16(2), upper = vi_all8(0x30);
    const vi left = _mm512_inserti64x4(_mm512_set1_epi16(4), two, 1),
             right = _mm512_inserti64x4(vi_zero(), two, 1);
    const int64_t each = 0x0001000100010001;
    vi index = _mm512_setr_epi64(0, 0, each, each, 8 * each, 8 * each, 9 * each, 9 * each);
    __m128i order = _mm_loadu_si128((const void *)even_odd), bytes = _mm_loadu_si128((const void *)(p + 192));
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
    return _mm256_add_epi32(_mm256_add_epi32(first, second), z);
}

/* The float chains of 16 rows. */
static vf join_sums(const rows_buffer *s, const cpu_act *a)
{
    vf f = vf_zero();
    for (size_t b = 0; b < (size_t)a->k / 256; b++) {
        vf sum = vf_zero();
        vi v[2][4];
        V_UNROLL for (int e = 0; e < 2; e++)
        {
            V_UNROLL for (int i = 0; i < 4; i++) v[e][i] = vi_load(s->sums[b][e][4 * i]);
            transpose4(v[e]);
        }
        V_UNROLL for (size_t j = 0; j < 8; j++)
            sum = vf_fma(vf_from(v[j % 2][j / 2]), vf_cast(a->d + 8 * b + j), sum);
        f = vf_fma(vf_load_f16(s->d[b]), sum, f);
    }
    return f;
}

/* n <= 16 rows. */
static void sixteen_rows(const uint8_t *w, size_t stride, int32_t n, const cpu_act *a, const rows_buffer *s,
                         float *y)
{
    size_t nb = (size_t)a->k / 256;
    for (int32_t r = 0; r < n; r++) {
        const uint8_t *p = w + (size_t)r * stride;
        int slot = r % 4 * 4 + r / 4;
        for (size_t b = 0; b < nb; b++, p += MF_BYTES_Q6_K) {
            x86_prefetch(p + X86_AHEAD, MF_BYTES_Q6_K);
            __m256i sum = block_sums(p, a->q + 256 * b, s->offset + 16 * b);
            _mm_store_si128((void *)s->sums[b][0][slot], _mm256_castsi256_si128(sum));
            _mm_store_si128((void *)s->sums[b][1][slot], _mm256_extracti128_si256(sum, 1));
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
    s.d = (uint16_t(*)[16])(void *)(s.sums + nb);
    for (size_t i = 0; i < n; i++) {
        size_t from = i / 16 * 16 + even_odd[i % 16];
        s.offset[i] = (int16_t)mf_load_u16((const uint8_t *)(a->tiles + from / 2 * ACT_DWORDS + ACT_PAIR) +
                                           from % 2 * 2);
    }
    return s;
}

void cpu_matmul_q6_k_rows_avx512(const cpu_matmul *m, int32_t r0, int32_t r1)
{
    size_t stride = (size_t)(m->k / MF_QK256) * MF_BYTES_Q6_K;
    rows_buffer s = carve(m->scratch, m->act);
    for (int32_t r = r0; r < r1; r += 16) {
        if (r1 - r <= 16 && m->next) x86_prefetch(m->next, X86_AHEAD);
        sixteen_rows(m->w + (size_t)r * stride, stride, r1 - r < 16 ? r1 - r : 16, m->act, &s, m->y + r);
    }
}
