/* Q4_K, Q5_K and Q6_K on NEON with dotprod: matmul_k.inc with the words of vec_neon.h, and one token of Q6_K
 * as the template does it for the other two: products where the weights lie, a tree for each half of a block
 * of 32. Scalar twin: ref/matmul.c (rows256). Test: tests/cpu/test_matmul.c. */
#include "backends/cpu/arm/vec_neon.h"

#include "backends/cpu/simd/panel.inc"

#include "backends/cpu/simd/matmul_k.inc"

/* Half g (16 values) of four blocks of 32 with their activations at q, for four rows: sum[i] += scale * tree.
 * p: where half n of row 0's super-block has this half's bytes; bits: its upper bits; z: entry ACT_Z16 + g of
 * the first of the blocks; scale: of the first block's half. */
V_INLINE void k6_one_half(const uint8_t *p, const uint8_t *bits, size_t stride, const int8_t *q,
                          const int32_t *z, const vi *scale, vi *sum)
{
    vi dot[4][4], x[4];
    V_UNROLL for (int i = 0; i < 4; i++) x[i] = vi_cast128(q + 32 * i);
    V_UNROLL for (size_t r = 0; r < 4; r++)
    {
        vi low = vi_cast128(p + r * stride), high = vi_cast128(p + r * stride + 32);
        vi two = vi_cast128(bits + r * stride), w[4];
        w[0] = vi_or(nibble_low(low), vi_upper2(two, 0));
        w[1] = vi_or(nibble_low(high), vi_upper2(two, 1));
        w[2] = vi_or(nibble_high(low), vi_upper2(two, 2));
        w[3] = vi_or(nibble_high(high), vi_upper2(two, 3));
        V_UNROLL for (int i = 0; i < 4; i++) dot[i][r] = vdotq_s32(vi_zero(), v_s8(w[i]), v_s8(x[i]));
    }
    V_UNROLL for (int i = 0; i < 4; i++)
        sum[i] = vmlaq_s32(sum[i], vi_add32(tree4(dot[i]), vi_cast32(z + i * ACT_DWORDS)), scale[2 * i]);
}

V_INLINE void k6_one(const simd_panel *p, const cpu_act *a)
{
    const uint8_t *w = p->w, *next = p->next;
    const int32_t *tile = a->tiles;
    const int8_t *q = a->q;
    vf f = vf_zero();
    for (size_t b = 0; b < (size_t)a->k / 256; b++, w += MF_BYTES_Q6_K) {
        vi head[K6_HEAD];
        vf s = vf_zero();
        k6_unpack_head(w, p->stride, head);
        V_LOOP for (int n = 0; n < 2; n++, q += 128, tile += 4 * ACT_DWORDS)
        {
            vi sum[4] = {vi_zero(), vi_zero(), vi_zero(), vi_zero()};
            V_UNROLL for (int g = 0; g < 2; g++, next += k_quarter(MF_TYPE_Q6_K))
            {
                simd_prefetch(next, k_quarter(MF_TYPE_Q6_K));
                k6_one_half(w + 64 * n + 16 * g, w + 128 + 32 * n + 16 * g, p->stride, q + 16 * g,
                            tile + ACT_Z16 + g, head + 8 * n + g, sum);
            }
            V_UNROLL for (int i = 0; i < 4; i++)
                s = vf_fma(vf_from(sum[i]), vf_cast(tile + i * ACT_DWORDS + ACT_D), s);
        }
        f = vf_fma(vi_bits(head[K6_D]), s, f);
    }
    vf_store_lanes(p->y, p->lanes, f);
}

V_INLINE void k6_small(mf_type type, int nt, const simd_panel *p, const cpu_act *a, void *scratch)
{
    if (nt == 1)
        k6_one(p, a);
    else
        k6_few(type, nt, p, a, scratch);
}

K_FORMAT(q4_k, MF_TYPE_Q4_K, k4_few, k4, K4_HEAD)
K_FORMAT(q5_k, MF_TYPE_Q5_K, k4_few, k4, K4_HEAD)
K_FORMAT(q6_k, MF_TYPE_Q6_K, k6_small, k6, K6_HEAD)

void cpu_matmul_q4_k_neon(const cpu_matmul *m, int32_t r0, int32_t r1)
{
    cpu_matmul_simd(&q4_k_format, m, r0, r1);
}

void cpu_matmul_q5_k_neon(const cpu_matmul *m, int32_t r0, int32_t r1)
{
    cpu_matmul_simd(&q5_k_format, m, r0, r1);
}

void cpu_matmul_q6_k_neon(const cpu_matmul *m, int32_t r0, int32_t r1)
{
    cpu_matmul_simd(&q6_k_format, m, r0, r1);
}
