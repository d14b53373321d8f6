/* gguf: the table of tensor types and the sizes that follow from it. */
#include "support/support.h"

#include "gguf/types.h"

typedef enum { WEIGHT_F, WEIGHT_Q, LISTED, REMOVED } role;

/* Written down from GGML_QUANT_SIZES of the Python package gguf 0.19, and for Q2_0 from ggml of the same
 * months. The package's Q8_1 has 40 bytes, an older layout with two float scales: no file holds that type,
 * and ggml's blocks have 36. */
static const struct {
    uint32_t id;
    const char *name;
    int values, bytes;
    role role;
} expected[] = {
    {0, "F32", 1, 4, WEIGHT_F},        {1, "F16", 1, 2, WEIGHT_F},        {2, "Q4_0", 32, 18, WEIGHT_Q},
    {3, "Q4_1", 32, 20, WEIGHT_Q},     {4, "Q4_2", 0, 0, REMOVED},        {5, "Q4_3", 0, 0, REMOVED},
    {6, "Q5_0", 32, 22, WEIGHT_Q},     {7, "Q5_1", 32, 24, WEIGHT_Q},     {8, "Q8_0", 32, 34, WEIGHT_Q},
    {9, "Q8_1", 32, 36, LISTED},       {10, "Q2_K", 256, 84, LISTED},     {11, "Q3_K", 256, 110, LISTED},
    {12, "Q4_K", 256, 144, WEIGHT_Q},  {13, "Q5_K", 256, 176, WEIGHT_Q},  {14, "Q6_K", 256, 210, WEIGHT_Q},
    {15, "Q8_K", 256, 292, LISTED},    {16, "IQ2_XXS", 256, 66, LISTED},  {17, "IQ2_XS", 256, 74, LISTED},
    {18, "IQ3_XXS", 256, 98, LISTED},  {19, "IQ1_S", 256, 50, LISTED},    {20, "IQ4_NL", 32, 18, LISTED},
    {21, "IQ3_S", 256, 110, LISTED},   {22, "IQ2_S", 256, 82, LISTED},    {23, "IQ4_XS", 256, 136, LISTED},
    {24, "I8", 1, 1, LISTED},          {25, "I16", 1, 2, LISTED},         {26, "I32", 1, 4, LISTED},
    {27, "I64", 1, 8, LISTED},         {28, "F64", 1, 8, LISTED},         {29, "IQ1_M", 256, 56, LISTED},
    {30, "BF16", 1, 2, WEIGHT_F},      {31, "Q4_0_4_4", 0, 0, REMOVED},   {32, "Q4_0_4_8", 0, 0, REMOVED},
    {33, "Q4_0_8_8", 0, 0, REMOVED},   {34, "TQ1_0", 256, 54, LISTED},    {35, "TQ2_0", 256, 66, LISTED},
    {36, "IQ4_NL_4_4", 0, 0, REMOVED}, {37, "IQ4_NL_4_8", 0, 0, REMOVED}, {38, "IQ4_NL_8_8", 0, 0, REMOVED},
    {39, "MXFP4", 32, 17, LISTED},     {40, "NVFP4", 64, 36, LISTED},     {41, "Q1_0", 128, 18, LISTED},
    {42, "Q2_0", 64, 18, LISTED},
};
enum { N_EXPECTED = sizeof expected / sizeof *expected };

static void test_table(void **state)
{
    (void)state;
    assert_int_equal(N_EXPECTED, MF_TYPE_COUNT);
    for (uint32_t i = 0; i < N_EXPECTED; i++) {
        const mf_type_info *t = mf_type_get(i);
        assert_int_equal(expected[i].id, i);
        assert_string_equal(t->name, expected[i].name);
        assert_string_equal(mf_type_name((mf_type)i), expected[i].name);
        assert_int_equal(t->block_values, expected[i].values);
        assert_int_equal(t->block_bytes, expected[i].bytes);
        assert_int_equal(t->weight, expected[i].role == WEIGHT_F || expected[i].role == WEIGHT_Q);
        assert_int_equal(t->quantized, expected[i].role == WEIGHT_Q);
    }
    for (uint32_t i = N_EXPECTED; i < 1000; i++) assert_null(mf_type_get(i)->name);
    assert_null(mf_type_get(UINT32_MAX)->name);
    assert_string_equal(mf_type_name((mf_type)43), "?");
}

static void test_row_bytes(void **state)
{
    (void)state;
    size_t n = 7;
    assert_true(mf_type_row_bytes(MF_TYPE_Q4_K, 1536, &n) && n == 864);
    assert_true(mf_type_row_bytes(MF_TYPE_Q8_0, 576, &n) && n == 612);
    assert_true(mf_type_row_bytes(MF_TYPE_BF16, 3, &n) && n == 6);
    assert_true(mf_type_row_bytes(MF_TYPE_F32, 0, &n) && n == 0);
    assert_false(mf_type_row_bytes(MF_TYPE_Q8_0, 33, &n));
    assert_false(mf_type_row_bytes(MF_TYPE_Q6_K, 128, &n));
    assert_false(mf_type_row_bytes(MF_TYPE_F32, (uint64_t)1 << 62, &n));
    assert_true(mf_type_row_bytes(MF_TYPE_F32, ((uint64_t)1 << 62) - 1, &n) && n == SIZE_MAX - 3);
    assert_false(mf_type_row_bytes((mf_type)4, 32, &n));
    assert_false(mf_type_row_bytes((mf_type)999, 32, &n));
}

/* The shapes of CVE-2026-33298 and its kin: products that wrap to something small. */
static void test_tensor_bytes(void **state)
{
    (void)state;
    static const uint64_t too_big[][4] = {
        {8, ((uint64_t)1 << 59) + 1, 1, 1},
        {(uint64_t)1 << 32, (uint64_t)1 << 32, 1, 1},
        {1 << 16, 1 << 16, 1 << 16, 1 << 16},
        {(uint64_t)1 << 62, 1, 1, 1},
        {UINT64_MAX, 1, 1, 1},
        {1, UINT64_MAX, UINT64_MAX, UINT64_MAX},
        {4, (uint64_t)1 << 61, 4, 1},
        {1, (uint64_t)1 << 32, (uint64_t)1 << 32, 1},
    };
    size_t n = 0;
    for (size_t i = 0; i < sizeof too_big / sizeof *too_big; i++)
        assert_false(mf_type_tensor_bytes(MF_TYPE_F32, too_big[i], &n));
    assert_true(mf_type_tensor_bytes(MF_TYPE_Q6_K, (uint64_t[]){1536, 151936, 1, 1}, &n) && n == 191439360);
    assert_true(mf_type_tensor_bytes(MF_TYPE_F32, (uint64_t[]){2, 3, 4, 5}, &n) && n == 480);
    assert_false(mf_type_tensor_bytes(MF_TYPE_Q2_K, (uint64_t[]){256, (uint64_t)1 << 55, 1, 1}, &n));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_row_bytes),
        cmocka_unit_test(test_tensor_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
