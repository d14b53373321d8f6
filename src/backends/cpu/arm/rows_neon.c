/* Attention, norms, elements, rotation and KV storage with NEON. Every kernel gives the bits of its scalar
 * twin cpu_..._ref in ref/attn.c and ref/rows.c; tests/cpu/test_attn.c and tests/cpu/test_rows.c compare
 * them.
 */
#include "backends/cpu/ref/rows.h"

#include "backends/cpu/arm/arm.h"
#include "backends/cpu/arm/block32.h"
#include "base/bytes.h"
#include "base/half.h"

#include "backends/cpu/arm/vec4.h"

#include "backends/cpu/simd/rows.inc"

#define GROUP     6 /* 24 sums of dot products, four cells and a query need 29 of the 32 registers */
#define GROUPS(X) X(1) X(2) X(3) X(4) X(5) X(6)

static void packed_dots(const cpu_attn_tile *a, int32_t first, int32_t rows, float *s)
{
    cpu_attn_dots_q8_0(a, first, rows, cpu_quantize_neon, cpu_matmul_q8_0_neon, s);
}

#include "backends/cpu/simd/attn.inc"

static void cpu_attn_tile_neon(const cpu_attn_tile *a)
{
    if (a->head_dim % VL)
        cpu_attn_tile_ref(a);
    else
        attn_tile(a);
}

static void cpu_attn_merge_neon(const float *part, size_t stride, int32_t n_tiles, int32_t head_dim, float *y)
{
    if (head_dim % VL)
        cpu_attn_merge_ref(part, stride, n_tiles, head_dim, y);
    else
        attn_merge(part, stride, n_tiles, head_dim, y);
}

static void cpu_rms_norm_neon(float *y, const float *x, const float *w, int32_t n, float eps)
{
    rms_norm(y, x, w, n, eps);
}

static void cpu_softmax_neon(float *y, const float *x, int32_t n)
{
    softmax(y, x, n);
}

static void cpu_add_neon(float *y, const float *a, const float *b, int64_t n)
{
    map2(y, a, b, n, v_add);
}

static void cpu_mul_neon(float *y, const float *a, const float *b, int64_t n)
{
    map2(y, a, b, n, v_mul);
}

static void cpu_swiglu_neon(float *y, const float *a, const float *b, int64_t n)
{
    map2(y, a, b, n, v_swiglu);
}

static void cpu_silu_neon(float *y, const float *x, int64_t n)
{
    map2(y, x, x, n, v_silu_first);
}

static void cpu_scale_neon(float *y, const float *x, float s, int64_t n)
{
    map_scale(y, x, s, n);
}

/* y0 = x0 * c - x1 * s, y1 = x1 * c + x0 * s. */
VEC_INLINE float32x4x2_t rotate(float32x4x2_t x, vec c, vec s)
{
    return (float32x4x2_t){
        {v_fma(x.val[0], c, vnegq_f32(v_mul(x.val[1], s))), v_fma(x.val[1], c, v_mul(x.val[0], s))}};
}

/* Pairs (i, i + half), four at a time. */
static void rotate_halves(float *y, const float *x, const float *cs, int32_t half)
{
    for (int32_t i = 0; i < half; i += VL) {
        float32x4x2_t v = {{v_load(x + i), v_load(x + half + i)}};
        v = rotate(v, v_load(cs + i), v_load(cs + half + i));
        v_store(y + i, v.val[0]);
        v_store(y + half + i, v.val[1]);
    }
}

/* Pairs (2i, 2i + 1), four at a time. */
static void rotate_neighbours(float *y, const float *x, const float *cs, int32_t half)
{
    for (int32_t i = 0; i < half; i += VL)
        vst2q_f32(y + 2 * i, rotate(vld2q_f32(x + 2 * i), v_load(cs + i), v_load(cs + half + i)));
}

static void cpu_rope_neon(float *y, const float *x, const float *cs, int32_t n_heads, int32_t head_dim,
                          int32_t n_rot, bool interleaved)
{
    if (n_rot % (2 * VL)) {
        cpu_rope_ref(y, x, cs, n_heads, head_dim, n_rot, interleaved);
        return;
    }
    for (int32_t h = 0; h < n_heads; h++, x += head_dim, y += head_dim) {
        (interleaved ? rotate_neighbours : rotate_halves)(y, x, cs, n_rot / 2);
        if (y != x) memcpy(y + n_rot, x + n_rot, (size_t)(head_dim - n_rot) * sizeof *y);
    }
}

static void store_f16(unsigned char *dst, const float *x, int32_t n)
{
    int32_t i = 0;
    for (; i + VL <= n; i += VL) vst1_u8(dst + 2 * i, vreinterpret_u8_f16(vcvt_f16_f32(v_load(x + i))));
    if (i < n) {
        float16x4_t h = vcvt_f16_f32(v_load_n(x + i, n - i, 0));
        memcpy(dst + 2 * i, &h, (size_t)(n - i) * 2);
    }
}

static void store_q8_0(unsigned char *dst, const float *x, int32_t n)
{
    for (int32_t b = 0; b < n; b += MF_QK32, dst += MF_BYTES_Q8_0) {
        int8x16_t q[2] = {vdupq_n_s8(0), vdupq_n_s8(0)};
        float amax = mf_bits_f32(block32_amax_bits(x + b));
        bool plain = amax >= CPU_Q8_0_MIN && amax < INFINITY;
        uint16_t d = plain ? mf_f32_to_f16(amax / 127.f) : amax < CPU_Q8_0_MIN ? 0 : CPU_F16_NAN;
        for (int i = 0; i < 2 && plain; i++) q[i] = block32_round16(x + b + 16 * i, 127.f / amax);
        memcpy(dst, &d, sizeof d);
        for (int i = 0; i < 2; i++) vst1q_u8(dst + sizeof d + 16 * i, vreinterpretq_u8_s8(q[i]));
    }
}

static void cpu_store_row_neon(mf_type type, void *dst, const float *x, int32_t n)
{
    if (type == MF_TYPE_Q8_0)
        store_q8_0(dst, x, n);
    else if (type == MF_TYPE_F16)
        store_f16(dst, x, n);
    else
        memcpy(dst, x, (size_t)n * sizeof *x);
}

void cpu_rows_init_neon(cpu_kernels *k)
{
    k->attn_tile = cpu_attn_tile_neon;
    k->attn_merge = cpu_attn_merge_neon;
    k->rms_norm = cpu_rms_norm_neon;
    k->softmax = cpu_softmax_neon;
    k->add = cpu_add_neon;
    k->mul = cpu_mul_neon;
    k->swiglu = cpu_swiglu_neon;
    k->silu = cpu_silu_neon;
    k->scale = cpu_scale_neon;
    k->rope = cpu_rope_neon;
    k->store_row = cpu_store_row_neon;
}
