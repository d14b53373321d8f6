/* Scalar kernels that faster tiers fall back to for shapes without a fast path, and constants they share. */
#ifndef MF_BACKENDS_CPU_REF_ROWS_H
#define MF_BACKENDS_CPU_REF_ROWS_H

#include "backends/cpu/kernels.h"

#define CPU_Q8_0_MIN \
    0x1p-118f /* a block of smaller values is stored as zeros: 127 / amax would soon overflow */
enum { CPU_F16_NAN = 0x7e00 };

cpu_attn_tile_fn cpu_attn_tile_ref;
cpu_attn_merge_fn cpu_attn_merge_ref;
cpu_rope_fn cpu_rope_ref;

/* s[r * CPU_ATTN_TILE + c] = q . k of rows [first, first + rows), rows <= CPU_TILE_SMALL, with the cells up
 * to the last one that any of them sees, for packed K: a product of Q8_0 rows and quantized queries, by a
 * tier's own kernels. */
void cpu_attn_dots_q8_0(const cpu_attn_tile *a, int32_t first, int32_t rows, cpu_quantize_fn *quantize,
                        cpu_matmul_fn *matmul, float *s);

#endif
