/* What the files of the ARM tier share. Its kernels need dotprod; those named i8mm also the matrix products
 * of bytes, and are used where the processor has them. */
#ifndef MF_BACKENDS_CPU_ARM_ARM_H
#define MF_BACKENDS_CPU_ARM_ARM_H

#include "backends/cpu/simd/simd.h"

SIMD_KERNELS(neon);
cpu_quantize_fn cpu_quantize_neon;

/* More than CPU_TILE_SMALL tokens; fewer go to the kernels above. */
cpu_matmul_fn cpu_matmul_q4_0_i8mm, cpu_matmul_q4_1_i8mm, cpu_matmul_q5_0_i8mm, cpu_matmul_q5_1_i8mm,
    cpu_matmul_q8_0_i8mm, cpu_matmul_q4_k_i8mm, cpu_matmul_q5_k_i8mm, cpu_matmul_q6_k_i8mm;

#endif
