/* Q4_K, Q5_K and Q6_K on AVX-512 with VNNI: matmul_k.inc with the words of vec_avx512.h. */
#include "backends/cpu/x86/vec_avx512.h"

#include "backends/cpu/simd/panel.inc"

#include "backends/cpu/simd/matmul_k.inc"

#include "backends/cpu/x86/few.inc"

#include "backends/cpu/x86/matmul_k_few.inc"

K_FORMAT(q4_k, MF_TYPE_Q4_K, k4_few_ahead, k4, K4_HEAD)
K_FORMAT(q5_k, MF_TYPE_Q5_K, k4_few_ahead, k4, K4_HEAD)
K_FORMAT(q6_k, MF_TYPE_Q6_K, k6_few_ahead, k6, K6_HEAD)

void cpu_matmul_q4_k_avx512(const cpu_matmul *m, int32_t r0, int32_t r1)
{
    cpu_matmul_simd(&q4_k_format, m, r0, r1);
}

void cpu_matmul_q5_k_avx512(const cpu_matmul *m, int32_t r0, int32_t r1)
{
    cpu_matmul_simd(&q5_k_format, m, r0, r1);
}

void cpu_matmul_q6_k_avx512(const cpu_matmul *m, int32_t r0, int32_t r1)
{
    cpu_matmul_simd(&q6_k_format, m, r0, r1);
}
