/* Q4_0, Q4_1, Q5_0, Q5_1 and Q8_0 on NEON with dotprod: matmul_q32.inc with the words of vec_neon.h. */
#include "backends/cpu/arm/vec_neon.h"

#include "backends/cpu/simd/panel.inc"

#include "backends/cpu/simd/matmul_q32.inc"

PRODUCT_KERNELS(q4_0, MF_TYPE_Q4_0, q32_product, 2)
Q32_FORMAT(q4_0, MF_TYPE_Q4_0, q32_few, PRODUCT_TABLE(q4_0, 2))
PRODUCT_KERNELS(q4_1, MF_TYPE_Q4_1, q32_product, 2)
Q32_FORMAT(q4_1, MF_TYPE_Q4_1, q32_few, PRODUCT_TABLE(q4_1, 2))
PRODUCT_KERNELS(q5_0, MF_TYPE_Q5_0, q32_product, 2)
Q32_FORMAT(q5_0, MF_TYPE_Q5_0, q32_few, PRODUCT_TABLE(q5_0, 2))
PRODUCT_KERNELS(q5_1, MF_TYPE_Q5_1, q32_product, 2)
Q32_FORMAT(q5_1, MF_TYPE_Q5_1, q32_few, PRODUCT_TABLE(q5_1, 2))
PRODUCT_KERNELS(q8_0, MF_TYPE_Q8_0, q32_product, 2)
Q32_FORMAT(q8_0, MF_TYPE_Q8_0, q32_few, PRODUCT_TABLE(q8_0, 2))

void cpu_matmul_q4_0_neon(const cpu_matmul *m, int32_t r0, int32_t r1)
{
    cpu_matmul_simd(&q4_0_format, m, r0, r1);
}

void cpu_matmul_q4_1_neon(const cpu_matmul *m, int32_t r0, int32_t r1)
{
    cpu_matmul_simd(&q4_1_format, m, r0, r1);
}

void cpu_matmul_q5_0_neon(const cpu_matmul *m, int32_t r0, int32_t r1)
{
    cpu_matmul_simd(&q5_0_format, m, r0, r1);
}

void cpu_matmul_q5_1_neon(const cpu_matmul *m, int32_t r0, int32_t r1)
{
    cpu_matmul_simd(&q5_1_format, m, r0, r1);
}

void cpu_matmul_q8_0_neon(const cpu_matmul *m, int32_t r0, int32_t r1)
{
    cpu_matmul_simd(&q8_0_format, m, r0, r1);
}
