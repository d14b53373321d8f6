/* Attention in scalar C: the specification of the order of every sum. */
#include "backends/cpu/ref/ref.h"
#include "backends/cpu/ref/rows.h"

#include "base/bytes.h"
#include "base/half.h"
#include "base/mathfn.h"

static float kv_value(mf_type type, const char *cell, int32_t d)
{
    if (type == MF_TYPE_F32) return mf_load_f32(cell + 4 * d);
    if (type == MF_TYPE_F16) return mf_f16_to_f32(mf_load_u16(cell + 2 * d));
    const char *block = cell + d / MF_QK32 * MF_BYTES_Q8_0;
    return mf_f16_to_f32(mf_load_u16(block)) * (float)(int8_t)block[2 + d % MF_QK32];
}

static float dot(const cpu_attn_tile *a, const float *q, const char *k)
{
    float l[16] = {0};
    for (int32_t d = 0; d < a->head_dim; d++) l[d % 16] = fmaf(q[d], kv_value(a->kv_type, k, d), l[d % 16]);
    return mf_math_tree16(l);
}

void cpu_attn_dots_q8_0(const cpu_attn_tile *a, int32_t first, int32_t rows, cpu_quantize_fn *quantize,
                        cpu_matmul_fn *matmul, float *s)
{
    _Alignas(64) uint8_t quantized[4 * CPU_ATTN_HEAD * CPU_TILE_SMALL], scratch[CPU_SCRATCH_Q8_0];
    cpu_act act;
    cpu_act_bind(&act, quantized, a->head_dim, rows, CPU_TILE_SMALL);
    for (int32_t r = 0; r < rows; r++) quantize(&act, a->q[first + r], 0, r, r + 1, 0, a->head_dim / MF_QK32);
    cpu_matmul m = {.type = MF_TYPE_Q8_0,
                    .rows = a->n[first + rows - 1],
                    .k = a->head_dim,
                    .nt = rows,
                    .w = a->k,
                    .act = &act,
                    .y = s,
                    .ldy = CPU_ATTN_TILE,
                    .scratch = scratch};
    matmul(&m, 0, m.rows);
}

/* Row i's scores. */
static void scores(const cpu_attn_tile *a, int32_t i, float *s)
{
    const char *k = a->k;
    if (a->kv_type == MF_TYPE_Q8_0)
        cpu_attn_dots_q8_0(a, i, 1, cpu_quantize_ref, cpu_matmul_ref, s);
    else
        for (int32_t c = 0; c < a->n[i]; c++) s[c] = dot(a, a->q[i], k + (size_t)c * a->cell_bytes);
    for (int32_t c = 0; c < a->n[i]; c++) s[c] *= a->scale;
}

/* s holds n scores and becomes their exponentials. Adding +0 makes the largest of zeros of both signs one
 * value, whatever order they were compared in. */
static void exponentials(float *s, int32_t n, float *max, float *sum)
{
    float m = -INFINITY, l[16] = {0};
    for (int32_t c = 0; c < n; c++) m = s[c] > m ? s[c] : m;
    m += 0.f;
    for (int32_t c = 0; c < n; c++) {
        s[c] = mf_math_exp(s[c] - m);
        l[c % 16] += s[c];
    }
    *max = m;
    *sum = mf_math_tree16(l);
}

void cpu_attn_tile_ref(const cpu_attn_tile *a)
{
    const char *v = a->v;
    float s[CPU_ATTN_TILE], *part = a->part;
    for (int32_t i = 0; i < a->rows; i++, part += 2 + a->head_dim) {
        int32_t n = a->n[i];
        scores(a, i, s);
        exponentials(s, n, &part[0], &part[1]);
        for (int32_t d = 0; d < a->head_dim; d++) {
            float o = 0;
            for (int32_t c = 0; c < n; c++)
                o = fmaf(s[c], kv_value(a->kv_type, v + (size_t)c * a->cell_bytes, d), o);
            part[2 + d] = o;
        }
    }
}

void cpu_attn_merge_ref(const float *part, size_t stride, int32_t n_tiles, int32_t head_dim, float *y)
{
    float m = -INFINITY, l = 0;
    for (int32_t i = 0; i < n_tiles; i++) m = part[(size_t)i * stride] > m ? part[(size_t)i * stride] : m;
    for (int32_t d = 0; d < head_dim; d++) y[d] = 0;
    for (int32_t i = 0; i < n_tiles; i++) {
        const float *p = part + (size_t)i * stride;
        float w = mf_math_exp(p[0] - m);
        l = fmaf(p[1], w, l);
        for (int32_t d = 0; d < head_dim; d++) y[d] = fmaf(p[2 + d], w, y[d]);
    }
    for (int32_t d = 0; d < head_dim; d++) y[d] /= l;
}
