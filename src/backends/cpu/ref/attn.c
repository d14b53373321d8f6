/* Attention in scalar C: the specification of the order of every sum. */
#include "backends/cpu/ref/rows.h"

#include "base/bytes.h"
#include "base/half.h"
#include "base/mathfn.h"

static float kv_value(mf_type type, const char *cell, int32_t d)
{
    return type == MF_TYPE_F16 ? mf_f16_to_f32(mf_load_u16(cell + 2 * d)) : mf_load_f32(cell + 4 * d);
}

static float score(const cpu_attn_tile *a, const float *q, const char *k)
{
    float l[16] = {0};
    for (int32_t d = 0; d < a->head_dim; d++) l[d % 16] = fmaf(q[d], kv_value(a->kv_type, k, d), l[d % 16]);
    return mf_math_tree16(l) * a->scale;
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
    const char *k = a->k, *v = a->v;
    float s[CPU_ATTN_TILE], *part = a->part;
    for (int32_t i = 0; i < a->rows; i++, part += 2 + a->head_dim) {
        int32_t n = a->n[i];
        for (int32_t c = 0; c < n; c++) s[c] = score(a, a->q[i], k + (size_t)c * a->cell_bytes);
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
