/* F32, F16 and BF16 weights on AVX2, FMA and F16C: matmul_float.inc with the words of vec_avx2.h. 3 rows and
 * 2 tokens take 12 of the 16 registers. */
#include "backends/cpu/x86/vec_avx2.h"

#include "backends/cpu/simd/matmul_float.inc"

/* clang-format off */
#define FLOAT_KERNELS(name, type) \
    FLOAT_KERNEL(name, type, 1, 1) FLOAT_KERNEL(name, type, 1, 2) \
    FLOAT_KERNEL(name, type, 3, 1) FLOAT_KERNEL(name, type, 3, 2)
/* clang-format on */
#define FLOAT_TABLES(name) \
    .rows = 3, .tokens = 2, .one = {name##_1_1, name##_1_2}, .full = {name##_3_1, name##_3_2}

FLOAT_KERNELS(f32, MF_TYPE_F32)
FLOAT_KERNELS(f16, MF_TYPE_F16)
FLOAT_KERNELS(bf16, MF_TYPE_BF16)
FLOAT_CONVERT(f16, MF_TYPE_F16)
FLOAT_CONVERT(bf16, MF_TYPE_BF16)

static const simd_float_format f32_format = {.value_bytes = 4, FLOAT_TABLES(f32)};
static const simd_float_format f16_format = {
    .value_bytes = 2, FLOAT_TABLES(f16), .convert = f16_convert, .f32 = &f32_format};
static const simd_float_format bf16_format = {
    .value_bytes = 2, FLOAT_TABLES(bf16), .convert = bf16_convert, .f32 = &f32_format};

void cpu_matmul_f32_avx2(const cpu_matmul *m, int32_t r0, int32_t r1)
{
    cpu_matmul_simd_float(&f32_format, m, r0, r1);
}

void cpu_matmul_f16_avx2(const cpu_matmul *m, int32_t r0, int32_t r1)
{
    cpu_matmul_simd_float(&f16_format, m, r0, r1);
}

void cpu_matmul_bf16_avx2(const cpu_matmul *m, int32_t r0, int32_t r1)
{
    cpu_matmul_simd_float(&bf16_format, m, r0, r1);
}
