/* Q4_K, Q5_K and Q6_K on AVX2, FMA and F16C: matmul_k.inc with the words of vec_avx2.h. */
#include "backends/cpu/x86/vec_avx2.h"

#include "backends/cpu/simd/panel.inc"

#include "backends/cpu/simd/matmul_k.inc"

K_FORMAT(q4_k, MF_TYPE_Q4_K, k4_few, k4, K4_HEAD)
K_FORMAT(q5_k, MF_TYPE_Q5_K, k4_few, k4, K4_HEAD)
K_FORMAT(q6_k, MF_TYPE_Q6_K, k6_few, k6, K6_HEAD)

void cpu_matmul_q4_k_avx2(const cpu_matmul *m, int32_t r0, int32_t r1)
{
    cpu_matmul_simd(&q4_k_format, m, r0, r1);
}

void cpu_matmul_q5_k_avx2(const cpu_matmul *m, int32_t r0, int32_t r1)
{
    cpu_matmul_simd(&q5_k_format, m, r0, r1);
}

void cpu_matmul_q6_k_avx2(const cpu_matmul *m, int32_t r0, int32_t r1)
{
    if (m->nt == 1 && m->k <= Q6_ROWS_K)
        cpu_matmul_q6_k_rows_avx2(m, r0, r1);
    else
        cpu_matmul_simd(&q6_k_format, m, r0, r1);
}
