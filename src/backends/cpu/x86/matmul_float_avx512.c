/* F32, F16 and BF16 weights on AVX-512: matmul_float.inc with the words of vec_avx512.h. 4 rows and
 * 6 tokens take 24 of the 32 registers. */
#include "backends/cpu/x86/vec_avx512.h"

#include "backends/cpu/simd/matmul_float.inc"

/* clang-format off */
#define FLOAT_KERNELS(name, type) \
    FLOAT_KERNEL(name, type, 1, 1) FLOAT_KERNEL(name, type, 1, 2) FLOAT_KERNEL(name, type, 1, 3) \
    FLOAT_KERNEL(name, type, 1, 4) FLOAT_KERNEL(name, type, 1, 5) FLOAT_KERNEL(name, type, 1, 6) \
    FLOAT_KERNEL(name, type, 4, 1) FLOAT_KERNEL(name, type, 4, 2) FLOAT_KERNEL(name, type, 4, 3) \
    FLOAT_KERNEL(name, type, 4, 4) FLOAT_KERNEL(name, type, 4, 5) FLOAT_KERNEL(name, type, 4, 6)
/* clang-format on */
#define FLOAT_TABLES(name)                                                                                   \
    .rows = 4, .tokens = 6, .one = {name##_1_1, name##_1_2, name##_1_3, name##_1_4, name##_1_5, name##_1_6}, \
    .full = {name##_4_1, name##_4_2, name##_4_3, name##_4_4, name##_4_5, name##_4_6}

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

void cpu_matmul_f32_avx512(const cpu_matmul *m, int32_t r0, int32_t r1)
{
    cpu_matmul_simd_float(&f32_format, m, r0, r1);
}

void cpu_matmul_f16_avx512(const cpu_matmul *m, int32_t r0, int32_t r1)
{
    cpu_matmul_simd_float(&f16_format, m, r0, r1);
}

void cpu_matmul_bf16_avx512(const cpu_matmul *m, int32_t r0, int32_t r1)
{
    cpu_matmul_simd_float(&bf16_format, m, r0, r1);
}
