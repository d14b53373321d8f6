/* The x86 tiers' own entries in the kernel table. */
#include "backends/cpu/simd/simd.h"

void cpu_matmul_init_avx2(cpu_kernels *k)
{
    SIMD_INIT(k, avx2);
    k->quantize = cpu_quantize_avx2;
}

void cpu_matmul_init_avx512(cpu_kernels *k)
{
    SIMD_INIT(k, avx512);
    k->few = 16; /* beyond, unpacking once is as fast or faster */
}
