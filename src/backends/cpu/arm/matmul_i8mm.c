/* Many tokens of the quantized types on processors with matrix products of bytes: one instruction multiplies
 * 8 bytes of two rows with 8 bytes of two tokens, twice the work of a dot product. A panel is unpacked as for
 * the dot products and then paired: vectors 2i and 2i + 1 of its weights hold 8 weights of rows 0 and 1, and
 * of rows 2 and 3; each vector of its head stands twice, for rows 0 0 1 1 and 2 2 3 3. Sums lie as the
 * instruction leaves them, row 0 with tokens 0 and 1, then row 1, until a tile is finished. Up to
 * CPU_TILE_SMALL tokens go to the dot products. Scalar twin: ref/matmul.c. Test: tests/cpu/test_matmul.c. */
#include "backends/cpu/arm/vec_neon.h"

#include "backends/cpu/simd/panel.inc"

#include "backends/cpu/simd/matmul_k.inc"
#include "backends/cpu/simd/matmul_q32.inc"

enum { PAIRS = CPU_TILE / 2 }; /* of tokens, at most */

/* ---- panels */

/* unpack: as for the dot products, to `weights` vectors and a head. */
V_INLINE void unpack_paired(simd_unpack_fn *unpack, size_t block_bytes, int weights, int head,
                            const simd_panel *p, size_t blocks, vi *out)
{
    simd_panel one = *p;
    vi block[K_WEIGHTS + K4_HEAD];
    for (size_t b = 0; b < blocks; b++) {
        unpack(&one, 1, block);
        for (int i = 0; i < weights; i += 2) {
            *out++ = vi_lo32(block[i], block[i + 1]);
            *out++ = vi_hi32(block[i], block[i + 1]);
        }
        for (int i = weights; i < weights + head; i++) {
            *out++ = vi_lo32(block[i], block[i]);
            *out++ = vi_hi32(block[i], block[i]);
        }
        one.w += block_bytes;
        one.next += block_bytes * V_LANES;
    }
}

/* ---- outputs. f[h * PAIRS + p]: rows 2h and 2h + 1 with tokens 2p and 2p + 1 of nt. */

V_INLINE void load_paired(int nt, vf *f, const float *y, size_t ldy, uint32_t lanes, bool first)
{
    V_UNROLL for (int t = 0; t < nt; t += 2)
    {
        vf a = vf_zero(), b = a;
        if (!first) a = vf_load_lanes(y + (size_t)t * ldy, lanes);
        if (!first && t + 1 < nt) b = vf_load_lanes(y + (size_t)(t + 1) * ldy, lanes);
        f[t / 2] = vzip1q_f32(a, b);
        f[PAIRS + t / 2] = vzip2q_f32(a, b);
    }
}

V_INLINE void store_paired(int nt, const vf *f, float *y, size_t ldy, uint32_t lanes)
{
    V_UNROLL for (int t = 0; t < nt; t += 2)
    {
        vf a = f[t / 2], b = f[PAIRS + t / 2];
        vf_store_lanes(y + (size_t)t * ldy, lanes, vuzp1q_f32(a, b));
        if (t + 1 < nt) vf_store_lanes(y + (size_t)(t + 1) * ldy, lanes, vuzp2q_f32(a, b));
    }
}

/* ---- products */

/* A dword of tokens 2p and 2p + 1 of nt, twice; entry: of the tile. */
V_INLINE vi cast_pair(int nt, const int32_t *entry, int p)
{
    if (2 * p + 1 == nt) return vi_cast32(entry + 2 * p);
    int32x2_t two = vld1_s32(entry + 2 * p);
    return vcombine_s32(two, two);
}

#define vf_cast_pair(nt, entry, p) vi_bits(cast_pair(nt, entry, p))

/* sum[h * PAIRS + p] += products of n vectors of paired weights with n entries of nt tokens. */
V_INLINE void matrix_dots(int nt, int n, const vi *w, const int32_t *q, vi *sum)
{
    V_UNROLL for (int g = 0; g < n / 2; g++)
    {
        V_UNROLL for (int h = 0; h < 2; h++)
        {
            V_UNROLL for (int p = 0; 2 * p < nt; p++)
            {
                vi *s = &sum[h * PAIRS + p];
                *s = vmmlaq_s32(*s, v_s8(w[2 * g + h]), v_s8(v_token_pair(nt, q, g, p)));
            }
        }
    }
}

/* sum = where the sums of one of the panels start; entry: of the tile, NULL for 0. */
V_INLINE void start_paired(int nt, const int32_t *entry, vi *sum)
{
    V_UNROLL for (int p = 0; 2 * p < nt; p++) sum[p] = sum[PAIRS + p] = entry ? cast_pair(nt, entry, p)
                                                                              : vi_zero();
}

V_INLINE void q32_paired_step(mf_type type, int nt, const vi *w, const int32_t *tile, vf *f)
{
    const vi *d = w + 8, *m = w + 10;
    vi sum[2 * PAIRS];
    start_paired(nt, type == MF_TYPE_Q4_0 || type == MF_TYPE_Q5_0 ? tile + ACT_Z * nt : NULL, sum);
    if (type == MF_TYPE_Q5_0) {
        V_UNROLL for (int p = 0; 2 * p < nt; p++) sum[p] = sum[PAIRS + p] = vi_sll32(sum[p], 1);
    }
    matrix_dots(nt, 8, w, tile + ACT_Q * nt, sum);
    V_UNROLL for (int h = 0; h < 2; h++)
    {
        V_UNROLL for (int p = 0; 2 * p < nt; p++)
        {
            vf *y = &f[h * PAIRS + p], da = vf_cast_pair(nt, tile + ACT_D * nt, p);
            *y = vf_fma(vf_from(sum[h * PAIRS + p]), vf_mul(vi_bits(d[h]), da), *y);
            if (Q32_HAS_MIN(type)) *y = vf_fma(vi_bits(m[h]), vf_cast_pair(nt, tile + ACT_DS * nt, p), *y);
        }
    }
}

V_INLINE void q32_paired(mf_type type, int panels, int nt, const simd_product *p)
{
    vf f[2][2 * PAIRS];
    const int32_t *tile = p->tile;
    const int vectors = 8 + 2 * (Q32_VECTORS(type) - 8);
    V_UNROLL for (int r = 0; r < panels; r++) load_paired(nt, f[r], p->y[r], p->ldy, p->lanes[r], p->first);
    for (size_t b = 0; b < p->blocks; b++, tile += ACT_DWORDS * nt) {
        V_UNROLL for (int r = 0; r < panels; r++)
            q32_paired_step(type, nt, (const vi *)p->panel[r] + b * (size_t)vectors, tile, f[r]);
    }
    V_UNROLL for (int r = 0; r < panels; r++) store_paired(nt, f[r], p->y[r], p->ldy, p->lanes[r]);
}

/* Adds a block of 32 to the inner chains. head: the paired head at this sub-block. */
V_INLINE void k4_paired_step(int nt, const vi *w, const vi *head, const int32_t *tile, vf *s, vf *m)
{
    vi sum[2 * PAIRS];
    start_paired(nt, NULL, sum);
    matrix_dots(nt, 8, w, tile + ACT_Q * nt, sum);
    V_UNROLL for (int h = 0; h < 2; h++)
    {
        V_UNROLL for (int p = 0; 2 * p < nt; p++)
        {
            const int i = h * PAIRS + p;
            s[i] = vf_fma(vf_from(vi_mul32(sum[i], head[h])), vf_cast_pair(nt, tile + ACT_D * nt, p), s[i]);
            m[i] = vf_fma(vi_bits(head[2 * K4_MIN + h]), vf_cast_pair(nt, tile + ACT_DS * nt, p), m[i]);
        }
    }
}

V_INLINE void k4_paired(mf_type type, int panels, int nt, const simd_product *p)
{
    vf f[2 * PAIRS];
    const vi *w = p->panel[0], *head = w + K_WEIGHTS;
    const int32_t *tile = p->tile;
    (void)type, (void)panels;
    load_paired(nt, f, p->y[0], p->ldy, p->lanes[0], p->first);
    for (size_t b = 0; b < p->blocks; b++, w += 2 * K4_HEAD, head = w + K_WEIGHTS) {
        vf s[2 * PAIRS], m[2 * PAIRS];
        V_UNROLL for (int i = 0; i < 2 * PAIRS; i++) s[i] = m[i] = vf_zero();
        V_LOOP for (int j = 0; j < 8; j++, w += 8, tile += ACT_DWORDS * nt)
            k4_paired_step(nt, w, head + 2 * j, tile, s, m);
        V_UNROLL for (int h = 0; h < 2; h++)
        {
            vf d = vi_bits(head[2 * K4_D + h]), dmin = vi_bits(head[2 * (K4_D + 1) + h]);
            V_UNROLL for (int i = h * PAIRS; 2 * (i - h * PAIRS) < nt; i++)
                f[i] = vf_fnma(dmin, m[i], vf_fma(d, s[i], f[i]));
        }
    }
    store_paired(nt, f, p->y[0], p->ldy, p->lanes[0]);
}

/* The same for Q6_K: the two halves of a block have sub-scales of their own. */
V_INLINE void k6_paired_step(int nt, const vi *w, const vi *head, const int32_t *tile, vf *s)
{
    vi first[2 * PAIRS], second[2 * PAIRS];
    start_paired(nt, tile + ACT_Z16 * nt, first);
    start_paired(nt, tile + (ACT_Z16 + 1) * nt, second);
    matrix_dots(nt, 4, w, tile + ACT_Q * nt, first);
    matrix_dots(nt, 4, w + 4, tile + (ACT_Q + 4) * nt, second);
    V_UNROLL for (int h = 0; h < 2; h++)
    {
        V_UNROLL for (int p = 0; 2 * p < nt; p++)
        {
            const int i = h * PAIRS + p;
            vi sum = vmlaq_s32(vi_mul32(first[i], head[h]), second[i], head[2 + h]);
            s[i] = vf_fma(vf_from(sum), vf_cast_pair(nt, tile + ACT_D * nt, p), s[i]);
        }
    }
}

V_INLINE void k6_paired(mf_type type, int panels, int nt, const simd_product *p)
{
    vf f[2 * PAIRS];
    const vi *w = p->panel[0], *head = w + K_WEIGHTS;
    const int32_t *tile = p->tile;
    (void)type, (void)panels;
    load_paired(nt, f, p->y[0], p->ldy, p->lanes[0], p->first);
    for (size_t b = 0; b < p->blocks; b++, w += 2 * K6_HEAD, head = w + K_WEIGHTS) {
        vf s[2 * PAIRS];
        V_UNROLL for (int i = 0; i < 2 * PAIRS; i++) s[i] = vf_zero();
        V_LOOP for (int j = 0; j < 8; j++, w += 8, tile += ACT_DWORDS * nt)
            k6_paired_step(nt, w, head + 4 * j, tile, s);
        V_UNROLL for (int h = 0; h < 2; h++) V_UNROLL for (int i = h * PAIRS; 2 * (i - h * PAIRS) < nt; i++)
            f[i] = vf_fma(vi_bits(head[2 * K6_D + h]), s[i], f[i]);
    }
    store_paired(nt, f, p->y[0], p->ldy, p->lanes[0]);
}

/* ---- formats */

/* The paired kernels of a type, and its table. pairs: the table of products with two panels, or {NULL}. */
#define PAIRED_FORMAT(name, type, template, multiply, values, bytes, weights, head, pairs)       \
    UNPACK_KERNEL(name##_plain, type, template##_unpack)                                         \
    static void name##_unpack(const simd_panel *p, size_t blocks, void *out)                     \
    {                                                                                            \
        unpack_paired(name##_plain_unpack, bytes, weights, head, p, blocks, out);                \
    }                                                                                            \
    PRODUCT_KERNELS(name, type, multiply, 1)                                                     \
    static const simd_format name##_format = {.block_values = values,                            \
                                              .block_bytes = bytes,                              \
                                              .lanes = V_LANES,                                  \
                                              .panel_bytes = ((weights) + 2 * (head)) * V_BYTES, \
                                              .unit_bytes = V_UNIT_BYTES,                        \
                                              .unpack = name##_unpack,                           \
                                              .product = {PRODUCT_TABLE(name, 1), pairs}};
#define PAIRED_Q32(name, type)                                                                     \
    PRODUCT_KERNELS(name, type, q32_paired, 2)                                                     \
    PAIRED_FORMAT(name, type, q32, q32_paired, MF_QK32, Q32_BYTES(type), 8, Q32_VECTORS(type) - 8, \
                  PRODUCT_TABLE(name, 2))
#define PAIRED_K(name, type, family, head) \
    PAIRED_FORMAT(name, type, family, family##_paired, MF_QK256, K_BYTES(type), K_WEIGHTS, head, {NULL})

PAIRED_Q32(q4_0, MF_TYPE_Q4_0)
PAIRED_Q32(q4_1, MF_TYPE_Q4_1)
PAIRED_Q32(q5_0, MF_TYPE_Q5_0)
PAIRED_Q32(q5_1, MF_TYPE_Q5_1)
PAIRED_Q32(q8_0, MF_TYPE_Q8_0)
PAIRED_K(q4_k, MF_TYPE_Q4_K, k4, K4_HEAD)
PAIRED_K(q5_k, MF_TYPE_Q5_K, k4, K4_HEAD)
PAIRED_K(q6_k, MF_TYPE_Q6_K, k6, K6_HEAD)

static void run(const simd_format *many, cpu_matmul_fn *few, const cpu_matmul *m, int32_t r0, int32_t r1)
{
    if (m->nt <= CPU_TILE_SMALL)
        few(m, r0, r1);
    else
        cpu_matmul_simd(many, m, r0, r1);
}

void cpu_matmul_q4_0_i8mm(const cpu_matmul *m, int32_t r0, int32_t r1)
{
    run(&q4_0_format, cpu_matmul_q4_0_neon, m, r0, r1);
}

void cpu_matmul_q4_1_i8mm(const cpu_matmul *m, int32_t r0, int32_t r1)
{
    run(&q4_1_format, cpu_matmul_q4_1_neon, m, r0, r1);
}

void cpu_matmul_q5_0_i8mm(const cpu_matmul *m, int32_t r0, int32_t r1)
{
    run(&q5_0_format, cpu_matmul_q5_0_neon, m, r0, r1);
}

void cpu_matmul_q5_1_i8mm(const cpu_matmul *m, int32_t r0, int32_t r1)
{
    run(&q5_1_format, cpu_matmul_q5_1_neon, m, r0, r1);
}

void cpu_matmul_q8_0_i8mm(const cpu_matmul *m, int32_t r0, int32_t r1)
{
    run(&q8_0_format, cpu_matmul_q8_0_neon, m, r0, r1);
}

void cpu_matmul_q4_k_i8mm(const cpu_matmul *m, int32_t r0, int32_t r1)
{
    run(&q4_k_format, cpu_matmul_q4_k_neon, m, r0, r1);
}

void cpu_matmul_q5_k_i8mm(const cpu_matmul *m, int32_t r0, int32_t r1)
{
    run(&q5_k_format, cpu_matmul_q5_k_neon, m, r0, r1);
}

void cpu_matmul_q6_k_i8mm(const cpu_matmul *m, int32_t r0, int32_t r1)
{
    run(&q6_k_format, cpu_matmul_q6_k_neon, m, r0, r1);
}
