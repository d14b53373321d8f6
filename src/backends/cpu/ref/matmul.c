/* Matmul in scalar C: the specification of the order of all its sums (docs/numerics.md). One output element
 * is one chain over the blocks of its row; a K-quant's super-block is a chain of its own over eight blocks
 * of 32. Every conversion of an integer to float here is exact. Layouts of the blocks: gguf/types.h. */
#include "backends/cpu/ref/ref.h"

#include "base/bytes.h"
#include "base/half.h"

#include <math.h>

static float half_at(const uint8_t *p)
{
    return mf_f16_to_f32(mf_load_u16(p));
}

static int32_t dot(const int8_t *w, const int8_t *q, int n)
{
    int32_t s = 0;
    for (int i = 0; i < n; i++) s += w[i] * q[i];
    return s;
}

/* ---- blocks of 32 */

typedef struct block32 {
    int8_t w[32];
    float d, m;
} block32;

/* Nibbles at p; fifth bits from high unless it is NULL. */
static void unpack_nibbles(int8_t *w, const uint8_t *p, const uint8_t *high, int offset)
{
    uint32_t h = high ? mf_load_u32(high) : 0;
    for (int i = 0; i < 32; i++) {
        int low = i < 16 ? p[i] & 15 : p[i - 16] >> 4;
        w[i] = (int8_t)((low | (int)(h >> i & 1) << 4) - offset);
    }
}

static void unpack_q4_0(const uint8_t *p, block32 *b)
{
    unpack_nibbles(b->w, p + 2, NULL, 8);
}

static void unpack_q4_1(const uint8_t *p, block32 *b)
{
    b->m = half_at(p + 2);
    unpack_nibbles(b->w, p + 4, NULL, 0);
}

static void unpack_q5_0(const uint8_t *p, block32 *b)
{
    unpack_nibbles(b->w, p + 6, p + 2, 16);
}

static void unpack_q5_1(const uint8_t *p, block32 *b)
{
    b->m = half_at(p + 2);
    unpack_nibbles(b->w, p + 8, p + 4, 0);
}

static void unpack_q8_0(const uint8_t *p, block32 *b)
{
    memcpy(b->w, p + 2, 32);
}

typedef struct format32 {
    size_t bytes;
    void (*unpack)(const uint8_t *p, block32 *b); /* all but d, which comes first in every format */
    bool has_min;
} format32;

static void rows32(const cpu_matmul *m, int32_t r0, int32_t r1, format32 f)
{
    const cpu_act *a = m->act;
    size_t nb = (size_t)m->k / 32;
    for (int32_t r = r0; r < r1; r++) {
        const uint8_t *p = m->w + (size_t)r * nb * f.bytes;
        for (int32_t t = 0; t < m->nt; t++) m->y[(size_t)t * m->ldy + (size_t)r] = 0;
        for (size_t b = 0; b < nb; b++, p += f.bytes) {
            block32 block = {.d = half_at(p)};
            f.unpack(p, &block);
            for (size_t t = 0; t < (size_t)m->nt; t++) {
                float *y = m->y + t * m->ldy + (size_t)r;
                size_t g = t * nb + b;
                *y = fmaf((float)dot(block.w, a->q + g * 32, 32), block.d * a->d[g], *y);
                if (f.has_min) *y = fmaf(block.m, a->ds[g], *y);
            }
        }
    }
}

/* ---- super-blocks of 256 */

typedef struct block256 {
    int8_t w[256];
    int scale[16]; /* Q4_K, Q5_K: one per 32; Q6_K: one per 16 */
    int min[8];
    float d, dmin;
} block256;

/* Q4_K, and Q5_K when high (32 bytes) is not NULL: bit j of high[l] belongs to value l of sub-block j. */
static void unpack_k4(const uint8_t *p, const uint8_t *high, const uint8_t *low, block256 *b)
{
    b->d = half_at(p);
    b->dmin = half_at(p + 2);
    for (int j = 0; j < 8; j++) {
        mf_k4_scale_min(p + 4, j, &b->scale[j], &b->min[j]);
        for (int l = 0; l < 32; l++) {
            int v = low[j / 2 * 32 + l];
            v = j % 2 ? v >> 4 : v & 15;
            b->w[j * 32 + l] = (int8_t)(v | (high ? high[l] >> j & 1 : 0) << 4);
        }
    }
}

static void unpack_q4_k(const uint8_t *p, block256 *b)
{
    unpack_k4(p, NULL, p + 16, b);
}

static void unpack_q5_k(const uint8_t *p, block256 *b)
{
    unpack_k4(p, p + 16, p + 48, b);
}

/* Two halves of 128; in each, value i has its low four bits in the low or high nibbles of 64 bytes, and its
 * upper two in the bit pairs of 32 bytes. */
static void unpack_q6_k(const uint8_t *p, block256 *b)
{
    b->d = half_at(p + 208);
    for (int i = 0; i < 16; i++) b->scale[i] = (int8_t)p[192 + i];
    for (int i = 0; i < 256; i++) {
        int h = i / 128, quarter = i % 128 / 32, l = i % 32;
        int low = p[h * 64 + quarter % 2 * 32 + l], high = p[128 + h * 32 + l];
        low = quarter / 2 ? low >> 4 : low & 15;
        b->w[i] = (int8_t)((low | (high >> (2 * quarter) & 3) << 4) - 32);
    }
}

/* Adds a super-block to y. q, d, ds: the activations of its eight blocks of 32. */
static float add_k4(const block256 *b, const int8_t *q, const float *d, const float *ds, float y)
{
    float s = 0, m = 0;
    for (int j = 0; j < 8; j++) {
        s = fmaf((float)(b->scale[j] * dot(b->w + 32 * j, q + 32 * j, 32)), d[j], s);
        m = fmaf((float)b->min[j], ds[j], m);
    }
    y = fmaf(b->d, s, y);
    return fmaf(-b->dmin, m, y);
}

static float add_q6_k(const block256 *b, const int8_t *q, const float *d, const float *ds, float y)
{
    float s = 0;
    (void)ds;
    for (int j = 0; j < 8; j++) {
        int32_t first = b->scale[2 * j] * dot(b->w + 32 * j, q + 32 * j, 16);
        int32_t second = b->scale[2 * j + 1] * dot(b->w + 32 * j + 16, q + 32 * j + 16, 16);
        s = fmaf((float)(first + second), d[j], s);
    }
    return fmaf(b->d, s, y);
}

typedef struct format256 {
    size_t bytes;
    void (*unpack)(const uint8_t *p, block256 *b);
    float (*add)(const block256 *b, const int8_t *q, const float *d, const float *ds, float y);
} format256;

static void rows256(const cpu_matmul *m, int32_t r0, int32_t r1, format256 f)
{
    const cpu_act *a = m->act;
    size_t nb = (size_t)m->k / 256;
    for (int32_t r = r0; r < r1; r++) {
        const uint8_t *p = m->w + (size_t)r * nb * f.bytes;
        for (int32_t t = 0; t < m->nt; t++) m->y[(size_t)t * m->ldy + (size_t)r] = 0;
        for (size_t b = 0; b < nb; b++, p += f.bytes) {
            block256 block;
            f.unpack(p, &block);
            for (size_t t = 0; t < (size_t)m->nt; t++) {
                float *y = m->y + t * m->ldy + (size_t)r;
                size_t g = t * nb + b;
                *y = f.add(&block, a->q + g * 256, a->d + g * 8, a->ds + g * 8, *y);
            }
        }
    }
}

/* ---- floats */

static float value_at(mf_type type, const uint8_t *row, size_t i)
{
    if (type == MF_TYPE_F32) return mf_load_f32(row + 4 * i);
    uint16_t h = mf_load_u16(row + 2 * i);
    return type == MF_TYPE_F16 ? mf_f16_to_f32(h) : mf_bf16_to_f32(h);
}

static float tree16(const float *l)
{
    float g[4];
    for (int i = 0; i < 4; i++) g[i] = (l[4 * i] + l[4 * i + 2]) + (l[4 * i + 1] + l[4 * i + 3]);
    return (g[0] + g[1]) + (g[2] + g[3]);
}

static void rows_float(const cpu_matmul *m, int32_t r0, int32_t r1)
{
    size_t k = (size_t)m->k, row_bytes = k * (m->type == MF_TYPE_F32 ? 4 : 2);
    for (int32_t r = r0; r < r1; r++)
        for (int32_t t = 0; t < m->nt; t++) {
            const uint8_t *w = m->w + (size_t)r * row_bytes;
            const float *x = m->x + (size_t)t * m->ldx;
            float lane[16] = {0};
            for (size_t i = 0; i < k; i++) lane[i % 16] = fmaf(value_at(m->type, w, i), x[i], lane[i % 16]);
            m->y[(size_t)t * m->ldy + (size_t)r] = tree16(lane);
        }
}

void cpu_matmul_ref(const cpu_matmul *m, int32_t r0, int32_t r1)
{
    switch (m->type) {
    case MF_TYPE_F32:
    case MF_TYPE_F16:
    case MF_TYPE_BF16: rows_float(m, r0, r1); break;
    case MF_TYPE_Q4_0: rows32(m, r0, r1, (format32){MF_BYTES_Q4_0, unpack_q4_0, false}); break;
    case MF_TYPE_Q4_1: rows32(m, r0, r1, (format32){MF_BYTES_Q4_1, unpack_q4_1, true}); break;
    case MF_TYPE_Q5_0: rows32(m, r0, r1, (format32){MF_BYTES_Q5_0, unpack_q5_0, false}); break;
    case MF_TYPE_Q5_1: rows32(m, r0, r1, (format32){MF_BYTES_Q5_1, unpack_q5_1, true}); break;
    case MF_TYPE_Q8_0: rows32(m, r0, r1, (format32){MF_BYTES_Q8_0, unpack_q8_0, false}); break;
    case MF_TYPE_Q4_K: rows256(m, r0, r1, (format256){MF_BYTES_Q4_K, unpack_q4_k, add_k4}); break;
    case MF_TYPE_Q5_K: rows256(m, r0, r1, (format256){MF_BYTES_Q5_K, unpack_q5_k, add_k4}); break;
    case MF_TYPE_Q6_K: rows256(m, r0, r1, (format256){MF_BYTES_Q6_K, unpack_q6_k, add_q6_k}); break;
    default: break;
    }
}

void cpu_matmul_init_ref(cpu_kernels *k)
{
    static const mf_type types[] = {MF_TYPE_F32,  MF_TYPE_F16,  MF_TYPE_BF16, MF_TYPE_Q4_0,
                                    MF_TYPE_Q4_1, MF_TYPE_Q5_0, MF_TYPE_Q5_1, MF_TYPE_Q8_0,
                                    MF_TYPE_Q4_K, MF_TYPE_Q5_K, MF_TYPE_Q6_K};
    k->few = CPU_TILE_SMALL;
    k->quantize = cpu_quantize_ref;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) k->matmul[types[i]] = cpu_matmul_ref;
}
