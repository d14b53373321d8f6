/* The ARM tier's own matmul entries in the kernel table. */
#include "backends/cpu/arm/arm.h"

#include "base/cpuarm.h"

void cpu_matmul_init_neon(cpu_kernels *k)
{
    SIMD_INIT(k, neon);
    k->quantize = cpu_quantize_neon;
    if (!mf_cpu_has_i8mm()) return;
    k->matmul[MF_TYPE_Q4_0] = cpu_matmul_q4_0_i8mm;
    k->matmul[MF_TYPE_Q4_1] = cpu_matmul_q4_1_i8mm;
    k->matmul[MF_TYPE_Q5_0] = cpu_matmul_q5_0_i8mm;
    k->matmul[MF_TYPE_Q5_1] = cpu_matmul_q5_1_i8mm;
    k->matmul[MF_TYPE_Q8_0] = cpu_matmul_q8_0_i8mm;
    k->matmul[MF_TYPE_Q4_K] = cpu_matmul_q4_k_i8mm;
    k->matmul[MF_TYPE_Q5_K] = cpu_matmul_q5_k_i8mm;
    k->matmul[MF_TYPE_Q6_K] = cpu_matmul_q6_k_i8mm;
}
