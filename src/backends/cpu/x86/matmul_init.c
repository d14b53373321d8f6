/* The x86 tiers' own entries in the kernel table. */
#include "backends/cpu/simd/simd.h"

#define X86_INIT(k, tier)                                   \
    do {                                                    \
        (k)->matmul[MF_TYPE_F32] = cpu_matmul_f32_##tier;   \
        (k)->matmul[MF_TYPE_F16] = cpu_matmul_f16_##tier;   \
        (k)->matmul[MF_TYPE_BF16] = cpu_matmul_bf16_##tier; \
        (k)->matmul[MF_TYPE_Q4_0] = cpu_matmul_q4_0_##tier; \
        (k)->matmul[MF_TYPE_Q4_1] = cpu_matmul_q4_1_##tier; \
        (k)->matmul[MF_TYPE_Q5_0] = cpu_matmul_q5_0_##tier; \
        (k)->matmul[MF_TYPE_Q5_1] = cpu_matmul_q5_1_##tier; \
        (k)->matmul[MF_TYPE_Q8_0] = cpu_matmul_q8_0_##tier; \
        (k)->matmul[MF_TYPE_Q4_K] = cpu_matmul_q4_k_##tier; \
        (k)->matmul[MF_TYPE_Q5_K] = cpu_matmul_q5_k_##tier; \
        (k)->matmul[MF_TYPE_Q6_K] = cpu_matmul_q6_k_##tier; \
    } while (0)

void cpu_matmul_init_avx2(cpu_kernels *k)
{
    X86_INIT(k, avx2);
    k->quantize = cpu_quantize_avx2;
}

void cpu_matmul_init_avx512(cpu_kernels *k)
{
    X86_INIT(k, avx512);
}
