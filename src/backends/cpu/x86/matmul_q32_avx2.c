/* Q4_0, Q4_1, Q5_0, Q5_1 and Q8_0 on AVX2, FMA and F16C: matmul_q32.inc with the words of vec_avx2.h. */
#include "backends/cpu/x86/vec_avx2.h"

#include "backends/cpu/simd/panel.inc"

#include "backends/cpu/simd/matmul_q32.inc"

Q32_FORMAT(q4_0, MF_TYPE_Q4_0, q32_few, {NULL})
Q32_FORMAT(q4_1, MF_TYPE_Q4_1, q32_few, {NULL})
Q32_FORMAT(q5_0, MF_TYPE_Q5_0, q32_few, {NULL})
Q32_FORMAT(q5_1, MF_TYPE_Q5_1, q32_few, {NULL})
Q32_FORMAT(q8_0, MF_TYPE_Q8_0, q32_few, {NULL})

void cpu_matmul_q4_0_avx2(const cpu_matmul *m, int32_t r0, int32_t r1)
{
    cpu_matmul_simd(&q4_0_format, m, r0, r1);
}

void cpu_matmul_q4_1_avx2(const cpu_matmul *m, int32_t r0, int32_t r1)
{
    cpu_matmul_simd(&q4_1_format, m, r0, r1);
}

void cpu_matmul_q5_0_avx2(const cpu_matmul *m, int32_t r0, int32_t r1)
{
    cpu_matmul_simd(&q5_0_format, m, r0, r1);
}

void cpu_matmul_q5_1_avx2(const cpu_matmul *m, int32_t r0, int32_t r1)
{
    cpu_matmul_simd(&q5_1_format, m, r0, r1);
}

void cpu_matmul_q8_0_avx2(const cpu_matmul *m, int32_t r0, int32_t r1)
{
    cpu_matmul_simd(&q8_0_format, m, r0, r1);
}
