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

#endif
