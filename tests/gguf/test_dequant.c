/* gguf: what weight blocks mean. Held to formulas written down value by value in double, to the Python
 * package gguf (golden), and to the same models stored as F32. */
#include "support/support.h"

#include "base/bytes.h"
#include "base/half.h"
#include "gguf/gguf.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>

enum { MAX_VALUES = 1024, MAX_BYTES = 4096 };

/* ---- formulas: value i of a block, from its definition, in double ---- */

static double half_of(const uint8_t *p)
{
    int h = p[0] | p[1] << 8, e = h >> 10 & 31, m = h & 1023;
    double v = e ? ldexp(1024 + m, e - 25) : ldexp(m, -24);
    return h & 0x8000 ? -v : v;
}

static int bit(const uint8_t *p, int i)
{
    return p[i / 8] >> i % 8 & 1;
}

/* Nibble i of 16 bytes: the low ones come first. */
static int nibble(const uint8_t *p, int i)
{
    return p[i % 16] >> (i / 16 * 4) & 15;
}

static double q4_0(const uint8_t *b, int i)
{
    return half_of(b) * (nibble(b + 2, i) - 8);
}

static double q4_1(const uint8_t *b, int i)
{
    return half_of(b) * nibble(b + 4, i) + half_of(b + 2);
}

static double q5_0(const uint8_t *b, int i)
{
    return half_of(b) * (nibble(b + 6, i) + 16 * bit(b + 2, i) - 16);
}

static double q5_1(const uint8_t *b, int i)
{
    return half_of(b) * (nibble(b + 8, i) + 16 * bit(b + 4, i)) + half_of(b + 2);
}

static double q8_0(const uint8_t *b, int i)
{
    return half_of(b) * (b[2 + i] < 128 ? b[2 + i] : b[2 + i] - 256);
}

/* The eight scales and minima of 6 bits: of the first four, bytes 0..3 and 4..7 hold all six; of the last
 * four, bytes 8..11 hold the low four of both, and the top two bits of bytes 0..7 the rest. */
static int k_scale(const uint8_t *s, int j)
{
    return j < 4 ? s[j] % 64 : s[j + 4] % 16 + s[j - 4] / 64 * 16;
}

static int k_min(const uint8_t *s, int j)
{
    return j < 4 ? s[j + 4] % 64 : s[j + 4] / 16 + s[j] / 64 * 16;
}

static double q4_k(const uint8_t *b, int i)
{
    int j = i / 32, q = b[16 + i / 64 * 32 + i % 32] >> (j % 2 * 4) & 15;
    return half_of(b) * k_scale(b + 4, j) * q - half_of(b + 2) * k_min(b + 4, j);
}

static double q5_k(const uint8_t *b, int i)
{
    int j = i / 32, q = b[48 + i / 64 * 32 + i % 32] >> (j % 2 * 4) & 15;
    q += 16 * bit(b + 16 + i % 32, j);
    return half_of(b) * k_scale(b + 4, j) * q - half_of(b + 2) * k_min(b + 4, j);
}

static double q6_k(const uint8_t *b, int i)
{
    int h = i / 128, r = i % 128, low = b[64 * h + r % 64] >> (r / 64 * 4) & 15;
    int high = b[128 + 32 * h + r % 32] >> (r / 32 * 2) & 3, sc = b[192 + i / 16];
    return half_of(b + 208) * (sc < 128 ? sc : sc - 256) * (low + 16 * high - 32);
}

static double f16(const uint8_t *b, int i)
{
    return half_of(b + 2 * i);
}

static double bf16(const uint8_t *b, int i)
{
    float f = mf_bits_f32((uint32_t)(b[2 * i] | b[2 * i + 1] << 8) << 16);
    return f;
}

static double f32(const uint8_t *b, int i)
{
    return mf_load_f32(b + 4 * i);
}

static const struct {
    mf_type type;
    int halves[2]; /* offsets of half floats in a block, -1: none */
    double (*value)(const uint8_t *b, int i);
    double rms; /* largest relative rms error against F32 that the tiny models may show */
} formulas[] = {
    {MF_TYPE_F32, {-1, -1}, f32, 0},       {MF_TYPE_F16, {0, -1}, f16, 5e-4},
    {MF_TYPE_BF16, {0, -1}, bf16, 4e-3},   {MF_TYPE_Q4_0, {0, -1}, q4_0, 0.12},
    {MF_TYPE_Q4_1, {0, 2}, q4_1, 0.12},    {MF_TYPE_Q5_0, {0, -1}, q5_0, 0.06},
    {MF_TYPE_Q5_1, {0, 2}, q5_1, 0.06},    {MF_TYPE_Q8_0, {0, -1}, q8_0, 0.01},
    {MF_TYPE_Q4_K, {0, 2}, q4_k, 0.12},    {MF_TYPE_Q5_K, {0, 2}, q5_k, 0.06},
    {MF_TYPE_Q6_K, {208, -1}, q6_k, 0.03},
};
enum { N_FORMULAS = sizeof formulas / sizeof *formulas };

/* A half float of moderate size, so that double holds every sum exactly and rounding to float happens once.
 */
static void random_half(mf_rng *r, uint8_t *p)
{
    uint32_t u = (uint32_t)mf_rng_u64(r), h = (u & 0x83ff) | (8 + (u >> 16) % 12) << 10;
    p[0] = (uint8_t)h;
    p[1] = (uint8_t)(h >> 8);
}

static void random_row(mf_rng *r, size_t f, uint8_t *row, size_t n_blocks)
{
    size_t size = mf_type_get(formulas[f].type)->block_bytes;
    for (size_t i = 0; i < n_blocks * size; i++) row[i] = (uint8_t)mf_rng_u64(r);
    for (size_t b = 0; b < n_blocks; b++) {
        for (int k = 0; k < 2; k++)
            if (formulas[f].halves[k] >= 0) random_half(r, row + b * size + (size_t)formulas[f].halves[k]);
        if (formulas[f].type == MF_TYPE_F32) row[b * size + 3] = 0x3f;
    }
}

static void test_formulas(void **state)
{
    (void)state;
    mf_rng r;
    mf_rng_seed(&r, 7);
    static uint8_t row[MAX_BYTES + 1];
    static float y[MAX_VALUES + 1];
    for (size_t f = 0; f < N_FORMULAS; f++) {
        const mf_type_info *t = mf_type_get(formulas[f].type);
        for (int round = 0; round < 200; round++) {
            size_t blocks = 1 + (size_t)round % 3, n = blocks * t->block_values;
            uint8_t *at = row + round % 2; /* odd addresses too */
            random_row(&r, f, at, blocks);
            y[n] = 12345;
            mf_dequantize_row(formulas[f].type, at, y, n);
            assert_true(y[n] == 12345);
            for (size_t i = 0; i < n; i++) {
                size_t in_block = i % t->block_values;
                double want = formulas[f].value(at + i / t->block_values * t->block_bytes, (int)in_block);
                if (mf_f32_bits(y[i]) != mf_f32_bits((float)want) && !(y[i] == 0 && want == 0))
                    fail_msg("%s value %zu: %.9g, expected %.9g", t->name, i, (double)y[i], want);
            }
        }
    }
}

static void test_other_types_write_nothing(void **state)
{
    (void)state;
    float y[2] = {1, 2};
    uint8_t zeros[512] = {0};
    mf_dequantize_row(MF_TYPE_Q2_K, zeros, y, 256);
    mf_dequantize_row((mf_type)4, zeros, y, 2);
    mf_dequantize_row((mf_type)77, zeros, y, 2);
    mf_dequantize_row(MF_TYPE_F32, zeros, y, 0);
    assert_true(y[0] == 1 && y[1] == 2);
}

/* ---- golden values of another implementation ---- */

static size_t from_hex(const char *s, uint8_t *out, size_t room)
{
    size_t n = strlen(s) / 2;
    assert_true(n <= room);
    for (size_t i = 0; i < n; i++) out[i] = (uint8_t)strtoul((char[]){s[2 * i], s[2 * i + 1], 0}, NULL, 16);
    return n;
}

static void test_golden(void **state)
{
    (void)state;
    json_t *root = json_load_file(data_path("gguf/dequant.json"), 0, NULL), *c;
    json_t *cases = json_object_get(root, "cases");
    size_t k;
    static uint8_t row[MAX_BYTES], want[4 * MAX_VALUES];
    static float y[MAX_VALUES];
    assert_int_equal(json_array_size(cases), N_FORMULAS);
    json_array_foreach(cases, k, c)
    {
        const char *name = json_string_value(json_object_get(c, "type"));
        mf_type type = (mf_type)json_integer_value(json_object_get(c, "id"));
        size_t bytes = from_hex(json_string_value(json_object_get(c, "blocks")), row, sizeof row), row_bytes;
        size_t n = from_hex(json_string_value(json_object_get(c, "floats")), want, sizeof want) / 4;
        assert_string_equal(mf_type_name(type), name);
        assert_true(mf_type_row_bytes(type, n, &row_bytes) && row_bytes == bytes);
        mf_dequantize_row(type, row, y, n);
        for (size_t i = 0; i < n; i++)
            if (mf_f32_bits(y[i]) != mf_load_u32(want + 4 * i))
                fail_msg("%s value %zu: %.9g, expected %.9g", name, i, (double)y[i],
                         (double)mf_load_f32(want + 4 * i));
    }
    json_decref(root);
}

/* ---- the tiny models, stored as F32 and quantized from it ---- */

static double rms_against(const mf_gguf_tensor *q, const mf_gguf_tensor *exact)
{
    double err = 0, sum = 0;
    size_t row_bytes, rows = (size_t)(q->dims[1] * q->dims[2] * q->dims[3]), n = (size_t)q->dims[0];
    float *a = mf_malloc(n * 4), *b = mf_malloc(n * 4);
    assert_true(mf_type_row_bytes(q->type, n, &row_bytes));
    for (size_t r = 0; r < rows; r++) {
        mf_dequantize_row(q->type, q->data + r * row_bytes, a, n);
        mf_dequantize_row(exact->type, exact->data + r * n * 4, b, n);
        for (size_t i = 0; i < n; i++) {
            err += pow((double)a[i] - (double)b[i], 2);
            sum += pow((double)b[i], 2);
        }
    }
    mf_free(a);
    mf_free(b);
    return sqrt(err / sum);
}

static int compare_models(const char *arch, size_t f)
{
    mf_gguf *q, *exact;
    minfer_error err;
    int compared = 0;
    const char *type = mf_type_name(formulas[f].type);
    assert_ok(mf_gguf_open(fixture_path("tiny/tiny-%s-%s.gguf", arch, type), &q, &err), &err);
    assert_ok(mf_gguf_open(fixture_path("tiny/tiny-%s-F32.gguf", arch), &exact, &err), &err);
    for (size_t i = 0; i < mf_gguf_n_tensors(q); i++) {
        const mf_gguf_tensor *t = mf_gguf_tensor_at(q, i), *e = mf_gguf_find_tensor(exact, t->cname);
        if (t->type != formulas[f].type) continue;
        assert_non_null(e);
        double rms = rms_against(t, e);
        if (rms > formulas[f].rms) fail_msg("%s %s %s: relative rms error %g", arch, type, t->cname, rms);
        compared++;
    }
    mf_gguf_free(q);
    mf_gguf_free(exact);
    return compared;
}

static void test_fixtures(void **state)
{
    (void)state;
    static const char *const archs[] = {"qwen2", "qwen3", "llama"};
    if (!file_exists(fixture_path("tiny/index.json"))) SKIP_BECAUSE("%s is absent", fixture_path("tiny"));
    for (size_t f = 0; f < N_FORMULAS; f++)
        for (size_t a = 0; a < 3; a++) assert_true(compare_models(archs[a], f) >= 15);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_formulas),
        cmocka_unit_test(test_other_types_write_nothing),
        cmocka_unit_test(test_golden),
        cmocka_unit_test(test_fixtures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
