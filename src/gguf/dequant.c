/* What the bits of a weight block mean, as floats: the definition that every kernel is held to. Owns no
 * memory and knows no sizes of tensors. Half scales have 11 significant bits, sub-scales 6 and values 5, so
 * that all products but those of Q6_K are exact and `a * b + c` here is the fma of docs/numerics.md. */
#include "gguf/types.h"

#include "base/bytes.h"
#include "base/half.h"

typedef void block_fn(const uint8_t *b, float *y);

static float half_at(const uint8_t *p)
{
    return mf_f16_to_f32(mf_load_u16(p));
}

static void block_f32(const uint8_t *b, float *y)
{
    memcpy(y, b, sizeof *y);
}

static void block_f16(const uint8_t *b, float *y)
{
    *y = half_at(b);
}

static void block_bf16(const uint8_t *b, float *y)
{
    *y = mf_bf16_to_f32(mf_load_u16(b));
}

static void block_q4_0(const uint8_t *b, float *y)
{
    float d = half_at(b);
    for (int i = 0; i < 16; i++) {
        int q = b[2 + i];
        y[i] = d * (float)((q & 15) - 8);
        y[i + 16] = d * (float)((q >> 4) - 8);
    }
}

static void block_q4_1(const uint8_t *b, float *y)
{
    float d = half_at(b), m = half_at(b + 2);
    for (int i = 0; i < 16; i++) {
        int q = b[4 + i];
        y[i] = d * (float)(q & 15) + m;
        y[i + 16] = d * (float)(q >> 4) + m;
    }
}

/* Value i of the 5-bit formats: the low nibbles are values 0..15, bit i of high is bit 4 of value i. */
static float value5(const uint8_t *qs, uint32_t high, int i)
{
    int low = i < 16 ? qs[i] & 15 : qs[i - 16] >> 4;
    return (float)(low | (int)(high >> i & 1) << 4);
}

static void block_q5_0(const uint8_t *b, float *y)
{
    float d = half_at(b);
    uint32_t high = mf_load_u32(b + 2);
    for (int i = 0; i < 32; i++) y[i] = d * (value5(b + 6, high, i) - 16);
}

static void block_q5_1(const uint8_t *b, float *y)
{
    float d = half_at(b), m = half_at(b + 2);
    uint32_t high = mf_load_u32(b + 4);
    for (int i = 0; i < 32; i++) y[i] = d * value5(b + 8, high, i) + m;
}

static void block_q8_0(const uint8_t *b, float *y)
{
    float d = half_at(b);
    for (int i = 0; i < 32; i++) y[i] = d * (float)(int8_t)b[2 + i];
}

/* Q4_K and Q5_K: eight sub-blocks of 32, two of which share the bytes of qs, low nibbles first. high holds
 * bit 4 of the values, or is NULL. */
static void block_k45(const uint8_t *b, const uint8_t *high, const uint8_t *qs, float *y)
{
    float d = half_at(b), dmin = half_at(b + 2);
    for (int j = 0; j < 8; j++) {
        int sc, m;
        mf_k4_scale_min(b + 4, j, &sc, &m);
        float scale = d * (float)sc, min = dmin * (float)m;
        for (int l = 0; l < 32; l++) {
            int q = qs[32 * (j / 2) + l] >> 4 * (j & 1) & 15;
            if (high) q |= (high[l] >> j & 1) << 4;
            y[32 * j + l] = scale * (float)q - min;
        }
    }
}

static void block_q4_k(const uint8_t *b, float *y)
{
    block_k45(b, NULL, b + 16, y);
}

static void block_q5_k(const uint8_t *b, float *y)
{
    block_k45(b, b + 16, b + 48, y);
}

/* Two halves of 128 values, each four runs of 32: runs 0 and 1 are low nibbles, 2 and 3 high ones, and run p
 * takes bits 2p and 2p + 1 of the bytes of qh. */
static void block_q6_k(const uint8_t *b, float *y)
{
    const uint8_t *ql = b, *qh = b + 128, *scales = b + 192;
    float d = half_at(b + 208);
    for (int i = 0; i < 256; i++) {
        int half = i / 128, run = i / 32 % 4, l = i % 32;
        int low = ql[64 * half + 32 * (run & 1) + l] >> 4 * (run >> 1) & 15;
        int high = qh[32 * half + l] >> 2 * run & 3;
        float scale = d * (float)(int8_t)scales[i / 16];
        y[i] = scale * (float)((low | high << 4) - 32);
    }
}

void mf_dequantize_row(mf_type type, const void *src, float *dst, size_t n)
{
    static block_fn *const blocks[MF_TYPE_COUNT] = {
        [MF_TYPE_F32] = block_f32,   [MF_TYPE_F16] = block_f16,   [MF_TYPE_BF16] = block_bf16,
        [MF_TYPE_Q4_0] = block_q4_0, [MF_TYPE_Q4_1] = block_q4_1, [MF_TYPE_Q5_0] = block_q5_0,
        [MF_TYPE_Q5_1] = block_q5_1, [MF_TYPE_Q8_0] = block_q8_0, [MF_TYPE_Q4_K] = block_q4_k,
        [MF_TYPE_Q5_K] = block_q5_k, [MF_TYPE_Q6_K] = block_q6_k,
    };
    const mf_type_info *t = mf_type_get((uint32_t)type);
    if (!t->weight) return;
    block_fn *block = blocks[type];
    const uint8_t *b = src;
    for (size_t i = 0; i + t->block_values <= n; i += t->block_values, b += t->block_bytes) block(b, dst + i);
}
