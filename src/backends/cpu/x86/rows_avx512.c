/* Attention, norms and elements with AVX-512 F, BW, VL, DQ. Every kernel gives the bits of its scalar twin
 * cpu_..._ref in ref/attn.c and ref/rows.c; tests/cpu/test_attn.c and tests/cpu/test_rows.c compare them.
 * Rotation and KV storage are those of the AVX2 tier: they move memory. */
#include "backends/cpu/ref/rows.h"

#include "backends/cpu/simd/simd.h"
#include "backends/cpu/x86/vec16.h"
#include "base/bytes.h"

#include "backends/cpu/simd/rows.inc"

#define GROUP     6 /* 24 sums of dot products, four cells and a query need 29 of the 32 registers */
#define GROUPS(X) X(1) X(2) X(3) X(4) X(5) X(6)

static void packed_dots(const cpu_attn_tile *a, int32_t first, int32_t rows, float *s)
{
    cpu_attn_dots_q8_0(a, first, rows, cpu_quantize_avx2, cpu_matmul_q8_0_avx512, s);
}

#include "backends/cpu/simd/attn.inc"

#include "backends/cpu/simd/rows_kernels.inc"

void cpu_rows_init_avx512(cpu_kernels *k)
{
    init_rows(k);
}
